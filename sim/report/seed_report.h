// What one seed did, and whether that is enough to count as a test.
#pragma once

#include <leasehold/sim/world/fault_class.h>
#include <leasehold/sim/world/options.h>
#include <leasehold/sim/world/outcome.h>

#include <cstdint>
#include <optional>
#include <string>

namespace leasehold::sim {

/// What one seed did.
struct SeedReport {
  std::uint64_t seed = 0;
  Duration simulated{0};
  std::uint64_t steps = 0;
  OperationCounts operations;
  std::uint64_t operations_unknown = 0;
  std::uint64_t leader_changes = 0;
  std::uint64_t membership_entries = 0;  ///< committed; a change of the voters takes two
  SnapshotCounts snapshots;
  SessionCounts sessions;
  NodeCounts nodes;
  SettingsCounts settings;
  LeaseCounts leases;
  KeyLockCounts key_locks;
  std::uint64_t triggered = 0;  ///< faults that were about to be triggered
  FaultSet faults;              ///< those that took effect
  std::uint64_t trace_hash = 0;
  TrialOutcome trial = TrialOutcome::none;
  std::optional<Violation> violation;
};

/// What a seed must cover to count as a test. Returns what is missing; empty if nothing is.
/// At least 60 simulated seconds, 100 operations (50 of them completed), one leader change, three
/// fault classes. A PartitionTrial has to have been judged.
std::string missing_coverage(const SeedReport& report, const SimOptions& options = {});

}  // namespace leasehold::sim
