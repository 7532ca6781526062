// libFuzzer's door to the head of an archive. The first byte chooses whether its length and
// checksum are made right, so that what stands behind them is reached. See CMakeLists.txt.
#include <leasehold/base/assert.h>
#include <leasehold/kv/coding.h>
#include <leasehold/kv/rocksdb_archive.h>
#include <leasehold/wire/crc32c.h>

#include <cstddef>
#include <cstdint>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace kv = leasehold::kv;
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 4 != 0 && bytes.size() >= kv::kArchiveStartBytes) {
    std::string length;
    kv::put_u32(length, static_cast<std::uint32_t>(bytes.size() + kv::kArchiveCheckBytes));
    bytes.replace(kv::kArchiveStartBytes - length.size(), length.size(), length);
    kv::put_u32(bytes, leasehold::wire::crc32c(bytes));
  }
  const auto head = kv::decode_head(bytes);
  if (head) LEASEHOLD_ASSERT(kv::encode_head(head.value()) == bytes);
  return 0;
}
