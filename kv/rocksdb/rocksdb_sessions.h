// The sessions in a store's database (docs/formats/kv.md). Not for other rooms.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/sessions.h>
#include <leasehold/replica/session_table.h>

#include <cstddef>

namespace rocksdb {
class DB;
class WriteBatch;
}  // namespace rocksdb

namespace leasehold::kv {

/// Everything that the database says of sessions. Errors: corrupted, unsupported_format, io.
Result<replica::SessionTable> read_sessions(rocksdb::DB& db);

/// Adds what has changed to a batch in memory without limits.
void put_sessions(const Sessions& sessions, rocksdb::WriteBatch& batch);
/// About how many bytes that would be, at most.
inline std::size_t session_bytes(const Sessions& sessions) {
  return sessions.changed().size() * replica::kSessionResultBytesMax;
}

}  // namespace leasehold::kv
