// Seeds that run in processes of their own.
#pragma once

#include <leasehold/sim/report/seed_report.h>
#include <leasehold/sim/world/options.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace leasehold::sim {

struct SeedRange {
  std::uint64_t first = 1;
  std::uint64_t last = 1;
  std::uint64_t jobs = 1;  ///< processes that share the seeds
};

/// Runs seeds in child processes: so a seed that ends in a failed assertion is reported like any
/// other finding, by the oracle `assertion`, and the rest goes on.
class SeedProcesses {
 public:
  struct Ports {
    std::function<void(const SeedReport&)> report;
    /// A seed ended in an assertion, where assertions do not count (SimOptions::lease_oracles_only)
    /// and the clients had seen nothing wrong.
    std::function<void()> died;
    /// Whether the other seeds are not wanted any more.
    std::function<bool()> stopped;
  };

  SeedProcesses(const SeedRange& seeds, const SimOptions& options, Ports ports)
      : seeds_(seeds), options_(options), ports_(std::move(ports)) {}

  /// Returns when all seeds have run, or the others are not wanted.
  void run();

 private:
  struct Child {
    pid_t pid = -1;
    int input = -1;
    std::string buffer;
    std::uint64_t seed = 0;            ///< the one it is at
    std::optional<SeedReport> report;  ///< a violation whose story is still coming
    std::vector<std::string> trace;    ///< of a failed assertion
    std::string broken;                ///< what was wrong with its clients' history
  };

  void start(std::uint64_t from);
  void listen();
  void read_from(std::size_t which);
  void crashed(const Child& child) const;
  void on_line(Child& child, const std::string& line) const;

  const SeedRange seeds_;
  const SimOptions& options_;
  Ports ports_;
  std::vector<Child> children_;
};

}  // namespace leasehold::sim
