// The records of slots in a store's database (docs/formats/kv.md). Not for other rooms.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/slots.h>

#include <cstdint>
#include <string_view>

namespace rocksdb {
class DB;
class WriteBatch;
}  // namespace rocksdb

namespace leasehold::kv {

/// Errors: corrupted, unsupported_format, io.
Result<SlotMap> read_slots(rocksdb::DB& db);
/// How many keys are here that arrive in the slot of a stored record: the counter of all keys
/// leaves them out. Errors: as read_slots().
Result<std::uint64_t> arriving_keys(std::string_view record);
/// Adds what has changed to a batch in memory without limits.
void put_slots(const Slots& slots, rocksdb::WriteBatch& batch);

}  // namespace leasehold::kv
