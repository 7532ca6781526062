// What is left of a group that has lost its majority for good: the logs of nodes that are stopped.
// Which of them a new group goes on from is decided in recovery_plan.h, and for the groups of hosts
// in host_recovery.h.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/host_recovery.h>
#include <leasehold/node/recovery_plan.h>
#include <leasehold/raft/log.h>
#include <leasehold/replica/state_machine.h>

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace leasehold::storage {
class GroupLog;
class SegmentLog;
class SharedLog;
}  // namespace leasehold::storage

namespace leasehold::node {

/// Whether the directory is a host's, with the log of many groups. Errors: not_found (there is no
/// log), corrupted, unsupported_format, io.
Result<bool> has_many_groups(const std::string& data_dir);

/// The log of a node that is stopped, locked while this lives: no node starts there. Opening does
/// to the folder what a start does: it counts as one, and a torn end is mended. One thread.
class StoppedLog {
 public:
  /// Errors: in_use (a node runs here), not_found (there is no log, or its group never formed),
  /// unsupported (a host with many groups: see StoppedHost), corrupted, unsupported_format, io;
  /// each names the directory and says what to do.
  static Result<std::unique_ptr<StoppedLog>> open(const std::string& data_dir);
  ~StoppedLog();
  StoppedLog(const StoppedLog&) = delete;
  StoppedLog& operator=(const StoppedLog&) = delete;

  /// What the log says. `applied` is left to the caller: only the state machine knows it.
  const Survivor& survivor() const { return survivor_; }
  /// Applies all entries of the log behind `applied`, as if they were committed, and says after
  /// each run how far it is. `machine` holds the state at `applied`, and should be a copy of the
  /// node's: the group may yet turn out not to be lost. Errors: invalid_argument (the log does not
  /// begin at or before `applied`, or ends before it), malformed, unsupported_format, corrupted,
  /// io.
  Result<void> apply_rest(replica::StateMachine& machine, raft::Index applied,
                          const std::function<void(raft::Index)>& step = {});

 private:
  friend class StoppedHost;
  class Answers;
  StoppedLog(std::unique_ptr<storage::SegmentLog> whole, std::unique_ptr<storage::GroupLog> log);
  void describe(std::uint64_t cluster_id, raft::NodeId id, const raft::Uuid& uuid);
  storage::GroupLog& log();

  /// Outlives the log.
  std::unique_ptr<Answers> answers_;
  std::unique_ptr<storage::SegmentLog> whole_;  ///< null: the log is one of a host's
  std::unique_ptr<storage::GroupLog> log_;      ///< null: the log is `whole_`
  Survivor survivor_;
  bool started_ = false;
};

/// The logs of all groups of a host that is stopped, locked while this lives, as a StoppedLog is.
/// One thread.
class StoppedHost {
 public:
  /// Errors: as StoppedLog::open(), and unsupported for a node of one group.
  static Result<std::unique_ptr<StoppedHost>> open(const std::string& data_dir);
  ~StoppedHost();
  StoppedHost(const StoppedHost&) = delete;
  StoppedHost& operator=(const StoppedHost&) = delete;

  /// What the logs say. The caller sets `applied` of each group. The promise of each is at least
  /// the longest that the host has given for all its groups.
  const HostSurvivor& survivor() const { return survivor_; }
  /// Of a group in survivor(). This outlives it.
  StoppedLog& log(raft::GroupId group) { return *logs_.at(group); }

 private:
  explicit StoppedHost(std::unique_ptr<storage::SharedLog> shared);
  Result<void> open_groups();

  std::unique_ptr<storage::SharedLog> shared_;
  std::map<raft::GroupId, std::unique_ptr<StoppedLog>> logs_;
  HostSurvivor survivor_;
};

}  // namespace leasehold::node
