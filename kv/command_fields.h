// The fields of commands: their limits, and how they are written and read. Not for other rooms.
#pragma once

#include <leasehold/base/coding.h>
#include <leasehold/kv/command.h>
#include <leasehold/kv/format_errors.h>
#include <leasehold/kv/named_lease.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::kv {

inline constexpr std::uint8_t kCommandFormat = 1;
/// Types below are those of operations.
inline constexpr std::uint8_t kTransactionType = 64;

// The flags of Set.
inline constexpr std::uint8_t kConditionMask = 3;
inline constexpr std::uint8_t kGetOldFlag = 4;
inline constexpr std::uint8_t kLeaseFlag = 8;
inline constexpr std::uint8_t kTokenFlag = 16;
inline constexpr std::uint8_t kKeepLeaseFlag = 32;
inline constexpr std::uint8_t kTtlFlag = 64;
inline constexpr std::uint8_t kSetFlags = 127;
// Those of MSet: its condition, and this.
inline constexpr std::uint8_t kManyTtlFlag = 4;
inline constexpr std::uint8_t kMSetFlags = 7;
// Those of ExpireKey.
inline constexpr std::uint8_t kTimeConditionMask = 7;
inline constexpr unsigned kTimeChangeShift = 3;
inline constexpr std::uint8_t kTimeGetFlag = 32;
inline constexpr std::uint8_t kTimeValueFlag = 64;
inline constexpr std::uint8_t kExpireKeyFlags = 127;

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

inline Result<void> check_count(std::size_t count) {
  if (count == 0) return Error{ErrorCode::invalid_argument, "no key was given"};
  if (count > kCommandKeysMax) return limit_error("the number of keys", count, kCommandKeysMax);
  return {};
}

inline Result<void> check_time(KeyTime ttl) {
  if (ttl == KeyTime(0) || (ttl >= grant::kLeaseTtlMin && ttl <= grant::kLeaseTtlMax)) return {};
  return Error{ErrorCode::invalid_argument, "a key lives for a millisecond to ten years"};
}

inline Result<void> check_set(const Set& set) {
  const int leases =
      (set.keep_lease ? 1 : 0) + (set.lease != grant::LeaseId(0) ? 1 : 0) + (set.ttl ? 1 : 0);
  if (leases > 1) {
    return Error{
        ErrorCode::invalid_argument,
        "a key can keep its lease, have a new one or have one of its own, not two of these"};
  }
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
  return check_time(expire.ttl);
}

/// What Once carries is judged when it is evaluated, but for this: it is of a format that is known,
/// and no command of sessions.
inline Result<void> check_carried(std::string_view command) {
  BigReader in(command);
  const std::uint8_t format = in.u8();
  const std::uint8_t type = in.u8();
  if (!in.ok()) return malformed("command: what it carries is none");
  if (format != kCommandFormat) return unsupported("command", format, kCommandFormat);
  if (type > kTransactionType) return malformed("command: it may not carry one of this type");
  return {};
}

/// Writes fields, after checking their limits.
class Writer {
 public:
  explicit Writer(std::uint8_t type) {
    to_.u8(kCommandFormat);
    to_.u8(type);
  }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void flag(bool value) { to_.u8(value ? 1 : 0); }
  void options(const Set& set) {
    note(check_set(set));
    const bool lease = set.lease != grant::LeaseId(0);
    const bool token = set.token != grant::FencingToken(0);
    const unsigned flags = static_cast<unsigned>(set.condition) | (set.get_old ? kGetOldFlag : 0U) |
                           (lease ? kLeaseFlag : 0U) | (token ? kTokenFlag : 0U) |
                           (set.keep_lease ? kKeepLeaseFlag : 0U) | (set.ttl ? kTtlFlag : 0U);
    to_.u8(static_cast<std::uint8_t>(flags));
    if (lease) to_.u64(set.lease.value());
    if (token) to_.u64(set.token.value());
    if (set.ttl) number(*set.ttl);
  }
  void options(const MSet& mset) {
    const unsigned flags = static_cast<unsigned>(mset.condition) | (mset.ttl ? kManyTtlFlag : 0U);
    to_.u8(static_cast<std::uint8_t>(flags));
    if (!mset.ttl) return;
    note(check_time(*mset.ttl));
    number(*mset.ttl);
  }
  void options(const ExpireKey& expire) {
    note(check_expire(expire));
    const unsigned flags = static_cast<unsigned>(expire.condition) |
                           static_cast<unsigned>(expire.change) << kTimeChangeShift |
                           (expire.get ? kTimeGetFlag : 0U) | (expire.value ? kTimeValueFlag : 0U);
    to_.u8(static_cast<std::uint8_t>(flags));
    number(expire.ttl);
    if (expire.looks_at_time()) {
      number(expire.seen.stamp);
      number(expire.seen.left);
    }
    if (expire.value) value(*expire.value);
  }
  void options(const KeyLease& query) {
    flag(query.value.has_value());
    if (query.value) value(*query.value);
  }
  void number(std::int64_t value) { to_.u64(static_cast<std::uint64_t>(value)); }
  void number(std::uint32_t value) { to_.u32(value); }
  void number(std::uint64_t value) { to_.u64(value); }
  template <class Tag>
  void number(StrongInt<Tag> value) {
    to_.u64(value.value());
  }
  void number(lease::Duration value) { number(std::int64_t{value.count()}); }
  void number(grant::LeaseTerms::Milliseconds value) { number(value.count()); }
  void number(const SeenLease& seen) {
    number(seen.id);
    number(seen.stamp);
  }
  void number(const LeaseRef& ref) {
    note(check_ref(ref));
    number(ref.id);
    to_.sized(ref.name);
  }
  template <class Lease>
  void leases(const std::vector<Lease>& leases) {
    note(check_leases(leases.size()));
    to_.u32(static_cast<std::uint32_t>(leases.size()));
    for (const Lease& one : leases) number(one);
  }
  void listed(std::uint32_t count) {
    note(check_leases(count));
    to_.u32(count);
  }
  void operation(std::string_view encoded) { to_.bytes(encoded); }
  void carried(std::string_view command) {
    note(check_carried(command));
    to_.bytes(command);
  }
  void key(std::string_view key) {
    note(check_key(key));
    to_.sized(key);
  }
  void last_key(std::string_view key) {
    note(check_key(key));
    to_.bytes(key);
  }
  void prefix(std::string_view prefix) {
    note(check_prefix(prefix));
    to_.sized(prefix);
  }
  void value(std::string_view value) {
    note(check_value(value));
    to_.sized(value);
  }
  void last_value(std::string_view value) {
    note(check_value(value));
    to_.bytes(value);
  }
  void keys(const std::vector<std::string_view>& keys) {
    note(check_count(keys.size()));
    to_.u32(static_cast<std::uint32_t>(keys.size()));
    for (const std::string_view one : keys) key(one);
  }
  void pairs(const std::vector<std::pair<std::string_view, std::string_view>>& pairs) {
    note(check_count(pairs.size()));
    to_.u32(static_cast<std::uint32_t>(pairs.size()));
    for (const auto& [name, bytes] : pairs) {
      key(name);
      value(bytes);
    }
  }
  Result<std::string> finish() {
    if (problem_) return *problem_;
    if (out_.size() > kCommandBytesMax) {
      return limit_error("a command's length in bytes", out_.size(), kCommandBytesMax);
    }
    return std::move(out_);
  }

 private:
  void note(const Result<void>& checked) {
    if (!checked && !problem_) problem_ = checked.error();
  }

  std::string out_;
  BigWriter to_{out_};
  std::optional<Error> problem_;
};

/// Reads fields; the first problem stays.
class Reader {
 public:
  explicit Reader(BigReader in) : in_(in) {}

  void flag(bool& value) {
    const std::uint8_t bits = in_.u8();
    if (bits > 1) note(malformed("command: unknown flags"));
    value = bits == 1;
  }
  void options(Set& set) {
    const std::uint8_t flags = in_.u8();
    if ((flags & ~kSetFlags) != 0 ||
        (flags & kConditionMask) > static_cast<std::uint8_t>(SetCondition::xx)) {
      return note(malformed("command: unknown flags"));
    }
    set.condition = static_cast<SetCondition>(flags & kConditionMask);
    set.get_old = (flags & kGetOldFlag) != 0;
    set.keep_lease = (flags & kKeepLeaseFlag) != 0;
    const bool lease = (flags & kLeaseFlag) != 0;
    const bool token = (flags & kTokenFlag) != 0;
    if (lease) number(set.lease);
    if (token) number(set.token);
    if ((flags & kTtlFlag) != 0) number(set.ttl.emplace());
    // None is said by the flag alone.
    if ((lease && set.lease == grant::LeaseId(0)) || (token && set.token.value() == 0)) {
      note(malformed("command: a lease or a token that is none"));
    }
    note(check_set(set));
  }
  void options(MSet& mset) {
    const std::uint8_t flags = in_.u8();
    if ((flags & ~kMSetFlags) != 0 ||
        (flags & kConditionMask) > static_cast<std::uint8_t>(MSetCondition::all_equal)) {
      return note(malformed("command: unknown flags"));
    }
    mset.condition = static_cast<MSetCondition>(flags & kConditionMask);
    if ((flags & kManyTtlFlag) == 0) return;
    number(mset.ttl.emplace());
    note(check_time(*mset.ttl));
  }
  void options(ExpireKey& expire) {
    const std::uint8_t flags = in_.u8();
    const unsigned change = (flags >> kTimeChangeShift) & 3U;
    if ((flags & ~kExpireKeyFlags) != 0 || change > static_cast<unsigned>(TimeChange::remove) ||
        (flags & kTimeConditionMask) > static_cast<std::uint8_t>(TimeCondition::xx_lt)) {
      return note(malformed("command: unknown flags"));
    }
    expire.condition = static_cast<TimeCondition>(flags & kTimeConditionMask);
    expire.change = static_cast<TimeChange>(change);
    expire.get = (flags & kTimeGetFlag) != 0;
    number(expire.ttl);
    if (expire.looks_at_time()) {
      number(expire.seen.stamp);
      number(expire.seen.left);
    }
    if ((flags & kTimeValueFlag) != 0) value(expire.value.emplace());
    note(check_expire(expire));
  }
  void options(KeyLease& query) {
    bool given = false;
    flag(given);
    if (given) value(query.value.emplace());
  }
  void number(std::int64_t& value) { value = static_cast<std::int64_t>(in_.u64()); }
  void number(std::uint32_t& value) { value = in_.u32(); }
  void number(std::uint64_t& value) { value = in_.u64(); }
  template <class Tag>
  void number(StrongInt<Tag>& value) {
    value = StrongInt<Tag>(in_.u64());
  }
  void number(lease::Duration& value) {
    value = lease::Duration(static_cast<std::int64_t>(in_.u64()));
  }
  void number(grant::LeaseTerms::Milliseconds& value) {
    value = grant::LeaseTerms::Milliseconds(in_.u32());
  }
  void number(SeenLease& seen) {
    number(seen.id);
    number(seen.stamp);
  }
  template <class Lease>
  void leases(std::vector<Lease>& leases) {
    leases.resize(count(sizeof(Lease), check_leases));
    for (Lease& one : leases) number(one);
  }
  void leases(std::vector<LeaseRef>& leases) {
    leases.resize(count(12, check_leases));
    for (LeaseRef& one : leases) {
      number(one.id);
      one.name = in_.sized();
      note(check_ref(one));
    }
  }
  void listed(std::uint32_t& count) {
    count = in_.u32();
    note(check_leases(count));
  }
  void carried(std::string_view& command) {
    command = in_.take_rest();
    note(check_carried(command));
  }
  void key(std::string_view& key) {
    key = in_.sized();
    note(check_key(key));
  }
  void last_key(std::string_view& key) {
    key = in_.take_rest();
    note(check_key(key));
  }
  void prefix(std::string_view& prefix) {
    prefix = in_.sized();
    note(check_prefix(prefix));
  }
  void value(std::string_view& value) {
    value = in_.sized();
    note(check_value(value));
  }
  void last_value(std::string_view& value) {
    value = in_.take_rest();
    note(check_value(value));
  }
  void keys(std::vector<std::string_view>& keys) {
    keys.resize(count(4, check_count));
    for (std::string_view& one : keys) key(one);
  }
  void pairs(std::vector<std::pair<std::string_view, std::string_view>>& pairs) {
    pairs.resize(count(8, check_count));
    for (auto& [name, bytes] : pairs) {
      key(name);
      value(bytes);
    }
  }
  /// What the command's bytes amount to once every field has been read.
  Result<void> finish() const {
    if (!in_.at_end()) return malformed("command: its length does not fit its fields");
    if (problem_) return *problem_;
    return {};
  }

 private:
  /// A count of things that take `width` bytes at least; 0 after a problem, so that a short command
  /// cannot ask for much memory.
  std::size_t count(std::size_t width, Result<void> (*check)(std::size_t)) {
    const std::uint32_t count = in_.u32();
    if (auto checked = check(count); !checked) {
      note(checked.error());
      return 0;
    }
    if (in_.rest().size() / width < count) {
      note(malformed("command: it ends too early"));
      return 0;
    }
    return count;
  }
  void note(const Result<void>& checked) {
    if (!checked && !problem_) problem_ = checked.error();
  }

  BigReader in_;
  std::optional<Error> problem_;
};

}  // namespace leasehold::kv
