// Pieces of a fuzzer's input.
#pragma once

#include <leasehold/base/assert.h>
#include <leasehold/base/result.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leasehold::fuzz {

/// Takes pieces off the front of the input; zeroes behind its end.
class Input {
 public:
  explicit Input(std::string_view bytes) : rest_(bytes) {}

  bool empty() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }
  std::string_view bytes(std::size_t count) {
    const std::string_view out = rest_.substr(0, count);
    rest_.remove_prefix(out.size());
    return out;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

/// Whether it was accepted; a refusal has to say why.
template <class T>
bool accepted(const Result<T>& result) {
  if (result) return true;
  LEASEHOLD_ASSERT(!result.error().message.empty());
  return false;
}

}  // namespace leasehold::fuzz
