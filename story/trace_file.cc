#include <leasehold/story/flat_text.h>
#include <leasehold/story/trace_file.h>

#include <fmt/format.h>

#include <map>
#include <utility>

namespace leasehold::story {
namespace {

constexpr std::size_t kKinds = static_cast<std::size_t>(Kind::mark) + 1;

Error malformed(const std::string& what) {
  return Error{ErrorCode::malformed, what};
}

// ---- Reading: a flat object of strings and integers ----

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  Result<void> read(Record& record) {
    return text_.object([this, &record](const std::string& name) { return member(name, record); },
                        {"at", "kind"});
  }

 private:
  Result<void> member(const std::string& name, Record& record) {
    const std::map<std::string, std::string*> strings = {
        {"what", &record.what}, {"why", &record.why}, {"text", &record.text}};
    const auto text = strings.find(name);
    if (text != strings.end()) {
      if (!text_.string(*text->second)) return malformed(fmt::format("`{}` is a string", name));
      return {};
    }
    if (name == "kind") return kind(record);
    std::int64_t n = 0;
    if (!text_.integer(n)) {
      return malformed(fmt::format("`{}` is not a name that takes this value", name));
    }
    if (name == "holder_ppm") {
      record.holder_ppm = n;
    } else if (name == "promise_ppm") {
      record.promise_ppm = n;
    } else if (name == "from") {
      record.from = Duration(n);
    } else if (name == "until") {
      record.until = Duration(n);
    } else if (n < 0) {
      return malformed(fmt::format("`{}` is below zero", name));
    } else {
      return counted(name, static_cast<std::uint64_t>(n), record);
    }
    return {};
  }

  static Result<void> counted(const std::string& name, std::uint64_t n, Record& record) {
    if (name == "at") {
      record.at = Duration(static_cast<std::int64_t>(n));
    } else if (name == "node") {
      record.node = NodeId(n);
    } else if (name == "peer") {
      record.peer = NodeId(n);
    } else if (name == "group") {
      record.group = GroupId(n);
    } else if (name == "term") {
      record.term = Term(n);
    } else if (name == "round") {
      record.round = Round(n);
    } else if (name == "index") {
      record.index = Index(n);
    } else if (name == "number") {
      record.number = n;
    } else if (name == "v") {
      if (n != kTraceVersion) {
        return Error{ErrorCode::unsupported_format,
                     fmt::format("this is a trace of version {}; this program reads version {}", n,
                                 kTraceVersion)};
      }
    } else {
      return malformed(fmt::format("there is no member `{}`", name));
    }
    return {};
  }

  Result<void> kind(Record& record) {
    std::string name;
    if (!text_.string(name)) return malformed("`kind` is a string");
    std::string all;
    for (std::size_t i = 0; i < kKinds; ++i) {
      const Kind kind = static_cast<Kind>(i);
      if (name == kind_name(kind)) {
        record.kind = kind;
        return {};
      }
      all += (i == 0 ? "" : ", ") + std::string(kind_name(kind));
    }
    return malformed(fmt::format("there is no kind `{}`; there are {}", name, all));
  }

  FlatReader text_;
};

}  // namespace

std::string encode_record(const Record& record) {
  std::string out = fmt::format("{{\"at\":{}", record.at.count());
  put_string(out, "kind", kind_name(record.kind));
  if (record.kind == Kind::run) put_number(out, "v", kTraceVersion);
  put_number(out, "node", record.node.value());
  put_number(out, "peer", record.peer.value());
  put_number(out, "group", record.group.value());
  put_number(out, "term", record.term.value());
  put_number(out, "round", record.round.value());
  put_number(out, "index", record.index.value());
  if (record.from) put_signed(out, "from", record.from->count());
  if (record.until) put_signed(out, "until", record.until->count());
  put_number(out, "number", record.number);
  if (record.kind == Kind::clock) {
    put_signed(out, "holder_ppm", record.holder_ppm);
    put_signed(out, "promise_ppm", record.promise_ppm);
  }
  put_string(out, "what", record.what);
  put_string(out, "why", record.why);
  put_string(out, "text", record.text);
  return out + "}";
}

Result<Record> decode_record(const std::string& line) {
  Record record;
  if (const Result<void> done = Reader(line).read(record); !done) return done.error();
  return record;
}

Result<std::vector<Record>> decode_trace(const std::string& name, const std::string& text) {
  std::vector<Record> records;
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    const std::string where = fmt::format("{}:{}: ", name, records.size() + 1);
    Result<Record> record = decode_record(text.substr(begin, end - begin));
    if (!record) return Error{record.error().code, where + record.error().message};
    const bool first = records.empty();
    if (first != (record.value().kind == Kind::run)) {
      return malformed(where + "a trace begins with one record of kind `run`");
    }
    if (!first && record.value().at < records.back().at) {
      return malformed(where + "time moves back");
    }
    if (records.size() == kTraceRecordsMax) {
      return malformed(
          fmt::format("{}a trace has at most {} records; record less with --from and --until",
                      where, kTraceRecordsMax));
    }
    records.push_back(std::move(record).value());
    begin = end + 1;
  }
  if (records.empty()) return malformed(name + " is empty");
  return records;
}

}  // namespace leasehold::story
