#include <leasehold/base/assert.h>
#include <leasehold/base/coding.h>
#include <leasehold/kv/lease_record.h>
#include <leasehold/kv/rocksdb/rocksdb_leases.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/snapshot.h>
#include <rocksdb/write_batch.h>

#include <memory>
#include <utility>

namespace leasehold::kv {
namespace {

rocksdb::Slice slice(std::string_view bytes) {
  return {bytes.data(), bytes.size()};
}

std::string lease_key(grant::LeaseId id) {
  std::string out(kLeaseSpace);
  BigWriter(out).u64(id.value());
  return out;
}
std::string name_key(std::string_view name) {
  return std::string(kLeaseNameSpace).append(name);
}
/// The row of a key that is attached to the lease; with an empty `key`, the prefix of all such
/// rows.
std::string attached_key(grant::LeaseId id, std::string_view key) {
  std::string out(kAttachedSpace);
  BigWriter(out).u64(id.value());
  return out.append(key);
}
std::string fence_key(std::string_view key) {
  return std::string(kFenceSpace).append(key);
}

Error damaged(const std::string& what, const Error& error) {
  const bool newer = error.code == ErrorCode::unsupported_format;
  return {newer ? ErrorCode::unsupported_format : ErrorCode::corrupted,
          fmt::format("the record of {}: {}", what, error.message)};
}

/// Errors: corrupted, unsupported_format.
Result<grant::LeaseTable::Lease> lease_at(const rocksdb::Iterator& at) {
  BigReader in({at.key().data(), at.key().size()});
  in.take(kLeaseSpace.size());
  const grant::LeaseId id(in.u64());
  if (!in.at_end()) return Error{ErrorCode::corrupted, "the key of a lease record is damaged"};
  auto lease = decode_lease(id, {at.value().data(), at.value().size()});
  if (!lease) return damaged(fmt::format("lease {}", id.value()), lease.error());
  return lease;
}

/// Calls `what` for everything under a prefix, from `first` on, until it says false. Errors: its
/// own, io, corrupted.
template <class What>
Result<void> for_each(rocksdb::DB& db, const rocksdb::ReadOptions& options, std::string_view space,
                      std::string_view first, const What& what) {
  const std::unique_ptr<rocksdb::Iterator> at(db.NewIterator(options));
  for (at->Seek(slice(first)); at->Valid() && at->key().starts_with(slice(space)); at->Next()) {
    const Result<bool> more = what(*at);
    if (!more) return more.error();
    if (!more.value()) break;
  }
  if (!at->status().ok()) return status_error("cannot read the leases", at->status());
  return {};
}

/// A record of one number; 0: there is none.
Result<std::uint64_t> read_number(rocksdb::DB& db, const rocksdb::ReadOptions& options,
                                  const std::string& key, std::string_view what) {
  std::string bytes;
  const rocksdb::Status status = db.Get(options, key, &bytes);
  if (status.IsNotFound()) return std::uint64_t{0};
  if (!status.ok()) return status_error("cannot read the leases", status);
  const auto found = decode_whole_record(what, bytes, 1);
  if (!found) return found.error();
  return found.value()[0];
}

Result<std::optional<grant::LeaseTable::Lease>> terms_at(rocksdb::DB& db,
                                                         const rocksdb::ReadOptions& options,
                                                         grant::LeaseId id, std::string_view name) {
  using Terms = std::optional<grant::LeaseTable::Lease>;
  if (id == grant::LeaseId(0)) {
    const auto named = read_number(db, options, name_key(name), "lease name");
    if (!named) return named.error();
    id = grant::LeaseId(named.value());
  }
  if (id == grant::LeaseId(0)) return Terms();
  std::string bytes;
  const rocksdb::Status status = db.Get(options, lease_key(id), &bytes);
  if (status.IsNotFound()) return Terms();
  if (!status.ok()) return status_error("cannot read the leases", status);
  auto lease = decode_lease(id, bytes);
  if (!lease) return damaged(fmt::format("lease {}", id.value()), lease.error());
  return Terms(std::move(lease).value());
}

}  // namespace

Result<grant::LeaseTable> read_leases(rocksdb::DB& db) {
  grant::LeaseTable table;
  const rocksdb::ReadOptions options;
  std::string newest;
  const rocksdb::Status status = db.Get(options, std::string(kNewestLeaseKey), &newest);
  // No lease was ever granted.
  if (status.IsNotFound()) return table;
  if (!status.ok()) return status_error("cannot read the leases", status);
  const auto numbers = decode_whole_record("newest lease", newest, 2);
  if (!numbers) return numbers.error();
  table.restore_newest(grant::LeaseId(numbers.value()[0]), numbers.value()[1]);
  auto done = for_each(
      db, options, kLeaseSpace, kLeaseSpace, [&](const rocksdb::Iterator& at) -> Result<bool> {
        const auto lease = lease_at(at);
        if (!lease) return lease.error();
        const auto restored = table.restore(lease.value(), {});
        if (restored) return true;
        return damaged(fmt::format("lease {}", lease.value().id.value()), restored.error());
      });
  if (!done) return done.error();
  done = for_each(
      db, options, kAttachedSpace, kAttachedSpace,
      [&](const rocksdb::Iterator& at) -> Result<bool> {
        BigReader in({at.key().data(), at.key().size()});
        in.take(kAttachedSpace.size());
        const grant::LeaseId id(in.u64());
        const auto restored = table.restore_key(id, in.take_rest());
        if (restored && in.ok()) return true;
        return Error{
            ErrorCode::corrupted,
            fmt::format("a key of lease {} is damaged, or the lease's record is", id.value())};
      });
  if (!done) return done.error();
  if (auto whole = table.restored(); !whole) return damaged("a lease", whole.error());
  return table;
}

void put_leases(const Leases& leases, rocksdb::WriteBatch& batch) {
  for (const grant::LeaseId id : leases.changed()) {
    const auto* lease = leases.table().find(id);
    const auto status = lease != nullptr ? batch.Put(lease_key(id), encode_lease(*lease))
                                         : batch.Delete(lease_key(id));
    LEASEHOLD_ASSERT(status.ok());
  }
  for (const auto& [name, id] : leases.names()) {
    const auto status = id != grant::LeaseId(0)
                            ? batch.Put(name_key(name), encode_record({id.value()}))
                            : batch.Delete(name_key(name));
    LEASEHOLD_ASSERT(status.ok());
  }
  for (const auto& [where, attached] : leases.attachments()) {
    const std::string key = attached_key(where.first, where.second);
    LEASEHOLD_ASSERT((attached ? batch.Put(key, rocksdb::Slice()) : batch.Delete(key)).ok());
  }
  if (leases.changed().empty() && !leases.skipped()) return;
  const std::string newest =
      encode_record({leases.table().newest().value(), leases.table().newest_stamp()});
  LEASEHOLD_ASSERT(batch.Put(std::string(kNewestLeaseKey), newest).ok());
}

Result<std::optional<FoundLease>> find_lease(rocksdb::DB& db, grant::LeaseId id,
                                             std::string_view name) {
  using Found = std::optional<FoundLease>;
  rocksdb::ManagedSnapshot snapshot(&db);
  rocksdb::ReadOptions options;
  options.snapshot = snapshot.snapshot();
  auto terms = terms_at(db, options, id, name);
  if (!terms) return terms.error();
  if (!terms.value()) return Found();
  FoundLease found;
  found.lease = *std::move(terms).value();
  const std::string space = attached_key(found.lease.id, "");
  auto done = for_each(db, options, space, space, [&](const rocksdb::Iterator& at) -> Result<bool> {
    return found.add({at.key().data() + space.size(), at.key().size() - space.size()});
  });
  if (!done) return done.error();
  return Found(std::move(found));
}

Result<std::optional<grant::LeaseTable::Lease>> lease_terms(rocksdb::DB& db, grant::LeaseId id,
                                                            std::string_view name) {
  rocksdb::ManagedSnapshot snapshot(&db);
  rocksdb::ReadOptions options;
  options.snapshot = snapshot.snapshot();
  return terms_at(db, options, id, name);
}

Result<std::vector<grant::LeaseTable::Lease>> leases_after(rocksdb::DB& db, grant::LeaseId after,
                                                           std::size_t count) {
  std::vector<grant::LeaseTable::Lease> out;
  if (count == 0 || after.next() == grant::LeaseId(0)) return out;
  auto done = for_each(db, rocksdb::ReadOptions(), kLeaseSpace, lease_key(after.next()),
                       [&](const rocksdb::Iterator& at) -> Result<bool> {
                         auto lease = lease_at(at);
                         if (!lease) return lease.error();
                         out.push_back(std::move(lease).value());
                         return out.size() < count;
                       });
  if (!done) return done.error();
  return out;
}

Result<grant::FencingToken> read_fence(rocksdb::DB& db, std::string_view key) {
  const auto token = read_number(db, rocksdb::ReadOptions(), fence_key(key), "fence");
  if (!token) return token.error();
  return grant::FencingToken(token.value());
}

Result<SlotFences> read_slot_fences(rocksdb::DB& db, const SlotSet& slots,
                                    std::optional<std::string_view> after) {
  SlotFences out;
  std::size_t seen = 0;
  const auto done = for_each(
      db, rocksdb::ReadOptions(), kFenceSpace, fence_key(after.value_or(std::string_view())),
      [&](const rocksdb::Iterator& at) -> Result<bool> {
        const std::string_view key(at.key().data() + kFenceSpace.size(),
                                   at.key().size() - kFenceSpace.size());
        if (after && key == *after) return true;
        if (slots.test(slot_of(key))) {
          const auto token =
              decode_whole_record("fence", {at.value().data(), at.value().size()}, 1);
          if (!token) return token.error();
          out.fences.emplace_back(key, grant::FencingToken(token.value()[0]));
        }
        if (++seen < kSlotKeysSeenMax) return true;
        out.reached = std::string(key);
        return false;
      });
  if (!done) return done.error();
  return out;
}

Result<std::size_t> count_fences(rocksdb::DB& db) {
  std::size_t count = 0;
  const auto done = for_each(db, rocksdb::ReadOptions(), kFenceSpace, kFenceSpace,
                             [&](const rocksdb::Iterator&) -> Result<bool> {
                               ++count;
                               return true;
                             });
  if (!done) return done.error();
  return count;
}

void put_fence(std::string_view key, grant::FencingToken token, rocksdb::WriteBatch& batch) {
  LEASEHOLD_ASSERT(batch.Put(fence_key(key), encode_record({token.value()})).ok());
}

}  // namespace leasehold::kv
