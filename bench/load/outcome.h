// What a load showed, for people and as JSON, and whether it means anything.
#pragma once

#include <leasehold/bench/load/engine.h>
#include <leasehold/bench/load/options.h>

#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::bench {

/// One second of a run.
struct SecondSummary {
  double length_s = 0;
  std::uint64_t operations = 0;
  std::uint64_t errors = 0;
  std::uint64_t p50_ns = 0;
  std::uint64_t p99_ns = 0;
};
SecondSummary summary_of(const Measured& second, double length_s);

/// With this share of a core the client's thread is the bottleneck of a closed loop.
inline constexpr double kBusyMax = 0.95;

/// Why the run is to be thrown away, as a sentence; empty if it stands. Nothing was measured; in an
/// open loop more than kLateShareMax of a latency is the client's own lateness; in a closed loop
/// the client was busy all the time, so the servers may be faster.
std::string worthless_because(const PhaseResult& result, const LoadOptions& options);

/// "closed loop, 64 in flight on 64 connections; ycsb-a, ...".
std::string title_of(const LoadOptions& options);
/// "  12 s     45210/s  p50    81.3 us  p99   212.0 us  64 in flight  0 errors".
std::string progress_of(const SecondSummary& second, std::uint64_t number, std::size_t in_flight);
/// A row for each kind of operation, one for all, and the errors by kind.
std::string table_of_load(const PhaseResult& result, const LoadOptions& options);
/// One object, with the raw histograms.
std::string json_of_load(const PhaseResult& result, const std::vector<SecondSummary>& seconds,
                         const LoadOptions& options, const std::string& started);

}  // namespace leasehold::bench
