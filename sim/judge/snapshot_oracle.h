// Snapshots, and where logs begin.
#pragma once

#include <leasehold/raft/ready.h>
#include <leasehold/sim/judge/ledger.h>

#include <cstdint>
#include <map>

namespace leasehold::sim {

/// Judges, by the names that a violation carries:
///   cut_beyond_durable      a log begins behind what neither the state machine nor a snapshot that
///                           has arrived whole would still hold after a crash
///   snapshot_state          a snapshot, or a state made from one, is not byte for byte what the
///                           committed entries up to its index make
/// and, as part of `log_matching`, that a log begins behind a committed entry.
class SnapshotOracle {
 public:
  SnapshotOracle(World& world, Ledger& ledger) : world_(world), ledger_(ledger) {}

  /// A log may begin there if what is below it would survive a crash at this instant.
  void check_base(const SimNode& node, const raft::LogBase& base);
  void on_snapshot_taken(const SimNode& node, std::uint64_t tag, const SnapshotBytes& snapshot);
  void on_snapshot_arrived(const SimNode& node, const StagedSnapshot& snapshot);
  void on_snapshot_deleted(const SimNode& node);
  void on_installed(const SimNode& node, const raft::SnapshotId& id);

 private:
  World& world_;
  Ledger& ledger_;
  /// The bytes of every snapshot that was taken, by its tag.
  std::map<std::uint64_t, SnapshotBytes> taken_;
};

}  // namespace leasehold::sim
