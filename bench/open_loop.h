// Load on a schedule: requests are due at fixed instants, whatever the server does.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/bench/histogram.h>
#include <leasehold/bench/workload.h>

#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::bench {

struct OpenLoopOptions {
  /// HOST:PORT, or several of them, by commas: the connections go round them.
  std::string address;
  /// Of the reads, or of the writes where all are. Renewals instead go through all leases in turn.
  Workload workload;
  unsigned writes_percent = 0;  ///< share of requests that are sets instead
  std::uint64_t rate = 1000;    ///< requests due a second, evenly spaced; above 0
  std::uint64_t burst = 1;      ///< that many are due at one instant, on one connection; above 0
  /// Sets due a second besides, evenly spaced, on as many connections of their own.
  std::uint64_t write_rate = 0;
  std::string write_address;  ///< of those; empty: `address`
  std::uint64_t warmup_ms = 500;
  std::uint64_t duration_ms = 5000;
  std::uint64_t connections = 16;      ///< bursts go round them and are pipelined on each; above 0
  std::uint64_t in_flight_max = 4096;  ///< a request that is due past it is not sent: an overflow
  std::uint64_t seed = 1;
  std::string setup;  ///< a command for each connection; may be empty
  /// So long before a request is due the client polls and does not sleep: an idle virtual processor
  /// takes about 20 us to wake up. It is cut to what keeps the client asleep for half of the time,
  /// since the kernel stops a real-time thread that uses its processor for 95 % of a second.
  std::uint64_t spin_us = 0;
  bool list_waits = false;
  /// Of the reads and the writes, those of the warm-up too; may be null. It outlives the run.
  Recorder* recorder = nullptr;
};

/// A request of a run that lists them, in nanoseconds.
struct Wait {
  std::uint64_t due = 0;   ///< on CLOCK_MONOTONIC
  std::uint64_t late = 0;  ///< it was sent so long after that
  std::uint64_t wait = 0;  ///< it was answered so long after it was due
  bool write = false;
};

struct OpenLoopResult {
  Histogram reads;   ///< or renewals; nanoseconds from the instant at which it was *due*
  Histogram writes;  ///< the same
  Histogram late;    ///< how long after that instant it was sent: the harness's check of itself
  std::uint64_t overflows = 0;
  std::uint64_t failures = 0;  ///< error replies, and renewals that miss a lease
  std::string first_failure;
  std::uint64_t elapsed_ns = 0;
  std::vector<Wait> waits;  ///< by the instant of the reply, if the run lists them
};

/// How much of a latency that is quoted may be the client's own lateness, at the median and at the
/// 99th percentile: a quarter. Above it a run says more about the client than about the server.
inline constexpr double kLateShareMax = 0.25;

/// Why latencies with this lateness are to be thrown away, as a sentence; empty if they stand.
std::string discard_reason(const Histogram& latency, const Histogram& late);
/// The same of a run, by everything that it measured: its reads or renewals, and its writes.
std::string discard_reason(const OpenLoopResult& result);

/// Runs the schedule and waits for the last reply. What was due during the warm-up does not count.
/// Errors: invalid_argument, io, stopped, timed_out (no reply for ten seconds).
Result<OpenLoopResult> open_loop(const OpenLoopOptions& options);

}  // namespace leasehold::bench
