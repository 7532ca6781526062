// Numbers and strings as the encodings of this room write them. Not for other rooms.
#pragma once

#include <leasehold/base/result.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::kv {

inline void put_u8(std::string& out, std::uint8_t value) {
  out.push_back(static_cast<char>(value));
}

inline void put_u32(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8)
    put_u8(out, static_cast<std::uint8_t>(value >> shift));
}

inline void put_u64(std::string& out, std::uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8)
    put_u8(out, static_cast<std::uint8_t>(value >> shift));
}

inline void put_sized(std::string& out, std::string_view bytes) {
  put_u32(out, static_cast<std::uint32_t>(bytes.size()));
  out.append(bytes);
}

/// Takes numbers and strings off the front. A take past the end gives nothing and clears ok().
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  std::string_view rest() const { return rest_; }
  bool at_end() const { return ok_ && rest_.empty(); }

  std::string_view take(std::size_t count) {
    if (count > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  std::string_view take_rest() { return take(rest_.size()); }
  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  std::string_view sized() { return take(u32()); }

 private:
  std::uint64_t number(std::size_t width) {
    std::uint64_t value = 0;
    for (const char c : take(width)) value = (value << 8U) | static_cast<unsigned char>(c);
    return value;
  }

  std::string_view rest_;
  bool ok_ = true;
};

inline Error malformed(const char* what) {
  return {ErrorCode::malformed, std::string("malformed ") + what};
}

inline Error unsupported(const char* what, unsigned found, unsigned known) {
  return {ErrorCode::unsupported_format, std::string(what) + " format " + std::to_string(found) +
                                             ", this build knows " + std::to_string(known) +
                                             ": use a newer build"};
}

}  // namespace leasehold::kv
