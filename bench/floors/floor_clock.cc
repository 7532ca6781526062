// floor_clock: what one read of the clock costs, the least that any check of a lease can cost.
#include <leasehold/bench/report.h>
#include <leasehold/bench/workload.h>

#include <CLI/CLI.hpp>

#include <time.h>

#include <iostream>

namespace leasehold::bench {
namespace {

Histogram measure_clock(clockid_t clock, unsigned blocks, unsigned calls) {
  Histogram picoseconds;
  for (unsigned block = 0; block < blocks; ++block) {
    const std::uint64_t began = monotonic_ns();
    for (unsigned i = 0; i < calls; ++i) {
      timespec now;
      clock_gettime(clock, &now);
      asm volatile("" : : "r"(now.tv_sec), "r"(now.tv_nsec) : "memory");
    }
    picoseconds.record((monotonic_ns() - began) * 1000 / calls);
  }
  return picoseconds;
}

int run(int argc, char** argv) {
  CLI::App app(
      "What one call of clock_gettime costs, in nanoseconds; each value is the mean of a block of "
      "calls.\nA figure above 100 means that the machine's clock source is outside the vDSO.");
  unsigned blocks = 2000;
  unsigned calls = 1000;
  bool json = false;
  app.add_option("--blocks", blocks, "blocks to measure")->capture_default_str();
  app.add_option("--calls", calls, "calls of a block")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_flag("--json", json, "print JSON instead of a table");
  CLI11_PARSE(app, argc, argv);

  const NamedHistograms rows = {{"CLOCK_BOOTTIME", measure_clock(CLOCK_BOOTTIME, blocks, calls)},
                                {"CLOCK_MONOTONIC", measure_clock(CLOCK_MONOTONIC, blocks, calls)}};
  std::cout << (json ? json_of(rows, "ps") + "\n" : table_of(rows, 1000.0, "ns per call"));
  return 0;
}

}  // namespace
}  // namespace leasehold::bench

int main(int argc, char** argv) {
  return leasehold::bench::run(argc, argv);
}
