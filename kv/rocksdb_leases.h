// The leases in a store's database (docs/formats/kv.md). Not for other rooms.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/leases.h>

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
Result<lease::LeaseTable> read_leases(rocksdb::DB& db);

/// Adds what has changed to a batch in memory without limits.
void put_leases(const Leases& leases, rocksdb::WriteBatch& batch);

// As in Store. Readers ask the database and not the table, which is ahead of it.
Result<std::optional<FoundLease>> find_lease(rocksdb::DB& db, lease::LeaseId id,
                                             std::string_view name);
Result<std::vector<lease::LeaseTable::Lease>> leases_after(rocksdb::DB& db, lease::LeaseId after,
                                                           std::size_t count);

/// The largest token that has written a key; 0: none.
Result<lease::FencingToken> read_fence(rocksdb::DB& db, std::string_view key);
void put_fence(std::string_view key, lease::FencingToken token, rocksdb::WriteBatch& batch);

}  // namespace leasehold::kv
