#include <leasehold/check/history_file.h>

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace leasehold::check {
namespace {

/// What stands behind a member's colon.
struct JsonValue {
  enum class Type : std::uint8_t { absent, null, boolean, number, string };
  Type type = Type::absent;
  bool truth = false;
  std::int64_t number = 0;
  std::string_view text;  ///< of a string; of a number its digits
};

/// The members of one line.
struct Line {
  JsonValue client, op, key, value, expect, ok, start, end, version;
};

constexpr std::array<std::pair<std::string_view, JsonValue Line::*>, 9> kMembers = {{
    {"client", &Line::client},
    {"op", &Line::op},
    {"key", &Line::key},
    {"value", &Line::value},
    {"expect", &Line::expect},
    {"ok", &Line::ok},
    {"start", &Line::start},
    {"end", &Line::end},
    {"v", &Line::version},
}};

constexpr std::array<std::pair<std::string_view, OperationKind>, 5> kOps = {{
    {"get", OperationKind::read},
    {"put", OperationKind::write},
    {"del", OperationKind::remove},
    {"cas", OperationKind::compare},
    {"append", OperationKind::append},
}};

void append_utf8(std::uint32_t code, std::string& text) {
  const auto add = [&text](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80U) {
    add(code);
  } else if (code < 0x800U) {
    add(0xc0U | (code >> 6U));
    add(0x80U | (code & 0x3fU));
  } else if (code < 0x10000U) {
    add(0xe0U | (code >> 12U));
    add(0x80U | ((code >> 6U) & 0x3fU));
    add(0x80U | (code & 0x3fU));
  } else {
    add(0xf0U | (code >> 18U));
    add(0x80U | ((code >> 12U) & 0x3fU));
    add(0x80U | ((code >> 6U) & 0x3fU));
    add(0x80U | (code & 0x3fU));
  }
}

/// Reads one flat object. `wrong()` says what is wrong with it.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  const std::string& wrong() const { return wrong_; }

  /// `unescaped` holds the strings that have escapes: of key, value and expect.
  bool object(Line& line, std::string* unescaped) {
    space();
    if (!take('{')) return fail("a line is one JSON object: {\"op\":\"get\", ...}");
    space();
    if (take('}')) return end();
    do {
      std::string name_storage;
      JsonValue name;
      space();
      if (!string(name, name_storage)) return false;
      JsonValue Line::*member = nullptr;
      for (const auto& known : kMembers) {
        if (known.first == name.text) member = known.second;
      }
      if (member == nullptr) return fail(unknown_member(name.text));
      if ((line.*member).type != JsonValue::Type::absent) {
        return fail(fmt::format("`{}` is there twice", name.text));
      }
      space();
      if (!take(':')) return fail(fmt::format("a colon is missing behind \"{}\"", name.text));
      space();
      std::string& storage = member == &Line::key     ? unescaped[0]
                             : member == &Line::value ? unescaped[1]
                                                      : unescaped[2];
      if (!value(line.*member, storage)) return false;
      space();
    } while (take(','));
    if (!take('}')) return fail("a comma or the closing brace is missing");
    return end();
  }

 private:
  static std::string unknown_member(std::string_view name) {
    std::string text = fmt::format("`{}` is no member of an operation; there are:", name);
    for (const auto& known : kMembers) text += " " + std::string(known.first);
    return text;
  }

  bool fail(const std::string& what) {
    wrong_ = fmt::format("{} (at byte {} of the line)", what, at_ + 1);
    return false;
  }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (text_.compare(at_, word.size(), word) != 0) return false;
    at_ += word.size();
    return true;
  }
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool end() {
    space();
    return at_ == text_.size() || fail("something follows the object");
  }

  bool value(JsonValue& into, std::string& storage) {
    if (at_ < text_.size() && text_[at_] == '"') return string(into, storage);
    if (take("null")) {
      into.type = JsonValue::Type::null;
    } else if (take("true") || take("false")) {
      into.type = JsonValue::Type::boolean;
      into.truth = text_[at_ - 2] == 'u';
    } else {
      return number(into);
    }
    return true;
  }

  bool number(JsonValue& into) {
    const std::size_t begin = at_;
    take('-');
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
    into.text = text_.substr(begin, at_ - begin);
    const char* last = into.text.data() + into.text.size();
    const auto read = std::from_chars(into.text.data(), last, into.number);
    const bool goes_on =
        at_ < text_.size() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E');
    if (read.ec != std::errc() || read.ptr != last || goes_on) {
      at_ = begin;
      return fail("here should be a string, a whole number of 64 bits, true, false or null");
    }
    into.type = JsonValue::Type::number;
    return true;
  }

  bool string(JsonValue& into, std::string& storage) {
    if (!take('"')) return fail("a string in double quotes is missing");
    into.type = JsonValue::Type::string;
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\') ++at_;
    into.text = text_.substr(begin, at_ - begin);
    if (take('"')) return true;
    storage = into.text;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] != '\\') {
        storage += text_[at_++];
      } else if (!escape(storage)) {
        return false;
      }
    }
    into.text = storage;
    return take('"') || fail("a string is not closed");
  }

  bool escape(std::string& into) {
    ++at_;
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
    const char name = at_ < text_.size() ? text_[at_] : '\0';
    const std::size_t known = name == '\0' ? std::string_view::npos : kNames.find(name);
    if (known != std::string_view::npos) {
      into += kMeant[known];
      ++at_;
      return true;
    }
    if (name != 'u') return fail("no such escape in a string");
    ++at_;
    auto code = hex();
    if (code && *code >= 0xd800U && *code < 0xdc00U && take("\\u")) {
      const auto low = hex();
      if (!low || *low < 0xdc00U || *low > 0xdfffU) return fail("half of a surrogate pair");
      code = 0x10000U + ((*code - 0xd800U) << 10U) + (*low - 0xdc00U);
    }
    if (!code) return fail("\\u needs four hexadecimal digits");
    append_utf8(*code, into);
    return true;
  }

  std::optional<std::uint32_t> hex() {
    const std::string_view digits = text_.substr(at_, 4);
    std::uint32_t code = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() != 4 || read.ptr != digits.data() + 4) return std::nullopt;
    at_ += 4;
    return code;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string wrong_;
};

using Type = JsonValue::Type;

bool names_something(const JsonValue& value) {
  return value.type == Type::string || value.type == Type::number;
}

/// Fills `operation` from `line`; returns what is wrong, empty if nothing is.
std::string convert(const Line& line, History& history, Operation& operation) {
  bool known = false;
  std::string allowed;
  for (const auto& op : kOps) {
    allowed += (allowed.empty() ? "" : ", ") + std::string(op.first);
    if (line.op.type != Type::string || op.first != line.op.text) continue;
    operation.kind = op.second;
    known = true;
  }
  if (!known) {
    const std::string given(line.op.type == Type::string ? line.op.text : "");
    return fmt::format("{}; allowed: {}",
                       given.empty() ? "`op` is missing" : fmt::format("`op` is \"{}\"", given),
                       allowed);
  }
  if (!names_something(line.key)) return "`key` has to be a string or a whole number";
  operation.key = history.keys.number_of(line.key.text);
  if (line.client.type != Type::absent) {
    if (line.client.type != Type::number || line.client.number < 0) {
      return "`client` has to be a whole number, 0 or above";
    }
    operation.client = static_cast<std::uint64_t>(line.client.number);
  }
  if (line.start.type != Type::number)
    return "`start` has to be a whole number: when it was called";
  operation.invoked_ns = line.start.number;
  if (line.end.type == Type::number) {
    operation.returned_ns = line.end.number;
    if (line.end.number < line.start.number) return "`end` is before `start`";
    if (!operation.returned()) return "`end` is too large";
  } else if (line.end.type != Type::null) {
    return "`end` has to be a whole number, or null if the answer never came";
  }

  const OperationKind kind = operation.kind;
  const bool takes_null = kind == OperationKind::read || kind == OperationKind::compare;
  const bool unanswered_read = kind == OperationKind::read && !operation.returned();
  if (kind == OperationKind::remove) {
    if (line.value.type != Type::absent) return "a del has no `value`";
  } else if (names_something(line.value)) {
    operation.value = history.values.number_of(line.value.text);
  } else if (!unanswered_read && !(takes_null && line.value.type == Type::null)) {
    return takes_null
               ? "`value` has to be a string, a whole number, or null for a key that is not there"
               : "`value` has to be a string or a whole number";
  }
  if (kind == OperationKind::compare) {
    if (names_something(line.expect)) {
      operation.expected = history.values.number_of(line.expect.text);
    } else if (line.expect.type != Type::null) {
      return "a cas needs `expect`: a string, a whole number, or null for a key that is not there";
    }
  } else if (line.expect.type != Type::absent) {
    return "only a cas has `expect`";
  }
  if (line.ok.type == Type::boolean && operation.returned()) {
    operation.outcome = line.ok.truth ? Outcome::yes : Outcome::no;
    if (kind != OperationKind::compare && kind != OperationKind::remove) {
      return "only a cas and a del have `ok`; leave out what was certainly not executed";
    }
  } else if (line.ok.type != Type::absent && line.ok.type != Type::null) {
    return "`ok` has to be true or false, and needs an `end`";
  } else if (kind == OperationKind::compare && operation.returned()) {
    return "a cas that was answered needs `ok`: true if it wrote, false if another value was there";
  }
  return "";
}

std::string quoted(const std::string& text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20U) {
      result += "\\u00";
      result += kHex[byte >> 4U];
      result += kHex[byte & 15U];
    } else {
      result += c;
    }
  }
  return result + "\"";
}

}  // namespace

Result<void> HistoryReader::take(std::string_view text) {
  ++line_;
  const auto wrong = [this](const std::string& what) {
    return Error{ErrorCode::malformed, fmt::format("line {}: {}", line_, what)};
  };
  if (text.size() > kLineBytesMax) return wrong("longer than 16 MiB");
  if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
  if (text.find_first_not_of(" \t") == std::string_view::npos) return {};
  Line line;
  Parser parser(text);
  if (!parser.object(line, unescaped_)) return wrong(parser.wrong());
  if (line.version.type != Type::absent) {
    if (line_ != 1) return wrong("only the first line may tell the version, `v`");
    if (line.version.type != Type::number || line.version.number != std::int64_t{kVersion}) {
      return Error{ErrorCode::unsupported_format,
                   fmt::format("line 1: version {} of the format; this program reads version 1",
                               line.version.text)};
    }
    return {};
  }
  Operation operation;
  const std::string problem = convert(line, history_, operation);
  if (!problem.empty()) return wrong(problem);
  if (operation.kind == OperationKind::read && !operation.returned()) return {};
  operation.line = line_;
  history_.operations.push_back(operation);
  return {};
}

std::string line_of(const Operation& operation, const History& history) {
  std::string text = fmt::format("{{\"client\":{},\"op\":\"", operation.client);
  for (const auto& op : kOps) {
    if (op.second == operation.kind) text += op.first;
  }
  const auto value = [&history](std::uint64_t number) -> std::string {
    if (number == Operation::kNothing) return "null";
    return quoted(history.values.text_of(number));
  };
  text += "\",\"key\":" + quoted(history.keys.text_of(operation.key));
  if (operation.kind == OperationKind::compare) text += ",\"expect\":" + value(operation.expected);
  if (operation.kind != OperationKind::remove) text += ",\"value\":" + value(operation.value);
  if (operation.returned() && operation.outcome != Outcome::untold) {
    text += operation.outcome == Outcome::yes ? ",\"ok\":true" : ",\"ok\":false";
  }
  return fmt::format("{},\"start\":{},\"end\":{}}}", text, operation.invoked_ns,
                     operation.returned() ? std::to_string(operation.returned_ns) : "null");
}

}  // namespace leasehold::check
