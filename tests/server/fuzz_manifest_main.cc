// libFuzzer's door to the manifest of a backup. The first byte chooses whether its check is made
// right, so that what stands behind it is reached. See CMakeLists.txt.
#include <leasehold/base/assert.h>
#include <leasehold/server/backup_manifest.h>
#include <leasehold/wire/crc32c.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace server = leasehold::server;
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 4 != 0 && bytes.size() + 16 < server::kManifestBytes) {
    char check[32];
    std::snprintf(check, sizeof(check), "check %08x\n", leasehold::wire::crc32c(bytes));
    bytes += check;
    bytes.resize(server::kManifestBytes, '\n');
  }
  const auto manifest = server::decode_manifest(bytes);
  if (manifest) {
    LEASEHOLD_ASSERT(server::encode_manifest(manifest.value()) ==
                     bytes.substr(0, server::kManifestBytes));
  }
  return 0;
}
