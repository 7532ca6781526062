#include <leasehold/story/cluster_trace.h>
#include <leasehold/story/flat_text.h>
#include <leasehold/story/trace_clocks.h>
#include <leasehold/story/trace_file.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace leasehold::story {
namespace {

/// Lines that are no records begin so: a record begins with its instant.
constexpr std::string_view kHeadBegin = "{\"kind\":\"";
constexpr std::string_view kFirstBegin = "{\"kind\":\"cluster_trace\"";

Error wrong_line(const std::string& what) {
  return Error{ErrorCode::malformed, what};
}

// ---- Writing ----

std::string head_of(const char* kind) {
  return fmt::format("{{\"kind\":\"{}\"", kind);
}

void put_line(std::string& out, const std::string& line) {
  out += line;
  out += "}\n";
}

void put_part(std::string& out, const TracePart& part) {
  std::string line = head_of("part");
  put_string(line, "server", part.server);
  put_number(line, "node", part.node.value());
  put_number(line, "process", part.process);
  put_string(line, "machine", part.machine);
  put_string(line, "version", part.version);
  put_signed(line, "begin", part.begin.count());
  put_signed(line, "end", part.end.count());
  put_number(line, "dropped", part.dropped);
  put_string(line, "ended", part.ended);
  put_string(line, "text", part.text);
  put_string(line, "reads", part.reads);
  put_line(out, line);
  for (const TraceProbe& probe : part.probes) {
    std::string asked = head_of("probe");
    put_signed(asked, "asked", probe.asked.count());
    put_signed(asked, "shown", probe.shown.count());
    put_signed(asked, "answered", probe.answered.count());
    put_line(out, asked);
  }
  for (const Record& record : part.records) out += encode_record(record) + "\n";
}

/// As many digits as are read.
std::int64_t bounded(Duration time) {
  constexpr std::int64_t kMost = 999'999'999'999'999'999;
  return std::clamp(time.count(), -kMost, kMost);
}

/// For people: a reader finds them itself.
void put_clocks(std::string& out, const ClusterTrace& trace) {
  for (const ClockPair& pair : align_clocks(trace).pairs) {
    std::string line = head_of("clocks");
    put_number(line, "node", trace.parts[pair.one].node.value());
    put_number(line, "peer", trace.parts[pair.other].node.value());
    if (pair.low) put_signed(line, "low", bounded(*pair.low));
    if (pair.high) put_signed(line, "high", bounded(*pair.high));
    put_number(line, "messages", pair.messages);
    put_line(out, line);
  }
}

// ---- Reading ----

/// The members of a line that is no record.
struct Head {
  std::string kind;
  std::map<std::string, std::string> texts;
  std::map<std::string, std::int64_t> numbers;

  std::string text(const char* name) const {
    const auto found = texts.find(name);
    return found == texts.end() ? std::string() : found->second;
  }
  std::int64_t number(const char* name) const {
    const auto found = numbers.find(name);
    return found == numbers.end() ? 0 : found->second;
  }
  std::uint64_t count(const char* name) const { return static_cast<std::uint64_t>(number(name)); }
  Duration time(const char* name) const { return Duration(number(name)); }
};

/// The members of each kind of line: texts, numbers that may be below zero, and others.
struct HeadForm {
  const char* kind;
  std::vector<std::string_view> texts;
  std::vector<std::string_view> times;
  std::vector<std::string_view> counts;
};

const std::vector<HeadForm>& head_forms() {
  static const std::vector<HeadForm> kForms = {
      {"cluster_trace", {"program"}, {}, {"v", "group", "span"}},
      {"missing", {"server", "text"}, {}, {}},
      {"part",
       {"server", "machine", "version", "ended", "text", "reads"},
       {},
       {"node", "process", "begin", "end", "dropped"}},
      {"probe", {}, {}, {"asked", "shown", "answered"}},
      {"clocks", {}, {"low", "high"}, {"node", "peer", "messages"}}};
  return kForms;
}

bool has(const std::vector<std::string_view>& names, std::string_view name) {
  for (const std::string_view one : names) {
    if (one == name) return true;
  }
  return false;
}

/// `kind` is the first member: the form of the others follows from it.
Result<Head> read_head(const std::string& line) {
  Head head;
  const HeadForm* form = nullptr;
  FlatReader reader(line);
  const auto member = [&](const std::string& name) -> Result<void> {
    if (form == nullptr) {
      if (!reader.string(head.kind)) return wrong_line("`kind` is a string");
      for (const HeadForm& one : head_forms()) {
        if (head.kind == one.kind) form = &one;
      }
      return form != nullptr ? Result<void>()
                             : wrong_line(fmt::format("there is no kind `{}` here", head.kind));
    }
    if (has(form->texts, name)) {
      if (!reader.string(head.texts[name])) {
        return wrong_line(fmt::format("`{}` is a string", name));
      }
      return {};
    }
    const bool signs = has(form->times, name);
    if (!signs && !has(form->counts, name)) {
      return wrong_line(fmt::format("a line of kind `{}` has no member `{}`", head.kind, name));
    }
    std::int64_t& value = head.numbers[name];
    if (!reader.integer(value) || (!signs && value < 0)) {
      return wrong_line(fmt::format("`{}` is no such number", name));
    }
    return {};
  };
  const Result<void> done = reader.object(member, {"kind"});
  if (!done) return done.error();
  return head;
}

class ClusterReader {
 public:
  Result<void> line(const std::string& line) {
    const bool head = line.compare(0, kHeadBegin.size(), kHeadBegin) == 0;
    if (first_) {
      first_ = false;
      return begin(line);
    }
    if (!head) return record(line);
    const Result<Head> read = read_head(line);
    return read ? take(read.value()) : Result<void>(read.error());
  }

  ClusterTrace& trace() { return trace_; }

 private:
  Result<void> begin(const std::string& line) {
    if (!looks_like_cluster_trace(line)) {
      return wrong_line(
          "this is no file of leasehold trace: it begins with {\"kind\":"
          "\"cluster_trace\"");
    }
    const Result<Head> read = read_head(line);
    if (!read) return read.error();
    const Head& head = read.value();
    if (head.count("v") != kClusterTraceVersion) {
      return Error{ErrorCode::unsupported_format,
                   fmt::format("this is a cluster trace of version {}; this program reads version "
                               "{}",
                               head.count("v"), kClusterTraceVersion)};
    }
    trace_.program = head.text("program");
    trace_.group = head.count("group");
    trace_.span = head.time("span");
    return {};
  }

  Result<void> take(const Head& head) {
    if (head.kind == "missing") {
      if (trace_.missing.size() == kTracePartsMax) return wrong_line("too many servers");
      trace_.missing.push_back({head.text("server"), head.text("text")});
      return {};
    }
    if (head.kind == "part") return part(head);
    if (head.kind == "probe") return probe(head);
    if (head.kind == "clocks") return {};
    return wrong_line("the first line stands twice");
  }

  Result<void> part(const Head& head) {
    if (trace_.parts.size() == kTracePartsMax) {
      return wrong_line(fmt::format("a file has at most {} parts", kTracePartsMax));
    }
    TracePart part;
    part.server = head.text("server");
    part.node = NodeId(head.count("node"));
    part.process = head.count("process");
    part.machine = head.text("machine");
    part.version = head.text("version");
    part.begin = head.time("begin");
    part.end = head.time("end");
    part.dropped = head.count("dropped");
    part.ended = head.text("ended");
    part.text = head.text("text");
    part.reads = head.text("reads");
    if (part.node == raft::kNobody) return wrong_line("a part is of a node");
    if (part.end < part.begin || part.end - part.begin > kTraceSpanMax) {
      return wrong_line("a part ends after its beginning, and at most an hour later");
    }
    if (part.ended != "whole" && part.ended != "stopped" && part.ended != "lost") {
      return wrong_line("a part has ended `whole`, `stopped` or `lost`");
    }
    trace_.parts.push_back(std::move(part));
    return {};
  }

  Result<void> probe(const Head& head) {
    if (trace_.parts.empty()) return wrong_line("a probe stands behind its part");
    if (probes_++ == kTraceProbesMax) return wrong_line("too many probes");
    TracePart& part = trace_.parts.back();
    const TraceProbe probe{head.time("asked"), head.time("shown"), head.time("answered")};
    if (!part.records.empty()) return wrong_line("a probe stands before the records of its part");
    if (!first_asked_) first_asked_ = probe.asked;
    const bool near = probe.asked >= *first_asked_ - kTraceSpanMax &&
                      probe.answered <= *first_asked_ + 2 * kTraceSpanMax;
    if (!near || probe.answered < probe.asked || probe.shown < part.begin ||
        probe.shown > part.end) {
      return wrong_line("a probe is answered after it was asked, and within the time of its part");
    }
    part.probes.push_back(probe);
    return {};
  }

  Result<void> record(const std::string& line) {
    if (trace_.parts.empty()) return wrong_line("a record stands behind its part");
    Result<Record> read = decode_record(line);
    if (!read) return read.error();
    Record& record = read.value();
    TracePart& part = trace_.parts.back();
    if (record.kind == Kind::run || record.node != part.node) {
      return wrong_line("a record is of the node of its part");
    }
    if (record.at < part.begin || record.at > part.end) {
      return wrong_line("a record is within the time of its part");
    }
    if (!part.records.empty() && record.at < part.records.back().at) {
      return wrong_line("time moves back");
    }
    if (records_++ == kClusterRecordsMax) {
      return wrong_line(fmt::format("a file has at most {} records; record for a shorter time",
                                    kClusterRecordsMax));
    }
    part.records.push_back(std::move(record));
    return {};
  }

  bool first_ = true;
  std::size_t records_ = 0;
  std::size_t probes_ = 0;
  std::optional<Duration> first_asked_;
  ClusterTrace trace_;
};

}  // namespace

bool looks_like_cluster_trace(const std::string& text) {
  return text.compare(0, kFirstBegin.size(), kFirstBegin) == 0;
}

std::string encode_cluster_trace(const ClusterTrace& trace) {
  std::string out;
  std::string first = head_of("cluster_trace");
  put_number(first, "v", kClusterTraceVersion);
  put_string(first, "program", trace.program);
  put_number(first, "group", trace.group);
  put_signed(first, "span", trace.span.count());
  put_line(out, first);
  for (const TraceMissing& missing : trace.missing) {
    std::string line = head_of("missing");
    put_string(line, "server", missing.server);
    put_string(line, "text", missing.text);
    put_line(out, line);
  }
  put_clocks(out, trace);
  for (const TracePart& part : trace.parts) put_part(out, part);
  return out;
}

Result<ClusterTrace> decode_cluster_trace(const std::string& name, const std::string& text) {
  if (text.empty()) return wrong_line(name + " is empty");
  ClusterReader reader;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    const Result<void> read = reader.line(text.substr(begin, end - begin));
    ++number;
    if (!read) {
      return Error{read.error().code, fmt::format("{}:{}: {}", name, number, read.error().message)};
    }
    begin = end + 1;
  }
  return std::move(reader.trace());
}

}  // namespace leasehold::story
