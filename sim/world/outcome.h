// What a run finds, and what its parts count.
#pragma once

#include <leasehold/sim/world/event_queue.h>

#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::sim {

/// An oracle's finding. The run stops at the first.
struct Violation {
  std::string oracle;
  TrueInstant at;
  std::string story;
  std::vector<std::string> trace_tail;
};

/// How a PartitionTrial ended.
enum class TrialOutcome : std::uint8_t { none, stable, nobody_electable };

/// Client operations that completed, by how.
struct OperationCounts {
  std::uint64_t writes = 0;
  std::uint64_t reads_off_thread = 0;  ///< under the lease, without the ordering thread
  std::uint64_t reads_lease = 0;       ///< by the driver, under the lease
  std::uint64_t reads_quorum = 0;
  std::uint64_t reads_leader = 0;  ///< at a follower, justified by the leader
  std::uint64_t reads_log = 0;
  std::uint64_t total() const {
    return writes + reads_off_thread + reads_lease + reads_quorum + reads_leader + reads_log;
  }
};

/// What happened to logs and snapshots.
struct SnapshotCounts {
  std::uint64_t cuts = 0;      ///< of logs, at the front
  std::uint64_t demands = 0;   ///< that a log is cut, and were answered
  std::uint64_t taken = 0;     ///< snapshots, to be sent
  std::uint64_t arrived = 0;   ///< whole
  std::uint64_t resets = 0;    ///< durable: one took the place of a log
  std::uint64_t installs = 0;  ///< into the state machine, by a running process
  std::uint64_t installs_at_start = 0;
  std::uint64_t resumed = 0;  ///< begun by one process of a machine and continued by another
  std::uint64_t bytes = 0;    ///< that were stored of snapshots
  std::uint64_t copied = 0;   ///< bytes that were at the receiver already
  std::uint64_t refused = 0;  ///< blocks that were other bytes than the receiver had said
  std::uint64_t full_disks = 0;
  // Processes that died while a snapshot was being taken, sent, received or installed there. One
  // that was at several of these counts for the last.
  std::uint64_t crashes_taking = 0;
  std::uint64_t crashes_sending = 0;
  std::uint64_t crashes_receiving = 0;
  std::uint64_t crashes_installing = 0;
  std::uint64_t crashes() const {
    return crashes_taking + crashes_sending + crashes_receiving + crashes_installing;
  }
};

/// What clients did in sessions.
struct SessionCounts {
  std::uint64_t opened = 0;
  std::uint64_t writes = 0;       ///< that were answered
  std::uint64_t repetitions = 0;  ///< sends of a write beyond its first
  std::uint64_t repeated = 0;     ///< answers that the table gave: executed before
  std::uint64_t expired = 0;      ///< sessions, because they were idle
  std::uint64_t given_up = 0;     ///< writes whose session was gone: executed or not
};

/// What was done to the nodes.
struct NodeCounts {
  std::uint64_t faults = 0;  ///< that were triggered: not of single messages or syncs
  std::uint64_t restarts = 0;
  std::uint64_t notices = 0;          ///< of the end of a process, that came to another node
  std::uint64_t ended_promises = 0;   ///< ended by a notice, or by a later process
  std::uint64_t beats = 0;            ///< of a process to another node
  std::uint64_t side_writes = 0;      ///< that members of side groups were asked for
  std::uint64_t side_leaders = 0;     ///< elections in side groups
  std::uint64_t bound = 0;            ///< answers that a promise is bound to the leader's process
  std::uint64_t transfers_asked = 0;  ///< of some leader, at a time when there was one
  std::uint64_t transfers = 0;        ///< after which another node led
  std::uint64_t earlier_starts = 0;   ///< of processes of an earlier version
  std::uint64_t earlier_leaders = 0;  ///< elections that one of them won
};

/// What became of the settings of the group.
struct SettingsCounts {
  std::uint64_t asked = 0;      ///< changes, of some node that led
  std::uint64_t refused = 0;    ///< nothing was appended
  std::uint64_t done = 0;       ///< as the caller learned
  std::uint64_t committed = 0;  ///< all that changed something, and by what they changed:
  std::uint64_t longer = 0;     ///< D
  std::uint64_t shorter = 0;
  std::uint64_t more_drift = 0;  ///< the bound
  std::uint64_t less_drift = 0;
  std::uint64_t other = 0;  ///< neither of the two
};

/// What became of the leases that clients held.
struct LeaseCounts {
  std::uint64_t granted = 0;
  std::uint64_t expired = 0;
  std::uint64_t fenced = 0;       ///< writes that were refused with their token
  std::uint64_t renewed = 0;      ///< as clients learned
  std::uint64_t without_log = 0;  ///< requests that the leader answered under its lease
  std::uint64_t too_late = 0;     ///< that it did not, because an expiry was under way
  std::uint64_t revoked = 0;      ///< by their holders
  std::uint64_t regained = 0;     ///< renewed in their grace period
  std::uint64_t taken_over = 0;   ///< ended in it, because a client wanted the name
  std::uint64_t delayed = 0;      ///< that kept their name from others when they had expired
  std::uint64_t watched = 0;      ///< revisions that watchers received
  std::uint64_t resynced = 0;     ///< watchers learned that revisions were forgotten
  std::uint64_t unanswered = 0;   ///< requests of clients, which may have been executed
  /// What happens to a lease or is done with its token.
  std::uint64_t events() const { return granted + renewed + expired + revoked + fenced; }
};

/// What clients did with keys that are locks.
struct KeyLockCounts {
  std::uint64_t clients = 0;
  std::uint64_t acquired = 0;
  std::uint64_t refused = 0;   ///< another had it
  std::uint64_t extended = 0;  ///< by a time that counts from then on
  std::uint64_t added = 0;     ///< more time than what was left
  std::uint64_t released = 0;
  std::uint64_t lost = 0;  ///< extensions that came too late
};

}  // namespace leasehold::sim
