#include <leasehold/client/flat_json.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

namespace leasehold::client {
namespace {

using Fields = std::map<std::string, FlatJsonValue, std::less<>>;

bool is_digit(char byte) {
  return byte >= '0' && byte <= '9';
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto byte = [&out](std::uint32_t value) { out.push_back(static_cast<char>(value)); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0U | code >> 6U);
  } else {
    if (code < 0x10000) {
      byte(0xE0U | code >> 12U);
    } else {
      byte(0xF0U | code >> 18U);
      byte(0x80U | (code >> 12U & 0x3FU));
    }
    byte(0x80U | (code >> 6U & 0x3FU));
  }
  byte(0x80U | (code & 0x3FU));
}

/// Each function reads one thing at the front; false: it is not there.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}

  bool object(Fields& fields) {
    if (!take('{')) return false;
    if (take('}')) return end();
    do {
      std::string name;
      FlatJsonValue value;
      if (!text(name) || !take(':') || !this->value(value)) return false;
      if (!fields.emplace(std::move(name), std::move(value)).second) return false;
    } while (take(','));
    return take('}') && end();
  }

 private:
  void skip_space() {
    left_.remove_prefix(std::min(left_.find_first_not_of(" \t\r\n"), left_.size()));
  }
  bool take(char byte) {
    skip_space();
    if (left_.empty() || left_.front() != byte) return false;
    left_.remove_prefix(1);
    return true;
  }
  bool end() {
    skip_space();
    return left_.empty();
  }

  bool value(FlatJsonValue& value) {
    skip_space();
    value.is_text = !left_.empty() && left_.front() == '"';
    return value.is_text ? text(value.text) : number(value.text);
  }

  bool number(std::string& out) {
    const std::size_t size = std::min(left_.find_first_not_of("+-.0123456789Ee"), left_.size());
    const std::string_view digits = left_.substr(0, size);
    left_.remove_prefix(size);
    out = digits;
    const std::string_view unsigned_part = digits.substr(!digits.empty() && digits[0] == '-');
    if (unsigned_part.empty() || !is_digit(unsigned_part.front())) return false;
    if (unsigned_part.size() > 1 && unsigned_part[0] == '0' && is_digit(unsigned_part[1])) {
      return false;
    }
    double ignored = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), ignored);
    return parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size() &&
           is_digit(digits.back());
  }

  bool text(std::string& out) {
    if (!take('"')) return false;
    while (!left_.empty()) {
      const char byte = left_.front();
      left_.remove_prefix(1);
      if (byte == '"') return is_utf8(out);
      if (static_cast<unsigned char>(byte) < 0x20) return false;
      if (byte != '\\') {
        out.push_back(byte);
      } else if (!escaped(out)) {
        return false;
      }
    }
    return false;
  }

  bool escaped(std::string& out) {
    static constexpr std::string_view kNames = "\"\\/bfnrtu";
    static constexpr std::string_view kBytes = "\"\\/\b\f\n\r\t";
    const std::size_t which = left_.empty() ? std::string_view::npos : kNames.find(left_.front());
    if (which == std::string_view::npos) return false;
    left_.remove_prefix(1);
    if (which < kBytes.size()) {
      out.push_back(kBytes[which]);
      return true;
    }
    std::uint32_t code = 0;
    if (!hexadecimal(code)) return false;
    if (code >= 0xD800 && code < 0xDC00) {
      std::uint32_t low = 0;
      if (left_.substr(0, 2) != "\\u") return false;
      left_.remove_prefix(2);
      if (!hexadecimal(low) || low < 0xDC00 || low >= 0xE000) return false;
      code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
    }
    // Half of a pair makes bytes that is_utf8() refuses.
    append_utf8(out, code);
    return true;
  }

  bool hexadecimal(std::uint32_t& code) {
    const std::string_view digits = left_.substr(0, 4);
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (digits.size() < 4 || parsed.ec != std::errc() ||
        parsed.ptr != digits.data() + digits.size()) {
      return false;
    }
    left_.remove_prefix(4);
    return true;
  }

  std::string_view left_;
};

}  // namespace

std::optional<std::uint64_t> FlatJsonValue::whole() const {
  std::int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (is_text || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() ||
      number < 0) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(number);
}

Result<Fields> parse_flat_json(std::string_view bytes) {
  Fields fields;
  if (!Reader(bytes).object(fields)) {
    return Error{ErrorCode::malformed, "not one JSON object of texts and numbers"};
  }
  return fields;
}

void append_json_text(std::string& out, std::string_view text) {
  out.push_back('"');
  for (const char byte : text) {
    if (byte == '"' || byte == '\\') {
      out.push_back('\\');
      out.push_back(byte);
    } else if (static_cast<unsigned char>(byte) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(byte));
    } else {
      out.push_back(byte);
    }
  }
  out.push_back('"');
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const auto at = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = at(0);
    const std::size_t size = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if ((first >= 0x80 && first < 0xC2) || first > 0xF4 || size > text.size()) return false;
    for (std::size_t i = 1; i < size; ++i) {
      if ((at(i) & 0xC0U) != 0x80) return false;
    }
    // Longer than necessary, half of a pair, above the last code point.
    if (first == 0xE0 && at(1) < 0xA0) return false;
    if (first == 0xED && at(1) >= 0xA0) return false;
    if (first == 0xF0 && at(1) < 0x90) return false;
    if (first == 0xF4 && at(1) >= 0x90) return false;
    text.remove_prefix(size);
  }
  return true;
}

}  // namespace leasehold::client
