// The commands of the key-value store and their results, and the only code that knows their bytes.
// Format: docs/formats/kv.md.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace leasehold::kv {

/// Limits. Checked when a command is made and again when it is decoded. A key may be empty.
inline constexpr std::size_t kKeyBytesMax = std::size_t{64} << 10U;
inline constexpr std::size_t kValueBytesMax = std::size_t{16} << 20U;
/// Keys of one command.
inline constexpr std::size_t kCommandKeysMax = 65536;
/// A whole command, encoded.
inline constexpr std::size_t kCommandBytesMax = kValueBytesMax + kKeyBytesMax + 64;

/// When Set writes. Pinned: the values stand in the log.
enum class SetCondition : std::uint8_t {
  none = 0,
  nx = 1,  ///< only if the key does not exist
  xx = 2,  ///< only if the key exists
};

// The commands. Their strings are views: into the caller's memory when encoded, into the command's
// bytes when decoded. Each is evaluated when it is applied, never when it is proposed.

/// Writes a value. Results: Ok, or Nil when the condition does not hold; with `get_old` the old
/// value, or Nil if there was none, whether it wrote or not.
struct Set {
  std::string_view key;
  std::string_view value;
  SetCondition condition = SetCondition::none;
  bool get_old = false;
};
/// Deletes. Result: Integer, how many of the keys existed (a key named twice counts once).
struct Del {
  std::vector<std::string_view> keys;
};
/// Adds to a decimal number; a key that does not exist counts as 0. Result: Integer, the sum.
/// Errors: not_an_integer, overflow.
struct IncrBy {
  std::string_view key;
  std::int64_t delta = 0;
};

using Command = std::variant<Set, Del, IncrBy>;

/// Errors: invalid_argument when a limit is broken; the message names it.
Result<Bytes> encode_command(const Command& command);
/// The one decoder. Accepts exactly what encode_command makes. Views into `bytes`. Errors:
/// malformed, unsupported_format (with both numbers), invalid_argument (a limit is broken).
Result<Command> decode_command(std::string_view bytes);

/// Why a command was applied without effect. Pinned: the values are returned by replicas.
enum class ErrorKind : std::uint8_t {
  malformed = 1,           ///< the command's bytes do not follow their format
  unsupported_format = 2,  ///< made by a newer build
  limit = 3,               ///< a key, a value or the command is too large
  not_an_integer = 4,      ///< IncrBy: the value is no decimal 64-bit integer
  overflow = 5,            ///< IncrBy: the sum does not fit into 64 bits
  store_failed = 6,        ///< the store's disk failed: the outcome is unknown and the node stops
};

// The results.

struct Ok {};
/// No such key, or a condition that does not hold.
struct Nil {};
struct Integer {
  std::int64_t value = 0;
};
struct ValueReply {
  Bytes value;
};
struct ErrorReply {
  ErrorKind kind = ErrorKind::malformed;
  std::string text;  ///< a sentence for a person
};

using Reply = std::variant<Ok, Nil, Integer, ValueReply, ErrorReply>;

Bytes encode_reply(const Reply& reply);
/// A value shares the allocation of `bytes`. Errors: malformed, unsupported_format.
Result<Reply> decode_reply(const Bytes& bytes);

}  // namespace leasehold::kv
