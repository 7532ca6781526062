// What a simulation is asked for, and what it answers.
#pragma once

#include <leasehold/sim/event_queue.h>
#include <leasehold/story/record.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::sim {

/// What may go wrong. Each seed draws its own mixture, so that rare combinations happen.
enum class FaultClass : std::uint8_t {
  crash,          ///< a process dies and a new incarnation starts on its disk
  pause,          ///< a process, or its ordering thread alone, does nothing; both clocks run
  suspend,        ///< a machine sleeps: the promise clock stands still, the holder's runs
  partition,      ///< groups that do not hear each other; also bridges and rings
  one_way_cut,    ///< links that carry nothing in one direction
  loss,           ///< single messages vanish
  duplication,    ///< single messages arrive twice
  reordering,     ///< messages overtake each other; some take seconds
  replay,         ///< old frames arrive again, long after, at later incarnations too
  disk_stall,     ///< a sync takes longer than an election timeout
  unsynced_loss,  ///< a crash loses what was not synced: any suffix of the waiting batches
  disk_error,     ///< a sync fails: the node has to stop; a snapshot cannot be taken
  extreme_drift,  ///< every clock runs at exactly the bound, fast or slow
  drift_change,   ///< clock rates change under way
  slow_apply,     ///< the state machine lags
  late_handling,  ///< the ordering thread sleeps between reading the clock and acting
  reader_pause,   ///< a reader's thread sleeps between any two of its steps
  straggler,      ///< a follower is away for long, while the others cut their logs
  full_disk,      ///< no space for the log but a reserve, which may be used up
  hand_over,      ///< a leader is told to hand the leadership over
  membership,     ///< a leader is told to change the members
};
inline constexpr std::size_t kFaultClasses = 21;

/// "unsynced_loss".
const char* fault_class_name(FaultClass fault);

/// A set of fault classes.
class FaultSet {
 public:
  bool has(FaultClass fault) const { return (bits_ & bit(fault)) != 0; }
  void add(FaultClass fault) { bits_ |= bit(fault); }
  void remove(FaultClass fault) { bits_ &= ~bit(fault); }
  std::size_t count() const;
  std::uint32_t bits() const { return bits_; }
  static FaultSet from_bits(std::uint32_t bits) {
    FaultSet set;
    set.bits_ = bits;
    return set;
  }
  friend bool operator==(const FaultSet&, const FaultSet&) = default;

 private:
  static std::uint32_t bit(FaultClass fault) {
    return std::uint32_t{1} << static_cast<unsigned>(fault);
  }
  std::uint32_t bits_ = 0;
};

/// Who still hears whom in a partial partition.
enum class PartitionShape : std::uint8_t {
  one_way,   ///< any links, each direction by itself
  bridge,    ///< two sides, and one node that is on both
  ring,      ///< each its two neighbours
  chain,     ///< the same, without the link that closes the ring
  majority,  ///< two sides
};

/// Ranges of numbers, ascending, both ends included.
using FaultNumbers = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
inline constexpr std::uint64_t kFaultNumberMax = 999'999'999;

/// What is left out of a seed's run (reduction.h, shrink.h). What is drawn for the rest may differ
/// for it, and so may the run.
struct Reduction {
  FaultSet without;
  bool no_sessions = false;
  bool no_leases = false;
  bool no_key_locks = false;
  bool no_watchers = false;
  /// Clients at most; 0: as many as are drawn.
  std::uint64_t clients_max = 0;
  /// Another order of the same kinds of faults.
  std::uint64_t variant = 0;
  /// If set: of the faults that somebody triggers only those with these numbers happen, counted
  /// from 1 in the order of their times; and each draws from a sequence of its own, so that the
  /// others stay what they are without it.
  std::optional<FaultNumbers> only{};
  friend bool operator==(const Reduction&, const Reduction&) = default;
};

/// How a PartitionTrial ended.
enum class TrialOutcome : std::uint8_t { none, stable, nobody_electable };

struct SimOptions {
  /// The time with faults, and the time after they have stopped in which the cluster has to
  /// recover.
  Duration chaos = std::chrono::seconds(50);
  Duration calm = std::chrono::seconds(15);
  /// If set, each clock runs at exactly +N or -N parts per million, whatever the bound in the
  /// nodes' settings, which is then 100 000 everywhere. Above that the environment breaks its
  /// promise and an oracle has to notice.
  std::optional<std::int64_t> drift_ppm;
  /// If set, a seed is a PartitionTrial: one partition of this shape, and no other fault.
  std::optional<PartitionShape> shape;
  /// A long life: for all of `chaos`, which takes hours then, things go wrong as seldom as this: a
  /// fault every ten seconds, a leader change a minute, two operations of clients a second. What is
  /// simulated is what lies between, too: growing terms, long logs, clocks far from each other.
  bool long_life = false;
  /// Clients that hold leases do most of what is done, with many names and short times to live, and
  /// the others little.
  bool lease_work = false;
  Reduction reduction;
  /// Only the oracles of the lease and the linearizability checker speak. Shows that a bug hurts
  /// readers, not only an internal rule.
  bool lease_oracles_only = false;
  /// Lines of the trace to keep for a report.
  std::size_t trace_tail = 40;
  /// If set, hears every record of the run. Whether it is set changes nothing else.
  story::Sink record;
};

/// An oracle's finding. The run stops at the first.
struct Violation {
  std::string oracle;
  TrueInstant at;
  std::string story;
  std::vector<std::string> trace_tail;
};

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
  std::uint64_t taken = 0;     ///< snapshots, to be sent
  std::uint64_t arrived = 0;   ///< whole
  std::uint64_t resets = 0;    ///< durable: one took the place of a log
  std::uint64_t installs = 0;  ///< the state machine was given one, by a running process
  std::uint64_t installs_at_start = 0;
  std::uint64_t resumed = 0;  ///< begun by one process of a machine and continued by another
  std::uint64_t bytes = 0;    ///< that were stored of snapshots
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
  std::uint64_t faults = 0;  ///< that somebody triggered: not of single messages or syncs
  std::uint64_t restarts = 0;
  std::uint64_t hand_overs_asked = 0;  ///< of some leader, at a time when there was one
  std::uint64_t hand_overs = 0;        ///< after which another node led
};

/// What became of the leases that clients held.
struct LeaseCounts {
  std::uint64_t granted = 0;
  std::uint64_t expired = 0;
  std::uint64_t fenced = 0;       ///< writes that were refused with their token
  std::uint64_t renewed = 0;      ///< as clients were told
  std::uint64_t without_log = 0;  ///< requests that the leader answered under its lease
  std::uint64_t too_late = 0;     ///< that it did not, because an expiry was under way
  std::uint64_t revoked = 0;      ///< by their holders
  std::uint64_t regained = 0;     ///< renewed in their grace period
  std::uint64_t taken_over = 0;   ///< ended in it, because somebody wanted the name
  std::uint64_t delayed = 0;      ///< that kept their name from others when they had expired
  std::uint64_t watched = 0;      ///< revisions that watchers were told
  std::uint64_t resynced = 0;     ///< watchers were told that something was forgotten
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

/// What one seed did.
struct SeedReport {
  std::uint64_t seed = 0;
  Duration simulated{0};
  std::uint64_t steps = 0;
  OperationCounts operations;
  std::uint64_t operations_unknown = 0;
  std::uint64_t leader_changes = 0;
  std::uint64_t membership_entries = 0;  ///< committed; a change of the voters takes two
  SnapshotCounts snapshots;
  SessionCounts sessions;
  NodeCounts nodes;
  LeaseCounts leases;
  KeyLockCounts key_locks;
  std::uint64_t triggered = 0;  ///< faults that somebody was about to trigger
  FaultSet faults;              ///< those that took effect
  std::uint64_t trace_hash = 0;
  TrialOutcome trial = TrialOutcome::none;
  std::optional<Violation> violation;
};

}  // namespace leasehold::sim
