// The simulator's own seeds where emscripten compiles them: their trace hashes, one a line.
#include <leasehold/sim/simulator.h>

#include <fmt/format.h>

#include <cstdlib>

int main(int count, char** words) {
  if (count != 3) return 2;
  const unsigned long first = std::strtoul(words[1], nullptr, 10);
  const unsigned long last = std::strtoul(words[2], nullptr, 10);
  leasehold::sim::SimOptions options;
  options.trace_tail = 0;
  for (unsigned long seed = first; seed <= last; ++seed) {
    const leasehold::sim::SeedReport report = leasehold::sim::run_seed(seed, options);
    fmt::print("{} {:016x}\n", seed, report.trace_hash);
    if (report.violation) fmt::print("{}: {}\n", report.violation->oracle, report.violation->story);
  }
  return 0;
}
