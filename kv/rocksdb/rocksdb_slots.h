// The records of slots in a store's database (docs/formats/kv.md). Not for other rooms.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/slots.h>

namespace rocksdb {
class DB;
class WriteBatch;
}  // namespace rocksdb

namespace leasehold::kv {

/// Errors: corrupted, unsupported_format, io.
Result<SlotMap> read_slots(rocksdb::DB& db);
/// Adds what has changed to a batch in memory without limits.
void put_slots(const Slots& slots, rocksdb::WriteBatch& batch);

}  // namespace leasehold::kv
