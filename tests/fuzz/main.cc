// libFuzzer's door to each fuzzer. run.py builds and runs them.
#include <leasehold/tests/fuzz/fuzz.h>

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  leasehold::fuzz::take(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
