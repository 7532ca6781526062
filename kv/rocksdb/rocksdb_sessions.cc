#include <leasehold/base/assert.h>
#include <leasehold/base/coding.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/kv/rocksdb/rocksdb_sessions.h>

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <memory>
#include <string>
#include <string_view>

namespace leasehold::kv {
namespace {

std::string session_key(replica::SessionId id) {
  std::string out(kSessionSpace);
  BigWriter(out).u64(id.value());
  return out;
}

/// Errors: corrupted.
Result<replica::SessionId> id_of(std::string_view key) {
  BigReader in(key);
  in.take(kSessionSpace.size());
  const replica::SessionId id(in.u64());
  if (!in.at_end()) return Error{ErrorCode::corrupted, "the key of a session record is damaged"};
  return id;
}

}  // namespace

Result<replica::SessionTable> read_sessions(rocksdb::DB& db) {
  replica::SessionTable table;
  std::string newest;
  const rocksdb::Status status =
      db.Get(rocksdb::ReadOptions(), std::string(kNewestSessionKey), &newest);
  // No session was ever opened.
  if (status.IsNotFound()) return table;
  if (!status.ok()) return status_error("cannot read the sessions", status);
  const auto found = decode_whole_record("newest session", newest, 1);
  if (!found) return found.error();
  table.restore_newest(replica::SessionId(found.value()[0]));
  const std::unique_ptr<rocksdb::Iterator> at(db.NewIterator(rocksdb::ReadOptions()));
  const rocksdb::Slice space(kSessionSpace.data(), kSessionSpace.size());
  for (at->Seek(space); at->Valid() && at->key().starts_with(space); at->Next()) {
    const auto id = id_of({at->key().data(), at->key().size()});
    if (!id) return id.error();
    const auto restored = table.restore(id.value(), {at->value().data(), at->value().size()});
    if (restored) continue;
    const bool newer = restored.error().code == ErrorCode::unsupported_format;
    return Error{
        newer ? ErrorCode::unsupported_format : ErrorCode::corrupted,
        fmt::format("the record of session {}: {}", id.value().value(), restored.error().message)};
  }
  if (!at->status().ok()) return status_error("cannot read the sessions", at->status());
  return table;
}

void put_sessions(const Sessions& sessions, rocksdb::WriteBatch& batch) {
  if (sessions.changed().empty() && !sessions.skipped()) return;
  for (const replica::SessionId id : sessions.changed()) {
    const std::string key = session_key(id);
    if (const auto bytes = sessions.table().encode(id)) {
      LEASEHOLD_ASSERT(batch.Put(key, {bytes->data(), bytes->size()}).ok());
    } else {
      LEASEHOLD_ASSERT(batch.Delete(key).ok());
    }
  }
  LEASEHOLD_ASSERT(
      batch.Put(std::string(kNewestSessionKey), encode_record({sessions.table().newest().value()}))
          .ok());
}

}  // namespace leasehold::kv
