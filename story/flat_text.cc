#include <leasehold/story/flat_text.h>

#include <fmt/format.h>

#include <set>
#include <utility>

namespace leasehold::story {
namespace {

Error not_flat(const std::string& what) {
  return Error{ErrorCode::malformed, what};
}

}  // namespace

void put_string(std::string& out, const char* name, const std::string& value) {
  if (value.empty()) return;
  constexpr const char* kHex = "0123456789abcdef";
  out += fmt::format(",\"{}\":\"", name);
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4U];
      out += kHex[byte & 15U];
    } else {
      out += c;
    }
  }
  out += '"';
}

void put_number(std::string& out, const char* name, std::uint64_t value) {
  if (value != 0) out += fmt::format(",\"{}\":{}", name, value);
}

void put_signed(std::string& out, const char* name, std::int64_t value) {
  out += fmt::format(",\"{}\":{}", name, value);
}

Result<void> FlatReader::object(const std::function<Result<void>(const std::string&)>& member,
                                const std::vector<const char*>& needed) {
  if (!take('{')) return not_flat("a line is one JSON object, { first");
  std::set<std::string> seen;
  do {
    std::string name;
    if (!string(name) || !take(':')) return not_flat("a name in quotes and a colon expected");
    if (!seen.insert(name).second) return not_flat(fmt::format("`{}` stands twice", name));
    if (const Result<void> done = member(name); !done) return done;
  } while (take(','));
  if (!take('}') || at_ != text_.size()) return not_flat("the object ends with }, and the line");
  for (const char* name : needed) {
    if (seen.count(name) == 0) return not_flat(fmt::format("`{}` is missing", name));
  }
  return {};
}

bool FlatReader::take(char c) {
  if (at_ >= text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool FlatReader::escaped(std::string& value) {
  if (take('"') || take('\\')) {
    value += text_[at_ - 1];
    return true;
  }
  if (text_.compare(at_, 3, "u00") != 0 || at_ + 5 > text_.size()) return false;
  unsigned byte = 0;
  for (std::size_t i = at_ + 3; i < at_ + 5; ++i) {
    const char c = text_[i];
    const bool digit = c >= '0' && c <= '9';
    if (!digit && (c < 'a' || c > 'f')) return false;
    byte = byte * 16 + static_cast<unsigned>(digit ? c - '0' : c - 'a' + 10);
  }
  if (byte >= 0x20) return false;
  value += static_cast<char>(byte);
  at_ += 5;
  return true;
}

bool FlatReader::string(std::string& value) {
  if (!take('"')) return false;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '"') return true;
    if (static_cast<unsigned char>(c) < 0x20) return false;
    if (c != '\\') {
      value += c;
    } else if (!escaped(value)) {
      return false;
    }
  }
  return false;
}

bool FlatReader::integer(std::int64_t& value) {
  const bool negative = take('-');
  const std::size_t first = at_;
  std::int64_t n = 0;
  while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9' && at_ - first < 18) {
    n = n * 10 + (text_[at_++] - '0');
  }
  if (at_ == first || (text_[first] == '0' && at_ - first > 1)) return false;
  value = negative ? -n : n;
  return true;
}

}  // namespace leasehold::story
