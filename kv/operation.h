// The operations of the key-value store: what a command, or a part of a transaction, does to keys
// and to the leases of clients, and what it results in.
#pragma once

#include <leasehold/grant/lease_table.h>
#include <leasehold/kv/query_operations.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::kv {

// The strings of an operation are views: into the caller's memory when encoded, into the command's
// bytes when decoded. Each is evaluated when it is applied, never when it is proposed. All changes
// of one command have one revision, and readers see all of them or none.

/// When Set writes. Pinned: the values are in the log.
enum class SetCondition : std::uint8_t {
  none = 0,
  nx = 1,  ///< only if the key does not exist
  xx = 2,  ///< only if the key exists
};

/// The time to live of a key: that of a lease, or 0: then its time is already over, and the key is
/// gone in the same step.
///
/// A key that ends by itself is attached to a lease of its own (grant::is_of_key()). The command
/// that gives the key its time grants the lease; the lease ends when the key leaves it, and is
/// timed and ended as all leases are. The commands of leases answer as if it did not exist.
using KeyTime = lease::Duration;

/// Writes a value. Results: Ok, or Nil when the condition does not hold; with `get_old` the old
/// value, or Nil if there was none, whether it wrote or not. The key leaves the lease that it was
/// attached to, except with `keep_lease`. Errors: no_lease, limit (of the lease's keys, or of
/// leases), fenced.
struct Set {
  std::string_view key;
  std::string_view value;
  SetCondition condition = SetCondition::none;
  bool get_old = false;
  bool keep_lease = false;  ///< not together with `lease` or `ttl`
  grant::LeaseId lease{};   ///< attaches the key to it; 0: to none
  /// Writes only if no larger token has written this key, and makes this one the largest, even if
  /// the condition does not hold. 0: writes regardless of earlier tokens.
  grant::FencingToken token{};
  /// The key lives for this time, by a lease of its own (KeyTime). Not together with `lease`.
  std::optional<KeyTime> ttl{};
  /// When that is over, in milliseconds since 1970, by the clock of the node that made this
  /// command; 0: unknown. Only with a `ttl` above 0; only shown.
  std::int64_t end_ms = 0;
};
/// Writes a new key: the prefix and kSequenceDigits decimal digits of this command's revision, with
/// zeros in front. So the keys of a prefix are in the order of their creation, no number is given
/// twice, and there is no counter for each prefix; there are gaps. A transaction has one revision,
/// so it makes one key of a prefix. Result: the key. Errors: key_exists (the transaction has made
/// one of this prefix, or a client has written that very key), no_lease, limit (of the key, of the
/// value, of the lease's keys).
struct SetSequential {
  std::string_view prefix;
  std::string_view value;
  grant::LeaseId lease{};  ///< attaches the key to it; 0: to none
};
/// Deletes. A deleted key leaves its lease, here and in every other command. Result: Integer, how
/// many of the keys existed (a key named twice counts once).
struct Del {
  std::vector<std::string_view> keys;
};
/// Adds to a decimal number; a key that does not exist counts as 0. Result: Integer, the sum.
/// Errors: not_an_integer, overflow.
struct IncrBy {
  std::string_view key;
  std::int64_t delta = 0;
};
/// Adds to a decimal fraction (kv/decimal.h); a key that does not exist counts as 0. Result: the
/// sum. Errors: not_a_number, overflow, limit (a transaction adds too many digits).
struct IncrByFloat {
  std::string_view key;
  std::string_view delta;  ///< a number: is_decimal()
};
/// Writes after the end of a value; a key that does not exist counts as empty. Result: Integer, the
/// new length. Errors: limit.
struct Append {
  std::string_view key;
  std::string_view bytes;
};
/// Writes over a part of a value, which grows with zeros as needed; with empty `bytes` nothing is
/// written. Result: Integer, the length. Errors: limit.
struct SetRange {
  std::uint32_t offset = 0;
  std::string_view key;
  std::string_view bytes;
};
/// Sets or clears one bit of a value, which grows with zeros as needed: the bits of a byte count
/// from its highest one. A key that does not exist counts as empty. Nothing is written if the bit
/// is there and is right. Result: Integer, the bit before.
struct SetBit {
  std::uint32_t at = 0;  ///< below kBitsMax
  bool on = false;
  std::string_view key;
};
/// Deletes and returns. Result: the value, or Nil.
struct GetDel {
  std::string_view key;
};
/// When MSet writes. Pinned: the values are in the log.
enum class MSetCondition : std::uint8_t {
  none = 0,
  none_exists = 1,  ///< only if none of the keys exists
  all_equal = 2,    ///< only if each key has the very value that would be written
};
/// Writes several values; the last one of a key that is named twice stays. Results: Ok; with
/// `none_exists` Integer, 1 if it wrote and 0 if one of the keys existed; with `all_equal` Integer,
/// how many pairs it wrote, 0 if one of the keys has another value. Errors: limit (of leases).
struct MSet {
  MSetCondition condition = MSetCondition::none;
  std::vector<std::pair<std::string_view, std::string_view>> pairs;
  std::optional<KeyTime> ttl{};  ///< of each key, as in Set
  std::int64_t end_ms = 0;       ///< as in Set
};
/// Moves a value; the old value of `to` is gone. Results: Ok; with `if_free` Integer, 0 if `to`
/// existed and nothing was done, else 1. Errors: no_such_key.
struct Rename {
  bool if_free = false;
  std::string_view from;
  std::string_view to;
};

// The leases of clients (grant/lease_table.h). A lease ends with its keys, in one revision.

/// Result: an array of two Integers: the lease's id and its fencing token, which is the revision of
/// this command. Errors: lease_taken (the id or the name, by a lease that lives or one that ended
/// in the same transaction), limit.
struct GrantLease {
  grant::LeaseId id;  ///< at most grant::kChosenLeaseIdMax; 0: the store chooses
  lease::Duration ttl{0};
  std::string_view name;  ///< unique; empty: none
  std::string_view holder;
  grant::LeaseTerms terms{};
  /// When it was asked for, by the clock of the node that made this command, in milliseconds since
  /// 1970; 0: unknown. For display only.
  std::int64_t asked_at_ms = 0;
};
/// Gives leases their whole time again. It has no revision. Result: an array with one item for
/// each, Integer, its time to live in milliseconds, rounded down, or Nil: there is no such lease.
struct RenewLeases {
  std::vector<grant::LeaseId> ids;
};
/// Ends a lease and deletes its keys. Result: Ok. Errors: no_lease.
struct RevokeLease {
  grant::LeaseId id;
};
/// Writes a key as it is, attached to a lease, or (0) to none. Result: Integer, 0 if there is no
/// such key, else 1. Errors: no_lease, limit.
struct AttachKey {
  grant::LeaseId lease;
  std::string_view key;
};

/// A command about the lease of this name, whatever its id is when the command is applied. Its
/// result is that of the command. Errors: no_lease (nobody has the name), and those of the command.
struct WithNamedLease {
  using What = std::variant<Set, SetSequential, RevokeLease, AttachKey>;
  std::string_view name;  ///< 1 to grant::kLeaseNameBytesMax bytes
  What what;              ///< names no lease itself: 0
};
/// A lease by its id, or (0) by its name.
struct LeaseRef {
  grant::LeaseId id;
  std::string_view name;
};
/// RenewLeases, where one of them at least is named.
struct RenewNamed {
  std::vector<LeaseRef> leases;
};

// The time of keys.

/// When ExpireKey gives a key another time. A key without one has no end. Pinned.
enum class TimeCondition : std::uint8_t {
  none = 0,
  nx = 1,     ///< only if it has none
  xx = 2,     ///< only if it has one
  gt = 3,     ///< only if it ends later by that
  lt = 4,     ///< only if it ends earlier by that
  xx_lt = 5,  ///< only if it has one and ends earlier by that
};
/// The rest of a key's time as a node saw it: a state machine has no time. It counts if the key has
/// that lease and that stamp when the command is applied. Otherwise the key was given its time
/// since then, and all of it counts as left.
struct SeenTime {
  std::uint64_t stamp = 0;  ///< 0: the key had no lease
  lease::Duration left{0};
};
/// The change of a key's time. Pinned.
enum class TimeChange : std::uint8_t {
  set = 0,     ///< the key lives for `ttl` from now on
  add = 1,     ///< for `ttl` more than what is left; only if it has a time
  remove = 2,  ///< the key has no end
};
/// Gives a key a time to live, or another one, or none. Result: Integer, 1 if it did, else 0; with
/// `get` the value, or Nil, whether it did or not. A key that is attached to the lease of a client
/// has that lease's time, and leaves it. Errors: limit (of leases).
struct ExpireKey {
  std::string_view key;
  TimeChange change = TimeChange::set;
  KeyTime ttl{0};                                 ///< of `remove`: 0
  TimeCondition condition = TimeCondition::none;  ///< with `set` alone
  bool get = false;
  std::optional<std::string_view> value{};  ///< only if this is the key's value
  SeenTime seen{};                          ///< with `add`, `gt`, `lt` and `xx_lt` alone
  std::int64_t end_ms = 0;                  ///< as in Set; with `set` alone

  bool looks_at_time() const { return change == TimeChange::add || condition >= TimeCondition::gt; }
};
/// Writes a key's value to another key, with its time: what is left of it as a node saw it, if the
/// key has a lease of its own; a copy of a key that is attached to the lease of a client is
/// attached to that lease. Result: Integer, 1; 0: there is no such key, or `to` exists. Errors:
/// no_lease, not_owner, limit (of leases, or of the lease's keys).
struct Copy {
  bool replace = false;  ///< also if `to` exists
  std::string_view from;
  std::string_view to;  ///< not `from`
  SeenTime seen{};      ///< of `from`
};
/// Deletes those of the keys that have this value. Result: Integer, how many (a key that is named
/// twice counts once).
struct DelEqual {
  std::string_view value;
  std::vector<std::string_view> keys;
};

/// The possible parts of a transaction.
using Operation =
    std::variant<Set, Del, IncrBy, Append, SetRange, GetDel, MSet, Rename, GrantLease, RenewLeases,
                 RevokeLease, AttachKey, ExpireKey, DelEqual, SetSequential, WithNamedLease,
                 RenewNamed, IncrByFloat, Copy, SetBit, Get, Exists, MGet, StrLen, GetRange, Size,
                 LeaseInfo, LeaseList, KeyLease, GetBit, BitCount, Lcs>;
}  // namespace leasehold::kv
