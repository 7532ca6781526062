// The numbers of many seeds: how they travel from the processes that run seeds, and their sums.
#pragma once

#include <leasehold/sim/report/seed_report.h>

#include <cstdint>
#include <string>

namespace leasehold::sim {

/// All numbers of a report, without the text of its violation, separated by spaces.
std::string encode_numbers(const SeedReport& report);
/// A report of a violation has an empty one.
SeedReport decode_numbers(const std::string& numbers);

/// Adds up reports.
class Summary {
 public:
  void add(const SeedReport& report);
  /// To standard output. `died`: seeds that an assertion ended, where assertions do not count.
  void print(std::uint64_t findings, std::uint64_t died, const SimOptions& options) const;
  std::uint64_t seeds() const { return seeds_; }

 private:
  SeedReport sum_;
  std::uint64_t seeds_ = 0;
  std::uint64_t simulated_ms_ = 0;
  std::uint64_t stable_ = 0;             ///< partitions in which a stable leader was found
  std::uint64_t without_successor_ = 0;  ///< partitions in which no node could be elected
  std::uint64_t fault_seeds_[kFaultClasses] = {};
};

}  // namespace leasehold::sim
