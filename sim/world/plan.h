// What one seed decides before anything runs: the cluster, its settings, and which faults may
// happen how often.
#pragma once

#include <leasehold/base/random.h>
#include <leasehold/lease/timing.h>
#include <leasehold/raft/settings.h>
#include <leasehold/replica/driver.h>
#include <leasehold/sim/world/event_queue.h>
#include <leasehold/sim/world/fault_class.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace leasehold::sim {

/// How a link treats messages. Chances in parts per million.
struct LinkPlan {
  Duration delay_min{0};
  Duration delay_max{0};
  std::uint64_t loss_ppm = 0;
  std::uint64_t duplicate_ppm = 0;
  /// Reordering: a message may take up to spike_max, and nothing keeps the order.
  std::uint64_t spike_ppm = 0;
  Duration spike_max{0};
  bool keeps_order = true;
  /// Replay: a leader whose round is lost hears an old answer to a round of that number.
  std::uint64_t echo_percent = 0;
};

struct DiskPlan {
  Duration sync_min{0};
  Duration sync_max{0};  ///< of a good disk; NodePlan has each node's own
  std::uint64_t stall_ppm = 0;
  Duration stall_max{0};
  bool loses_unsynced = false;
  std::uint64_t error_ppm = 0;
  /// The longest time for which a disk is full.
  Duration full_max = std::chrono::seconds(1);
};

/// What is done with snapshots takes time, and is a good moment to die. When logs are cut, and how
/// snapshots are sent, is in Plan::driver.
struct SnapshotPlan {
  Duration work_min{0};
  Duration work_max{0};
  /// The state machine makes itself durable now and then, without being asked.
  bool flushes = true;
  /// Chances: a snapshot cannot be taken; the process dies at a SnapshotMoment, or shortly after.
  std::uint64_t failure_ppm = 0;
  std::uint64_t crash_ppm = 0;
  /// A machine that died is back soon enough to go on where it was.
  bool quick_return = false;
  /// How much of an arriving snapshot a node says to hold already; a part of that is wrong.
  std::uint64_t held_percent = 0;
};

/// What the group has agreed on, and how it changes.
struct SettingsPlan {
  /// The first membership has settings. Otherwise each node follows its own flags, until a change
  /// gives the group its first ones.
  bool agreed = false;
  raft::GroupSettings first;
  /// Mean time between two changes.
  Duration change_interval{0};
  /// Chance that a process is started with NodePlan::other_drift_ppm.
  std::uint64_t other_drift_percent = 0;
  /// While lease reads are off, the clocks keep to this only. 0: to what they always keep to.
  std::int64_t drift_ppm_without_leases = 0;
};

/// A group that is upgraded from an earlier version, with ways back (SimOptions::earlier).
struct UpgradePlan {
  /// Chance that a process which starts is of the earlier version. 0: none ever is.
  std::uint64_t earlier_percent = 0;
  /// Mean time between two restarts that may change a node's version.
  Duration restart_interval{0};
  /// From this time on, only processes of this version start, and those of the earlier one are
  /// restarted. Before it the group's level stays as it is.
  Duration over{0};
};

/// What tells the others that a process has ended, though its machine and the network live on.
struct DeputyPlan {
  /// Chance that a process that starts has a deputy.
  std::uint64_t percent = 0;
  /// Of one notice to one node.
  Duration delay_max{0};
  std::uint64_t loss_percent = 0;
  /// Chance that it comes again, up to a few seconds later.
  std::uint64_t repeat_percent = 0;
};

/// Promises between processes, which the groups of a process share (docs/decisions/0024).
struct BeatPlan {
  bool shared = false;
  /// Groups that each process runs besides the one that is judged in full.
  std::uint64_t side_groups = 0;
  /// Chance that a leader leaves out a heartbeat of the group, as one does of a group at rest.
  std::uint64_t idle_percent = 0;
  /// If above zero: the mean time until a node is out of its group for a while, at most
  /// silence_max. No message of the group leaves it or reaches it then, but beats do.
  Duration silence_interval{0};
  Duration silence_max{0};
  /// Every node is a member of each side group, and its replicas live as long as its process.
  bool side_steady = false;
};

struct NodePlan {
  /// What the node is started with. Its drift bound may be smaller than the group's or larger; its
  /// clocks keep the larger one of the two.
  lease::Timing timing;
  /// The bound that some starts are given in place of the one in `timing`: the operator has learned
  /// more about the clock, which is worth that from then on.
  std::int64_t other_drift_ppm = 0;
  /// Keeps the log and no state machine.
  bool witness = false;
  Duration apply_min{0};
  Duration apply_max{0};
  Duration sync_max{0};
  /// The ordering thread sleeps up to late_max between sampling the clock and acting.
  std::uint64_t late_ppm = 0;
  Duration late_max{0};
};

struct WorkloadPlan {
  std::uint64_t clients = 0;
  std::uint64_t keys = 0;
  std::uint64_t read_percent = 0;
  /// If above zero: writes come in the first third of each such period only. While nothing is
  /// written, all logs are up to date, so every node may win an election.
  Duration quiet_period{0};
  /// The same for every client, and for changes of members and settings.
  bool all_quiet = false;
  Duration think_max{0};
  /// A client without an answer for this time gives up; what it asked for may still happen.
  Duration patience = std::chrono::seconds(6);
  /// Of the reads, those that ask for a quorum.
  std::uint64_t quorum_percent = 0;
  /// Watchers read a key at another node as soon as a write of it has completed, if possible at a
  /// node that does not know yet that it was deposed. The number of reads at a time.
  std::uint64_t watchers = 0;
  std::uint64_t reader_pause_ppm = 0;
  Duration reader_pause_max{0};
};

/// Clients that number their writes and repeat each until it is answered.
struct SessionPlan {
  std::uint64_t clients = 0;
  /// Writes that one of them has under way at once.
  std::uint64_t outstanding_max = 1;
  Duration think_max{0};
  /// Of the sends, those that go to two nodes at once.
  std::uint64_t double_percent = 0;
  /// A session that no command has named for this time is closed.
  Duration idle_max{0};
};

/// Clients that hold leases.
struct LeasePlan {
  std::uint64_t clients = 0;
  /// Of the leases. Fewer than clients, so that they meet.
  std::uint64_t names = 1;
  Duration ttl{0};
  Duration margin{0};
  /// The longest grace period and lock delay of a lease; 0: none has any.
  Duration grace_max{0};
  Duration delay_max{0};
  /// The rates of the clients' clocks stay within this of true time, and so do the nodes'.
  std::int64_t drift_ppm = 0;
  /// Clients that watch the keys, and the longest time between two looks of one of them.
  std::uint64_t watchers = 0;
  Duration look_max{0};
  /// What a node keeps for them.
  std::size_t events_max = 0;
};

/// Clients that use keys with a time to live as locks. Their clocks are as wrong as the nodes'.
struct KeyLockPlan {
  std::uint64_t clients = 0;
  std::uint64_t keys = 1;
  Duration ttl{0};
  Duration margin{0};
};

struct Plan {
  std::uint64_t seed = 0;
  FaultSet enabled;
  std::vector<NodePlan> nodes;
  SettingsPlan settings;
  UpgradePlan upgrade;
  DeputyPlan deputies;
  BeatPlan beats;
  /// The first 3 or 5 nodes form the group; the others start empty, and may join it.
  std::size_t founders = 0;
  LinkPlan link;
  DiskPlan disk;
  SnapshotPlan snapshots;
  WorkloadPlan workload;
  SessionPlan sessions;
  LeasePlan leases;
  KeyLockPlan key_locks;
  replica::DriverOptions driver;  ///< limits only; `core` is made for each start
  /// Clock rates stay within this of true time, and within what is relied upon at that instant
  /// (judge/agreed_numbers.h).
  std::int64_t drift_ppm_max = 0;
  /// They only stay within `drift_ppm_max`, whatever the nodes rely upon.
  bool drift_unbounded = false;
  bool drift_extreme = false;
  /// With drift_extreme: the leader has the slowest clocks that are allowed, all others the
  /// fastest. No lease comes closer to the promises that it is based on.
  bool drift_against_leader = false;
  /// Mean time between two triggered faults.
  Duration fault_interval{0};
  /// The longest time between two stragglers.
  Duration straggler_interval = std::chrono::seconds(5);
  /// Mean time between two transfers of the leadership.
  Duration transfer_interval{0};
  /// Mean time between two changes of the members.
  Duration member_change_interval{0};
  /// Mean time between two demands that some node cuts its log.
  Duration cut_demand_interval{0};
  /// Chance that a node crashes right after it sent a promise or a vote.
  std::uint64_t crash_at_send_ppm = 0;
  /// Chance that a node that has just been elected is struck, so that its first entries stay behind
  /// on a few nodes (figure 8 of the Raft paper).
  std::uint64_t young_leader_percent = 0;
  /// Chance that a leader is cut off at the very instant at which it is elected, or commits one of
  /// its first entries, while all that were cut off before are joined again: so that what it has
  /// just won stands on as few nodes as it can.
  std::uint64_t hunt_percent = 0;
  /// The faults follow the script of duel.h.
  bool duel = false;
  /// Chance that paused nodes wake up right after a new leader has committed.
  std::uint64_t wake_percent = 0;
  /// Chance that a node crashes while a batch waits for its sync.
  std::uint64_t crash_at_persist_ppm = 0;
  /// The longest D of any node, and of the group.
  Duration lease_max() const;
  Duration election_timeout_max() const;
};

/// A change of the settings makes D, or the election timeout, at most this many times as long as it
/// is in the first ones. No change makes D longer than kSettingsLeaseMax. One that makes D many
/// times as short stops at kSettingsLeaseMin.
inline constexpr int kLeaseGrowth = 10;
inline constexpr int kElectionGrowth = 2;
inline constexpr Duration kSettingsLeaseMin = std::chrono::milliseconds(200);
inline constexpr Duration kSettingsLeaseMax = std::chrono::seconds(6);
/// The numbers that changes of the settings begin with.
raft::GroupSettings first_settings(const Plan& plan);

/// A random sequence for one subject of the plan. Its name decides it, with the seed and nothing
/// else: another draw for one subject changes nothing that is drawn for any other.
Random stream(std::uint64_t seed, std::string_view subject);

/// The same for one part of a run, by number.
Random random_for(std::uint64_t seed, std::uint64_t part);

/// Uniform in [low, high]. A `high` below `low` counts as `low`: a plan from a file may have
/// shorter times than any that is drawn.
Duration draw_duration(Random& random, Duration low, Duration high);

}  // namespace leasehold::sim
