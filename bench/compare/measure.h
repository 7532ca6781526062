// The blocks of a comparison: each case at each of its targets in turn, A B B A.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/bench/compare/findings.h>
#include <leasehold/bench/compare/plan.h>
#include <leasehold/bench/compare/systems.h>
#include <leasehold/bench/load/options.h>

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::bench {

using Systems = std::map<System, RunningSystem>;

/// The order of the targets of a case in a sweep: forwards, then backwards.
std::vector<std::size_t> order_of(const Case& one, std::size_t sweep);

/// What the load of `one` at this target is. Settled.
Result<LoadOptions> load_of(const CompareOptions& options, const Case& one, const Target& target,
                            const std::vector<std::string>& servers);

/// One thread.
class Measurer {
 public:
  /// All of these outlive it. `ended`: whether the user wants an end. `news`: progress.
  Measurer(const CompareOptions& options, const Plan& plan, Systems& systems,
           const std::function<bool()>& ended, std::ostream& news)
      : options_(options), plan_(plan), systems_(systems), ended_(ended), news_(news) {}

  /// Writes the keys and measures all sweeps. Whether it was not ended early: the sweep that was
  /// under way then does not count. Errors: unavailable, io, invalid_argument.
  Result<bool> run();

  const std::vector<MeasuredBlock>& blocks() const { return blocks_; }
  /// That are complete, of each case.
  std::size_t sweeps() const { return sweeps_; }

 private:
  Result<void> write_all_keys(std::uint64_t value_bytes);
  Result<bool> run_sweep(std::size_t sweep, std::uint64_t value_bytes);
  Result<MeasuredBlock> run_block(std::size_t of_case, std::size_t target, std::size_t sweep);
  std::string reason_against(const MeasuredBlock& block, const SystemState& before,
                             const SystemState& after) const;
  void tell(std::size_t sweep, std::size_t of_case, std::size_t first_block);

  const CompareOptions& options_;
  const Plan& plan_;
  Systems& systems_;
  const std::function<bool()>& ended_;
  std::ostream& news_;
  std::vector<MeasuredBlock> blocks_;
  std::size_t sweeps_ = 0;
  std::size_t blocks_done_ = 0;
  std::uint64_t began_ns_ = 0;
};

}  // namespace leasehold::bench
