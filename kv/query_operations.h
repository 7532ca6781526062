// The operations that change nothing: queries. In the log they are parts of a transaction; a reader
// uses query() instead.
#pragma once

#include <leasehold/grant/lease_table.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace leasehold::kv {

/// Result: the value, or Nil.
struct Get {
  std::string_view key;
};
/// Result: Integer, how many exist; a key named twice counts twice.
struct Exists {
  std::vector<std::string_view> keys;
};
/// Result: an array of values and Nils, at one instant. Errors: limit.
struct MGet {
  std::vector<std::string_view> keys;
};
/// Result: Integer, the length; 0 for no such key.
struct StrLen {
  std::string_view key;
};
/// Result: the part of a value from `start` to `end`, both included, negative ones counted from the
/// end of it; empty if there is no such part.
struct GetRange {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::string_view key;
};
/// Result: Integer, the bit; 0 behind the end of the value, or if there is no such key.
struct GetBit {
  std::uint32_t at = 0;
  std::string_view key;
};
/// Result: Integer, how many bits are set in a part of a value, as in GetRange; 0 for no such key.
struct BitCount {
  std::int64_t start = 0;
  std::int64_t end = -1;
  bool bits = false;  ///< the ends are bits, else bytes
  std::string_view key;
};
/// What Lcs answers. Pinned.
enum class LcsWanted : std::uint8_t {
  text = 0,
  length = 1,
  runs = 2,
};
/// The longest common subsequence of two values; a key that does not exist counts as empty. Result:
/// the text; or Integer, its length; or an array of an array of the runs in both values and the
/// length. A run is an array of two arrays of its first and last byte, and with `lengths` of its
/// length. Errors: limit (kStepsMax, a step for each pair of bytes).
struct Lcs {
  LcsWanted wanted = LcsWanted::text;
  bool lengths = false;
  std::uint64_t least = 0;  ///< runs that are shorter are left out
  std::string_view a;
  std::string_view b;
};
/// Result: Integer, the number of keys.
struct Size {};
/// By id, or (0) by name. Result: Nil, or an array of Integer id, Integer token, Integer time to
/// live in milliseconds, rounded down, the name, the holder and an array of the keys. Errors:
/// limit.
struct LeaseInfo {
  grant::LeaseId id;
  std::string_view name;
};
/// In the order of their ids, from the first one above `after` on. Result: an array with, for each,
/// what LeaseInfo answers, without the keys. Fewer than `count`: there are no more.
struct LeaseList {
  grant::LeaseId after;
  std::uint32_t count = 0;  ///< at most kCommandLeasesMax
};

/// The lease that bounds the time of a key. Result: Nil: there is no such key; Integer 0: nothing;
/// or an array of Integers: the id and the stamp of the lease that it is attached to, the time to
/// live of that in nanoseconds, and, of a key's own lease and if it is known, when it ends, in
/// milliseconds since 1970.
struct KeyLease {
  std::string_view key;
  std::optional<std::string_view> value{};  ///< with another value there is none
};

}  // namespace leasehold::kv
