// A few bare cores, whose clocks, messages and disks move only when the caller says so, and the
// promises between their processes, if they share such. Then a node may have replicas of several
// groups, whose promises rest on the same beats.
#pragma once

#include <leasehold/raft/core.h>
#include <leasehold/raft/process_promises.h>
#include <leasehold/story/core_watch.h>
#include <leasehold/story/record.h>
#include <leasehold/story/two_clocks.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::story {

inline constexpr GroupId kFirstGroup{1};

/// A node's replica of one group.
struct Replica {
  NodeId node;
  GroupId group = kFirstGroup;

  /// "node 2", "node 2b".
  std::string name() const { return node_name(node, group); }
};

/// A message on its way.
struct Flight {
  /// Of the group, or between the processes.
  using Message = std::variant<raft::Message, raft::ProcessBeat, raft::ProcessBeatReply>;

  std::uint64_t number = 0;
  NodeId from;
  NodeId to;
  Message message;
  Duration sent{0};
  Duration due{0};
  raft::Incarnation sender{};  ///< the process of `from` that sent it
  GroupId group{};             ///< zero: between the processes

  /// "1->2", "1b->2b".
  std::string way() const;
  std::string name() const;
  std::string text() const;
  /// It is sent, is delivered or is lost, at `at`.
  Record record(Duration at, Kind kind) const;
};

/// A read and, once there is one, its answer.
struct StoryRead {
  NodeId node;
  raft::ReadMode mode = raft::ReadMode::lease;
  bool answered = false;
  raft::ReadAnswer answer;
};

/// What a node has of one group: a core, and what is on the disk.
struct StoryReplica {
  StoryReplica(Replica which, Sink sink) : id(which), watch(which.node, std::move(sink)) {}

  Replica id;
  std::unique_ptr<raft::Core> core;
  CoreWatch watch;
  raft::HardState disk_hard_state;
  std::vector<raft::Entry> disk_log;
  /// Everything that storage has received, durable or not.
  std::vector<raft::Entry> log;
  std::deque<raft::PersistBatch> unsynced;
  std::deque<raft::HeldMessage> held;
  raft::LeaseState view;
};

/// One node: its process, its disk and its clocks.
struct StoryNode {
  NodeId id;
  /// With Cluster::Options::shared. The cores rest on them.
  std::optional<raft::ProcessPromises> promises;
  /// One of each group.
  std::vector<StoryReplica> replicas;
  /// Of the replica of the first group. The others differ in the group and in the seed.
  raft::CoreOptions options;
  TwoClocks clock;
  bool up = false;
  bool paused = false;
  /// Batches wait for sync().
  bool disk_stalled = false;
  std::vector<raft::RememberedSupport> disk_supports;
  std::vector<raft::RememberedSupport> unsynced_supports;
  std::uint64_t supports_write = 0;  ///< which asked for the last of them
  raft::PromiseInstant beat_due;     ///< of the next beat
  /// Arrived while the process was paused.
  std::deque<Flight> inbox;

  StoryReplica& of(GroupId group) { return replicas.at(group.value() - 1); }
  const StoryReplica& of(GroupId group) const { return replicas.at(group.value() - 1); }
  /// The end of the lease that readers see; earliest(): there is none.
  raft::HolderInstant shown_end(const StoryReplica& replica) const;
};

/// What a story is about. Deterministic. Timers fall at whole milliseconds of true time, late and
/// never early, so that stories have round numbers.
class Cluster {
 public:
  static constexpr std::size_t kNodesMax = 9;
  static constexpr std::size_t kGroupsMax = 3;
  /// Messages under way and messages that can be delivered again.
  static constexpr std::size_t kFlightsMax = 100'000;

  struct Options {
    std::size_t nodes = 3;
    lease::Timing timing;
    std::uint64_t seed = 1;
    Duration delay = std::chrono::milliseconds(5);
    /// The processes promise to each other, and the promises of the groups rest on that.
    bool shared = false;
    /// Each node has a replica of each; more than one only if `shared`.
    std::size_t groups = 1;
  };

  Cluster(const Options& options, Sink sink);

  Duration now() const { return now_; }
  std::size_t size() const { return nodes_.size(); }
  std::size_t groups() const { return groups_; }
  StoryNode& node(NodeId id) { return nodes_.at(id); }
  const StoryNode& node(NodeId id) const { return nodes_.at(id); }
  StoryReplica& replica(Replica id) { return node(id.node).of(id.group); }
  const StoryReplica& replica(Replica id) const { return node(id.node).of(id.group); }
  bool knows(NodeId id) const { return nodes_.count(id) != 0; }
  const std::deque<Flight>& flights() const { return flights_; }
  const std::map<std::uint64_t, StoryRead>& reads() const { return reads_; }
  /// What no run may show, if this one did: two valid leases of a group at one instant, or two
  /// leaders of a term.
  const std::string& violation() const { return violation_; }

  // ---- Before anything has happened: a history to start from ----

  /// The replica has this log (a term for each entry), is in `term` and has heard from no node
  /// since.
  void preset(Replica id, Term term, const std::vector<Term>& log);
  /// A node whose log has an entry of this one, but not all entries before it, which Raft excludes
  /// (the paper's Log Matching, section 5.3); kNobody if there is none.
  NodeId contradicted(Replica id, const std::vector<Term>& log) const;

  // ---- Time ----

  /// Clocks run, nothing else happens.
  void advance(Duration span);
  /// Clocks run, timers fall, messages arrive when they are due.
  void run(Duration span);
  /// Moves to the next whole 10 ms at which `id` may start an election, and lets only its timer
  /// fall. False: it leads, is down, or cannot campaign.
  bool campaign(Replica id);
  /// Of the replica, and the ends of what its process has promised. No beat begins.
  void tick(Replica id);
  /// Begins a beat. False: it is not due before beat_due(), or the node has no peer.
  bool beat(NodeId id);
  /// In true time. No value: the nodes share no promises.
  std::optional<Duration> beat_due(NodeId id) const;
  void set_rates(NodeId id, std::int64_t holder_ppm, std::int64_t promise_ppm);

  // ---- Messages ----

  void deliver(std::uint64_t number);
  void drop(std::uint64_t number);
  /// Delivers a copy of what was sent before, delivered or lost. False: no such message.
  bool again(std::uint64_t number);
  /// Delivers everything and what follows from it, without time passing.
  void settle();
  void forge(Replica from, NodeId to, raft::Message message);
  void cut(NodeId from, NodeId to);
  void join(NodeId from, NodeId to);
  bool is_cut(NodeId from, NodeId to) const { return cut_.count({from, to}) != 0; }
  void set_delay(Duration delay) { delay_ = delay; }
  /// Entries that one append carries at most.
  void set_entries_max(std::size_t entries) { entries_max_ = entries; }

  // ---- Nodes, and their replicas ----

  std::optional<raft::LogId> propose(Replica id, std::vector<std::string> payloads);
  std::uint64_t read(Replica id, raft::ReadMode mode);
  /// Transfers the leadership to `to`.
  std::optional<raft::TransferRefused> transfer(Replica id, NodeId to);
  /// Changes the settings of the group, at its leader.
  std::variant<raft::LogId, raft::SettingsRefused> change_settings(Replica id,
                                                                   const raft::SettingsEdit& edit);
  /// How far the clocks of this node may be off: the larger of its own bound and of what the group
  /// has agreed on, if it has. Of several groups that with the smallest bound counts.
  std::int64_t drift_ppm_max(NodeId id) const;
  void crash(NodeId id);
  /// `id` learns that the process `ended` of `peer`, and all before it, have ended. Asserts that
  /// they have.
  void notice(NodeId id, NodeId peer, raft::Incarnation ended);
  /// The newest process of `id` that has ended; 0 if none has.
  raft::Incarnation ended(NodeId id) const;
  void restart(NodeId id);
  void pause(NodeId id);
  /// Handles what has arrived in the meantime; with `read_first`, a client's read in the first
  /// group comes first.
  void resume(NodeId id, bool read_first);
  void stall(NodeId id);
  void sync(NodeId id);
  void tell(Record record);

 private:
  void start(StoryNode& node);
  void make_cores(StoryNode& node);
  void step(StoryNode& node, const Flight& flight);
  void drain(StoryNode& node);
  void act(StoryNode& node, StoryReplica& replica, raft::Ready& ready);
  void answered(const StoryReplica& replica, const raft::ReadAnswer& answer);
  void fill(StoryNode& node, StoryReplica& replica, const raft::AppendIntent& intent);
  void persist(StoryNode& node, StoryReplica& replica);
  /// `group`: zero for a message between the processes.
  void send(StoryNode& node, NodeId to, Flight::Message message, GroupId group);
  void take(std::size_t position, bool lost);
  Duration next_timer() const;

  // cluster_promises.cc
  void start_promises(StoryNode& node);
  bool carry_out_promises(StoryNode& node);
  void wake(const StoryNode& node, StoryReplica& replica, const raft::ProcessReady& ready);
  void persist_supports(StoryNode& node);
  void step_promises(StoryNode& node, const raft::Peer& from, const Flight& flight);
  bool wait_for_support(StoryNode& node, const StoryReplica& replica);
  static raft::PromiseInstant due(const StoryNode& node);
  void let_timers_fall(StoryNode& node);

  void check();
  void check_leases(GroupId group);
  bool leads(Replica id, Term term);
  Record record(Kind kind, NodeId id) const;
  Record record(Kind kind, Replica id) const;

  Duration now_{0};
  Duration delay_;
  std::size_t entries_max_ = 1000;
  bool shared_;
  std::size_t groups_;
  Sink sink_;
  raft::Membership membership_;
  std::map<NodeId, StoryNode> nodes_;
  std::set<std::pair<NodeId, NodeId>> cut_;
  std::deque<Flight> flights_;
  std::map<std::uint64_t, Flight> past_;
  std::uint64_t next_flight_ = 1;
  std::map<std::uint64_t, StoryRead> reads_;
  std::uint64_t next_read_ = 1;
  std::string violation_;
  /// The leader of each term, by election or by a forged append.
  std::map<std::pair<GroupId, Term>, NodeId> leaders_;
  /// The highest term of the preset entries of each group: later leaders have higher terms.
  std::map<GroupId, Term> preset_terms_;
};

}  // namespace leasehold::story
