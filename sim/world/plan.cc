#include <leasehold/base/fnv.h>
#include <leasehold/sim/world/plan.h>

#include <algorithm>

namespace leasehold::sim {

Random stream(std::uint64_t seed, std::string_view subject) {
  Fnv name;
  name.add(subject);
  return Random(seed * 0x2545f4914f6cdd1dU + name.value());
}

Random random_for(std::uint64_t seed, std::uint64_t part) {
  return Random(seed * 0x2545f4914f6cdd1dU + part);
}

Duration draw_duration(Random& random, Duration low, Duration high) {
  return Duration(random.between(low.count(), std::max(low, high).count() + 1));
}

raft::GroupSettings first_settings(const Plan& plan) {
  if (plan.settings.agreed) return plan.settings.first;
  raft::GroupSettings first;
  first.timing = plan.nodes[0].timing;
  return first;
}

Duration Plan::lease_max() const {
  Duration longest = settings.agreed ? settings.first.timing.lease : Duration(0);
  if (enabled.has(FaultClass::settings)) {
    const Duration grown = first_settings(*this).timing.lease * kLeaseGrowth;
    longest = std::max(longest, std::min(grown, kSettingsLeaseMax));
  }
  for (const NodePlan& node : nodes) longest = std::max(longest, node.timing.lease);
  return longest;
}

Duration Plan::election_timeout_max() const {
  Duration longest = settings.agreed ? settings.first.timing.election_timeout : Duration(0);
  if (enabled.has(FaultClass::settings)) {
    longest = first_settings(*this).timing.election_timeout * kElectionGrowth;
  }
  for (const NodePlan& node : nodes) longest = std::max(longest, node.timing.election_timeout);
  return longest;
}

}  // namespace leasehold::sim
