// One simulated machine: its clocks, its disk, its state machine, and the process that runs on it
// while it is up: the production Driver, or one of an earlier version.
#pragma once

#include <leasehold/base/assert.h>
#include <leasehold/node/witness_machine.h>
#include <leasehold/replica/driver.h>
#include <leasehold/sim/world/judge.h>
#include <leasehold/sim/world/register_machine.h>
#include <leasehold/sim/world/running_replica.h>
#include <leasehold/sim/world/side_group.h>
#include <leasehold/sim/world/sim_applier.h>
#include <leasehold/sim/world/sim_clock.h>
#include <leasehold/sim/world/sim_disk.h>
#include <leasehold/sim/world/sim_network.h>
#include <leasehold/sim/world/sim_snapshots.h>
#include <leasehold/sim/world/sim_supports.h>
#include <leasehold/sim/world/world.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace leasehold::sim {

class SimNode;
/// One of the nodes that believe that they lead, the newest leader or a deposed one, by a number
/// drawn before; null: there is none.
SimNode* some_leader(const std::vector<SimNode*>& nodes, std::uint64_t drawn);
/// The group that is judged in full.
inline constexpr raft::GroupId kFirstGroup{1};
/// Of the directory of a node: a simulation never wipes a machine.
raft::Uuid uuid_of(raft::NodeId id);
/// The members with which the group begins.
raft::Membership founding_membership(const Plan& plan);

/// Drives a Driver as node/node.cc does, without threads: the ordering thread takes one event
/// at a time, samples the clocks, and acts, possibly much later. Storage, apply and reader threads
/// are actions of the queue that wait while the process is frozen.
class SimNode : private net::Transport,
                private storage::StorageSink,
                private replica::Observer,
                private OtherGroups {
 public:
  /// Events that the ordering thread takes at once, as in production.
  static constexpr std::size_t kBatchMax = 64;
  /// Messages that wait at a process that does not read them. Past it they are lost.
  static constexpr std::size_t kInboxMax = 20'000;

  SimNode(World& world, Judge& judge, SimNetwork& network, raft::NodeId id);

  raft::NodeId id() const { return id_; }
  const SimClock& clock() const { return clock_; }
  SimDisk& disk() { return disk_; }
  const SimDisk& disk() const { return disk_; }
  const RegisterMachine& machine() const { return machine_; }
  /// The other groups of its process, if it is a member.
  const std::vector<std::unique_ptr<SideGroup>>& side_groups() const { return side_groups_; }
  /// A snapshot that has arrived, or is arriving; outlives the process.
  const std::optional<StagedSnapshot>& staged() const { return staged_; }
  /// Whether a process runs here, frozen or not.
  bool up() const { return process_ != nullptr; }
  /// Of the running process. Asserts up().
  const RunningReplica& running() const;
  const replica::LeaseView& view() const;
  /// As a reader would see it now. Asserts up().
  raft::LeaseState published() const {
    LEASEHOLD_ASSERT(up());
    return process_->view.load();
  }
  bool leads() const { return up() && running().role() == raft::Role::leader; }
  bool suspended() const { return suspended_; }
  /// Whether the newest process is one of an earlier version.
  bool runs_earlier() const { return runs_earlier_; }
  /// Whether it keeps only the log; its machine() then stays empty.
  bool witness() const { return world_.plan.nodes[id_.value() - 1].witness; }
  /// What its process begins with.
  raft::Index applied_at_start() const {
    return witness() ? disk_.durable().base_id().index : machine_.durable_index();
  }
  /// Rises with each start and each crash.
  std::uint64_t life() const { return life_; }
  /// As the others meet its newest process.
  /// An earlier version says nothing of its process.
  raft::Peer peer() const {
    return {id_, uuid_of(id_),
            runs_earlier_ ? raft::Process{} : raft::Process{incarnation_, boots_}};
  }
  /// What the newest process was started with.
  const lease::Timing& timing() const { return timing_; }

  /// Does nothing on a machine whose disk is too full for any process.
  void start();
  /// The process dies; what its disk had not made durable may be lost. With `reboot` the machine
  /// does, and its clocks start again.
  void crash(bool reboot);
  /// The process (or only its ordering thread) stands still for this time. Clocks go on.
  void pause(Duration length, bool ordering_thread_only);
  /// Ends every pause now.
  void wake();
  /// The machine sleeps.
  void suspend(Duration length);
  void set_rates(std::int64_t holder_ppm, std::int64_t promise_ppm);
  /// Faults of this machine end at once: it runs, and nothing is late any more.
  void heal();

  /// Takes what it needs out of `message`.
  void receive(const raft::Peer& from, wire::PeerMessage& message);
  /// An input of the ordering thread. Asserts up().
  void post(replica::Event event);
  /// The same, of a side group.
  void post_side(raft::GroupId group, replica::Event event);
  /// On some thread of the process of `life`: now, or once it is not frozen; never after its death.
  void run_in_process(std::uint64_t life, EventQueue::Action action);
  /// Called when this node has been elected, inside the turn that did it.
  void set_on_elected(std::function<void()> on_elected) { on_elected_ = std::move(on_elected); }
  /// Called when this node leads and has just committed more than `before`, after the turn that did
  /// it.
  void set_on_commit(std::function<void(raft::Index before)> on_commit) {
    on_commit_ = std::move(on_commit);
  }
  /// Called before a process starts, when its timing() is known.
  void set_on_start(std::function<void()> on_start) { on_start_ = std::move(on_start); }
  /// Called when the process has died; `machine`: and the machine with it.
  void set_on_death(std::function<void(bool machine)> on_death) { on_death_ = std::move(on_death); }

 private:
  using SideEvents = std::vector<std::pair<raft::GroupId, replica::Event>>;
  struct Process {
    replica::LeaseView view;
    std::unique_ptr<SimApplier> applier;
    std::unique_ptr<SimSnapshots> snapshots;
    std::unique_ptr<RunningReplica> replica;
    std::deque<replica::Event> inbox;
    /// For side groups, in the turn that takes what is in `inbox` next.
    SideEvents side_inbox;
    /// What the ordering thread takes in this turn; empty between turns.
    std::vector<replica::Event> batch;
    /// What waits for the process to continue.
    std::deque<EventQueue::Action> thawed;
    /// The pauses that have not ended, by number: of all of it, and of the ordering thread alone.
    std::set<std::uint64_t> paused;
    std::set<std::uint64_t> ordering_paused;
    /// What the ordering thread is about to act upon, with a clock sample that grows old.
    std::vector<replica::Event> late_batch;
    SideEvents late_side_batch;
    bool pumping = false;
    bool stopping = false;
    TrueInstant tick_at = TrueInstant::never();
    std::uint64_t tick_number = 0;
    raft::LeaseState traced;
    raft::Index commit;
  };

  void send(raft::NodeId to, wire::PeerMessage message) override;
  void persisted(raft::ReadyId id) override;
  void entries_read(std::uint64_t token, Result<std::vector<raft::Entry>> entries) override;
  void space(bool full) override;
  void failed(Error error) override;
  void on_event(const raft::Event& event) override;
  void give(raft::GroupId group, replica::Event event) override;
  void ended(const replica::PeerEnded& ended) override;
  void turns(lease::Now now) override;
  raft::PromiseInstant next_deadline() const override;
  SideGroup& side_group(raft::GroupId group);
  bool a_side_group_failed() const;
  void make_side_groups();
  void open_side_groups(const RunInProcess& run);

  bool frozen() const { return suspended_ || !process_->paused.empty(); }
  void draw_version();
  void draw_flags();
  replica::DriverOptions driver_options();
  void make_process();
  bool leaves_out(raft::NodeId to, const wire::PeerMessage& message);
  bool out_of_the_group(const wire::PeerMessage& message) const;
  bool install_staged();
  SimApplier::Ports applier_ports(const RunInProcess& run);
  SimSnapshots::Ports snapshot_ports(const RunInProcess& run);
  void on_snapshot_moment(SnapshotMoment moment);
  void on_persist(const raft::PersistBatch& batch);
  void count_crash();
  bool can_act() const;
  template <class Put>
  void take_in(Put put);
  void pump();
  void take_turn();
  bool sleeps_before_acting(lease::Now now);
  void take_batch();
  void act(lease::Now now, std::vector<replica::Event>& batch, SideEvents&& side_batch);
  void trace_lease();
  void schedule_tick();
  void tick_due(std::uint64_t number);
  /// With this chance the process dies within `longest`.
  void maybe_crash(std::uint64_t chance_ppm, Duration longest);
  void thaw();

  World& world_;
  Judge& judge_;
  SimNetwork& network_;
  const raft::NodeId id_;
  Random random_;
  SimClock clock_;
  SimDisk disk_;
  SimSupports supports_;
  /// Until then it is out of its group (BeatPlan).
  TrueInstant silent_until_;
  /// The newest commit index that it has sent to each node.
  std::map<raft::NodeId, raft::Index> said_commit_;
  Random side_random_;
  std::vector<std::unique_ptr<SideGroup>> side_groups_;
  RegisterMachine machine_;
  node::WitnessMachine witness_machine_;
  std::optional<StagedSnapshot> staged_;
  std::uint64_t life_ = 0;
  raft::Incarnation incarnation_;
  std::uint64_t boots_ = 1;  ///< of the machine: incarnations compare within one
  lease::Timing timing_;
  bool runs_earlier_ = false;
  bool suspended_ = false;
  std::uint64_t suspends_ = 0;
  std::uint64_t pauses_ = 0;
  std::unique_ptr<Process> process_;
  std::function<void()> on_elected_;
  std::function<void(raft::Index before)> on_commit_;
  std::function<void()> on_start_;
  std::function<void(bool machine)> on_death_;
};

}  // namespace leasehold::sim
