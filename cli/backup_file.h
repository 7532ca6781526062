// A backup in a file.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/cli/progress.h>
#include <leasehold/kv/rocksdb/rocksdb_store.h>
#include <leasehold/server/front/backup_manifest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace leasehold::cli {

struct Backup {
  server::BackupManifest manifest;
  std::shared_ptr<const replica::Snapshot> archive;
};

/// An archive that shows how far it was read.
class ShownArchive final : public replica::Snapshot {
 public:
  ShownArchive(const replica::Snapshot& archive, const std::string& what)
      : archive_(archive), progress_(what) {}
  raft::Index last() const override { return archive_.last(); }
  std::uint64_t size() const override { return archive_.size(); }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    progress_.at(offset, archive_.size());
    return archive_.read(offset, to, bytes);
  }

 private:
  const replica::Snapshot& archive_;
  mutable Progress progress_;
};

/// The backup in the file `from`, read to its last byte: everything that it says of itself is true.
/// Errors: corrupted, io, and those of a manifest.
Result<Backup> verified_backup(const std::string& from);

/// What the backups of all groups say of themselves, each read to its last byte: those of one
/// group, or of many in their order. Errors: as verified_backup(); invalid_argument: one is of
/// another group, or together they do not have each slot once.
Result<std::vector<server::BackupManifest>> verified_backups(const std::vector<std::string>& files);

/// "3 keys at index 7, revision 5".
std::string summary(const server::BackupManifest& manifest);

}  // namespace leasehold::cli
