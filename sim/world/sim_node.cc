#include <leasehold/base/assert.h>
#include <leasehold/replica/progress_watch.h>
#include <leasehold/sim/world/sim_node.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace leasehold::sim {
namespace {

Duration draw_origin(std::uint64_t seed, std::uint64_t node, std::uint64_t which) {
  Random random = random_for(seed, 200 + 2 * node + which);
  // Up to about a year of uptime.
  return Duration(random.between(0, std::int64_t{1} << 55));
}

/// A message after which a node is bound: if it dies now, it must not have forgotten.
bool binds(const wire::PeerMessage& message) {
  const auto* raft_message = std::get_if<raft::Message>(&message.payload);
  if (raft_message == nullptr) return false;
  if (const auto* reply = std::get_if<raft::VoteReply>(raft_message)) return reply->granted;
  if (const auto* reply = std::get_if<raft::AppendReply>(raft_message)) return reply->promised;
  if (const auto* reply = std::get_if<raft::SnapshotReply>(raft_message)) return reply->promised;
  return std::holds_alternative<raft::VoteRequest>(*raft_message);
}

/// A promise that is bound to the process of the leader.
bool bound(const wire::PeerMessage& message) {
  const auto* raft_message = std::get_if<raft::Message>(&message.payload);
  if (raft_message == nullptr) return false;
  const auto* reply = std::get_if<raft::AppendReply>(raft_message);
  return reply != nullptr && reply->bound.has_value();
}

kv::EventHistory::Limits history_limits(const Plan& plan) {
  kv::EventHistory::Limits limits;
  if (plan.leases.events_max > 0) limits.events_max = plan.leases.events_max;
  return limits;
}

}  // namespace

SimNode* some_leader(const std::vector<SimNode*>& nodes, std::uint64_t drawn) {
  std::vector<SimNode*> leaders;
  for (SimNode* node : nodes) {
    if (node->leads()) leaders.push_back(node);
  }
  return leaders.empty() ? nullptr : leaders[static_cast<std::size_t>(drawn % leaders.size())];
}

raft::Uuid uuid_of(raft::NodeId id) {
  return {0, id.value()};
}

raft::Membership founding_membership(const Plan& plan) {
  raft::Membership membership;
  for (std::uint64_t i = 1; i <= plan.founders; ++i) {
    membership.members.push_back(
        {raft::NodeId(i), uuid_of(raft::NodeId(i)), fmt::format("node-{}:1", i)});
    membership.voters.emplace_back(i);
    if (plan.nodes[i - 1].witness) membership.witnesses.emplace_back(i);
  }
  if (plan.settings.agreed) membership.settings = plan.settings.first;
  return membership;
}

SimNode::SimNode(World& world, Judge& judge, SimNetwork& network, raft::NodeId id)
    : world_(world),
      judge_(judge),
      network_(network),
      id_(id),
      random_(random_for(world.plan.seed, 300 + id.value())),
      clock_(world.queue, draw_origin(world.plan.seed, id.value(), 0),
             draw_origin(world.plan.seed, id.value(), 1)),
      disk_(world, id.value(), [this](const raft::PersistBatch& batch) { on_persist(batch); }),
      supports_(world, id.value()),
      side_random_(random_for(world.plan.seed, 600 + id.value())),
      machine_(1000 * id.value(), history_limits(world.plan)),
      timing_(world.plan.nodes[id.value() - 1].timing) {
  make_side_groups();
}

const RunningReplica& SimNode::running() const {
  LEASEHOLD_ASSERT(up());
  return *process_->replica;
}

const replica::LeaseView& SimNode::view() const {
  LEASEHOLD_ASSERT(up());
  return process_->view;
}

// ---- Life and death ----

replica::DriverOptions SimNode::driver_options() {
  replica::DriverOptions options = world_.plan.driver;
  options.core.group = kFirstGroup;
  options.core.id = id_;
  options.core.uuid = uuid_of(id_);
  options.core.incarnation = incarnation_;
  options.core.timing = timing();
  options.core.witness = witness();
  options.core.seed = random_.next();
  return options;
}

void SimNode::draw_version() {
  const UpgradePlan& plan = world_.plan.upgrade;
  if (plan.earlier_percent == 0) return;
  LEASEHOLD_ASSERT(world_.options.earlier);
  const bool over = world_.queue.now() >= TrueInstant() + plan.over;
  runs_earlier_ = !over && random_.below(100) < plan.earlier_percent;
  if (runs_earlier_) ++world_.nodes.earlier_starts;
}

void SimNode::draw_flags() {
  const NodePlan& plan = world_.plan.nodes[id_.value() - 1];
  const std::uint64_t percent = world_.plan.settings.other_drift_percent;
  if (percent == 0) return;
  timing_ = plan.timing;
  if (random_.below(100) < percent) timing_.max_clock_drift_ppm = plan.other_drift_ppm;
}

void SimNode::start() {
  LEASEHOLD_ASSERT(!up());
  if (disk_.exhausted() || !install_staged()) return;
  ++life_;
  if (incarnation_ != raft::Incarnation()) ++world_.nodes.restarts;
  incarnation_ = incarnation_.next();
  draw_version();
  draw_flags();
  if (on_start_) on_start_();
  world_.trace.add(TraceKind::started, id_.value(), incarnation_.value(),
                   applied_at_start().value(), runs_earlier_ ? 1 : 0);
  make_process();
  judge_.on_start(*this);
  post(replica::Tick{});
}

void SimNode::make_process() {
  const std::uint64_t life = life_;
  process_ = std::make_unique<Process>();
  process_->view.publish_applied(applied_at_start());
  witness_machine_.begin_at(applied_at_start());
  const RunInProcess run = [this, life](EventQueue::Action action) {
    run_in_process(life, std::move(action));
  };
  disk_.open(*this, run);
  process_->applier = std::make_unique<SimApplier>(world_, id_, incarnation_, applier_ports(run));
  process_->snapshots =
      std::make_unique<SimSnapshots>(world_, id_, incarnation_, snapshot_ports(run));
  const bool founder = id_.value() <= world_.plan.founders;
  raft::InitialState initial =
      disk_.initial_state(founder ? founding_membership(world_.plan) : raft::Membership{});
  initial.applied = applied_at_start();
  const lease::Now now = clock_.now();
  supports_.open([this](std::uint64_t write) { post(replica::SupportsRemembered{write}); }, run);
  const auto disk_watch = std::make_shared<replica::ProgressWatch>(timing().election_timeout);
  const SharedProcess shared{
      // A few groups already have to wait for one another.
      {peer(), timing(), 10 * timing().lease, 1 + static_cast<std::size_t>(world_.plan.seed % 3),
       2 * timing().lease},
      supports_.remembered(),
      supports_,
      [this, disk_watch](lease::Now at) {
        const auto [given, durable] = disk_.progress();
        return disk_watch->goes_on(given, durable, at.promise);
      }};
  RunningReplica::Ports ports{*this,          disk_, *process_->applier, *process_->snapshots,
                              process_->view, *this};
  if (world_.plan.beats.shared) ports.shared = &shared;
  if (!side_groups_.empty()) ports.others = this;
  const MakeReplica make = runs_earlier_ ? world_.options.earlier : MakeReplica(make_replica);
  process_->replica = make(driver_options(), std::move(initial), ports, now);
  open_side_groups(run);
}

SimApplier::Ports SimNode::applier_ports(const RunInProcess& run) {
  SimApplier::Ports ports{machine_, staged_, process_->view, run, {}, {}, {}, {}, {},
                          {},       {},      nullptr};
  if (witness()) ports.witness = &witness_machine_;
  ports.post = [this](replica::Event event) { post(std::move(event)); };
  ports.complete = [this](replica::AppliedEntries applied) {
    return process_->replica->complete(std::move(applied));
  };
  ports.asked = [this](const std::vector<raft::Entry>& entries) {
    judge_.on_apply_asked(*this, entries);
  };
  ports.applied = [this](const std::vector<raft::Entry>& entries) {
    judge_.on_applied(*this, entries);
  };
  ports.install_asked = [this](const raft::SnapshotId& id) {
    judge_.on_install_asked(*this, id);
    on_snapshot_moment(SnapshotMoment::installing);
  };
  ports.installed = [this](const raft::SnapshotId& id) {
    ++world_.snapshots.installs;
    judge_.on_installed(*this, id, false);
    on_snapshot_moment(SnapshotMoment::installing);
  };
  ports.install_known = [this] { process_->snapshots->installed(); };
  return ports;
}

SimSnapshots::Ports SimNode::snapshot_ports(const RunInProcess& run) {
  SimSnapshots::Ports ports{machine_, staged_, run, {}, {}, {}, {}, {}, {}, nullptr};
  if (witness()) ports.witness = &witness_machine_;
  ports.post = [this](replica::Event event) { post(std::move(event)); };
  ports.moment = [this](SnapshotMoment moment) { on_snapshot_moment(moment); };
  ports.taken = [this](std::uint64_t tag, const SnapshotBytes& snapshot) {
    judge_.on_snapshot_taken(*this, tag, snapshot);
  };
  ports.arrived = [this](const StagedSnapshot& snapshot) {
    ++world_.snapshots.arrived;
    judge_.on_snapshot_arrived(*this, snapshot);
  };
  ports.deleting = [this] { judge_.on_snapshot_deleted(*this); };
  ports.full = [this] { return disk_.full(); };
  return ports;
}

/// As production starts: a state machine that is behind its log is given the snapshot that the log
/// begins with. False: there is none, and this machine is lost.
bool SimNode::install_staged() {
  if (witness()) return true;
  const raft::LogId base = disk_.durable().base_id();
  const raft::Index applied = machine_.durable_index();
  if (applied >= base.index) {
    if (staged_ && staged_->complete && staged_->id.last.index <= applied) staged_.reset();
    return true;
  }
  if (!staged_ || !staged_->complete || staged_->id.last != base) {
    world_.fail(
        "cut_beyond_durable",
        fmt::format("node {} starts with a log that begins behind {}, and its state machine "
                    "holds only {}",
                    id_.value(), base.index.value(), applied.value()));
    return false;
  }
  const Result<void> done =
      machine_.install_snapshot(SnapshotBytes(base.index, Bytes(staged_->bytes)));
  LEASEHOLD_ASSERT(done.ok());
  ++world_.snapshots.installs_at_start;
  world_.trace.add(TraceKind::installed, id_.value(), base.index.value(), 1);
  judge_.on_installed(*this, staged_->id, true);
  staged_.reset();
  return true;
}

void SimNode::crash(bool reboot) {
  LEASEHOLD_ASSERT(up());
  count_crash();
  ++life_;
  const auto [waiting, survived] = disk_.crash();
  supports_.crash();
  for (const auto& group : side_groups_) group->crash();
  machine_.crash();
  SimSnapshots::crash(world_, random_, staged_);
  // What the driver still holds is destroyed with it: no caller is called any more.
  process_ = nullptr;
  if (reboot) {
    ++boots_;
    clock_.reboot(Duration(random_.between(0, 60'000'000'000)));
  }
  world_.trace.add(TraceKind::crashed, id_.value(), waiting, survived);
  judge_.on_crash(*this);
  if (on_death_) on_death_(reboot);
}

void SimNode::count_crash() {
  SnapshotCounts& counts = world_.snapshots;
  const SimSnapshots& snapshots = *process_->snapshots;
  if (process_->applier->installing()) {
    ++counts.crashes_installing;
  } else if (snapshots.receiving()) {
    ++counts.crashes_receiving;
  } else if (snapshots.keeps() && running().sends_snapshot()) {
    ++counts.crashes_sending;
  } else if (snapshots.taking()) {
    ++counts.crashes_taking;
  }
}

void SimNode::pause(Duration length, bool ordering_thread_only) {
  LEASEHOLD_ASSERT(up());
  Process& process = *process_;
  world_.trace.add(TraceKind::paused, id_.value(), static_cast<std::uint64_t>(length.count()),
                   ordering_thread_only ? 1 : 0);
  const std::uint64_t number = ++pauses_;
  (ordering_thread_only ? process.ordering_paused : process.paused).insert(number);
  world_.queue.after(length, [this, life = life_, number] {
    if (life != life_) return;
    if (process_->paused.erase(number) + process_->ordering_paused.erase(number) > 0) thaw();
  });
}

void SimNode::wake() {
  if (!up() || (process_->paused.empty() && process_->ordering_paused.empty())) return;
  process_->paused.clear();
  process_->ordering_paused.clear();
  thaw();
}

void SimNode::suspend(Duration length) {
  if (suspended_) return;
  world_.trace.add(TraceKind::suspended, id_.value(), static_cast<std::uint64_t>(length.count()));
  suspended_ = true;
  clock_.suspend();
  world_.queue.after(length, [this, suspends = ++suspends_] {
    if (!suspended_ || suspends != suspends_) return;
    suspended_ = false;
    clock_.resume();
    if (up()) thaw();
  });
}

void SimNode::set_rates(std::int64_t holder_ppm, std::int64_t promise_ppm) {
  clock_.set_rates(holder_ppm, promise_ppm);
  world_.trace.add(TraceKind::rates_changed, id_.value(), static_cast<std::uint64_t>(holder_ppm),
                   static_cast<std::uint64_t>(promise_ppm));
  if (up()) schedule_tick();
}

void SimNode::heal() {
  if (suspended_) {
    suspended_ = false;
    clock_.resume();
  }
  if (!up()) return;
  process_->paused.clear();
  process_->ordering_paused.clear();
  thaw();
}

void SimNode::thaw() {
  if (frozen()) return;
  world_.trace.add(TraceKind::resumed, id_.value());
  const std::uint64_t life = life_;
  while (life == life_ && !process_->thawed.empty()) {
    const EventQueue::Action action = std::move(process_->thawed.front());
    process_->thawed.pop_front();
    action();
  }
  if (life != life_) return;
  schedule_tick();
  pump();
}

void SimNode::run_in_process(std::uint64_t life, EventQueue::Action action) {
  if (life != life_ || !up()) return;
  if (frozen()) {
    process_->thawed.push_back(std::move(action));
  } else {
    action();
  }
}

// ---- What the driver asks for ----

void SimNode::send(raft::NodeId to, wire::PeerMessage message) {
  if (leaves_out(to, message) || out_of_the_group(message)) return;
  if (bound(message)) ++world_.nodes.bound;
  judge_.on_send(*this, to, message);
  if (binds(message)) maybe_crash(world_.plan.crash_at_send_ppm, std::chrono::milliseconds(1));
  network_.send(peer(), to, std::move(message));
}

bool SimNode::out_of_the_group(const wire::PeerMessage& message) const {
  return !world_.healed && world_.queue.now() < silent_until_ && !wire::of_process(message.payload);
}

/// Heartbeats of a group at rest, in place of which the process beats.
bool SimNode::leaves_out(raft::NodeId to, const wire::PeerMessage& message) {
  const BeatPlan& plan = world_.plan.beats;
  if (std::holds_alternative<raft::ProcessBeat>(message.payload)) {
    ++world_.nodes.beats;
    // One beat is a message to each of the others.
    const auto odds =
        static_cast<std::uint64_t>(plan.silence_interval.count()) * (world_.plan.nodes.size() - 1);
    if (odds > 0 && random_.below(odds) < static_cast<std::uint64_t>(timing().heartbeat.count())) {
      silent_until_ = world_.queue.now() + draw_duration(random_, Duration{0}, plan.silence_max);
    }
  }
  const std::uint64_t percent = plan.idle_percent;
  const auto* raft_message = std::get_if<raft::Message>(&message.payload);
  if (percent == 0 || world_.healed || raft_message == nullptr) return false;
  const auto* append = std::get_if<raft::AppendRequest>(raft_message);
  if (append == nullptr) return false;
  // A member that does not know the newest commit is not at rest.
  raft::Index& said = said_commit_[to];
  if (append->entries.empty() && append->commit == said) return random_.below(100) < percent;
  said = append->commit;
  return false;
}

void SimNode::maybe_crash(std::uint64_t chance_ppm, Duration longest) {
  if (world_.healed || chance_ppm == 0 || !random_.chance_ppm(chance_ppm)) return;
  world_.queue.after(draw_duration(random_, Duration{0}, longest), [this, life = life_] {
    if (life != life_ || world_.healed || suspended_) return;
    world_.used(FaultClass::crash);
    crash(random_.chance(1, 4));
    if (!world_.plan.snapshots.quick_return) return;
    const Duration down =
        draw_duration(random_, std::chrono::milliseconds(1), std::chrono::milliseconds(60));
    world_.queue.after(down, [this] {
      if (!up() && !suspended_ && !world_.healed) start();
    });
  });
}

void SimNode::on_persist(const raft::PersistBatch& batch) {
  judge_.on_persist(*this, batch);
  if (batch.cut) ++world_.snapshots.cuts;
  if (batch.reset) {
    ++world_.snapshots.resets;
    on_snapshot_moment(SnapshotMoment::resetting);
  }
  maybe_crash(world_.plan.crash_at_persist_ppm, world_.plan.nodes[id_.value() - 1].sync_max);
}

/// Half of them die before the work is done, the others at any time until a while after it.
void SimNode::on_snapshot_moment(SnapshotMoment moment) {
  std::uint64_t chance = world_.plan.snapshots.crash_ppm;
  // There are many parts to one snapshot.
  if (moment == SnapshotMoment::sending || moment == SnapshotMoment::storing) chance /= 6;
  const bool soon = world_.healed || chance == 0 || random_.chance(1, 2);
  const Duration work = world_.plan.snapshots.work_max;
  maybe_crash(chance, soon ? work : 4 * work);
}

void SimNode::persisted(raft::ReadyId id) {
  post(replica::Persisted{id});
}

void SimNode::entries_read(std::uint64_t token, Result<std::vector<raft::Entry>> entries) {
  post(replica::EntriesRead{token, std::move(entries)});
}

void SimNode::space(bool full) {
  post(replica::StorageSpace{full});
}

void SimNode::failed(Error error) {
  post(replica::StorageFailed{std::move(error)});
}

void SimNode::on_event(const raft::Event& event) {
  world_.trace.add_event(event);
  judge_.on_event(*this, event);
  if (std::holds_alternative<raft::HolderEnded>(event.what)) ++world_.nodes.ended_promises;
  const auto* change = std::get_if<raft::RoleChanged>(&event.what);
  if (change == nullptr || change->to != raft::Role::leader) return;
  if (runs_earlier_) ++world_.nodes.earlier_leaders;
  if (on_elected_) on_elected_();
}

}  // namespace leasehold::sim
