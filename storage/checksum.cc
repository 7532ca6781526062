// Eight tables, eight bytes a step ("slicing by 8"): about a gigabyte a second on any processor.
#include <leasehold/storage/checksum.h>

#include <array>
#include <cstddef>

namespace leasehold::storage {
namespace {

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

Tables make_tables() {
  constexpr std::uint32_t kReversedPolynomial = 0x82f63b78U;
  Tables tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) * kReversedPolynomial);
    tables[0][i] = crc;
  }
  for (std::size_t t = 1; t < tables.size(); ++t) {
    for (std::size_t i = 0; i < 256; ++i) {
      const std::uint32_t shorter = tables[t - 1][i];
      tables[t][i] = (shorter >> 8U) ^ tables[0][shorter & 0xffU];
    }
  }
  return tables;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t previous) {
  static const Tables tables = make_tables();
  std::uint32_t crc = ~previous;
  const auto byte = [&bytes](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i]));
  };
  std::size_t at = 0;
  for (; bytes.size() - at >= 8; at += 8) {
    const std::uint32_t low =
        crc ^ (byte(at) | byte(at + 1) << 8U | byte(at + 2) << 16U | byte(at + 3) << 24U);
    crc = tables[7][low & 0xffU] ^ tables[6][(low >> 8U) & 0xffU] ^
          tables[5][(low >> 16U) & 0xffU] ^ tables[4][low >> 24U] ^ tables[3][byte(at + 4)] ^
          tables[2][byte(at + 5)] ^ tables[1][byte(at + 6)] ^ tables[0][byte(at + 7)];
  }
  for (; at < bytes.size(); ++at) {
    crc = (crc >> 8U) ^ tables[0][(crc ^ byte(at)) & 0xffU];
  }
  return ~crc;
}

}  // namespace leasehold::storage
