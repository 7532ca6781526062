// Snapshots of a store: taken as a checkpoint of its database, read as an archive, unpacked again.
// Not for other rooms.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/rocksdb/rocksdb_archive.h>
#include <leasehold/kv/rocksdb/rocksdb_database.h>
#include <leasehold/replica/state_machine.h>

#include <memory>
#include <string>

namespace leasehold::kv {

/// A checkpoint of `database` in the folder `path`, which must not exist and is removed with the
/// snapshot. Hard links where the tables are: it takes space only for what is written or compacted
/// later. Flushes; any thread. Errors: corrupted, unsupported_format, io.
Result<std::shared_ptr<const replica::Snapshot>> take_checkpoint(const Database& database,
                                                                 const std::string& path,
                                                                 rocksdb::Env* env);

/// An archive that was written to a file, behind its first `offset` bytes, up to its end. Errors:
/// corrupted, unsupported_format, io.
Result<std::shared_ptr<const replica::Snapshot>> open_archive_file(const std::string& path,
                                                                   std::uint64_t offset,
                                                                   rocksdb::Env* env);

/// The head of an archive, after all checks that it allows by itself: the length of the whole too.
/// Errors: corrupted, unsupported_format, io.
Result<ArchiveHead> read_head(const replica::Snapshot& snapshot);

/// Reads every block of an archive whose head is `head`. Errors: corrupted (with the file that it
/// is part of), io.
Result<void> verify_blocks(const replica::Snapshot& snapshot, const ArchiveHead& head);

/// The records of slots in an archive whose head is `head`, read without unpacking it. Errors:
/// corrupted, unsupported_format, io.
Result<SlotMap> read_archived_slots(const replica::Snapshot& snapshot, const ArchiveHead& head);

/// Unpacks an archive whose head is `head` into the folder `path`, which must not exist; durable
/// except for the folder's own name. Checks the free space of the disk first. Errors: corrupted,
/// io; then there is nothing at `path`.
Result<void> unpack(const replica::Snapshot& snapshot, const ArchiveHead& head,
                    const std::string& path, rocksdb::Env* env);

/// The database that unpack() made, open, after a read of everything in it; it belongs to `owner`,
/// durably. If its records are not those that its owner had applied, it is distrusted. Errors:
/// corrupted, unsupported_format, io.
Result<std::unique_ptr<Database>> open_unpacked(const ArchiveHead& head, const std::string& path,
                                                StoreIdentity owner, rocksdb::Env* env);

}  // namespace leasehold::kv
