// What the operations on fractions, bits and copies of values do.
#include <leasehold/kv/bits.h>
#include <leasehold/kv/decimal.h>
#include <leasehold/kv/run.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold::kv {

Result<Reply> run(const IncrByFloat& incr, Draft& draft) {
  const auto loaded = draft.load(incr.key);
  if (!loaded) return loaded.error();
  const std::optional<Value>& old = loaded.value();
  const std::string_view base = old ? old->bytes.view() : "0";
  if (!is_decimal(base)) {
    return Reply(ErrorReply{ErrorKind::not_a_number, "value is not a valid float"});
  }
  if (auto why = draft.take_steps(base.size() + incr.delta.size())) return Reply(*why);
  const auto sum = add_decimals(base, incr.delta);
  if (!sum) {
    return Reply(ErrorReply{ErrorKind::overflow, "increment would produce NaN or Infinity"});
  }
  draft.write(incr.key, Bytes(std::string_view(*sum)), old, Draft::lease_of(old));
  return Reply(ValueReply{Bytes(std::string_view(*sum))});
}

Result<Reply> run(const SetBit& set, Draft& draft) {
  const auto loaded = draft.load(set.key);
  if (!loaded) return loaded.error();
  const std::optional<Value>& old = loaded.value();
  const std::string_view before = old ? old->bytes.view() : std::string_view();
  const std::size_t byte = set.at / 8;
  const bool was = bit_of(before, set.at);
  if (byte < before.size() && was == set.on) return integer(was ? 1 : 0);
  std::string whole(before);
  whole.resize(std::max(before.size(), byte + 1), '\0');
  const auto mask = static_cast<unsigned char>(0x80U >> (set.at % 8));
  const auto bits = static_cast<unsigned char>(whole[byte]);
  whole[byte] = static_cast<char>(set.on ? bits | mask : bits & ~mask);
  draft.write(set.key, Bytes(std::move(whole)), old, Draft::lease_of(old));
  return integer(was ? 1 : 0);
}

Result<Reply> run(const Copy& copy, Draft& draft) {
  const auto from = draft.load(copy.from);
  if (!from) return from.error();
  const auto to = draft.load(copy.to);
  if (!to) return to.error();
  const std::optional<Value>& old = to.value();
  if (!from.value() || (old && !copy.replace)) return integer(0);
  const grant::LeaseId lease = from.value()->lease;
  if (!grant::is_of_key(lease)) {
    if (auto why = draft.cannot_attach(old, lease)) return Reply(*why);
    draft.write(copy.to, from.value()->bytes, old, lease);
    return integer(1);
  }
  // Its time may be over, and yet it is here: so is the copy, for a moment.
  const grant::LeaseTable::Lease& timed = *draft.table().find(lease);
  const KeyTime left = std::max(most_left(timed, copy.seen), grant::kLeaseTtlMin);
  const std::int64_t end_ms = timed.asked_at_ms;
  if (auto why = draft.cannot_time(leases_for(old, left))) return Reply(*why);
  draft.write_timed(copy.to, from.value()->bytes, old, left, end_ms);
  return integer(1);
}

}  // namespace leasehold::kv
