// How the fields of a command are written. command_reader.h is its mirror image. Not for other
// rooms.
#pragma once

#include <leasehold/base/coding.h>
#include <leasehold/kv/command_limits.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::kv {

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
                           (set.keep_lease ? kKeepLeaseFlag : 0U) | (set.ttl ? kTtlFlag : 0U) |
                           (set.end_ms != 0 ? kEndFlag : 0U);
    to_.u8(static_cast<std::uint8_t>(flags));
    if (lease) to_.u64(set.lease.value());
    if (token) to_.u64(set.token.value());
    if (set.ttl) number(*set.ttl);
    if (set.end_ms != 0) number(set.end_ms);
  }
  void options(const MSet& mset) {
    note(check_end(mset.end_ms, mset.ttl));
    const unsigned flags = static_cast<unsigned>(mset.condition) | (mset.ttl ? kManyTtlFlag : 0U) |
                           (mset.end_ms != 0 ? kManyEndFlag : 0U);
    to_.u8(static_cast<std::uint8_t>(flags));
    if (!mset.ttl) return;
    note(check_time(*mset.ttl));
    number(*mset.ttl);
    if (mset.end_ms != 0) number(mset.end_ms);
  }
  void options(const ExpireKey& expire) {
    note(check_expire(expire));
    const unsigned flags = static_cast<unsigned>(expire.condition) |
                           static_cast<unsigned>(expire.change) << kTimeChangeShift |
                           (expire.get ? kTimeGetFlag : 0U) | (expire.value ? kTimeValueFlag : 0U) |
                           (expire.end_ms != 0 ? kTimeEndFlag : 0U);
    to_.u8(static_cast<std::uint8_t>(flags));
    number(expire.ttl);
    if (expire.looks_at_time()) {
      number(expire.seen.stamp);
      number(expire.seen.left);
    }
    if (expire.end_ms != 0) number(expire.end_ms);
    if (expire.value) value(*expire.value);
  }
  void options(const Copy& copy) {
    const bool seen = copy.seen.stamp != 0;
    to_.u8(static_cast<std::uint8_t>((copy.replace ? kReplaceFlag : 0U) | (seen ? kSeenFlag : 0U)));
    if (!seen) return;
    number(copy.seen.stamp);
    number(copy.seen.left);
  }
  void options(const Lcs& lcs) {
    const auto wanted = static_cast<unsigned>(lcs.wanted);
    to_.u8(static_cast<std::uint8_t>(wanted | (lcs.lengths ? kLengthsFlag : 0U)));
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
  void acted(std::string_view command) {
    note(check_acted(command));
    to_.bytes(command);
  }
  void limited(std::string_view command) {
    note(check_limited(command));
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
  void decimal(std::string_view text) {
    note(check_decimal(text));
    to_.sized(text);
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
  void user(std::string_view name) {
    note(check_user_name(name));
    to_.sized(name);
  }
  void users(const std::vector<std::string_view>& names) {
    note(check_user_count(names.size()));
    to_.u32(static_cast<std::uint32_t>(names.size()));
    for (const std::string_view one : names) user(one);
  }
  void rules(std::string_view rules) {
    note(check_rules(rules));
    to_.bytes(rules);
  }
  void slots(const std::vector<std::uint32_t>& slots) {
    to_.u32(static_cast<std::uint32_t>(slots.size()));
    for (const std::uint32_t slot : slots) to_.u32(slot);
  }
  void slots(const std::vector<ExpectedSlot>& slots) {
    to_.u32(static_cast<std::uint32_t>(slots.size()));
    for (const ExpectedSlot& one : slots) {
      number(one.slot);
      number(one.epoch);
    }
  }
  void moved(const std::vector<MovedKey>& keys) {
    note(check_count(keys.size()));
    to_.u32(static_cast<std::uint32_t>(keys.size()));
    for (const MovedKey& one : keys) {
      const bool token = one.token != grant::FencingToken(0);
      const unsigned flags = (one.exists ? kMovedExistsFlag : 0U) | (one.ttl ? kMovedTtlFlag : 0U) |
                             (token ? kMovedTokenFlag : 0U);
      to_.u8(static_cast<std::uint8_t>(flags));
      key(one.key);
      if (one.exists) {
        number(one.create_revision);
        number(one.mod_revision);
        number(one.version);
        value(one.value);
      }
      if (one.ttl) number(*one.ttl);
      if (token) number(one.token);
    }
  }
  void require(const Result<void>& checked) { note(checked); }
  Result<std::string> finish() {
    if (problem_) return *problem_;
    if (auto checked = check_length(out_); !checked) return checked.error();
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
}  // namespace leasehold::kv
