// What holds of the fields of a command, whether it is written or read: their limits and their
// flags. Not for other rooms.
#pragma once

#include <leasehold/base/coding.h>
#include <leasehold/base/result.h>
#include <leasehold/kv/command.h>
#include <leasehold/kv/command_types.h>
#include <leasehold/kv/decimal.h>
#include <leasehold/kv/format_errors.h>
#include <leasehold/kv/named_lease.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::kv {

inline constexpr std::uint8_t kCommandFormat = 1;
/// Types below are those of operations.
inline constexpr std::uint8_t kTransactionType = 64;
inline constexpr std::uint8_t kOnceType = 69;

// The flags of Set.
inline constexpr std::uint8_t kConditionMask = 3;
inline constexpr std::uint8_t kGetOldFlag = 4;
inline constexpr std::uint8_t kLeaseFlag = 8;
inline constexpr std::uint8_t kTokenFlag = 16;
inline constexpr std::uint8_t kKeepLeaseFlag = 32;
inline constexpr std::uint8_t kTtlFlag = 64;
inline constexpr std::uint8_t kEndFlag = 128;
// Those of MSet: its condition, and this.
inline constexpr std::uint8_t kManyTtlFlag = 4;
inline constexpr std::uint8_t kManyEndFlag = 8;
inline constexpr std::uint8_t kMSetFlags = 15;
// Those of ExpireKey.
inline constexpr std::uint8_t kTimeConditionMask = 7;
inline constexpr unsigned kTimeChangeShift = 3;
inline constexpr std::uint8_t kTimeGetFlag = 32;
inline constexpr std::uint8_t kTimeValueFlag = 64;
inline constexpr std::uint8_t kTimeEndFlag = 128;
// Those of Copy.
inline constexpr std::uint8_t kReplaceFlag = 1;
inline constexpr std::uint8_t kSeenFlag = 2;
inline constexpr std::uint8_t kCopyFlags = 3;
// Those of Lcs: what is wanted, and this.
inline constexpr std::uint8_t kWantedMask = 3;
inline constexpr std::uint8_t kLengthsFlag = 4;
inline constexpr std::uint8_t kLcsFlags = 7;

inline Result<void> check_key(std::string_view key) {
  if (key.size() <= kKeyBytesMax) return {};
  return limit_error("a key's length in bytes", key.size(), kKeyBytesMax);
}

inline Result<void> check_prefix(std::string_view prefix) {
  const std::size_t key = prefix.size() + kSequenceDigits;
  if (key <= kKeyBytesMax) return {};
  return limit_error("a sequential key's length in bytes", key, kKeyBytesMax);
}

inline Result<void> check_value(std::string_view value) {
  if (value.size() <= kValueBytesMax) return {};
  return limit_error("a value's length in bytes", value.size(), kValueBytesMax);
}

inline Result<void> check_decimal(std::string_view text) {
  if (is_decimal(text)) return {};
  return Error{ErrorCode::invalid_argument, "what is to be added is not a number"};
}

inline Result<void> check_bit(std::uint32_t at) {
  if (at < kBitsMax) return {};
  return limit_error("the number of a bit", at, kBitsMax - 1);
}

inline Result<void> check_count(std::size_t count) {
  if (count == 0) return Error{ErrorCode::invalid_argument, "no key was given"};
  if (count > kCommandKeysMax) return limit_error("the number of keys", count, kCommandKeysMax);
  return {};
}

inline Result<void> check_time(KeyTime ttl) {
  if (ttl == KeyTime(0) || (ttl >= grant::kLeaseTtlMin && ttl <= grant::kLeaseTtlMax)) return {};
  return Error{ErrorCode::invalid_argument, "a key lives for a millisecond to ten years"};
}

inline Result<void> check_end(std::int64_t end_ms, std::optional<KeyTime> ttl) {
  if (end_ms == 0 || (end_ms > 0 && ttl && *ttl > KeyTime(0))) return {};
  return Error{ErrorCode::invalid_argument, "the end of what has none"};
}

inline Result<void> check_set(const Set& set) {
  const int leases =
      (set.keep_lease ? 1 : 0) + (set.lease != grant::LeaseId(0) ? 1 : 0) + (set.ttl ? 1 : 0);
  if (leases > 1) {
    return Error{
        ErrorCode::invalid_argument,
        "a key can keep its lease, have a new one or have one of its own, not two of these"};
  }
  if (auto end = check_end(set.end_ms, set.ttl); !end) return end;
  return set.ttl ? check_time(*set.ttl) : Result<void>();
}

inline Result<void> check_expire(const ExpireKey& expire) {
  if (expire.change != TimeChange::set && expire.condition != TimeCondition::none) {
    return malformed("command: a condition of what has none");
  }
  if (expire.change == TimeChange::remove && expire.ttl != KeyTime(0)) {
    return malformed("command: a time to live of what has none");
  }
  if (expire.seen.left < lease::Duration(0) || expire.seen.left > grant::kLeaseTtlMax) {
    return Error{ErrorCode::invalid_argument, "what is left of a key's time is out of range"};
  }
  const bool ends = expire.change == TimeChange::set;
  if (auto end = check_end(expire.end_ms, ends ? expire.ttl : KeyTime(0)); !end) return end;
  return check_time(expire.ttl);
}

inline Result<void> check_copy(const Copy& copy) {
  if (copy.from == copy.to) {
    return Error{ErrorCode::invalid_argument, "source and destination objects are the same"};
  }
  if (copy.seen.left >= lease::Duration(0) && copy.seen.left <= grant::kLeaseTtlMax) return {};
  return Error{ErrorCode::invalid_argument, "what is left of a key's time is out of range"};
}

inline Result<void> check_user_name(std::string_view name) {
  if (name.empty()) return Error{ErrorCode::invalid_argument, "the name of a user is empty"};
  if (name.size() <= kUserNameBytesMax) return {};
  return limit_error("the length of a user's name in bytes", name.size(), kUserNameBytesMax);
}

inline Result<void> check_rules(std::string_view rules) {
  if (rules.size() <= kUserRulesBytesMax) return {};
  return limit_error("the length of a user's rules in bytes", rules.size(), kUserRulesBytesMax);
}

inline Result<void> check_user_count(std::size_t count) {
  if (count > 0 && count <= kUsersMax) return {};
  return limit_error("the number of users in a command", count, kUsersMax);
}

// The flags of a moved key.
inline constexpr std::uint8_t kMovedExistsFlag = 1;
inline constexpr std::uint8_t kMovedTtlFlag = 2;
inline constexpr std::uint8_t kMovedTokenFlag = 4;
inline constexpr std::uint8_t kMovedFlags = 7;

inline Result<void> check_slot_count(std::size_t count) {
  if (count > 0 && count <= kCommandSlotsMax) return {};
  return limit_error("the number of slots in a command", count, kCommandSlotsMax);
}

/// Of all revisions that one group learns from another: no sum with what follows overflows.
inline constexpr std::uint64_t kMovedRevisionMax = std::uint64_t{1} << 62U;

inline Result<void> check_revision(std::uint64_t revision) {
  if (revision <= kMovedRevisionMax) return {};
  return limit_error("a revision", revision, kMovedRevisionMax);
}

Result<void> check_slots(const std::vector<std::uint32_t>& slots);
Result<void> check_begin(const BeginMove& begin);
Result<void> check_expect(const ExpectSlots& expect);
Result<void> check_import(const ImportKeys& import);
Result<void> check_ascending(const std::vector<std::string_view>& keys);

/// The command inside Once is checked when it is evaluated, except for this: its format is known,
/// and it is not a command of sessions.
inline Result<void> check_carried(std::string_view command) {
  BigReader in(command);
  const std::uint8_t format = in.u8();
  const std::uint8_t type = in.u8();
  if (!in.ok()) return malformed("command: it carries no command");
  if (format != kCommandFormat) return unsupported("command", format, kCommandFormat);
  if (type > kTransactionType) return malformed("command: it may not carry one of this type");
  return {};
}

/// The type of an encoded command; 0, which is no type: its bytes are too few, or of another
/// format.
inline std::uint8_t type_in(std::string_view command) {
  BigReader in(command);
  const bool known = in.u8() == kCommandFormat;
  const std::uint8_t type = in.u8();
  return in.ok() && known ? type : std::uint8_t{0};
}

/// Of a whole command.
inline Result<void> check_length(std::string_view command) {
  const bool import = type_in(command) == type_of(Tag<ImportKeys>());
  const std::size_t max = import ? kImportBytesMax : kCommandBytesMax;
  if (command.size() <= max) return {};
  return limit_error("a command's length in bytes", command.size(), max);
}

/// As check_carried(), of the command inside ActAs: it may also be one of the sessions of a user.
inline Result<void> check_acted(std::string_view command) {
  const std::uint8_t type = type_in(command);
  const bool of_session = type == type_of(Tag<OpenSession>()) ||
                          type == type_of(Tag<CloseSession>()) ||
                          type == type_of(Tag<TouchSession>()) || type == kOnceType;
  return of_session ? Result<void>() : check_carried(command);
}

/// As check_acted(), of the command inside LoadAtMost: it may also be ActAs.
inline Result<void> check_limited(std::string_view command) {
  return type_in(command) == type_of(Tag<ActAs>()) ? Result<void>() : check_acted(command);
}
}  // namespace leasehold::kv
