#include <leasehold/sim/world/world.h>

#include <algorithm>
#include <array>
#include <utility>

namespace leasehold::sim {

bool is_lease_oracle(const std::string& oracle) {
  const std::array<const char*, 6> names = {
      "two_leases",       "lease_and_newer_commit", "lease_outlives_promise",
      "lease_view_order", "linearizability",        "side_two_leases"};
  return std::any_of(names.begin(), names.end(),
                     [&oracle](const char* name) { return oracle == name; });
}

bool World::fault_happens() {
  ++triggered;
  if (!options.reduction.only) return true;
  const FaultNumbers& only = *options.reduction.only;
  return std::any_of(only.begin(), only.end(), [this](const auto& range) {
    return range.first <= triggered && triggered <= range.second;
  });
}

Random World::random(std::uint64_t part) const {
  return random_for(plan.seed, part + (options.reduction.variant << 32U));
}

void World::begin_sequence(Random& random, FaultMoment moment) const {
  if (!options.reduction.only) return;
  constexpr std::uint64_t kFirst = 10'000'000;
  random = this->random(kFirst + 2 * triggered + (moment == FaultMoment::after ? 1 : 0));
}

Duration World::quiet_left() const {
  const Duration period = plan.workload.quiet_period;
  if (period <= Duration{0}) return Duration{0};
  const Duration since = queue.now().since_origin() % period;
  return since > period / 3 ? period - since : Duration{0};
}

void World::fail(const char* oracle, std::string story) {
  if (violation) return;
  if (options.lease_oracles_only && !is_lease_oracle(oracle)) return;
  violation = Violation{oracle, queue.now(), std::move(story), trace.tail()};
}

}  // namespace leasehold::sim
