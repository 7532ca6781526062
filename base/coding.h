// The one reader and the one writer of integers in bytes. Every format of this project, on disk and
// on the wire, is written and read through them; each decoder documents its own layout.
//
// A format has one byte order, and the name of the type says which: "little" puts the lowest byte
// first, "big" the highest. Integers are unsigned; a signed one is stored as two's complement.
#pragma once

#include <leasehold/base/assert.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace leasehold {

enum class ByteOrder : std::uint8_t { little, big };

/// The number whose bytes in memory are those of `value` in `order`, and the other way round. It is
/// one instruction; the compiler does not make that of a loop over the bytes.
template <ByteOrder order, class UInt>
constexpr UInt in_byte_order(UInt value) {
  constexpr ByteOrder kNative =
      std::endian::native == std::endian::little ? ByteOrder::little : ByteOrder::big;
  if constexpr (order == kNative || sizeof(UInt) == 1) return value;
  if constexpr (sizeof(UInt) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(UInt) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(UInt) == 8) return __builtin_bswap64(value);
}

/// Appends to a string that the caller owns and that outlives the writer.
template <ByteOrder order>
class ByteWriter {
 public:
  explicit ByteWriter(std::string& out) : out_(out) {}

  void u8(std::uint8_t value) { out_.push_back(static_cast<char>(value)); }
  void u16(std::uint16_t value) { number(value); }
  void u32(std::uint32_t value) { number(value); }
  void u64(std::uint64_t value) { number(value); }
  void bytes(std::string_view bytes) { out_.append(bytes); }
  /// The length as u32, then the bytes. The caller keeps them below 4 GiB.
  void sized(std::string_view bytes) {
    u32(static_cast<std::uint32_t>(bytes.size()));
    out_.append(bytes);
  }
  /// Replaces the four bytes at `offset`, which were written before: for a checksum in front of
  /// what it covers.
  void overwrite_u32(std::size_t offset, std::uint32_t value) {
    LEASEHOLD_ASSERT(offset <= out_.size() && out_.size() - offset >= sizeof(value));
    store(&out_[offset], value);
  }

 private:
  template <class UInt>
  static void store(char* to, UInt value) {
    const UInt ordered = in_byte_order<order>(value);
    std::memcpy(to, &ordered, sizeof(UInt));
  }
  template <class UInt>
  void number(UInt value) {
    char bytes[sizeof(UInt)];
    store(bytes, value);
    out_.append(bytes, sizeof(UInt));
  }

  std::string& out_;
};

/// How far a reader has come.
enum class ReadState : std::uint8_t {
  more,       ///< every read got its bytes, and some are left
  at_end,     ///< every read got its bytes, and none is left
  cut_short,  ///< a read wanted more bytes than were left
};

/// Takes values off the front of bytes that come from outside. A read that wants more bytes than
/// are left gives 0 or nothing, and so does each read after it; state() then stays cut_short. So a
/// decoder may read all its fields first and check the state once, before it uses them. Strings
/// that it returns are views of the caller's bytes.
template <ByteOrder order>
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  ReadState state() const {
    if (cut_short_) return ReadState::cut_short;
    return rest_.empty() ? ReadState::at_end : ReadState::more;
  }
  bool ok() const { return !cut_short_; }
  bool at_end() const { return state() == ReadState::at_end; }
  /// What no read has taken yet; nothing once the state is cut_short.
  std::string_view rest() const { return rest_; }

  std::uint8_t u8() { return number<std::uint8_t>(); }
  std::uint16_t u16() { return number<std::uint16_t>(); }
  std::uint32_t u32() { return number<std::uint32_t>(); }
  std::uint64_t u64() { return number<std::uint64_t>(); }
  /// The next `count` bytes. `count` may come from outside, too.
  std::string_view take(std::uint64_t count) {
    if (count > rest_.size()) {
      cut_short_ = true;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(count));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view take_rest() { return take(rest_.size()); }
  /// A length as u32, then that many bytes.
  std::string_view sized() { return take(u32()); }

 private:
  template <class UInt>
  UInt number() {
    const std::string_view bytes = take(sizeof(UInt));
    if (bytes.empty()) return 0;
    UInt ordered = 0;
    std::memcpy(&ordered, bytes.data(), sizeof(UInt));
    return in_byte_order<order>(ordered);
  }

  std::string_view rest_;
  bool cut_short_ = false;
};

using LittleWriter = ByteWriter<ByteOrder::little>;
using LittleReader = ByteReader<ByteOrder::little>;
using BigWriter = ByteWriter<ByteOrder::big>;
using BigReader = ByteReader<ByteOrder::big>;

}  // namespace leasehold
