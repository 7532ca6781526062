// What leasehold recover reads of a member's directory, and the file that it makes of it.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/node_recovery.h>

#include <cstdint>
#include <string>

namespace leasehold::cli {

/// The report of the stopped member in `dir`, its store included. Errors: those of
/// node::StoppedLog::open(). A store that cannot be used is no error: the report says why.
Result<node::Survivor> look_at_survivor(const std::string& dir);
/// The same of a stopped node with many groups, and its stores.
Result<node::HostSurvivor> look_at_host(const std::string& dir);

/// Where a recovered state comes from, and what its file says of it.
struct RecoveredSource {
  std::string state;            ///< the folder of the store
  raft::NodeId node;            ///< whose that is
  std::uint64_t ids_above = 0;  ///< as RocksdbStore::Options
  std::string name;             ///< of the group
  std::uint64_t number = 0;     ///< of the plan
  raft::Index base;             ///< as RecoveryPlan
};
RecoveredSource source_of(const std::string& dir, const node::Survivor& survivor,
                          const node::RecoveryPlan& plan);
/// Of a group of the stopped node `host`.
RecoveredSource source_of(const std::string& dir, const node::HostSurvivor& host,
                          const node::GroupRecovery& group, std::uint64_t number);

/// Writes the state at the end of `log` to the new file `to`, in the form of a backup
/// (docs/formats/backup.md), with the gap of the plan behind it. The node's own state stays as it
/// is. After an interruption it may be called again. Returns what the file holds, in words. Errors:
/// those of the store, of the log and of write_backup_file().
Result<std::string> write_recovered_state(node::StoppedLog& log, const RecoveredSource& source,
                                          const std::string& to);

/// Removes the copy of the state that write_recovered_state() makes beside `to`. A call that is
/// killed after `to` is whole leaves it there.
Result<void> remove_working_folder(const std::string& to);

}  // namespace leasehold::cli
