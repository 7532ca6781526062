#include <leasehold/base/assert.h>
#include <leasehold/base/random.h>
#include <leasehold/lab/lab.h>
#include <leasehold/lab/rehearsal.h>
#include <leasehold/sim/world/plan.h>

#include <algorithm>
#include <array>
#include <chrono>

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

std::uint64_t rehearse(std::uint64_t seed) {
  Random random = sim::stream(seed, "portions");
  Lab lab(draw_visit(seed));
  while (lab.now() < kLength) {
    const Duration portion = milliseconds(random.between(1, 2'000));
    lab.run(std::min(lab.now() + portion, kLength));
    lab.take_records();
  }
  return lab.hash();
}

}  // namespace leasehold::lab
