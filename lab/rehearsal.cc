#include <leasehold/base/assert.h>
#include <leasehold/base/random.h>
#include <leasehold/lab/lab.h>
#include <leasehold/lab/rehearsal.h>
#include <leasehold/sim/world/plan.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>
#include <vector>

namespace leasehold::lab {
namespace {

using std::chrono::milliseconds;

constexpr Duration kLength = std::chrono::seconds(20);

lease::Timing draw_timing(Random& random) {
  lease::Timing timing;
  const std::uint64_t kind = random.below(3);
  if (kind == 1) timing.max_clock_drift_ppm = 10'000;
  if (kind == 2) {
    timing.lease = milliseconds(600);
    timing.heartbeat = milliseconds(60);
    timing.election_timeout = milliseconds(200);
    timing.max_clock_drift_ppm = 50'000;
  }
  LEASEHOLD_ASSERT(timing.validate().ok());
  return timing;
}

Step draw_step(Random& random, const Visit& visit) {
  // Often a node starts again, or a link is whole again: or soon nothing happens any more.
  constexpr std::array<Verb, 24> kChoices = {
      Verb::kill,    Verb::kill,  Verb::power, Verb::restart, Verb::restart, Verb::restart,
      Verb::restart, Verb::pause, Verb::pause, Verb::resume,  Verb::suspend, Verb::cut,
      Verb::one_way, Verb::join,  Verb::alone, Verb::reunite, Verb::reunite, Verb::slow,
      Verb::drift,   Verb::drift, Verb::write, Verb::read,    Verb::read,    Verb::transfer};
  Step step;
  step.verb = kChoices[static_cast<std::size_t>(random.below(kChoices.size()))];
  step.node = raft::NodeId(1 + random.below(visit.nodes));
  const std::uint64_t away = 1 + random.below(visit.nodes - 1);
  step.peer = raft::NodeId(1 + (step.node.value() - 1 + away) % visit.nodes);
  const std::int64_t length = random.between(1, 3'000);
  const std::int64_t most = visit.timing.max_clock_drift_ppm;
  const std::int64_t rate = random.between(-most, most + 1);
  step.amount = step.verb == Verb::drift ? rate : length;
  step.mode = static_cast<raft::ReadMode>(random.below(3));
  return step;
}

Step members_step(Duration at, Verb verb, raft::NodeId node) {
  Step step;
  step.at = at;
  step.verb = verb;
  step.node = node;
  return step;
}

/// In half of the rehearsals nodes join and leave. Drawn beside all else.
void draw_members(Random random, Visit& visit) {
  if (random.chance(1, 2)) return;
  visit.spare = random.below(3);
  std::vector<Step> steps;
  for (std::uint64_t i = 1; i <= visit.spare; ++i) {
    const raft::NodeId joins(visit.nodes + i);
    const Duration added = milliseconds(random.between(1'000, 9'000));
    const Duration promoted = added + milliseconds(random.between(20, 3'000));
    steps.push_back(members_step(added, Verb::add, joins));
    steps.push_back(members_step(promoted, Verb::promote, joins));
  }
  const std::uint64_t others = 1 + random.below(3);
  for (std::uint64_t i = 0; i < others; ++i) {
    const raft::NodeId node(1 + random.below(visit.all()));
    const Duration removed = milliseconds(random.between(2'000, 16'000));
    steps.push_back(members_step(removed, Verb::remove, node));
    if (random.chance(1, 2)) continue;
    const Duration added = removed + milliseconds(random.between(20, 3'000));
    steps.push_back(members_step(added, Verb::add, node));
    if (random.chance(1, 2)) steps.back().peer = raft::NodeId(1 + random.below(visit.all()));
  }
  visit.steps.insert(visit.steps.end(), steps.begin(), steps.end());
  std::stable_sort(visit.steps.begin(), visit.steps.end(),
                   [](const Step& one, const Step& other) { return one.at < other.at; });
}

Visit without_steps(Visit visit) {
  visit.steps.clear();
  return visit;
}

/// A drawn visit whose steps come when they are due, and others among them.
struct Rehearsed {
  explicit Rehearsed(Visit visit) : drawn(std::move(visit)), lab(without_steps(drawn)) {}

  void run(Duration portion) {
    const Duration end = std::min(lab.now() + portion, kLength);
    for (; next < drawn.steps.size() && drawn.steps[next].at <= end; ++next) {
      lab.run(drawn.steps[next].at);
      const Result<void> added = lab.add(drawn.steps[next]);
      LEASEHOLD_ASSERT(added.ok());
    }
    lab.run(end);
  }

  /// Up to three, at the next instant at which one is under way.
  void handle_messages(Random& random) {
    for (int i = 0; i < 20 && lab.flights().empty(); ++i) run(milliseconds(1));
    for (std::uint64_t left = random.below(4); left > 0; --left) {
      const std::vector<sim::SimNetwork::Flight> flights = lab.flights();
      if (flights.empty()) return;
      const auto& flight = flights[static_cast<std::size_t>(random.below(flights.size()))];
      constexpr std::array<Verb, 3> kChoices = {Verb::drop, Verb::delay, Verb::twice};
      Step step;
      step.at = lab.now();
      step.verb = kChoices[static_cast<std::size_t>(random.below(kChoices.size()))];
      step.node = flight.from;
      step.message = flight.number;
      const std::int64_t length = random.between(1, 1'500);
      step.amount = step.verb == Verb::drop ? 0 : length;
      const Result<void> added = lab.add(step);
      LEASEHOLD_ASSERT(added.ok());
    }
  }

  Visit drawn;
  std::size_t next = 0;
  Lab lab;
};

}  // namespace

Visit draw_visit(std::uint64_t seed) {
  Random random = sim::stream(seed, "visit");
  Visit visit;
  visit.seed = seed;
  visit.nodes = 3 + 2 * random.below(3);
  visit.timing = draw_timing(random);
  visit.delay = milliseconds(random.between(1, 25));
  visit.reads = milliseconds(random.between(20, 200));
  visit.writes = milliseconds(random.between(50, 800));
  Random of_groups = sim::stream(seed, "groups");
  if (of_groups.chance(1, 4)) visit.groups = 2;
  std::vector<Duration> times;
  const std::uint64_t count = random.below(31);
  const std::int64_t length = kLength / milliseconds(1);
  for (std::uint64_t i = 0; i < count; ++i)
    times.push_back(milliseconds(random.between(0, length)));
  std::sort(times.begin(), times.end());
  for (const Duration at : times) {
    Step step = draw_step(random, visit);
    step.at = at;
    const bool asks = step.verb == Verb::write || step.verb == Verb::read;
    if (asks && visit.groups > 1) step.group = raft::GroupId(1 + of_groups.below(2));
    // Through its text, which is what a link carries.
    Result<Step> read = parse_step(step_text(step), visit.nodes, visit.groups);
    LEASEHOLD_ASSERT(read.ok());
    visit.steps.push_back(read.value());
  }
  visit.known_deaths = static_cast<std::int64_t>(random.below(2));
  // Members change in the first group alone: so there is one.
  if (visit.groups == 1) draw_members(sim::stream(seed, "members"), visit);
  return visit;
}

Rehearsal rehearse(std::uint64_t seed) {
  Random portions = sim::stream(seed, "portions");
  Random messages = sim::stream(seed, "messages");
  const bool handles = messages.chance(1, 2);
  Rehearsed rehearsed(draw_visit(seed));
  const bool alone = rehearsed.drawn.groups == 1;
  while (rehearsed.lab.now() < kLength) {
    rehearsed.run(milliseconds(portions.between(1, 2'000)));
    if (handles && alone) rehearsed.handle_messages(messages);
    rehearsed.lab.take_records();
  }
  const Lab& lab = rehearsed.lab;
  return {lab.visit(), lab.hash(), lab.violation(), lab.refusal()};
}

}  // namespace leasehold::lab
