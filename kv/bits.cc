#include <leasehold/kv/bits.h>

#include <cstring>

namespace leasehold::kv {
namespace {

/// Sums of neighbours, in ever wider lanes: no instruction that a machine may lack.
std::uint64_t bits_of_word(std::uint64_t word) {
  word -= (word >> 1U) & 0x5555555555555555U;
  word = (word & 0x3333333333333333U) + ((word >> 2U) & 0x3333333333333333U);
  word = (word + (word >> 4U)) & 0x0f0f0f0f0f0f0f0fU;
  return (word * 0x0101010101010101U) >> 56U;
}

std::uint64_t byte_at(std::string_view bytes, std::size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}

}  // namespace

bool bit_of(std::string_view bytes, std::uint64_t at) {
  const std::uint64_t byte = at / 8;
  if (byte >= bytes.size()) return false;
  return (byte_at(bytes, static_cast<std::size_t>(byte)) & (0x80U >> (at % 8))) != 0;
}

std::uint64_t bits_set(std::string_view bytes, std::uint64_t first, std::uint64_t last) {
  if (first > last) return 0;
  const auto begin = static_cast<std::size_t>(first / 8);
  const auto end = static_cast<std::size_t>(last / 8) + 1;
  std::uint64_t count = 0;
  std::size_t at = begin;
  for (; at + sizeof(std::uint64_t) <= end; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof(word));
    count += bits_of_word(word);
  }
  for (; at < end; ++at) count += bits_of_word(byte_at(bytes, at));
  // What the bytes at the ends have outside.
  count -= bits_of_word(byte_at(bytes, begin) & (0xffU ^ (0xffU >> (first % 8))));
  count -= bits_of_word(byte_at(bytes, end - 1) & (0x7fU >> (last % 8)));
  return count;
}

}  // namespace leasehold::kv
