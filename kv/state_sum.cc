#include <leasehold/kv/state_sum.h>

#include <bit>
#include <cstddef>
#include <cstring>

namespace leasehold::kv {
namespace {

__extension__ typedef unsigned __int128 Wide;

constexpr std::uint64_t kSecret[] = {0x2d358dccaa6c78a5U, 0x8bb84b93962eacc9U, 0x4b33a62ed433d4a3U,
                                     0x4d5a2da51de1aa47U};

std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
}

/// Up to eight bytes, the first one lowest; zeroes stand for those that are missing.
std::uint64_t word(const char* from, std::size_t bytes) {
  std::uint64_t out = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&out, from, bytes);
  } else {
    for (std::size_t i = 0; i < bytes; ++i) {
      out |= std::uint64_t{static_cast<unsigned char>(from[i])} << (8 * i);
    }
  }
  return out;
}

/// Two chains of folded products over pairs of words, as in wyhash.
class Hash {
 public:
  void add(std::string_view bytes) {
    const std::size_t size = bytes.size();
    for (; bytes.size() >= 16; bytes.remove_prefix(16)) {
      pair(word(bytes.data(), 8), word(bytes.data() + 8, 8));
    }
    const char* at = bytes.data();
    const std::size_t first = bytes.size() < 8 ? bytes.size() : 8;
    pair(word(at, first), word(at + first, bytes.size() - first));
    // Zeroes at the end are not what is missing.
    pair(size, kSecret[1]);
  }
  StateSum end() const {
    return {fold(low_ ^ kSecret[2], high_ ^ kSecret[3]),
            fold(high_ ^ kSecret[0], low_ ^ kSecret[1])};
  }

 private:
  void pair(std::uint64_t a, std::uint64_t b) {
    low_ = fold(a ^ kSecret[0], b ^ low_);
    high_ = fold(b ^ kSecret[2], a ^ high_);
  }

  std::uint64_t low_ = kSecret[3];
  std::uint64_t high_ = kSecret[1];
};

}  // namespace

StateSum record_sum(std::string_view key, std::string_view value) {
  Hash hash;
  hash.add(key);
  hash.add(value);
  return hash.end();
}

}  // namespace leasehold::kv
