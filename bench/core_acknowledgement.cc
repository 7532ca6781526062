// What one acknowledgement costs a leader: step() and take_ready() of the bare core, on one thread,
// without a disk and without a network. To compare two trees, build this in both and let the two
// programs alternate; see bench/README.md.

#include <benchmark/benchmark.h>
#include <leasehold/bench/bare_leader.h>
#include <leasehold/bench/thread_seconds.h>

#include <cstdint>
#include <vector>

namespace leasehold::bench {
namespace {

using raft::Index;
using raft::Round;

/// Acknowledgements that are out when the first of them comes in.
constexpr std::uint64_t kOutstanding = kOutstandingMax;
constexpr std::uint64_t kReads = 256;

/// Lets `state` count the time of `acknowledge`, which takes in `count` acknowledgements.
template <class Acknowledge>
void measure(benchmark::State& state, std::uint64_t count, const Acknowledge& acknowledge) {
  const double begin = thread_seconds();
  acknowledge();
  state.SetIterationTime(thread_seconds() - begin);
  state.counters["per_acknowledgement"] =
      benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}

/// Of a heartbeat: each of many rounds is acknowledged by each peer; `reads` of them wait.
void rounds(benchmark::State& state) {
  BareLeader leader(static_cast<std::uint64_t>(state.range(0)));
  const auto reads = static_cast<std::uint64_t>(state.range(1));
  const Index match = leader.core().log().last_index();
  for (auto unused : state) {
    static_cast<void>(unused);
    const Round first = leader.round().next();
    for (std::uint64_t i = 0; i < kOutstanding; ++i) leader.begin_round();
    leader.ask(reads);
    measure(state, kOutstanding * (leader.voters() - 1), [&] {
      for (std::uint64_t i = 0; i < kOutstanding; ++i) {
        for (std::uint64_t id = 2; id <= leader.voters(); ++id) {
          leader.acknowledge(id, first + i, match);
        }
      }
    });
    leader.acknowledge_all();
  }
}

/// Of entries: many are out, and each acknowledgement takes in one of them.
void entries(benchmark::State& state) {
  BareLeader leader(static_cast<std::uint64_t>(state.range(0)));
  const auto reads = static_cast<std::uint64_t>(state.range(1));
  for (auto unused : state) {
    static_cast<void>(unused);
    const Index first = leader.core().log().last_index().next();
    leader.begin_round();
    for (std::uint64_t i = 0; i < kOutstanding; ++i) leader.append();
    leader.ask(reads);
    measure(state, kOutstanding * (leader.voters() - 1), [&] {
      for (std::uint64_t i = 0; i < kOutstanding; ++i) {
        for (std::uint64_t id = 2; id <= leader.voters(); ++id) {
          leader.acknowledge(id, leader.round(), first + i);
        }
      }
    });
    leader.acknowledge_all();
  }
}

void voters_and_reads(benchmark::internal::Benchmark* of) {
  of->ArgNames({"voters", "reads"})->UseManualTime();
  for (const std::int64_t voters : {3, 5}) {
    for (const std::int64_t reads : {std::int64_t{0}, std::int64_t{kReads}}) {
      of->Args({voters, reads});
    }
  }
}

BENCHMARK(rounds)->Apply(voters_and_reads);
BENCHMARK(entries)->Apply(voters_and_reads);

}  // namespace
}  // namespace leasehold::bench

BENCHMARK_MAIN();
