// How the fields of a command are read. command_writer.h is its mirror image. Not for other rooms.
#pragma once

#include <leasehold/base/coding.h>
#include <leasehold/kv/command_limits.h>
#include <leasehold/kv/format_errors.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::kv {

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
    if ((flags & kConditionMask) > static_cast<std::uint8_t>(SetCondition::xx)) {
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
    end(set.end_ms, (flags & kEndFlag) != 0);
    // None is said by the flag alone.
    if ((lease && set.lease == grant::LeaseId(0)) || (token && set.token.value() == 0)) {
      note(malformed("command: an invalid lease or token"));
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
    if ((flags & kManyTtlFlag) == 0) {
      if ((flags & kManyEndFlag) != 0) note(malformed("command: unknown flags"));
      return;
    }
    number(mset.ttl.emplace());
    end(mset.end_ms, (flags & kManyEndFlag) != 0);
    note(check_end(mset.end_ms, mset.ttl));
    note(check_time(*mset.ttl));
  }
  void options(ExpireKey& expire) {
    const std::uint8_t flags = in_.u8();
    const unsigned change = (flags >> kTimeChangeShift) & 3U;
    if (change > static_cast<unsigned>(TimeChange::remove) ||
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
    end(expire.end_ms, (flags & kTimeEndFlag) != 0);
    if ((flags & kTimeValueFlag) != 0) value(expire.value.emplace());
    note(check_expire(expire));
  }
  void options(Copy& copy) {
    const std::uint8_t flags = in_.u8();
    if ((flags & ~kCopyFlags) != 0) return note(malformed("command: unknown flags"));
    copy.replace = (flags & kReplaceFlag) != 0;
    if ((flags & kSeenFlag) == 0) return;
    number(copy.seen.stamp);
    number(copy.seen.left);
    // None is said by the flag alone.
    if (copy.seen.stamp == 0) note(malformed("command: an invalid stamp"));
  }
  void options(Lcs& lcs) {
    const std::uint8_t flags = in_.u8();
    if ((flags & ~kLcsFlags) != 0 ||
        (flags & kWantedMask) > static_cast<std::uint8_t>(LcsWanted::runs)) {
      return note(malformed("command: unknown flags"));
    }
    lcs.wanted = static_cast<LcsWanted>(flags & kWantedMask);
    lcs.lengths = (flags & kLengthsFlag) != 0;
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
  void acted(std::string_view& command) {
    command = in_.take_rest();
    note(check_acted(command));
  }
  void limited(std::string_view& command) {
    command = in_.take_rest();
    note(check_limited(command));
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
  void decimal(std::string_view& text) {
    text = in_.sized();
    note(check_decimal(text));
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
  void user(std::string_view& name) {
    name = in_.sized();
    note(check_user_name(name));
  }
  void users(std::vector<std::string_view>& names) {
    names.resize(count(4, check_user_count));
    for (std::string_view& one : names) user(one);
  }
  void rules(std::string_view& rules) {
    rules = in_.take_rest();
    note(check_rules(rules));
  }
  void slots(std::vector<std::uint32_t>& slots) {
    slots.resize(count(4, check_slot_count));
    for (std::uint32_t& one : slots) number(one);
  }
  void slots(std::vector<ExpectedSlot>& slots) {
    slots.resize(count(12, check_slot_count));
    for (ExpectedSlot& one : slots) {
      number(one.slot);
      number(one.epoch);
    }
  }
  void moved(std::vector<MovedKey>& keys) {
    keys.resize(count(5, check_count));
    for (MovedKey& one : keys) {
      const std::uint8_t flags = in_.u8();
      if ((flags & ~kMovedFlags) != 0) return note(malformed("command: unknown flags"));
      one.exists = (flags & kMovedExistsFlag) != 0;
      key(one.key);
      if (one.exists) {
        number(one.create_revision);
        number(one.mod_revision);
        number(one.version);
        value(one.value);
      }
      if ((flags & kMovedTtlFlag) != 0) number(one.ttl.emplace());
      if ((flags & kMovedTokenFlag) == 0) continue;
      number(one.token);
      // None is said by the flag alone.
      if (one.token == grant::FencingToken(0)) note(malformed("command: an invalid token"));
    }
  }
  void require(const Result<void>& checked) { note(checked); }
  /// What the command's bytes amount to once every field has been read.
  Result<void> finish() const {
    if (!in_.at_end()) return malformed("command: its length does not fit its fields");
    if (problem_) return *problem_;
    return {};
  }

 private:
  void end(std::int64_t& end_ms, bool given) {
    if (!given) return;
    number(end_ms);
    // None is said by the flag alone.
    if (end_ms == 0) note(malformed("command: an end that is none"));
  }
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
