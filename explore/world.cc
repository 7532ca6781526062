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
lease::Timing timing(bool shorter) {
  lease::Timing timing;
  timing.lease = std::chrono::milliseconds(49);
  timing.heartbeat = std::chrono::milliseconds(9);
  timing.max_clock_drift_ppm = kTrusted;
  timing.max_round_trip = std::chrono::milliseconds(10);
  timing.margin = Duration(0);
  timing.election_timeout = Duration(1);
  if (shorter) {
    timing.lease = World::kShorterLease;
    timing.heartbeat = std::chrono::milliseconds(3);
    timing.max_round_trip = std::chrono::milliseconds(3);
  }
  return timing;
}

raft::GroupSettings agreed_settings(std::uint8_t percent) {
  raft::GroupSettings settings;
  settings.timing = timing(false);
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
    membership.settings = agreed_settings(bounds.agreed_percent);
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
           !bounds.witness && (bounds.beginning.empty() || bounds.beginning == beginning::led(3));
  rates_ = true_rates();
  drifts_ = bounds.drift;
  const bool agreed = bounds.agreed_percent != kNothingAgreed;
  trusted_ = !agreed || bounds.agreed_percent > 0;
  for (std::size_t i = 0; i < size(); ++i) {
    auto node = std::make_shared<Node>();
    node->options.group = raft::GroupId(1);
    node->options.id = id_of(i);
    node->options.uuid = raft::Uuid{i + 1, i + 1};
    node->options.timing = timing(bounds.uneven && i > 0);
    if (agreed) node->options.timing.max_clock_drift_ppm = 0;
    node->options.seed = 1;
    node->options.witness = bounds.witness && i + 1 == bounds.members;
    if (i < bounds.members) node->disk.base.membership = first_membership(bounds);
    nodes_[i] = node;
  }
  leaders_.resize(std::size_t{bounds.terms} + 2);
  left_.slow_disk = false;
  for (std::size_t i = 0; i < size(); ++i) start(i, {});
  begin(bounds);
}

std::uint8_t World::true_rates() const {
  std::uint8_t rates = 0;
  for (std::size_t i = 0; i < size(); ++i) rates = static_cast<std::uint8_t>(rates * 3 + 1);
  return rates;
}

World::Node& World::own(std::size_t i) {
  nodes_[i] = std::make_shared<Node>(*nodes_[i]);
  return *nodes_[i];
}

bool World::left() const {
  if (flights_.size() > left_.flights) return true;
  return std::any_of(nodes_.begin(), nodes_.begin() + left_.nodes,
                     [this](const auto& node) { return node->core->term() > Term(left_.terms); });
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
  const std::size_t i =
      flight ? static_cast<std::size_t>(flight->to.value()) - 1 : std::size_t{step.node};
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
    case StepKind::duplicate: {
      --left_.duplicates;
      const Flight flight = flights_[step.what];
      hear(flight, sink);
      return;
    }
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
    case StepKind::tick:
    case StepKind::sync:
    case StepKind::propose:
    case StepKind::read:
    case StepKind::transfer:
    case StepKind::change:
    case StepKind::settings:
    case StepKind::cut:
      ask(step, sink);
      drain(i, sink);
      return;
  }
  LEASEHOLD_UNREACHABLE();
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
  own(step.node).core->ended(clock(step.node), {ended.id, ended.uuid, {incarnation, 0}});
}

/// What a clock, a disk or a caller asks of the core of one node.
void World::ask(const Step& step, const story::Sink& sink) {
  const std::size_t i = step.node;
  switch (step.kind) {
    case StepKind::tick: own(i).core->tick(clock(i)); return;
    case StepKind::sync:
      own(i);
      persist(i, sink);
      return;
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
    default: LEASEHOLD_UNREACHABLE();
  }
}

void World::read(std::size_t i, const story::Sink& sink) {
  const std::uint64_t number = next_read_++;
  reads_.push_back({number, id_of(i), Index(ledger_.size())});
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
    if (what == kSole && member.id != id_of(i)) continue;
    const bool votes = what == kAllVote || at(i).core->membership().is_voter(member.id);
    wanted.push_back({member.id, member.uuid, member.address,
                      votes ? raft::Suffrage::voter : raft::Suffrage::learner,
                      at(i).core->membership().is_witness(member.id)});
  }
  if (what >= kNodesMax && what < kAllVote) {
    const raft::CoreOptions& options = at(what - kNodesMax).options;
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
    wanted.timing = timing(what == kShorter);
    if (what == kLonger) wanted.timing.lease = kLongerLease;
    wanted.timing.max_clock_drift_ppm = drift_ppm;
  }
  own(i).core->change_settings(clock(i), wanted);
}

story::Record World::record(story::Kind kind, std::size_t i) const {
  story::Record record;
  record.at = now_;
  record.kind = kind;
  record.node = id_of(i);
  return record;
}

}  // namespace leasehold::explore
