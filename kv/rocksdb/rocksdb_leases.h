// The leases in a store's database (docs/formats/kv.md). Not for other rooms.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/leases.h>
#include <leasehold/kv/store.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocksdb {
class DB;
class WriteBatch;
}  // namespace rocksdb

namespace leasehold::kv {

/// Everything that the database says of leases. Errors: corrupted, unsupported_format, io.
Result<grant::LeaseTable> read_leases(rocksdb::DB& db);

/// Adds what has changed to a batch in memory without limits.
void put_leases(const Leases& leases, rocksdb::WriteBatch& batch);

// As in Store. Readers ask the database and not the table, which is ahead of it.
Result<std::optional<FoundLease>> find_lease(rocksdb::DB& db, grant::LeaseId id,
                                             std::string_view name);
Result<std::optional<grant::LeaseTable::Lease>> lease_terms(rocksdb::DB& db, grant::LeaseId id,
                                                            std::string_view name);
Result<std::vector<grant::LeaseTable::Lease>> leases_after(rocksdb::DB& db, grant::LeaseId after,
                                                           std::size_t count);

/// The largest token that has written a key; 0: none.
Result<grant::FencingToken> read_fence(rocksdb::DB& db, std::string_view key);
void put_fence(std::string_view key, grant::FencingToken token, rocksdb::WriteBatch& batch);
/// As in Store.
Result<SlotFences> read_slot_fences(rocksdb::DB& db, const SlotSet& slots,
                                    std::optional<std::string_view> after);
/// Of all keys. Errors: io.
Result<std::size_t> count_fences(rocksdb::DB& db);

}  // namespace leasehold::kv
