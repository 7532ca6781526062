// libFuzzer's door. See CMakeLists.txt for how to build and run it.
#include <leasehold/tests/wire/fuzz_frames.h>

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  leasehold::wire::fuzz_frames(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
