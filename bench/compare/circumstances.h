// What a comparison was found on: the machine, as the system describes it.
#pragma once

#include <leasehold/bench/compare/findings.h>

#include <cstdint>
#include <string>

namespace leasehold::bench {

/// All but what the run itself knows. `folder`: where the data goes.
Circumstances look_around(const std::string& folder);

/// Processor time since the machine was started, in ticks.
struct ProcessorTicks {
  std::uint64_t stolen = 0;
  std::uint64_t all = 0;
};
ProcessorTicks processor_ticks();
double stolen_share(const ProcessorTicks& before, const ProcessorTicks& after);

}  // namespace leasehold::bench
