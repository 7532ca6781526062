#include <leasehold/check/linearizability.h>
#include <leasehold/sim/plan/draw_plan.h>
#include <leasehold/sim/simulator.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace leasehold::sim {
namespace {

/// From the end of all faults to a completed write and read at every member.
constexpr Duration kRecoveryMax = std::chrono::seconds(12);
/// A node that is behind gets more time, a few times, if it takes or applies this many entries in
/// this time.
constexpr Duration kCatchUpWatch = std::chrono::seconds(2);
constexpr std::uint64_t kCatchUpEntries = 20;
constexpr int kCatchUpPatience = 5;
/// How often a long life is looked at, and for how long it may commit nothing.
constexpr Duration kStandstillLook = std::chrono::seconds(30);
constexpr Duration kStandstillMax = std::chrono::minutes(5);
/// A second: ten times what the busiest seeds take.
constexpr std::uint64_t kStepsMax = 80'000;

std::vector<SimNode*> pointers(const std::vector<std::unique_ptr<SimNode>>& nodes) {
  std::vector<SimNode*> all;
  all.reserve(nodes.size());
  for (const std::unique_ptr<SimNode>& node : nodes) all.push_back(node.get());
  return all;
}

}  // namespace

Simulator::Simulator(std::uint64_t seed, const SimOptions& options)
    : world_(draw_plan(seed, options), options), oracles_(world_), network_(world_) {
  for (std::uint64_t i = 1; i <= world_.plan.nodes.size(); ++i) {
    nodes_.push_back(std::make_unique<SimNode>(world_, oracles_, network_, raft::NodeId(i)));
  }
  const std::vector<SimNode*> all = pointers(nodes_);
  oracles_.watch(all);
  if (world_.recorder) world_.recorder->watch(world_.plan.seed, all);
  network_.set_deliver([this](raft::NodeId to, const raft::Peer& from, wire::PeerMessage& message) {
    nodes_[to.value() - 1]->receive(from, message);
  });
  clients_ = std::make_unique<Clients>(world_, all, oracles_.ledger());
  session_clients_ = std::make_unique<SessionClients>(
      world_, all, oracles_,
      [this](const SimNode& node, std::uint64_t key) { clients_->watch(node, key); });
  session_watch_ = std::make_unique<SessionWatch>(world_, all);
  store_nodes_ = std::make_unique<StoreNodes>(world_, all);
  lease_clients_ = std::make_unique<LeaseClients>(world_, *store_nodes_, oracles_);
  key_lock_clients_ = std::make_unique<KeyLockClients>(world_, *store_nodes_, oracles_);
  lease_watchers_ = std::make_unique<LeaseWatchers>(world_, all, oracles_);
  faults_ = std::make_unique<Faults>(world_, all, network_, oracles_);
  transfers_ = std::make_unique<Transfers>(world_, all);
  member_changes_ = std::make_unique<MemberChanges>(world_, all);
  cut_demands_ = std::make_unique<CutDemands>(world_, all);
  settings_changes_ = std::make_unique<SettingsChanges>(world_, all, oracles_.numbers(),
                                                        [this] { faults_->keep_bounds(); });
  upgrade_ = std::make_unique<Upgrade>(world_, all);
  deputies_ = std::make_unique<Deputies>(world_, all, network_);
  side_group_writers_ = std::make_unique<SideGroupWriters>(world_, all);
  if (options.shape) trial_ = std::make_unique<PartitionTrial>(world_, all, network_);
  for (SimNode* node : all) {
    node->set_on_death([this, node](bool machine) {
      clients_->node_died(*node);
      session_clients_->node_died(*node);
      settings_changes_->node_died(*node);
      if (!machine) deputies_->process_died(*node);
    });
    node->set_on_start([this] { faults_->keep_bounds(); });
  }
}

Simulator::~Simulator() = default;

void Simulator::start_faults() {
  if (trial_) {
    faults_->start_nodes();
    return trial_->start();
  }
  faults_->start();
  transfers_->start();
  member_changes_->start();
  cut_demands_->start();
  settings_changes_->start();
  upgrade_->start();
}

SeedReport Simulator::run() {
  start_faults();
  clients_->start();
  session_clients_->start();
  session_watch_->start();
  lease_clients_->start();
  lease_watchers_->start();
  key_lock_clients_->start();
  side_group_writers_->start();
  const TrueInstant healed = TrueInstant() + world_.options.chaos;
  live_until(healed);
  if (trial_ && !world_.failed()) trial_->finish();
  if (!world_.failed()) {
    recover();
    run_until(healed + kRecoveryMax - kCatchUpWatch);
    note_progress();
    TrueInstant end = healed + world_.options.calm;
    run_until(end);
    for (int i = 0; i < kCatchUpPatience && catching_up(); ++i) {
      note_progress();
      end = end + kCatchUpWatch;
      run_until(end);
    }
    check_recovered();
    check_history();
  }
  return report();
}

void Simulator::run_until(TrueInstant end) {
  const auto seconds = static_cast<std::uint64_t>(world_.options.chaos / std::chrono::seconds(1));
  const std::uint64_t steps_max = seconds * kStepsMax;
  while (!world_.failed() && world_.queue.run_next(end)) {
    oracles_.after_step();
    if (world_.queue.steps() > steps_max) {
      world_.fail("liveness", "the nodes keep each other busy without end");
      return;
    }
  }
}

// In a long life faults are short, with time between them: a group that commits nothing for five
// minutes is stuck.
void Simulator::live_until(TrueInstant end) {
  if (!world_.options.long_life) return run_until(end);
  raft::Index newest;
  TrueInstant committed_at = world_.queue.now();
  while (!world_.failed() && world_.queue.now() < end) {
    run_until(std::min(world_.queue.now() + kStandstillLook, end));
    for (const std::unique_ptr<SimNode>& node : nodes_) {
      if (!node->up() || node->running().commit_index() <= newest) continue;
      newest = node->running().commit_index();
      committed_at = world_.queue.now();
    }
    if (world_.queue.now() < committed_at + kStandstillMax) continue;
    world_.fail("liveness", fmt::format("nothing was committed for {} s of a long life",
                                        kStandstillMax / std::chrono::seconds(1)));
  }
}

void Simulator::recover() {
  faults_->heal();
  for (const std::unique_ptr<SimNode>& node : nodes_) {
    if (node->witness()) continue;
    clients_->probe(*node, [this, id = node->id()] { recovered_.insert(id); });
  }
  world_.queue.after(kRecoveryMax, [this] {
    if (!catching_up()) check_recovered();
  });
}

bool Simulator::waiting(const SimNode& node) const {
  const raft::Membership& group = oracles_.ledger().membership();
  return group.find(node.id()) != nullptr && !node.witness() && recovered_.count(node.id()) == 0;
}

std::uint64_t Simulator::progress(const SimNode& node) {
  if (!node.up()) return 0;
  return node.running().commit_index().value() + node.view().applied().value();
}

void Simulator::note_progress() {
  for (const std::unique_ptr<SimNode>& node : nodes_) noted_[node->id()] = progress(*node);
}

// Where entries travel one by one over slow disks, a node that was away for long is not stuck; nor
// is one that applies what could not be committed for a minute one by one.
bool Simulator::catching_up() const {
  bool any = false;
  for (const std::unique_ptr<SimNode>& node : nodes_) {
    if (world_.failed() || !waiting(*node)) continue;
    if (!node->up() || progress(*node) < noted_.at(node->id()) + kCatchUpEntries) return false;
    any = true;
  }
  return any;
}

void Simulator::check_recovered() {
  oracles_.side_groups().check_recovered();
  // A change that was under way may be completed in that time.
  const raft::Membership& group = oracles_.ledger().membership();
  if (group.joint()) {
    world_.fail("liveness", "after the faults have ended, the group stays joint");
  }
  const auto behind = std::count_if(nodes_.begin(), nodes_.end(),
                                    [this](const auto& node) { return waiting(*node); });
  if (behind > 0) {
    world_.fail(
        "liveness",
        fmt::format("after the faults have ended, {} nodes have not completed a write and a "
                    "read in time",
                    behind));
  }
  const std::size_t unanswered = session_clients_->unanswered();
  if (unanswered == 0) return;
  world_.fail("liveness",
              fmt::format("after the faults have ended, {} writes in sessions are repeated and not "
                          "answered in time",
                          unanswered));
}

void Simulator::check_history() {
  const std::string wrong = judge_history();
  if (!wrong.empty()) world_.fail("linearizability", wrong);
  oracles_.sessions().check_dropped(clients_->refused_values());
  oracles_.sessions().check_dropped(session_clients_->refused_values());
  oracles_.sessions().check_states();
}

std::string Simulator::judge_history() const {
  std::vector<Operation> history = clients_->history();
  const std::vector<Operation> in_sessions = session_clients_->history();
  history.insert(history.end(), in_sessions.begin(), in_sessions.end());
  const check::CheckReport report = check::check_linearizable(history);
  if (report.verdict == check::Verdict::linearizable) return "";
  return fmt::format("key {}: {}", report.key, report.explanation);
}

SeedReport Simulator::report() const {
  SeedReport report;
  report.seed = world_.plan.seed;
  report.simulated = world_.queue.now().since_origin();
  report.steps = world_.queue.steps();
  report.operations = clients_->counts();
  report.operations_unknown = clients_->unknown();
  report.leader_changes = oracles_.leader_changes();
  report.membership_entries = oracles_.ledger().membership_entries();
  report.snapshots = world_.snapshots;
  report.sessions = session_clients_->counts();
  report.sessions.expired = oracles_.sessions().expired();
  report.nodes = world_.nodes;
  report.settings = oracles_.ledger().settings_counts();
  report.settings.asked = settings_changes_->counts().asked;
  report.settings.refused = settings_changes_->counts().refused;
  report.settings.done = settings_changes_->counts().done;
  report.leases = lease_clients_->counts();
  report.leases.granted = oracles_.leases().counts().granted;
  report.leases.expired = oracles_.leases().counts().expired;
  report.leases.fenced = oracles_.leases().counts().fenced;
  report.leases.revoked = oracles_.leases().counts().revoked;
  report.leases.taken_over = oracles_.leases().counts().taken_over;
  report.leases.delayed = oracles_.leases().counts().delayed;
  report.leases.watched = oracles_.watches().revisions_told();
  report.leases.resynced = oracles_.watches().resyncs();
  report.key_locks = key_lock_clients_->counts();
  report.triggered = world_.triggered;
  report.faults = world_.faults_used;
  report.trace_hash = world_.trace.hash();
  if (trial_) report.trial = trial_->outcome();
  report.violation = world_.violation;
  return report;
}

SeedReport run_seed(std::uint64_t seed, const SimOptions& options) {
  return Simulator(seed, options).run();
}

void run_seeds(std::uint64_t first, std::uint64_t last, const SimOptions& options,
               const std::function<void(const SeedReport&)>& on_report) {
  for (std::uint64_t seed = first; seed <= last; ++seed) on_report(run_seed(seed, options));
}

}  // namespace leasehold::sim
