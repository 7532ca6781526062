#include <leasehold/base/assert.h>
#include <leasehold/sim/plan/faults.h>

#include <algorithm>
#include <chrono>

namespace leasehold::sim {
namespace {

using std::chrono::milliseconds;

/// Commits of a new leader at which it may be hunted.
constexpr int kYoungCommits = 6;

constexpr FaultClass kTriggered[] = {
    FaultClass::crash,       FaultClass::pause,  FaultClass::suspend,     FaultClass::partition,
    FaultClass::one_way_cut, FaultClass::replay, FaultClass::drift_change};

}  // namespace

Faults::Faults(World& world, std::vector<SimNode*> nodes, SimNetwork& network,
               const Oracles& oracles)
    : world_(world),
      nodes_(std::move(nodes)),
      network_(network),
      oracles_(oracles),
      random_(world.random(3)),
      straggler_random_(world.random(5)),
      cuts_(world, nodes_, network),
      duel_(world, nodes_, duel_ports()) {
  for (const FaultClass fault : kTriggered) {
    if (!world_.plan.enabled.has(fault)) continue;
    choices_.push_back(fault);
    if (fault == FaultClass::pause && world_.plan.wake_percent > 0) choices_.push_back(fault);
  }
  for (SimNode* node : nodes_) {
    node->set_on_elected([this, node] { on_elected(*node); });
    node->set_on_commit([this, node](raft::Index before) { on_commit(*node, before); });
  }
}

void Faults::start_nodes() {
  for (SimNode* node : nodes_) {
    set_rates(*node);
    const Duration skew = draw_duration(random_, Duration{0}, milliseconds(1500));
    world_.queue.after(skew, [node] {
      if (!node->up()) node->start();
    });
  }
}

void Faults::start() {
  start_nodes();
  if (world_.plan.drift_extreme) world_.used(FaultClass::extreme_drift);
  schedule_next();
  schedule_straggler();
  if (world_.plan.duel) duel_.start();
  // Two chances for the one leader change that every seed has to have.
  for (const int percent : {40, 70}) {
    world_.queue.after(world_.options.chaos * percent / 100, [this] { force_leader_change(); });
  }
  world_.queue.after(milliseconds(100), [this] { revive(); });
}

std::int64_t Faults::most_drift(const SimNode& node) const {
  const std::int64_t most = world_.plan.drift_ppm_max;
  if (world_.plan.drift_unbounded) return most;
  if (oracles_.numbers().without_leases()) return oracles_.numbers().drift_ppm(node);
  return std::min(most, oracles_.numbers().drift_ppm(node));
}

std::int64_t Faults::draw_rate(const SimNode& node) {
  const std::int64_t most = most_drift(node);
  if (world_.plan.drift_extreme) return random_.chance(1, 2) ? most : -most;
  return random_.between(-most, most + 1);
}

void Faults::set_rates(SimNode& node) {
  const std::int64_t holder = draw_rate(node);
  const std::int64_t other = draw_rate(node);
  // As on Linux, most machines have both clocks on one oscillator; the protocol does not rely on
  // it.
  const std::int64_t promise = random_.chance(2, 3) ? holder : other;
  node.set_rates(holder, promise);
}

void Faults::schedule_next() {
  const Duration mean = world_.plan.fault_interval;
  world_.queue.after(draw_duration(random_, mean / 4, mean * 7 / 4), [this] {
    if (world_.healed) return;
    const bool happens = world_.fault_happens();
    if (!letting_up()) one_fault(happens);
    world_.begin_sequence(random_, FaultMoment::after);
    schedule_next();
  });
}

void Faults::one_fault(bool happens) {
  world_.begin_sequence(random_, FaultMoment::before);
  if (choices_.empty() || !happens) return;
  ++world_.nodes.faults;
  trigger(choices_[static_cast<std::size_t>(random_.below(choices_.size()))]);
}

SimNode* Faults::leader() {
  SimNode* newest = nullptr;
  for (SimNode* node : nodes_) {
    if (!node->leads()) continue;
    if (newest == nullptr || node->running().term() > newest->running().term()) {
      newest = node;
    }
  }
  return newest;
}

SimNode& Faults::draw_target() {
  SimNode* leading = leader();
  const bool at_leader = random_.chance(1, 2);
  if (at_leader && leading != nullptr) return *leading;
  return *nodes_[static_cast<std::size_t>(random_.below(nodes_.size()))];
}

void Faults::trigger(FaultClass fault) {
  switch (fault) {
    case FaultClass::crash: crash_some(); return;
    case FaultClass::pause: pause(draw_target(), milliseconds(4000)); return;
    case FaultClass::suspend: {
      SimNode& node = draw_target();
      if (node.suspended()) return;
      world_.used(fault);
      node.suspend(draw_duration(random_, milliseconds(10), milliseconds(5000)));
      return;
    }
    case FaultClass::partition: partition(); return;
    case FaultClass::one_way_cut: one_way_cut(); return;
    case FaultClass::replay:
      network_.replay(static_cast<std::size_t>(random_.between(1, 12)));
      return;
    case FaultClass::drift_change:
      if (world_.plan.drift_extreme && world_.plan.drift_against_leader) return;
      world_.used(fault);
      set_rates(draw_target());
      return;
    default: LEASEHOLD_UNREACHABLE();
  }
}

// ---- Nodes ----

void Faults::crash(SimNode& node, bool quick) {
  if (!node.up() || node.suspended()) return;
  world_.used(FaultClass::crash);
  node.crash(random_.chance(1, 3));
  const Duration longest = quick ? milliseconds(30) : milliseconds(5000);
  world_.queue.after(draw_duration(random_, milliseconds(1), longest), [&node] {
    if (!node.up() && !node.suspended()) node.start();
  });
}

void Faults::crash_some() {
  SimNode* leading = leader();
  const std::uint64_t kind = random_.below(10);
  if (kind < 7) {
    SimNode& node = draw_target();
    crash(node, kind < 3);
    return;
  }
  // All nodes at once, or all but the leader: what is lost now is lost together.
  for (SimNode* node : nodes_) {
    if (kind == 7 || node != leading) crash(*node, true);
  }
}

void Faults::pause(SimNode& node, Duration longest) {
  if (!node.up()) return;
  world_.used(FaultClass::pause);
  const bool ordering_only = random_.chance(1, 3);
  Duration length = draw_duration(random_, milliseconds(5), longest);
  // A leader that wakes up at about the end of its lease, or shortly before it would have to give
  // up, is the most dangerous.
  const Duration lease = node.running().timing().lease;
  const Duration close = draw_duration(random_, lease * 8 / 10, lease * 13 / 10);
  const Duration closer = draw_duration(random_, lease * 95 / 100, lease * 115 / 100);
  const std::uint64_t kind = random_.below(8);
  if (kind < 2) length = close;
  if (kind >= 2 && kind < 4) length = closer;
  node.pause(length, ordering_only);
  // Its links may be dead as well, so that it does not find the news in its queues when it wakes
  // up.
  if (world_.plan.enabled.has(FaultClass::partition) && random_.chance(1, 2)) {
    world_.used(FaultClass::partition);
    cut(cuts_.links_of(node), length + milliseconds(300));
  }
}

// A sequence of its own, next to the others: what makes snapshots necessary, and what makes them
// impossible.
void Faults::schedule_straggler() {
  const Duration pause = draw_duration(straggler_random_, world_.plan.straggler_interval * 3 / 50,
                                       world_.plan.straggler_interval);
  world_.queue.after(pause, [this] {
    if (world_.healed) return;
    const bool fill = straggler_random_.chance(1, 3);
    const Duration full =
        draw_duration(straggler_random_, milliseconds(50), world_.plan.disk.full_max);
    SimNode& node = *nodes_[static_cast<std::size_t>(straggler_random_.below(nodes_.size()))];
    if (world_.fault_happens() && !letting_up()) {
      if (fill && world_.plan.enabled.has(FaultClass::full_disk)) node.disk().fill(full);
      if (world_.plan.enabled.has(FaultClass::straggler)) straggle(node);
    }
    world_.begin_sequence(straggler_random_, FaultMoment::after);
    schedule_straggler();
  });
}

// A node that does not lead is away, in one of several ways: the others go on, and cut from their
// logs what it needs when it is back.
void Faults::straggle(SimNode& node) {
  const Duration length = draw_duration(straggler_random_, milliseconds(500), milliseconds(8000));
  const std::uint64_t kind = straggler_random_.below(4);
  const bool deaf = straggler_random_.chance(1, 2);
  const std::uint64_t in_flight_loss_percent = 50 * straggler_random_.below(3);
  if (!node.up() || node.leads() || node.suspended()) return;
  world_.used(FaultClass::straggler);
  ++world_.nodes.faults;
  switch (kind) {
    case 0: node.pause(length, false); return;
    case 1: cuts_.cut(cuts_.links_of(node), length, in_flight_loss_percent); return;
    case 2: {
      // It hears no node, or no node hears it.
      const std::size_t self = node.id().value() - 1;
      Links links;
      for (const std::pair<std::size_t, std::size_t>& link : cuts_.links_of(node)) {
        if ((deaf ? link.second : link.first) == self) links.push_back(link);
      }
      cuts_.cut(std::move(links), length, in_flight_loss_percent);
      return;
    }
    default:
      node.crash(false);
      world_.queue.after(length, [&node] {
        if (!node.up() && !node.suspended()) node.start();
      });
  }
}

void Faults::revive() {
  // A node that does not know yet that its disk failed dies after the faults have ended.
  for (SimNode* node : nodes_) {
    const bool now = world_.healed || random_.chance(1, 20);
    if (!node->up() && !node->suspended() && now) node->start();
  }
  world_.queue.after(milliseconds(100), [this] { revive(); });
}

void Faults::force_leader_change() {
  SimNode* leading = leader();
  if (world_.healed || oracles_.leader_changes() > 0) return;
  if (leading == nullptr) {
    let_up();
    return;
  }
  // Longer than a lease and two election timeouts on the slowest clocks.
  const Duration length = world_.plan.lease_max() * 3 / 2 + 5 * world_.plan.election_timeout_max();
  // The others hear each other in that time, or none can follow.
  cuts_.join();
  let_up_until_ = std::max(let_up_until_, world_.queue.now() + length);
  if (world_.plan.enabled.has(FaultClass::pause)) {
    world_.used(FaultClass::pause);
    leading->pause(length, false);
  } else if (world_.plan.enabled.has(FaultClass::partition)) {
    world_.used(FaultClass::partition);
    isolate(*leading, length);
  } else {
    crash(*leading, false);
  }
}

// Cuts and pauses may be so frequent that no node is ever elected. They stop until a node was
// elected, and another one after it.
void Faults::let_up() {
  if (letting_up()) return;
  const Duration timeouts = 5 * world_.plan.election_timeout_max();
  const Duration election = world_.plan.lease_max() + timeouts + milliseconds(1000);
  let_up_until_ = world_.queue.now() + 2 * election + world_.plan.lease_max();
  cuts_.join();
  for (SimNode* node : nodes_) {
    node->wake();
    if (!node->up() && !node->suspended()) node->start();
  }
  world_.queue.after(election, [this] { force_leader_change(); });
}

// The worst that the bound on the drift allows.
void Faults::set_rates_against(const SimNode& leader) {
  for (SimNode* node : nodes_) {
    const std::int64_t most = most_drift(*node);
    const std::int64_t rate = node == &leader ? -most : most;
    node->set_rates(rate, rate);
  }
}

// A smaller bound is kept from this instant on. A larger one is used up at once where every clock
// is as wrong as it may be.
void Faults::keep_bounds() {
  SimNode* const leading = leader();
  const bool against_leader = world_.plan.drift_extreme && world_.plan.drift_against_leader;
  if (against_leader && leading != nullptr) return set_rates_against(*leading);
  for (SimNode* node : nodes_) {
    const std::int64_t most = most_drift(*node);
    const auto [holder, promise] = node->clock().rates();
    const auto kept = [&](std::int64_t rate) {
      if (world_.plan.drift_extreme) return rate < 0 ? -most : most;
      return std::clamp(rate, -most, most);
    };
    if (kept(holder) == holder && kept(promise) == promise) continue;
    node->set_rates(kept(holder), kept(promise));
  }
}

// As soon as the turn of this node is over.
void Faults::at_once(const SimNode& node, EventQueue::Action action) {
  world_.queue.after(Duration{0}, [this, &node, life = node.life(), action = std::move(action)] {
    if (!world_.healed && life == node.life()) action();
  });
}

Duel::Ports Faults::duel_ports() {
  return {[this](SimNode& node) {
            world_.used(FaultClass::partition);
            cuts_.cut(cuts_.links_of(node), world_.options.chaos, 100);
          },
          [this] { cuts_.join(); }, [this](SimNode& node) { crash(node, true); }};
}

void Faults::on_elected(SimNode& node) {
  if (world_.healed) return;
  if (world_.plan.drift_extreme && world_.plan.drift_against_leader) {
    world_.queue.after(Duration{0}, [this, &node] {
      if (!world_.healed) set_rates_against(node);
    });
  }
  young_commits_ = kYoungCommits;
  if (world_.plan.duel) {
    at_once(node, [this, &node] { duel_.on_elected(node); });
    return;
  }
  if (random_.chance(world_.plan.hunt_percent, 100)) {
    hunt(node);
    return;
  }
  if (!random_.chance(world_.plan.young_leader_percent, 100)) return;
  if (world_.plan.enabled.has(FaultClass::disk_stall) && random_.chance(1, 4)) {
    leave_with_a_stalled_voter(node);
    return;
  }
  const std::int64_t longest_us[] = {0, 2'000, 8'000, 30'000};
  const Duration longest = std::chrono::microseconds(longest_us[random_.below(4)]);
  const Duration delay = draw_duration(random_, Duration{0}, longest);
  world_.queue.after(delay, [this, &node, life = node.life()] {
    if (!world_.healed && life == node.life()) strike(node);
  });
}

void Faults::on_commit(SimNode& node, raft::Index before) {
  if (world_.healed) return;
  if (world_.plan.duel) at_once(node, [this, &node, before] { duel_.on_commit(node, before); });
  if (young_commits_ == 0) return;
  --young_commits_;
  // A node that slept through the election still believes what it did before.
  if (random_.chance(world_.plan.wake_percent, 100)) {
    const Duration delay = draw_duration(random_, std::chrono::microseconds(500), milliseconds(80));
    world_.queue.after(delay, [this] {
      for (SimNode* sleeper : nodes_) sleeper->wake();
    });
  }
  if (random_.chance(world_.plan.hunt_percent, 200)) hunt(node);
}

// As few nodes as possible know what this leader has just won or committed: it is cut off or dies,
// the nodes that were cut off before are back, and the others may lose what they were writing.
void Faults::hunt(SimNode& leader) {
  const Duration shortest = world_.plan.election_timeout_max();
  const Duration length = draw_duration(random_, shortest, world_.plan.lease_max() * 4);
  const std::uint64_t in_flight_loss_percent = random_.chance(2, 3) ? 100 : 50;
  const bool crashes = world_.plan.enabled.has(FaultClass::crash);
  const bool leader_dies = crashes && random_.chance(1, 8);
  const bool others_die = crashes && random_.chance(1, 3);
  world_.queue.after(Duration{0}, [this, &leader, length, in_flight_loss_percent, leader_dies,
                                   others_die, life = leader.life()] {
    if (world_.healed || life != leader.life()) return;
    cuts_.join();
    if (leader_dies) {
      crash(leader, false);
    } else {
      world_.used(FaultClass::partition);
      cuts_.cut(cuts_.links_of(leader), length, in_flight_loss_percent);
    }
    for (SimNode* node : nodes_) {
      if (others_die && node != &leader && random_.chance(1, 2)) crash(*node, true);
    }
  });
}

// One voter's disk stalls on what the new leader sends first; when the others have helped the
// leader to its first commit, they are cut off. Whatever the stalled voter says now, it may yet
// forget.
void Faults::leave_with_a_stalled_voter(const SimNode& leader) {
  const std::size_t at = leader.id().value() - 1;
  const std::size_t stalled = (at + 1 + random_.below(nodes_.size() - 1)) % nodes_.size();
  const Duration length = world_.plan.lease_max() * 2;
  world_.used(FaultClass::disk_stall);
  nodes_[stalled]->disk().stall_next(length);
  Links links;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (i == at || i == stalled) continue;
    links.emplace_back(at, i);
    links.emplace_back(i, at);
  }
  const Duration delay = draw_duration(random_, milliseconds(5), milliseconds(100));
  world_.queue.after(delay, [this, links, length] {
    if (world_.healed) return;
    world_.used(FaultClass::partition);
    cut(links, length);
  });
}

void Faults::strike(SimNode& node) {
  const std::uint64_t kind = random_.below(4);
  if (kind == 0 && world_.plan.enabled.has(FaultClass::crash)) {
    crash(node, false);
  } else if (kind <= 1 && world_.plan.enabled.has(FaultClass::pause)) {
    pause(node, milliseconds(3000));
  } else if (world_.plan.enabled.has(FaultClass::partition)) {
    world_.used(FaultClass::partition);
    isolate(node, draw_duration(random_, milliseconds(100), milliseconds(2500)));
  }
}

// ---- Links ----

void Faults::partition() {
  world_.used(FaultClass::partition);
  const std::size_t target = draw_target().id().value() - 1;
  const Links links = draw_partition(random_, nodes_.size(), target);
  cut(links, draw_duration(random_, milliseconds(50), milliseconds(6000)));
}

void Faults::one_way_cut() {
  world_.used(FaultClass::one_way_cut);
  const std::size_t target = draw_target().id().value() - 1;
  const Links links = draw_one_way_cut(random_, nodes_.size(), target);
  cut(links, draw_duration(random_, milliseconds(50), milliseconds(6000)));
}

// ---- The end ----

void Faults::heal() {
  world_.healed = true;
  world_.trace.add(TraceKind::healed, 0);
  cuts_.join();
  network_.heal();
  for (SimNode* node : nodes_) {
    node->disk().heal();
    node->heal();
    if (!node->up()) node->start();
  }
}

}  // namespace leasehold::sim
