// What a comparison found, and whether it stands.
#pragma once

#include <leasehold/bench/compare/plan.h>
#include <leasehold/bench/compare/resample.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace leasehold::bench {

/// One load at one target for one block.
struct MeasuredBlock {
  std::size_t of_case = 0;
  std::size_t target = 0;  ///< of the plan
  std::size_t sweep = 0;
  Slots latency;  ///< nanoseconds
  std::uint64_t operations = 0;
  std::uint64_t elapsed_ns = 0;
  std::uint64_t cpu_ns = 0;  ///< of all processes of the system
  double client_busy = 0;    ///< share of a core
  std::string thrown_away;   ///< why; empty: it stands
};

/// One target in one case, by the blocks that stand.
struct Figure {
  std::size_t of_case = 0;
  std::size_t target = 0;
  std::size_t blocks = 0;
  std::size_t standing = 0;
  Slots latency;
  Interval rate;                               ///< a second
  Interval cpu_us;                             ///< of the servers, for each operation
  std::map<std::string, std::size_t> reasons;  ///< of what was thrown away

  std::uint64_t quantile(double q) const { return quantile_of(latency, q); }
};

/// Leasehold over another target.
struct Ratio {
  std::size_t of_case = 0;
  std::size_t target = 0;  ///< the other one
  std::string measure;     ///< "p50", "p99", "rate" or "CPU"
  bool less_is_better = true;
  double ours = 0;  ///< us, a second, or us of processor time
  double theirs = 0;
  Interval interval;        ///< over the pairs that stand
  std::size_t pairs = 0;    ///< that stand
  std::string thrown_away;  ///< why there is none; empty: it stands
};

/// Fewer pairs than this share of the sweeps say nothing.
inline constexpr double kStandingMin = 0.5;

struct Findings {
  std::vector<Figure> figures;
  std::vector<Ratio> ratios;

  const Figure* figure_of(std::size_t of_case, std::size_t target) const;
  /// Whether every ratio stands, and every figure has half of its blocks.
  bool all_stand() const;
};

/// `sweeps`: how many there should be.
Findings findings_of(const Plan& plan, const std::vector<MeasuredBlock>& blocks,
                     std::size_t sweeps);

/// What they were found on.
struct Circumstances {
  std::string started;  ///< an instant of UTC
  std::string processor;
  unsigned cores = 0;
  std::string kernel;
  std::string distribution;
  std::string file_system;  ///< of the data
  bool in_memory = false;   ///< that file system keeps nothing on a disk
  double load_at_start = 0;
  double stolen = 0;  ///< the share of processor time that the hypervisor took
  double seconds = 0;
  bool ended_early = false;
  std::vector<std::string> versions;
  std::vector<std::string> left_out;  ///< what is not installed
};

/// One object, with the raw histograms of every block.
std::string json_of_comparison(const CompareOptions& options, const Circumstances& circumstances,
                               const Plan& plan, const std::vector<MeasuredBlock>& blocks,
                               const Findings& findings);

}  // namespace leasehold::bench
