// A lease: {format u8 = 3}{token u64}{stamp u64}{time to live in ns i64}{asked at in ms i64}
//          {flags u8: bit 0 soft, bit 1 delayed, bit 2 owner}{grace period in ms u32}
//          {lock delay in ms u32}, with bit 2 {owner}, {name}{holder: the rest}
// That of a key: {format u8 = 2}{token u64}{stamp u64}{time to live in ns i64}; or, if it is known
//          when the key ends, {format u8 = 4} and the same with {end in ms i64}
// A table: {newest id u64}{newest stamp u64}{count u32} and count times, in the order of the ids,
//          {id u64}{length u32}{a lease}{count u32} and count times {key}, in the order of the keys
// where {owner}, {name} and {key} are {length u32}{bytes}.
#include <leasehold/kv/format_errors.h>
#include <leasehold/kv/lease_record.h>

#include <utility>

namespace leasehold::kv {
namespace {

/// 1 was that of a lease without its terms.
constexpr std::uint8_t kLeaseFormat = 3;
constexpr std::uint8_t kLeaseFormatOfKey = 2;
constexpr std::uint8_t kLeaseFormatOfKeyWithEnd = 4;
constexpr std::uint8_t kSoftFlag = 1;
constexpr std::uint8_t kDelayedFlag = 2;
constexpr std::uint8_t kOwnerFlag = 4;

}  // namespace

std::string encode_lease(const grant::LeaseTable::Lease& lease) {
  std::string out;
  BigWriter to(out);
  const bool of_key = grant::is_of_key(lease.id);
  const bool with_end = of_key && lease.asked_at_ms != 0;
  to.u8(with_end ? kLeaseFormatOfKeyWithEnd : of_key ? kLeaseFormatOfKey : kLeaseFormat);
  to.u64(lease.token.value());
  to.u64(lease.stamp);
  to.u64(static_cast<std::uint64_t>(lease.ttl.count()));
  if (with_end || !of_key) to.u64(static_cast<std::uint64_t>(lease.asked_at_ms));
  if (of_key) return out;
  const int flags = (lease.terms.soft ? kSoftFlag : 0) | (lease.delayed ? kDelayedFlag : 0) |
                    (lease.owner.empty() ? 0 : kOwnerFlag);
  to.u8(static_cast<std::uint8_t>(flags));
  to.u32(lease.terms.grace.count());
  to.u32(lease.terms.delay.count());
  if (!lease.owner.empty()) to.sized(lease.owner);
  to.sized(lease.name);
  to.bytes(lease.holder);
  return out;
}

Result<grant::LeaseTable::Lease> decode_lease(grant::LeaseId id, std::string_view bytes) {
  BigReader in(bytes);
  const std::uint8_t format = in.u8();
  if (!in.ok()) return malformed("lease: it is empty");
  if (format > kLeaseFormatOfKeyWithEnd || format < kLeaseFormatOfKey)
    return unsupported("lease", format, kLeaseFormatOfKeyWithEnd);
  const bool of_key = grant::is_of_key(id);
  const bool with_end = format == kLeaseFormatOfKeyWithEnd;
  if (of_key != (with_end || format == kLeaseFormatOfKey))
    return malformed("lease: not of this format");
  grant::LeaseTable::Lease lease;
  lease.id = id;
  lease.token = grant::FencingToken(in.u64());
  lease.stamp = in.u64();
  lease.ttl = lease::Duration(static_cast<std::int64_t>(in.u64()));
  std::uint8_t flags = 0;
  if (with_end || !of_key) lease.asked_at_ms = static_cast<std::int64_t>(in.u64());
  // None is said by the format alone.
  if (with_end && lease.asked_at_ms == 0) return malformed("lease: an end that is none");
  if (!of_key) {
    flags = in.u8();
    lease.terms.grace = grant::LeaseTerms::Milliseconds(in.u32());
    lease.terms.delay = grant::LeaseTerms::Milliseconds(in.u32());
    if ((flags & kOwnerFlag) != 0) {
      lease.owner = in.sized();
      // None is said by the flag alone.
      if (lease.owner.empty()) return malformed("lease: an owner without a name");
    }
    lease.name = in.sized();
  }
  lease.terms.soft = (flags & kSoftFlag) != 0;
  lease.delayed = (flags & kDelayedFlag) != 0;
  if (flags > (kSoftFlag | kDelayedFlag | kOwnerFlag)) return malformed("lease: unknown flags");
  if (!in.ok() || (of_key && !in.at_end())) return malformed("lease: its length is wrong");
  lease.holder = in.take_rest();
  return lease;
}

void put_leases(std::string& out, const grant::LeaseTable& table) {
  BigWriter to(out);
  to.u64(table.newest().value());
  to.u64(table.newest_stamp());
  to.u32(static_cast<std::uint32_t>(table.size()));
  for (const auto& lease : table.list(grant::LeaseId(0), table.size())) {
    to.u64(lease.id.value());
    to.sized(encode_lease(lease));
    const grant::LeaseTable::Keys& keys = *table.keys(lease.id);
    to.u32(static_cast<std::uint32_t>(keys.size()));
    for (const std::string& key : keys) to.sized(key);
  }
}

Result<grant::LeaseTable> take_leases(BigReader& in) {
  grant::LeaseTable table;
  const grant::LeaseId newest(in.u64());
  table.restore_newest(newest, in.u64());
  const std::uint32_t count = in.u32();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const grant::LeaseId id(in.u64());
    const auto lease = decode_lease(id, in.sized());
    if (!lease) return lease.error();
    if (auto restored = table.restore(lease.value(), {}); !restored) return restored.error();
    const std::uint32_t keys = in.u32();
    for (std::uint32_t k = 0; k < keys && in.ok(); ++k) {
      if (auto added = table.restore_key(id, in.sized()); !added) return added.error();
    }
  }
  if (!in.ok()) return malformed("table of leases: it ends too early");
  if (auto whole = table.restored(); !whole) return whole.error();
  return table;
}

}  // namespace leasehold::kv
