#include <leasehold/server/front/resp.h>

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace leasehold::server {
namespace {

constexpr std::size_t kSpansKept = 1024;
constexpr std::size_t kInlineBytesKept = 4096;
/// Of a length that is read without a closer look: they fit its line, and the number.
constexpr std::size_t kPlainDigits = 9;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

/// A decimal number as RESP writes it: no sign but "-", no leading zeros, no "-0", nothing around
/// it.
bool parse_decimal(std::string_view text, std::int64_t& value) {
  const std::string_view digits = text.substr(!text.empty() && text.front() == '-' ? 1 : 0);
  if (digits.empty() || !is_digit(digits.front())) return false;
  if (text.size() > 1 && digits.front() == '0') return false;
  const auto end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc() && result.ptr == end;
}

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// Takes one character of a double-quoted word at `at` (escapes included) and appends it.
void take_escaped(std::string_view line, std::size_t& at, std::string& out) {
  if (line[at] != '\\' || at + 1 >= line.size()) {
    out.push_back(line[at++]);
    return;
  }
  const char escaped = line[at + 1];
  if (escaped == 'x' && at + 3 < line.size() && hex_value(line[at + 2]) >= 0 &&
      hex_value(line[at + 3]) >= 0) {
    out.push_back(static_cast<char>(hex_value(line[at + 2]) * 16 + hex_value(line[at + 3])));
    at += 4;
    return;
  }
  switch (escaped) {
    case 'n': out.push_back('\n'); break;
    case 'r': out.push_back('\r'); break;
    case 't': out.push_back('\t'); break;
    case 'b': out.push_back('\b'); break;
    case 'a': out.push_back('\a'); break;
    default: out.push_back(escaped); break;
  }
  at += 2;
}

/// Takes the quoted word that starts at `at`, which is after its opening quote. False: the quote is
/// never closed, or something other than a space follows it.
bool take_quoted(std::string_view line, char quote, std::size_t& at, std::string& out) {
  while (at < line.size()) {
    if (line[at] == quote) {
      ++at;
      return at == line.size() || is_space(line[at]);
    }
    if (quote == '"') {
      take_escaped(line, at, out);
    } else if (line[at] == '\\' && at + 1 < line.size() && line[at + 1] == '\'') {
      out.push_back('\'');
      at += 2;
    } else {
      out.push_back(line[at++]);
    }
  }
  return false;
}

void append_number(std::string& out, char prefix, std::int64_t value) {
  char digits[24];
  digits[0] = prefix;
  char* end = std::to_chars(digits + 1, digits + sizeof(digits) - 2, value).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out.append(digits, static_cast<std::size_t>(end - digits));
}

}  // namespace

void RequestParser::restart() {
  finished_ = false;
  counted_ = false;
  sized_ = false;
  position_ = 0;
  expected_ = 0;
  remaining_ = 0;
  args_.clear();
  spans_.clear();
}

std::size_t RequestParser::held_bytes() const {
  return spans_.capacity() * sizeof(Span) + args_.capacity() * sizeof(std::string_view) +
         inline_text_.capacity();
}

void RequestParser::trim() {
  if (!finished_) return;
  if (spans_.capacity() > kSpansKept) {
    spans_.clear();
    args_.clear();
    spans_.shrink_to_fit();
    args_.shrink_to_fit();
  }
  if (inline_text_.capacity() > kInlineBytesKept) {
    args_.clear();
    inline_text_.clear();
    inline_text_.shrink_to_fit();
  }
}

ParseStatus RequestParser::malformed(std::string why) {
  finished_ = true;
  error_ = "Protocol error: " + std::move(why);
  return ParseStatus::malformed;
}

ParseStatus RequestParser::parse(std::string_view bytes, const RequestLimits& limits) {
  if (finished_) restart();
  if (bytes.empty()) return ParseStatus::incomplete;
  line_ = bytes.front() != '*';
  return line_ ? parse_inline(bytes) : parse_array(bytes, limits);
}

bool RequestParser::read_plain_length(std::string_view bytes, std::int64_t max,
                                      std::int64_t& value) {
  std::size_t at = position_ + 1;
  std::int64_t number = 0;
  while (at < bytes.size() && at <= position_ + kPlainDigits && is_digit(bytes[at])) {
    number = 10 * number + (bytes[at++] - '0');
  }
  const bool plain = at + 1 < bytes.size() && bytes[at] == '\r' && bytes[at + 1] == '\n' &&
                     bytes[position_ + 1] != '0' && at > position_ + 1;
  if (!plain || number > max) return false;
  value = number;
  position_ = at + 2;
  return true;
}

RequestParser::LineStatus RequestParser::read_length(std::string_view bytes, const char* what,
                                                     std::int64_t max, std::int64_t& value) {
  if (read_plain_length(bytes, max, value)) return LineStatus::complete;
  const std::string_view line = bytes.substr(position_, kLengthLineBytesMax);
  const std::size_t end = line.find('\r');
  if (end == std::string_view::npos || end + 1 >= line.size()) {
    if (line.size() < kLengthLineBytesMax) return LineStatus::incomplete;
    malformed(fmt::format("invalid {} length", what));
    return LineStatus::malformed;
  }
  if (line[end + 1] != '\n' || !parse_decimal(line.substr(1, end - 1), value) || value > max) {
    malformed(fmt::format("invalid {} length", what));
    return LineStatus::malformed;
  }
  position_ += end + 2;
  return LineStatus::complete;
}

ParseStatus RequestParser::parse_array(std::string_view bytes, const RequestLimits& limits) {
  std::int64_t number = 0;
  if (!counted_) {
    switch (read_length(bytes, "multibulk", kArgumentsMax, number)) {
      case LineStatus::incomplete: return ParseStatus::incomplete;
      case LineStatus::malformed: return ParseStatus::malformed;
      case LineStatus::complete: break;
    }
    // "*-1" is the null array. Like the empty one it asks for nothing and has no reply; and Redis
    // takes every other negative length for it.
    remaining_ = number < 0 ? 0 : static_cast<std::size_t>(number);
    if (remaining_ > limits.arguments) return malformed("unauthenticated multibulk length");
    counted_ = true;
  }
  while (remaining_ > 0) {
    if (!sized_) {
      if (position_ >= bytes.size()) return ParseStatus::incomplete;
      if (bytes[position_] != '$') {
        const auto code = static_cast<unsigned char>(bytes[position_]);
        const bool printable = code > 0x20 && code < 0x7f;
        return malformed(printable ? fmt::format("expected '$', got '{}'", bytes[position_])
                                   : fmt::format("expected '$', got byte {}", code));
      }
      switch (read_length(bytes, "bulk", kBulkBytesMax, number)) {
        case LineStatus::incomplete: return ParseStatus::incomplete;
        case LineStatus::malformed: return ParseStatus::malformed;
        case LineStatus::complete: break;
      }
      if (number < 0) return malformed("invalid bulk length");
      bulk_bytes_ = static_cast<std::size_t>(number);
      if (bulk_bytes_ > limits.bulk_bytes) return malformed("unauthenticated bulk length");
      sized_ = true;
      expected_ = position_ + bulk_bytes_ + 2;
      if (expected_ > kRequestBytesMax) {
        return malformed(fmt::format("request larger than {} bytes", kRequestBytesMax));
      }
    }
    if (bytes.size() < expected_) return ParseStatus::incomplete;
    if (bytes[expected_ - 2] != '\r' || bytes[expected_ - 1] != '\n') {
      return malformed("expected CRLF after a bulk string");
    }
    spans_.push_back({position_, bulk_bytes_});
    position_ = expected_;
    sized_ = false;
    --remaining_;
  }
  for (const Span& span : spans_) args_.push_back(bytes.substr(span.offset, span.length));
  finished_ = true;
  return ParseStatus::complete;
}

ParseStatus RequestParser::parse_inline(std::string_view bytes) {
  // position_ is how far the line end has been looked for.
  const std::size_t end = bytes.substr(0, kInlineBytesMax).find('\n', position_);
  if (end == std::string_view::npos) {
    if (bytes.size() >= kInlineBytesMax) return malformed("too big inline request");
    position_ = bytes.size();
    return ParseStatus::incomplete;
  }
  if (!split_inline(bytes.substr(0, end))) return malformed("unbalanced quotes in request");
  position_ = end + 1;
  finished_ = true;
  return ParseStatus::complete;
}

bool RequestParser::split_inline(std::string_view line) {
  // The words are collected in one string first and cut afterwards, because it may grow and move.
  // Escapes only ever shorten a word, so it never outgrows the line.
  inline_text_.clear();
  std::size_t at = 0;
  for (;;) {
    while (at < line.size() && is_space(line[at])) ++at;
    if (at == line.size()) break;
    const std::size_t start = inline_text_.size();
    while (at < line.size() && !is_space(line[at])) {
      const char c = line[at];
      if (c == '"' || c == '\'') {
        ++at;
        if (!take_quoted(line, c, at, inline_text_)) return false;
        break;
      }
      inline_text_.push_back(c);
      ++at;
    }
    spans_.push_back({start, inline_text_.size() - start});
  }
  const std::string_view text = inline_text_;
  for (const Span& span : spans_) args_.push_back(text.substr(span.offset, span.length));
  return true;
}

void append_simple(std::string& out, std::string_view text) {
  out.push_back('+');
  out.append(text);
  out.append("\r\n");
}

void append_error(std::string& out, std::string_view text) {
  out.push_back('-');
  for (const char c : text) out.push_back(c == '\r' || c == '\n' ? ' ' : c);
  out.append("\r\n");
}

void append_integer(std::string& out, std::int64_t value) {
  append_number(out, ':', value);
}

void append_bulk(std::string& out, std::string_view bytes) {
  append_number(out, '$', static_cast<std::int64_t>(bytes.size()));
  out.append(bytes);
  out.append("\r\n");
}

void append_null(std::string& out, Protocol protocol) {
  out.append(protocol == Protocol::resp3 ? "_\r\n" : "$-1\r\n");
}

void append_null_array(std::string& out, Protocol protocol) {
  out.append(protocol == Protocol::resp3 ? "_\r\n" : "*-1\r\n");
}

void append_array(std::string& out, std::size_t count) {
  append_number(out, '*', static_cast<std::int64_t>(count));
}

void append_push(std::string& out, std::size_t count, Protocol protocol) {
  append_number(out, protocol == Protocol::resp3 ? '>' : '*', static_cast<std::int64_t>(count));
}

void append_map(std::string& out, std::size_t count, Protocol protocol) {
  if (protocol == Protocol::resp3) {
    append_number(out, '%', static_cast<std::int64_t>(count));
  } else {
    append_array(out, 2 * count);
  }
}

}  // namespace leasehold::server
