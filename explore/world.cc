// The world moves: a step lets time pass, a message arrive or get lost, a node stop and start, or a
// caller ask a core for something.
#include <leasehold/base/assert.h>
#include <leasehold/explore/rules.h>
#include <leasehold/explore/world.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace leasehold::explore {
namespace {

/// In parts per million.
constexpr std::int64_t kPercent = 10'000;
constexpr std::int64_t kTrusted = 25 * kPercent;
/// More than any input causes.
constexpr int kMeetingMessagesMax = 10'000;

/// D = 49 ms and U = 29.4 ms: on the slowest clock (15 ms a unit) a lease is over after two units,
/// on the fastest (25 ms) a promise is. Elections start as soon as time has passed at all, so that
/// nothing depends on how timeouts are drawn; late ticks stand for longer timeouts.
///
/// A shorter D, for nodes with other settings than node 1, ends within one unit: 19 ms.
/// A leader at rest looks again when its lease ends within a heartbeat of its group and one of its
/// process: with shared promises those are shorter, so that it can rest for a unit at all.
lease::Timing timing(bool shorter, bool shared) {
  lease::Timing timing;
  timing.lease = std::chrono::milliseconds(49);
  timing.heartbeat = std::chrono::milliseconds(9);
  timing.max_clock_drift_ppm = kTrusted;
  timing.max_round_trip = std::chrono::milliseconds(10);
  timing.margin = Duration(0);
  timing.election_timeout = Duration(1);
  if (shared) timing.heartbeat = std::chrono::milliseconds(3);
  if (shorter) {
    timing.lease = World::kShorterLease;
    timing.heartbeat = std::chrono::milliseconds(3);
    timing.max_round_trip = std::chrono::milliseconds(3);
  }
  return timing;
}

raft::GroupSettings agreed_settings(std::uint8_t percent, bool shared) {
  raft::GroupSettings settings;
  settings.timing = timing(false, shared);
  settings.timing.max_clock_drift_ppm = percent * kPercent;
  return settings;
}

raft::Membership first_membership(const Bounds& bounds) {
  raft::Membership membership;
  for (std::uint64_t i = 1; i <= bounds.members; ++i) {
    membership.members.push_back({NodeId(i), raft::Uuid{i, i}, World::address_of(NodeId(i))});
    if (i <= bounds.voters) membership.voters.emplace_back(i);
  }
  if (bounds.witness) membership.witnesses.emplace_back(bounds.members);
  if (bounds.agreed_percent != kNothingAgreed) {
    membership.settings = agreed_settings(bounds.agreed_percent, bounds.shared);
  }
  return membership;
}

}  // namespace

World::World(const Bounds& given) {
  Bounds bounds = given;
  LEASEHOLD_ASSERT(bounds.nodes >= 1 && bounds.nodes <= kNodesMax);
  if (bounds.members == 0) bounds.members = bounds.nodes;
  if (bounds.voters == 0) bounds.voters = bounds.members;
  left_ = bounds;
  alike_ = bounds.nodes == 3 && bounds.members == 3 && bounds.voters != 2 && !bounds.unbound &&
           !bounds.witness && !bounds.shared &&
           (bounds.beginning.empty() || bounds.beginning == beginning::led(3));
  rates_ = true_rates();
  drifts_ = bounds.drift;
  const bool agreed = bounds.agreed_percent != kNothingAgreed;
  trusted_ = !agreed || bounds.agreed_percent > 0;
  for (std::size_t i = 0; i < size(); ++i) {
    nodes_[i] = std::make_shared<Node>();
    for (std::size_t r = i; r < replicas(); r += size()) {
      Replica& replica = own_part(r);
      replica.options.group = raft::GroupId(group_of(r) + 1);
      replica.options.id = id_of(i);
      replica.options.uuid = raft::Uuid{i + 1, i + 1};
      replica.options.timing = timing(bounds.uneven && i > 0, bounds.shared);
      if (agreed) replica.options.timing.max_clock_drift_ppm = 0;
      replica.options.seed = 1;
      replica.options.witness = bounds.witness && i + 1 == bounds.members;
      if (bounds.slow_apply) replica.options.commit_news_delay = kUnit;
      if (i < bounds.members) replica.disk.base.membership = first_membership(bounds);
    }
  }
  for (Facts& facts : facts_) facts.leaders.resize(std::size_t{bounds.terms} + 2);
  left_.slow_disk = false;
  for (std::size_t i = 0; i < size(); ++i) start(i, {});
  begin(bounds);
}

std::uint8_t World::true_rates() const {
  std::uint8_t rates = 0;
  for (std::size_t i = 0; i < size(); ++i) rates = static_cast<std::uint8_t>(rates * 3 + 1);
  return rates;
}

World::Node::Node(const Node& other)
    : replicas(other.replicas),
      promises(other.promises),
      peers(other.peers),
      remembered(other.remembered),
      unsynced(other.unsynced),
      write(other.write) {
  if (!promises) return;
  for (Replica& replica : replicas) {
    if (replica.core) replica.core->rest_on(*promises);
  }
}

World::Replica& World::own(std::size_t replica) {
  std::shared_ptr<Node>& node = nodes_[node_of(replica)];
  node = std::make_shared<Node>(*node);
  return own_part(replica);
}

bool World::left() const {
  if (flights_.size() > left_.flights) return true;
  for (std::size_t r = 0; r < replicas(); ++r) {
    if (at(r).core->term() > Term(left_.terms)) return true;
  }
  return false;
}

// ---- Steps ----

void World::take(const Step& step, const story::Sink& sink) {
  if (step.kind == StepKind::meet) {
    meet(step.what, sink);
    return;
  }
  if (!left_.rules) {
    act(step, sink);
    check();
    return;
  }
  const bool arrives = step.kind == StepKind::deliver || step.kind == StepKind::duplicate;
  std::optional<Flight> flight;
  if (arrives) flight = flights_[step.what];
  const std::size_t i = flight ? replica_to(*flight) : std::size_t{step.node};
  const Before was = before(i, flight ? &*flight : nullptr);
  act(step, sink);
  check();
  check_rules(was, flight ? &*flight : nullptr, flight || step.kind == StepKind::tick);
}

/// In the order in which it was sent.
void World::meet(std::uint8_t group, const story::Sink& sink) {
  for (int heard = 0;; ++heard) {
    LEASEHOLD_ASSERT(heard < kMeetingMessagesMax);
    const auto next =
        std::find_if(flights_.begin(), flights_.end(),
                     [this, group](const Flight& flight) { return among(flight, group); });
    if (next == flights_.end() || !violation_.empty()) return;
    const auto place = static_cast<std::uint8_t>(next - flights_.begin());
    take({StepKind::deliver, 0, place}, sink);
  }
}

void World::drop(std::size_t flight) {
  flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(flight));
}

void World::act(const Step& step, const story::Sink& sink) {
  const std::size_t i = step.node;
  switch (step.kind) {
    case StepKind::rates: set_rates(step.what, sink); return;
    case StepKind::advance:
      --left_.time;
      now_ += kUnit;
      return;
    case StepKind::deliver: {
      const Flight flight = flights_[step.what];
      drop(step.what);
      hear(flight, sink);
      return;
    }
    case StepKind::duplicate:
      --left_.duplicates;
      hear(Flight(flights_[step.what]), sink);
      return;
    case StepKind::meet: LEASEHOLD_UNREACHABLE();  // take() has split it into messages
    case StepKind::lose: drop(step.what); return;
    case StepKind::lose_all: flights_.clear(); return;
    case StepKind::keep:
      kept_.push_back(flights_[step.what]);
      drop(step.what);
      return;
    case StepKind::suspend:
      --left_.suspends;
      clocks_[i].suspend(now_);
      if (sink) sink(record(story::Kind::suspend, i));
      return;
    case StepKind::wake:
      clocks_[i].resume(now_);
      if (sink) sink(record(story::Kind::resume, i));
      return;
    case StepKind::restart:
      --left_.restarts;
      if (sink) sink(record(story::Kind::crash, i));
      start(i, sink);
      return;
    case StepKind::wipe:
      --left_.wipes;
      wipe(i, sink);
      return;
    case StepKind::notice:
      --left_.notices;
      notice(step, sink);
      drain(i, sink);
      return;
    case StepKind::beat:
    case StepKind::look:
    case StepKind::sync:
      own(i);
      turn(step, sink);
      drain(i, sink);
      return;
    case StepKind::tick:
    case StepKind::propose:
    case StepKind::read:
    case StepKind::transfer:
    case StepKind::change:
    case StepKind::settings:
    case StepKind::cut:
    case StepKind::apply:
      ask(step, sink);
      drain(node_of(i), sink);
      return;
  }
  LEASEHOLD_UNREACHABLE();
}

/// What the process of a node does, or its disk.
void World::turn(const Step& step, const story::Sink& sink) {
  const std::size_t i = step.node;
  switch (step.kind) {
    case StepKind::beat:
      --left_.beats;
      nodes_[i]->promises->tick(clock(i));
      return;
    case StepKind::look: nodes_[i]->promises->look(clock(i)); return;
    case StepKind::sync:
      for (std::size_t r = i; r < replicas(); r += size()) persist(r, sink);
      persist_supports(i);
      return;
    default: LEASEHOLD_UNREACHABLE();
  }
}

void World::notice(const Step& step, const story::Sink& sink) {
  const std::size_t other = step.what % kNodesMax;
  const raft::CoreOptions& ended = at(other).options;
  const raft::Incarnation incarnation(step.what / kNodesMax + std::uint64_t{1});
  if (sink) {
    story::Record told = record(story::Kind::notice, step.node);
    told.peer = ended.id;
    told.number = incarnation.value();
    sink(told);
  }
  own(step.node);
  const raft::Peer peer{ended.id, ended.uuid, {incarnation, 0}};
  if (nodes_[step.node]->promises) nodes_[step.node]->promises->ended(clock(step.node), peer);
  for (std::size_t r = step.node; r < replicas(); r += size()) {
    own_part(r).core->ended(clock(r), peer);
  }
}

/// What a clock or a caller asks of one core.
void World::ask(const Step& step, const story::Sink& sink) {
  const std::size_t i = step.node;
  switch (step.kind) {
    case StepKind::tick: own(i).core->tick(clock(i)); return;
    case StepKind::propose: {
      --left_.proposals;
      std::vector<Bytes> payloads(1, Bytes("x"));
      own(i).core->propose(clock(i), std::move(payloads));
      return;
    }
    case StepKind::read:
      --left_.reads;
      read(i, sink);
      return;
    case StepKind::transfer:
      --left_.transfers;
      own(i).core->transfer(clock(i), id_of(step.what));
      return;
    case StepKind::change:
      --left_.changes;
      change(i, step.what);
      return;
    case StepKind::settings:
      --left_.settings;
      change_settings(i, step.what, sink);
      return;
    case StepKind::cut:
      --left_.cuts;
      own(i).core->cut_log(clock(i), end_of_cut(i));
      return;
    case StepKind::apply: show(i); return;
    default: LEASEHOLD_UNREACHABLE();
  }
}

void World::read(std::size_t i, const story::Sink& sink) {
  const std::uint64_t number = next_read_++;
  reads_.push_back({number, i, Index(facts_of(i).ledger.size())});
  if (sink) {
    story::Record asked = record(story::Kind::asked, i);
    asked.number = number;
    asked.what = "quorum";
    sink(asked);
  }
  own(i).core->read_index(clock(i), number, raft::ReadMode::quorum);
}

void World::set_rates(std::uint8_t which, const story::Sink& sink) {
  rates_ = which;
  left_.drift = false;
  std::size_t digits = which;
  for (std::size_t i = size(); i-- > 0; digits /= 3) {
    const std::int64_t ppm =
        (static_cast<std::int64_t>(digits % 3) - 1) * left_.drift_percent * kPercent;
    clocks_[i].set_rates(now_, ppm, ppm);
  }
  for (std::size_t i = 0; sink && i < size(); ++i) {
    story::Record changed = record(story::Kind::clock, i);
    std::tie(changed.holder_ppm, changed.promise_ppm) = clocks_[i].rates();
    if (changed.holder_ppm != 0) sink(changed);
  }
}

void World::change(std::size_t i, std::size_t what) {
  raft::WantedMembers wanted;
  for (const raft::Member& member : at(i).core->membership().members) {
    if (what < kNodesMax && member.id == id_of(what)) continue;
    if (what == kSole && member.id != id_at(i)) continue;
    const bool votes = what == kAllVote || at(i).core->membership().is_voter(member.id);
    wanted.push_back({member.id, member.uuid, member.address,
                      votes ? raft::Suffrage::voter : raft::Suffrage::learner,
                      at(i).core->membership().is_witness(member.id)});
  }
  if (what >= kNodesMax && what < kAllVote) {
    const raft::CoreOptions& options = at(replica_of(what - kNodesMax, group_of(i))).options;
    wanted.push_back({options.id, options.uuid, address_of(options.id), raft::Suffrage::learner});
  }
  own(i).core->change_membership(clock(i), wanted);
}

raft::GroupSettings World::settings(std::size_t i) const {
  raft::GroupSettings followed;
  followed.timing = at(i).core->timing();
  return at(i).core->membership().settings.value_or(followed);
}

void World::change_settings(std::size_t i, std::uint8_t what, const story::Sink& sink) {
  raft::GroupSettings wanted = settings(i);
  if (what == kNoDrift) {
    // The clocks are made better first.
    trusted_ = false;
    if (rates_ != true_rates()) set_rates(true_rates(), sink);
    left_.drift = false;
  }
  if (what == kNoDrift || what == kDrift) {
    wanted.timing.max_clock_drift_ppm = what == kDrift ? kTrusted : 0;
  } else {
    const std::int64_t drift_ppm = wanted.timing.max_clock_drift_ppm;
    wanted.timing = timing(what == kShorter, left_.shared);
    if (what == kLonger) wanted.timing.lease = kLongerLease;
    wanted.timing.max_clock_drift_ppm = drift_ppm;
  }
  own(i).core->change_settings(clock(i), wanted);
}

story::Record World::record(story::Kind kind, std::size_t i) const {
  story::Record record;
  record.at = now_;
  record.kind = kind;
  record.node = id_at(i);
  return record;
}

}  // namespace leasehold::explore
