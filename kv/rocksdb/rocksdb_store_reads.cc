// Reads, on any thread: each pins the database that it reads, so that it stays while it is read.
#include <leasehold/kv/give_way.h>
#include <leasehold/kv/rocksdb/rocksdb_leases.h>
#include <leasehold/kv/rocksdb/rocksdb_pinned.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/kv/rocksdb/rocksdb_rows.h>
#include <leasehold/kv/rocksdb/rocksdb_sessions.h>
#include <leasehold/kv/rocksdb/rocksdb_store_impl.h>

#include <rocksdb/snapshot.h>

#include <utility>

namespace leasehold::kv {

Result<std::optional<Value>> RocksdbStore::Impl::get(std::string_view key, Load load) const {
  if (auto refused = refusal()) return *refused;
  // Not pinned: the records of a database that is replaced just now were its last ones.
  if (std::string record; live().records_.find(key, record)) {
    auto value = take_value(std::move(record), load);
    if (!value) return fail(value.error());
    return std::optional<Value>(std::move(value).value());
  }
  const Pinned pinned(live_);
  CachedRecords& records = pinned.database().records_;
  const std::uint64_t epoch = records.epoch();
  rocksdb::PinnableSlice bytes;
  auto value = look_up(data_key(key), pinned.db(), rocksdb::ReadOptions(), load, bytes);
  if (value && value.value()) records.keep(key, {bytes.data(), bytes.size()}, epoch);
  return value;
}

Result<std::optional<Value>> RocksdbStore::Impl::look_up(std::string_view whole_key,
                                                         rocksdb::DB& db,
                                                         const rocksdb::ReadOptions& options,
                                                         Load load,
                                                         rocksdb::PinnableSlice& bytes) const {
  const rocksdb::Status status = db.Get(options, db.DefaultColumnFamily(), whole_key, &bytes);
  if (status.IsNotFound()) return std::optional<Value>();
  if (!status.ok()) return fail(status_error("a read failed", status));
  auto value = decode_value({bytes.data(), bytes.size()}, load);
  if (!value) return fail(value.error());
  return std::optional<Value>(std::move(value).value());
}

Result<std::vector<std::optional<Value>>> RocksdbStore::Impl::get_all(
    const std::vector<std::string_view>& keys, Load load) const {
  if (auto refused = refusal()) return *refused;
  const Pinned pinned(live_);
  rocksdb::ManagedSnapshot snapshot(&pinned.db());
  rocksdb::ReadOptions options;
  options.snapshot = snapshot.snapshot();
  std::vector<std::optional<Value>> out;
  out.reserve(keys.size());
  std::size_t bytes = 0;
  GiveWay way;
  for (const std::string_view key : keys) {
    way.step();
    rocksdb::PinnableSlice record;
    auto value = look_up(data_key(key), pinned.db(), options, load, record);
    if (!value) return value.error();
    out.push_back(std::move(value).value());
    if (!out.back()) continue;
    bytes += out.back()->bytes.size() + out.back()->left_out;
    if (bytes > bytes_max(load)) return values_too_large(bytes_max(load));
  }
  return out;
}

Result<std::vector<std::string>> RocksdbStore::Impl::keys_after(
    std::optional<std::string_view> after, std::size_t count) const {
  if (auto refused = refusal()) return *refused;
  const Pinned pinned(live_);
  auto keys = read_keys(pinned.db(), after, count);
  if (!keys) return fail(keys.error());
  return keys;
}

Result<Rows> RocksdbStore::Impl::rows(std::string_view prefix,
                                      std::optional<std::string_view> after, std::size_t count,
                                      Load load) const {
  if (auto refused = refusal()) return *refused;
  const Pinned pinned(live_);
  auto rows = read_rows(pinned.db(), prefix, after, count, load);
  if (!rows) return fail(rows.error());
  return rows;
}

Result<SlotRows> RocksdbStore::Impl::slot_rows(const SlotSet& slots,
                                               std::optional<std::string_view> after,
                                               Load load) const {
  if (auto refused = refusal()) return *refused;
  const Pinned pinned(live_);
  auto rows = read_slot_rows(pinned.db(), slots, after, load);
  if (!rows) return fail(rows.error());
  return rows;
}

Result<SlotFences> RocksdbStore::Impl::slot_fences(const SlotSet& slots,
                                                   std::optional<std::string_view> after) const {
  if (auto refused = refusal()) return *refused;
  const Pinned pinned(live_);
  auto fences = read_slot_fences(pinned.db(), slots, after);
  if (!fences) return fail(fences.error());
  return fences;
}

Result<grant::FencingToken> RocksdbStore::Impl::stored_fence(std::string_view key) const {
  if (auto refused = refusal()) return *refused;
  const Pinned pinned(live_);
  auto token = read_fence(pinned.db(), key);
  if (!token) return fail(token.error());
  return token;
}

Result<std::optional<std::size_t>> RocksdbStore::Impl::length(std::string_view key) const {
  const auto value = get(key, Load::revisions);
  if (!value) return value.error();
  if (!value.value()) return std::optional<std::size_t>();
  return std::optional<std::size_t>(value.value()->left_out);
}

Result<std::vector<replica::SessionTable::Session>> RocksdbStore::Impl::sessions() const {
  if (auto refused = refusal()) return *refused;
  return Pinned(live_).sessions().list();
}

Result<std::optional<FoundLease>> RocksdbStore::Impl::find_lease(grant::LeaseId id,
                                                                 std::string_view name) const {
  if (auto refused = refusal()) return *refused;
  const Pinned pinned(live_);
  auto found = kv::find_lease(pinned.db(), id, name);
  if (!found) return fail(found.error());
  return found;
}

Result<std::optional<grant::LeaseTable::Lease>> RocksdbStore::Impl::lease_terms(
    grant::LeaseId id, std::string_view name) const {
  if (auto refused = refusal()) return *refused;
  const Pinned pinned(live_);
  auto found = kv::lease_terms(pinned.db(), id, name);
  if (!found) return fail(found.error());
  return found;
}

Result<std::vector<grant::LeaseTable::Lease>> RocksdbStore::Impl::leases_after(
    grant::LeaseId after, std::size_t count) const {
  if (auto refused = refusal()) return *refused;
  const Pinned pinned(live_);
  auto found = kv::leases_after(pinned.db(), after, count);
  if (!found) return fail(found.error());
  return found;
}

Result<LeaseChanges> RocksdbStore::Impl::lease_changes(std::uint64_t cursor) const {
  if (auto refused = refusal()) return *refused;
  return Pinned(live_).leases().changes(cursor);
}

}  // namespace leasehold::kv
