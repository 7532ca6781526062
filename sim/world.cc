#include <leasehold/sim/world.h>

#include <algorithm>
#include <array>
#include <utility>

namespace leasehold::sim {

const char* fault_class_name(FaultClass fault) {
  switch (fault) {
    case FaultClass::crash: return "crash";
    case FaultClass::pause: return "pause";
    case FaultClass::suspend: return "suspend";
    case FaultClass::partition: return "partition";
    case FaultClass::one_way_cut: return "one_way_cut";
    case FaultClass::loss: return "loss";
    case FaultClass::duplication: return "duplication";
    case FaultClass::reordering: return "reordering";
    case FaultClass::replay: return "replay";
    case FaultClass::disk_stall: return "disk_stall";
    case FaultClass::unsynced_loss: return "unsynced_loss";
    case FaultClass::disk_error: return "disk_error";
    case FaultClass::extreme_drift: return "extreme_drift";
    case FaultClass::drift_change: return "drift_change";
    case FaultClass::slow_apply: return "slow_apply";
    case FaultClass::late_handling: return "late_handling";
    case FaultClass::reader_pause: return "reader_pause";
    case FaultClass::straggler: return "straggler";
    case FaultClass::full_disk: return "full_disk";
    case FaultClass::hand_over: return "hand_over";
    case FaultClass::membership: return "membership";
  }
  LEASEHOLD_UNREACHABLE();
}

std::size_t FaultSet::count() const {
  std::size_t set = 0;
  for (std::uint32_t rest = bits_; rest != 0; rest &= rest - 1) ++set;
  return set;
}

bool is_lease_oracle(const std::string& oracle) {
  const std::array<const char*, 5> names = {"two_leases", "lease_and_newer_commit",
                                            "lease_outlives_promise", "lease_view_order",
                                            "linearizability"};
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

void World::fail(const char* oracle, std::string story) {
  if (violation) return;
  if (options.lease_oracles_only && !is_lease_oracle(oracle)) return;
  violation = Violation{oracle, queue.now(), std::move(story), trace.tail()};
}

}  // namespace leasehold::sim
