// What may happen in a state, the names of the steps, and the beginnings, which use these names.
#include <leasehold/base/assert.h>
#include <leasehold/explore/world.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::explore {
namespace {

/// Of a node.
std::string number(std::size_t i) {
  return std::to_string(i + 1);
}

std::size_t place(NodeId id) {
  return static_cast<std::size_t>(id.value()) - 1;
}

std::uint8_t byte(std::size_t value) {
  return static_cast<std::uint8_t>(value);
}

/// 3^n.
std::size_t assignments(std::size_t nodes) {
  std::size_t all = 1;
  for (std::size_t i = 0; i < nodes; ++i) all *= 3;
  return all;
}

std::string names_of_set(std::uint8_t group) {
  std::string names;
  for (std::size_t i = 0; i < kNodesMax; ++i) {
    if ((group >> i & 1U) == 0) continue;
    names += (names.empty() ? "" : " ") + number(i);
  }
  return names;
}

const char* settings_name(std::uint8_t what) {
  constexpr std::array<const char*, 4> kNames = {"shorter", "longer", "no drift", "drift"};
  return kNames[what];
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::size_t first = text.find_first_not_of(" \n", begin);
    if (first < comma) {
      const std::size_t last = text.find_last_not_of(" \n", comma - 1);
      parts.push_back(text.substr(first, last + 1 - first));
    }
    begin = comma + 1;
  }
  return parts;
}

}  // namespace

// ---- Beginnings ----

void World::begin(const Bounds& bounds) {
  // A beginning has no limits, and its clocks run at the true rate.
  for (std::uint8_t* left :
       {&left_.time, &left_.restarts, &left_.duplicates, &left_.proposals, &left_.reads,
        &left_.transfers, &left_.changes, &left_.suspends, &left_.wipes, &left_.cuts,
        &left_.settings, &left_.notices, &left_.beats}) {
    *left = 255;
  }
  left_.sole = true;
  left_.drift = false;
  bool rates_known = !bounds.drift || !trusted_;
  const std::vector<std::string> parts = split_at_commas(bounds.beginning);
  for (std::size_t k = 0; k < parts.size() && violation_.empty(); ++k) {
    const std::vector<Step> possible = steps_of_beginning();
    const auto wanted =
        std::find_if(possible.begin(), possible.end(),
                     [this, &parts, k](const Step& step) { return text(step) == parts[k]; });
    if (wanted == possible.end()) {
      wrong_beginning_ = fmt::format("step {}, `{}`, is not possible then, but:", k + 1, parts[k]);
      for (const Step& step : possible) {
        if (step.kind == StepKind::rates) continue;  // they are many
        wrong_beginning_ += (step == possible.front() ? " " : ", ") + text(step);
      }
      break;
    }
    rates_known = rates_known || wanted->kind == StepKind::rates;
    take(*wanted);
  }
  flights_.insert(flights_.end(), kept_.begin(), kept_.end());
  kept_.clear();
  // A bound that was agreed on in the beginning may be used up now.
  const bool rates_due = left_.drift;
  left_ = bounds;
  left_.drift = rates_due || !rates_known;
  left_.beginning.clear();
}

std::vector<Step> World::steps_of_beginning() const {
  std::vector<Step> all = steps();
  add_meetings(all);
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    all.push_back({StepKind::lose, 0, byte(i)});
    all.push_back({StepKind::keep, 0, byte(i)});
  }
  all.push_back({StepKind::lose_all, 0, 0});
  add_rates(all);
  return all;
}

// ---- What may come next ----

std::vector<Step> World::steps() const {
  std::vector<Step> steps;
  if (left_.drift) {
    add_rates(steps);
    return steps;
  }
  add_flight_steps(steps);
  if (left_.meetings) add_meetings(steps);
  for (std::size_t i = 0; i < size(); ++i) add_node_steps(i, steps);
  if (left_.time > 0) steps.push_back({StepKind::advance, 0, 0});
  return steps;
}

/// If two assignments differ only by swapping nodes that are alike, one of them is enough.
void World::add_rates(std::vector<Step>& steps) const {
  for (std::size_t i = 0; i < assignments(size()); ++i) {
    if (!alike_ || i / 3 % 3 <= i % 3) steps.push_back({StepKind::rates, 0, byte(i)});
  }
}

bool World::awake(NodeId id) const {
  return !clocks_[place(id)].suspended();
}

/// Whether the same message is on its way earlier in the list.
bool World::repeated(std::size_t flight) const {
  const Flight& one = flights_[flight];
  return std::any_of(flights_.begin(), flights_.begin() + static_cast<std::ptrdiff_t>(flight),
                     [&one](const Flight& other) {
                       return other.from == one.from && other.to == one.to &&
                              other.group == one.group && other.print == one.print;
                     });
}

void World::add_flight_steps(std::vector<Step>& steps) const {
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    if (!awake(flights_[i].to) || repeated(i)) continue;
    steps.push_back({StepKind::deliver, 0, byte(i)});
    if (left_.duplicates > 0) steps.push_back({StepKind::duplicate, 0, byte(i)});
  }
}

bool World::among(const Flight& flight, std::uint8_t group) const {
  const auto in = [group](NodeId id) { return (group >> place(id) & 1U) != 0; };
  return in(flight.from) && in(flight.to);
}

void World::add_meetings(std::vector<Step>& steps) const {
  for (std::size_t group = 0; group < (std::size_t{1} << size()); ++group) {
    bool all_awake = true;
    for (std::size_t i = 0; i < size(); ++i) {
      if ((group >> i & 1U) != 0 && clocks_[i].suspended()) all_awake = false;
    }
    const bool any =
        std::any_of(flights_.begin(), flights_.end(),
                    [this, group](const Flight& flight) { return among(flight, byte(group)); });
    if (any && all_awake) steps.push_back({StepKind::meet, 0, byte(group)});
  }
}

void World::add_node_steps(std::size_t i, std::vector<Step>& steps) const {
  const auto add = [&steps](StepKind kind, std::size_t of) {
    steps.push_back({kind, byte(of), 0});
  };
  if (clocks_[i].suspended()) {
    add(StepKind::wake, i);
    return;
  }
  for (std::size_t r = i; r < replicas(); r += size()) {
    const raft::Core& core = *at(r).core;
    // There is always a place for one more that elects.
    const bool due = clock(r).promise >= core.next_deadline() || core.awaits_place();
    if (due) add(StepKind::tick, r);
  }
  const std::optional<raft::ProcessPromises>& promises = nodes_[i]->promises;
  if (promises && clock(i).promise >= promises->next_end()) add(StepKind::look, i);
  if (left_.beats > 0 && promises && clock(i).promise >= promises->next_deadline()) {
    add(StepKind::beat, i);
  }
  if (left_.slow_disk && writes(i)) add(StepKind::sync, i);
  if (left_.restarts > 0) add(StepKind::restart, i);
  if (left_.notices > 0) add_notices(i, steps);
  if (left_.suspends > 0) add(StepKind::suspend, i);
  if (left_.wipes > 0) add(StepKind::wipe, i);
  for (std::size_t r = i; r < replicas(); r += size()) {
    const raft::Core& core = *at(r).core;
    if (left_.slow_apply && at(r).shown < at(r).given) add(StepKind::apply, r);
    if (left_.cuts > 0 && end_of_cut(r) > core.log().base().index) add(StepKind::cut, r);
    if (core.role() == raft::Role::leader) add_leader_steps(r, steps);
  }
}

bool World::writes(std::size_t i) const {
  if (!nodes_[i]->unsynced.empty()) return true;
  for (std::size_t r = i; r < replicas(); r += size()) {
    if (!at(r).unsynced.empty()) return true;
  }
  return false;
}

/// Of any process but the present ones, once or again, however late.
void World::add_notices(std::size_t i, std::vector<Step>& steps) const {
  for (std::size_t other = 0; other < size(); ++other) {
    const std::uint64_t present = at(other).options.incarnation.value();
    for (std::uint64_t k = 1; k < present && other != i; ++k) {
      steps.push_back({StepKind::notice, byte(i), notice_of(other, k)});
    }
  }
}

/// What the core allows to cut: it is committed and durable. A host cuts what its state machine has
/// made durable.
Index World::end_of_cut(std::size_t i) const {
  const raft::Core& core = *at(i).core;
  const Index end = std::min({core.commit_index(), core.cut_limit(), core.durable_index()});
  return left_.slow_apply && !core.options().witness ? std::min(end, at(i).shown) : end;
}

void World::add_leader_steps(std::size_t i, std::vector<Step>& steps) const {
  const Replica& replica = at(i);
  const auto add = [&steps, i](StepKind kind, std::size_t what) {
    steps.push_back({kind, byte(i), byte(what)});
  };
  if (left_.proposals > 0 && replica.core->takes_proposals()) add(StepKind::propose, 0);
  if (left_.reads > 0) add(StepKind::read, 0);
  if (left_.settings > 0) add_settings(i, steps);
  const raft::Membership& membership = replica.core->membership();
  for (std::size_t other = 0; other < size(); ++other) {
    if (left_.transfers > 0 && other != node_of(i)) add(StepKind::transfer, other);
    if (left_.changes == 0) continue;
    const bool member = membership.find(at(other).options.id) != nullptr;
    add(StepKind::change, member ? other : kNodesMax + other);
  }
  if (left_.changes == 0) return;
  if (membership.voters.size() < membership.members.size()) add(StepKind::change, kAllVote);
  if (left_.sole) add(StepKind::change, kSole);
}

/// Those that would change something.
void World::add_settings(std::size_t i, std::vector<Step>& steps) const {
  const lease::Timing timing = settings(i).timing;
  const auto add = [&steps, i](std::uint8_t what) {
    steps.push_back({StepKind::settings, byte(i), what});
  };
  if (timing.lease > kShorterLease) add(kShorter);
  if (timing.lease < kLongerLease) add(kLonger);
  add(timing.max_clock_drift_ppm > 0 ? kNoDrift : kDrift);
}

// ---- Names ----

/// "2b": the replica of the second group at node 2.
std::string World::name(std::size_t replica) const {
  return number(node_of(replica)) + (group_of(replica) == 0 ? "" : "b");
}

/// "append".
std::string World::what_of(const Flight& flight) {
  if (flight.message) return story::message_name(*flight.message);
  return flight.beat ? story::message_name(*flight.beat) : story::message_name(*flight.beat_reply);
}

std::string World::text_of(const Flight& flight) {
  if (flight.message) return story::message_text(*flight.message);
  return flight.beat ? story::message_text(*flight.beat) : story::message_text(*flight.beat_reply);
}

/// "2b<1b append".
std::string World::name_of(const Flight& flight) const {
  const char* const group = flight.group == 0 ? "" : "b";
  return fmt::format("{}{}<{}{} {}", flight.to.value(), group, flight.from.value(), group,
                     what_of(flight));
}

/// "slow true fast".
std::string World::rates(const Step& step) const {
  constexpr std::array<const char*, 3> kNames = {"slow", "true", "fast"};
  std::string rates;
  for (std::size_t below = assignments(size()); below > 1;) {
    below /= 3;
    rates += std::string(rates.empty() ? "" : " ") + kNames[step.what / below % 3];
  }
  return rates;
}

std::string World::describe(const Step& step) const {
  const auto of_flight = [&](const char* verb) {
    const Flight& flight = flights_[step.what];
    const char* const group = flight.group == 0 ? "" : "b";
    return fmt::format("{}{}{}{} from {}{}: {}", flight.to.value(), group, verb, what_of(flight),
                       flight.from.value(), group, text_of(flight));
  };
  const std::string node = name(step.node);
  switch (step.kind) {
    case StepKind::rates:
      return fmt::format("the clocks of 1 to {} run {}", number(size() - 1), rates(step));
    case StepKind::advance: return "20 ms pass";
    case StepKind::tick: return fmt::format("the timer of {} falls", node);
    case StepKind::beat: return fmt::format("the process of {} begins a beat", node);
    case StepKind::look: return fmt::format("the process of {} looks what has ended", node);
    case StepKind::deliver: return of_flight(" hears ");
    case StepKind::duplicate: return of_flight(" hears, not for the last time, ");
    case StepKind::meet:
      return fmt::format("what is on its way between {} arrives, and all that follows from it",
                         names_of_set(step.what));
    case StepKind::sync: return fmt::format("what {} has written is durable", node);
    case StepKind::apply: return node + " shows what its state machine was given";
    case StepKind::restart: return node + " crashes and starts again";
    case StepKind::propose: return "a command for " + node;
    case StepKind::read: return fmt::format("a read at {}, to be confirmed by a quorum", node);
    case StepKind::transfer:
      return fmt::format("{} is asked to transfer the leadership to {}", node, number(step.what));
    case StepKind::change:
      if (step.what == kAllVote) return node + " is asked to let all members vote";
      if (step.what == kSole) return node + " is asked to remove all others";
      if (step.what < kNodesMax) {
        return fmt::format("{} is asked to remove {}", node, number(step.what));
      }
      return fmt::format("{} is asked to take {} in as a learner", node,
                         number(step.what - kNodesMax));
    case StepKind::settings:
      return fmt::format("{} is asked for other settings: {}", node, settings_name(step.what));
    case StepKind::notice:
      return fmt::format("{} learns that process {} of {} has ended", node,
                         step.what / kNodesMax + 1, number(step.what % kNodesMax));
    case StepKind::suspend: return fmt::format("the machine of {} sleeps", node);
    case StepKind::wake: return fmt::format("the machine of {} wakes", node);
    case StepKind::wipe: return node + " starts again in an empty directory";
    case StepKind::cut: return node + " cuts its log behind what is committed";
    case StepKind::lose: return of_flight(" never hears ");
    case StepKind::lose_all: return "all that is on its way is lost";
    case StepKind::keep: return of_flight(" will hear later ");
  }
  LEASEHOLD_UNREACHABLE();
}

std::string World::text(const Step& step) const {
  const auto of_flight = [&](const char* verb) {
    // Flights with the same name are numbered from the second on.
    const std::string own = name_of(flights_[step.what]);
    std::size_t place = 1;
    for (std::size_t i = 0; i < step.what; ++i) {
      if (name_of(flights_[i]) == own && !repeated(i)) ++place;
    }
    return fmt::format("{} {}{}", verb, own, place == 1 ? "" : fmt::format(" {}", place));
  };
  const std::string node = name(step.node);
  switch (step.kind) {
    case StepKind::rates: return "rates " + rates(step);
    case StepKind::advance: return "pass";
    case StepKind::tick: return "tick " + node;
    case StepKind::beat: return "beat " + node;
    case StepKind::look: return "look " + node;
    case StepKind::deliver: return of_flight("hear");
    case StepKind::duplicate: return of_flight("again");
    case StepKind::meet: return "meet " + names_of_set(step.what);
    case StepKind::sync: return "sync " + node;
    case StepKind::apply: return "apply " + node;
    case StepKind::restart: return "restart " + node;
    case StepKind::propose: return "propose " + node;
    case StepKind::read: return "read " + node;
    case StepKind::transfer: return fmt::format("transfer {} to {}", node, number(step.what));
    case StepKind::change:
      if (step.what == kAllVote) return fmt::format("change {}: all vote", node);
      if (step.what == kSole) return fmt::format("change {}: alone", node);
      if (step.what < kNodesMax)
        return fmt::format("change {}: remove {}", node, number(step.what));
      return fmt::format("change {}: learner {}", node, number(step.what - kNodesMax));
    case StepKind::settings: return fmt::format("settings {}: {}", node, settings_name(step.what));
    case StepKind::notice:
      return fmt::format("notice {}: {}.{}", node, number(step.what % kNodesMax),
                         step.what / kNodesMax + 1);
    case StepKind::suspend: return "suspend " + node;
    case StepKind::wake: return "wake " + node;
    case StepKind::wipe: return "wipe " + node;
    case StepKind::cut: return "cut " + node;
    case StepKind::lose: return of_flight("lose");
    case StepKind::lose_all: return "lose";
    case StepKind::keep: return of_flight("keep");
  }
  LEASEHOLD_UNREACHABLE();
}

}  // namespace leasehold::explore
