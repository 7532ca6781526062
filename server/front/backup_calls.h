// What the commands ask of the backups of a group.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/slots.h>
#include <leasehold/server/front/backup_manifest.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace leasehold::server {

/// How a backup is wanted.
struct BackupWanted {
  /// Only what this node has applied, which needs no leader.
  bool stale = false;
  /// Refused while a slot is on its way to the group or from it.
  bool settled = false;
};

/// A backup that is complete.
struct BackupDone {
  std::string path;
  BackupManifest manifest;
  kv::SlotMap slots;        ///< the records that are in it
  std::uint64_t bytes = 0;  ///< of the file
};

/// One that is being written.
struct BackupProgress {
  std::string name;
  std::uint64_t bytes = 0;  ///< so far
  std::uint64_t size = 0;   ///< 0: not known yet
};

/// Each may be empty: then it is not offered.
struct BackupCalls {
  /// Writes a backup under a name and answers once, on any thread (Backups::start()).
  std::function<void(std::string_view name, BackupWanted wanted,
                     std::function<void(Result<BackupDone>)> done)>
      write;
  /// A part of a backup (Backups::read()). Any thread, which it may hold up for as long as the disk
  /// takes.
  std::function<Result<std::string>(std::string_view name, std::uint64_t offset)> read;
  /// How far it is (Backups::progress()). Any thread.
  std::function<std::optional<BackupProgress>()> progress;
};

}  // namespace leasehold::server
