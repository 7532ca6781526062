// lease_check: what it costs a thread to learn that it may serve a read under the lease, next to
// the one clock read that no such check can do without.
#include <leasehold/bench/report.h>
#include <leasehold/bench/workload.h>
#include <leasehold/node/system_clock.h>
#include <leasehold/replica/lease_view.h>

#include <CLI/CLI.hpp>

#include <time.h>

#include <atomic>
#include <functional>
#include <iostream>
#include <thread>

namespace leasehold::bench {
namespace {

struct Options {
  unsigned blocks = 4000;
  unsigned calls = 1000;
  double ratio_max = 0;
  bool json = false;
};

void read_clock_calls(unsigned calls) {
  for (unsigned i = 0; i < calls; ++i) {
    timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    asm volatile("" : : "r"(now.tv_sec), "r"(now.tv_nsec) : "memory");
  }
}

void check_lease_calls(const replica::LeaseView& view, const lease::Clock& clock, unsigned calls) {
  std::uint64_t valid = 0;
  raft::Index readable;
  for (unsigned i = 0; i < calls; ++i) {
    const replica::LeaseLook look = view.look(clock);
    if (look.valid()) {
      valid += 1;
      readable = look.state.commit;
    }
    asm volatile("" : : "r"(valid), "r"(readable.value()) : "memory");
  }
  // Every check was of a valid lease, or the figure would be that of the shorter path.
  LEASEHOLD_ASSERT(valid == calls);
}

std::uint64_t picoseconds_per_call(unsigned calls, const std::function<void(unsigned)>& body) {
  const std::uint64_t began = monotonic_ns();
  body(calls);
  return (monotonic_ns() - began) * 1000 / calls;
}

/// Blocks of the clock read and of the lease check, in the order A B B A.
void measure_pair(const Options& options, const replica::LeaseView& view, const lease::Clock& clock,
                  Histogram& floor, Histogram& check) {
  const auto checks = [&view, &clock](unsigned calls) { check_lease_calls(view, clock, calls); };
  for (unsigned turn = 0; turn < options.blocks; ++turn) {
    if (second_of_two(turn)) {
      check.record(picoseconds_per_call(options.calls, checks));
    } else {
      floor.record(picoseconds_per_call(options.calls, read_clock_calls));
    }
  }
}

raft::LeaseState valid_lease(std::uint64_t commit) {
  raft::LeaseState state;
  state.term = raft::Term(1);
  state.end = raft::HolderInstant::never();
  state.commit = raft::Index(commit);
  return state;
}

/// Publishes as often as a node that commits 10,000 times a second.
void publish_until(replica::LeaseView& view, const std::atomic<bool>& stopped) {
  for (std::uint64_t commit = 1; !stopped.load(std::memory_order_relaxed); ++commit) {
    view.publish(valid_lease(commit));
    const timespec pause = {0, 100'000};
    nanosleep(&pause, nullptr);
  }
}

int measure(const Options& options) {
  replica::LeaseView view;
  view.publish(valid_lease(1));
  const node::SystemClock clock;
  NamedHistograms rows(4);
  rows[0].first = "clock read";
  rows[1].first = "lease check";
  rows[2].first = "clock read, beside a writer";
  rows[3].first = "lease check, beside a writer";
  measure_pair(options, view, clock, rows[0].second, rows[1].second);
  std::atomic<bool> stopped{false};
  std::thread publisher([&view, &stopped] { publish_until(view, stopped); });
  measure_pair(options, view, clock, rows[2].second, rows[3].second);
  stopped = true;
  publisher.join();

  const double ratio = static_cast<double>(rows[1].second.quantile(0.5)) /
                       static_cast<double>(rows[0].second.quantile(0.5));
  if (options.json) {
    std::cout << json_of(rows, "ps") << "\n";
  } else {
    std::cout << table_of(rows, 1000.0, "ns per call") << "lease check / clock read: " << ratio
              << "\n";
  }
  if (options.ratio_max > 0 && ratio > options.ratio_max) {
    std::cerr << "lease_check: a check costs " << ratio << " clock reads, above the limit of "
              << options.ratio_max << "\n";
    return 1;
  }
  return 0;
}

int run(int argc, char** argv) {
  CLI::App app(
      "What it costs a thread to learn that it may serve a read under the lease, beside one clock "
      "read,\nin nanoseconds; each value is the mean of a block of calls, and the blocks "
      "alternate.");
  Options options;
  app.add_option("--blocks", options.blocks, "blocks of each of the two measurements")
      ->capture_default_str();
  app.add_option("--calls", options.calls, "calls of a block")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--ratio-max", options.ratio_max,
                 "exit with status 1 if a check costs more clock reads than this; 0: never")
      ->capture_default_str();
  app.add_flag("--json", options.json, "print JSON instead of a table");
  CLI11_PARSE(app, argc, argv);
  return measure(options);
}

}  // namespace
}  // namespace leasehold::bench

int main(int argc, char** argv) {
  return leasehold::bench::run(argc, argv);
}
