#include <leasehold/kv/key_slot.h>

namespace leasehold::kv {
namespace {

/// CRC-16 with polynomial 0x1021, from 0, not reflected (XMODEM).
std::uint32_t crc16(std::string_view bytes) {
  std::uint32_t crc = 0;
  for (const char c : bytes) {
    crc ^= static_cast<std::uint32_t>(static_cast<unsigned char>(c)) << 8U;
    for (int bit = 0; bit < 8; ++bit) crc = (crc << 1U) ^ ((crc & 0x8000U) != 0 ? 0x1021U : 0U);
    crc &= 0xffffU;
  }
  return crc;
}

}  // namespace

std::uint32_t slot_of(std::string_view key) {
  const std::size_t open = key.find('{');
  if (open != std::string_view::npos) {
    const std::size_t close = key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) {
      key = key.substr(open + 1, close - open - 1);
    }
  }
  return crc16(key) % kSlots;
}

}  // namespace leasehold::kv
