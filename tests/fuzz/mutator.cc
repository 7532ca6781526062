// libFuzzer's door to the mutators.
#include <leasehold/tests/fuzz/mutator.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

/// libFuzzer's own changes, which are of bytes.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max);

namespace {

/// One in this many changes is a change of bytes.
constexpr std::uint64_t kOfBytes = 4;

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max, unsigned seed) {
  leasehold::Random random(seed);
  if (random.chance(1, kOfBytes)) return LLVMFuzzerMutate(data, size, max);
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::string text = leasehold::fuzz::changed(input, random);
  const std::size_t taken = std::min(text.size(), max);
  std::memcpy(data, text.data(), taken);
  return taken;
}
