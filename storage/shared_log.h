// SharedLog: the logs of all groups of a process, in one folder. One sync makes durable what waits,
// of however many groups.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/storage/disk.h>
#include <leasehold/storage/group_log.h>
#include <leasehold/storage/segment_log.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace leasehold::storage {

/// Threads and files as those of a SegmentLog, whatever number of groups there is. The front of the
/// files moves: what the first one still holds is copied to the end, when more than half of their
/// bytes is of no use any more.
///
/// Any thread, except where something else is said.
class SharedLog {
 public:
  /// `options.group` has no meaning. A folder that held the log of one group becomes a shared one
  /// for good: older builds refuse it then. Errors: as SegmentLog::open().
  static Result<std::unique_ptr<SharedLog>> open(const SegmentLogOptions& options);
  static Result<std::unique_ptr<SharedLog>> open(const SegmentLogOptions& options,
                                                 std::unique_ptr<Disk> disk);

  const NodeIdentity& identity() { return threads_.store().identity(); }
  std::uint64_t place() { return threads_.store().place(); }
  /// Those whose logs the folder holds and that are not open.
  std::vector<raft::GroupId> groups() { return threads_.store().groups(); }
  /// The log of a group, found or new. This outlives it. Errors: invalid_argument (it is open, or
  /// was: a group has one core in the life of a process).
  Result<std::unique_ptr<GroupLog>> open_group(raft::GroupId group);
  /// A log that was opened and not started can be opened again.
  void give_back(std::unique_ptr<GroupLog> log);
  /// The members that the log of a group names last; none if it is open, or not here.
  std::vector<raft::Member> members(raft::GroupId group) { return threads_.store().members(group); }
  /// The replica is gone with all of its log, durably on return. It is not open any more. A success
  /// when there is none. Its number, and all below it, are remembered: retired(). Errors: io.
  Result<void> remove_group(raft::GroupId group, raft::NodeId replica);
  /// The highest number with which a replica of the group was removed here; kNobody: none was.
  raft::NodeId retired(raft::GroupId group);

  /// What earlier processes remember, and this one.
  std::vector<SupportRecord> supports();
  /// All of them, in place of those before. `done` of set_process_sink() hears `write`.
  void remember(std::vector<SupportRecord> supports, std::uint64_t write);
  /// Called on the writer's thread.
  void set_process_sink(std::function<void(std::uint64_t write)> done) {
    threads_.set_process_sink(std::move(done));
  }

  /// What groups give to persist() between the two is made durable together, as far as possible:
  /// one sync costs the same for one group as for many. One thread calls both.
  void hold() { threads_.hold(); }
  void release() { threads_.release(); }

  std::uint64_t syncs() { return threads_.store().syncs(); }
  /// Batches of all groups so far, and how many of them are durable.
  std::pair<std::uint64_t, std::uint64_t> progress() { return threads_.progress(); }

 private:
  SharedLog(const SegmentLogOptions& options, std::unique_ptr<SegmentStore> store);
  std::shared_ptr<Pending> process_record() const;

  LogThreads threads_;
  /// Held while a record of the process is put behind the others: each has all.
  std::mutex mutex_;
  // Under mutex_.
  ProcessRecord process_;
  std::set<raft::GroupId> opened_;
};

}  // namespace leasehold::storage
