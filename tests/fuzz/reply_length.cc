#include <leasehold/tests/fuzz/reply_length.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

namespace leasehold::fuzz {

std::size_t reply_length(std::string_view bytes) {
  std::size_t at = 0;
  for (std::size_t missing = 1; missing > 0; --missing) {
    const std::size_t end = bytes.find("\r\n", at);
    if (end == std::string_view::npos) return 0;
    const char kind = bytes[at];
    const std::string_view text = bytes.substr(at + 1, end - at - 1);
    at = end + 2;
    if (text.find_first_of("\r\n") != std::string_view::npos) return 0;
    if (kind == '+' || kind == '-') continue;
    if (kind == '_') {
      if (!text.empty()) return 0;
      continue;
    }
    std::int64_t number = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
    if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return 0;
    if (kind == ':') continue;
    if (number < -1 || number > std::int64_t{1} << 30) return 0;
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(number, 0));
    if (kind == '*' || kind == '>') {
      missing += count;
    } else if (kind == '%') {
      missing += 2 * count;
    } else if (kind == '$') {
      if (number < 0) continue;
      if (bytes.size() < at + count + 2 || bytes.substr(at + count, 2) != "\r\n") return 0;
      at += count + 2;
    } else {
      return 0;
    }
  }
  return at;
}

}  // namespace leasehold::fuzz
