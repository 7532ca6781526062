// The text of a log line as it is written: one line, whatever clients and peers have sent.
#pragma once

#include <string>
#include <string_view>

namespace leasehold::server {

/// Control characters are replaced by \xNN, so that nobody outside writes lines of their own or
/// speaks to the terminal that shows the log. Other bytes stay, among them those of UTF-8, except
/// its control characters from U+0080 to U+009F.
inline std::string printable(std::string_view text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool second = i > 0 && static_cast<unsigned char>(text[i - 1]) == 0xc2U;
    if (byte >= 0x20U && byte != 0x7fU && !(second && byte <= 0x9fU)) {
      out.push_back(text[i]);
    } else {
      out.append("\\x").append(1, kDigits[byte >> 4U]).append(1, kDigits[byte & 0xfU]);
    }
  }
  return out;
}

}  // namespace leasehold::server
