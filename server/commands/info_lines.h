// The text of INFO.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold::server {

class InfoLines {
 public:
  void section(const char* title) {
    if (!text_.empty()) text_.append("\r\n");
    text_.append("# ").append(title).append("\r\n");
  }
  void add(std::string_view key, std::string_view value) {
    text_.append(key).append(":").append(value).append("\r\n");
  }
  void add(std::string_view key, std::uint64_t value) { add(key, std::to_string(value)); }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace leasehold::server
