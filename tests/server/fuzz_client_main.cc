// libFuzzer's door. See CMakeLists.txt for how to build and run it.
#include <leasehold/tests/server/fuzz_client.h>

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  leasehold::server::fuzz_client(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
