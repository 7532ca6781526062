// libFuzzer's door. See tests/wire/CMakeLists.txt for how to build and run it.
#include <leasehold/tests/storage/fuzz_segment.h>

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  leasehold::storage::fuzz_segment(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
