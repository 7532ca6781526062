// What is left of a group that has lost its majority for good: the logs of nodes that are stopped.
// Which of them a new group goes on from is decided in recovery_plan.h.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/recovery_plan.h>
#include <leasehold/raft/log.h>
#include <leasehold/replica/state_machine.h>

#include <functional>
#include <memory>
#include <string>

namespace leasehold::storage {
class SegmentLog;
}  // namespace leasehold::storage

namespace leasehold::node {

/// The log of a node that is stopped, locked while this lives: no node starts there. Opening does
/// to the folder what a start does: it counts as one, and a torn end is mended. One thread.
class StoppedLog {
 public:
  /// Errors: in_use (a node runs here), not_found (there is no log, or its group never formed),
  /// unsupported (a node with many groups, or another machine's than a host of one group),
  /// corrupted, unsupported_format, io; each names the directory and says what to do.
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
  class Answers;
  StoppedLog(std::unique_ptr<storage::SegmentLog> log, std::unique_ptr<Answers> answers);
  void describe();

  /// Outlives the log.
  std::unique_ptr<Answers> answers_;
  std::unique_ptr<storage::SegmentLog> log_;
  Survivor survivor_;
  bool started_ = false;
};

}  // namespace leasehold::node
