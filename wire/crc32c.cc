#include <leasehold/base/coding.h>
#include <leasehold/wire/crc32c.h>

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace leasehold::wire {

namespace {

/// The Castagnoli polynomial with its bits reversed.
constexpr std::uint32_t kPolynomial = 0x82f63b78U;

/// Slicing by eight: row k is the effect of a byte followed by k zero bytes.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (std::size_t row = 1; row < 8; ++row) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[row - 1][byte];
      tables[row][byte] = (before >> 8U) ^ tables[0][before & 0xffU];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc32c_sse42(std::string_view bytes,
                                                             std::uint32_t previous) {
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t crc = ~previous;
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    crc = _mm_crc32_u64(crc, word);
  }
  auto short_crc = static_cast<std::uint32_t>(crc);
  for (; left > 0; ++at, --left) {
    short_crc = _mm_crc32_u8(short_crc, static_cast<unsigned char>(*at));
  }
  return ~short_crc;
}
#endif

}  // namespace

std::uint32_t crc32c_portable(std::string_view bytes, std::uint32_t previous) {
  std::uint32_t crc = ~previous;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    LittleReader block(bytes.substr(0, 8));
    const std::uint32_t low = block.u32() ^ crc;
    const std::uint32_t high = block.u32();
    crc = kTables[7][low & 0xffU] ^ kTables[6][(low >> 8U) & 0xffU] ^
          kTables[5][(low >> 16U) & 0xffU] ^ kTables[4][low >> 24U] ^ kTables[3][high & 0xffU] ^
          kTables[2][(high >> 8U) & 0xffU] ^ kTables[1][(high >> 16U) & 0xffU] ^
          kTables[0][high >> 24U];
  }
  for (const char c : bytes) {
    crc = (crc >> 8U) ^ kTables[0][(crc ^ static_cast<unsigned char>(c)) & 0xffU];
  }
  return ~crc;
}

std::uint32_t crc32c(std::string_view bytes, std::uint32_t previous) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  if (has_instruction) return crc32c_sse42(bytes, previous);
#endif
  return crc32c_portable(bytes, previous);
}

}  // namespace leasehold::wire
