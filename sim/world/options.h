// The options of a simulation.
#pragma once

#include <leasehold/sim/world/event_queue.h>
#include <leasehold/sim/world/fault_class.h>
#include <leasehold/sim/world/plan.h>
#include <leasehold/sim/world/running_replica.h>
#include <leasehold/story/record.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::sim {

/// Which nodes still hear which in a partial partition.
enum class PartitionShape : std::uint8_t {
  one_way,   ///< any links, each direction by itself
  bridge,    ///< two sides, and one node that is on both
  ring,      ///< each its two neighbours
  chain,     ///< the same, without the link that closes the ring
  majority,  ///< two sides
};
/// "bridge" and so on; none if it is no name of a shape.
std::optional<PartitionShape> partition_shape_of(const std::string& name);
const char* partition_shape_name(PartitionShape shape);

/// Ranges of numbers, ascending, both ends included.
using FaultNumbers = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
inline constexpr std::uint64_t kFaultNumberMax = 999'999'999;

/// What is left out of a seed's run (reduction.h, shrink.h). What is drawn for the rest may differ
/// for it, and so may the run.
struct Reduction {
  FaultSet without;
  bool no_sessions = false;
  bool no_leases = false;
  bool no_key_locks = false;
  bool no_watchers = false;
  /// Clients at most; 0: as many as are drawn.
  std::uint64_t clients_max = 0;
  /// Another order of the same kinds of faults.
  std::uint64_t variant = 0;
  /// If set: of the triggered faults only those with these numbers happen, counted
  /// from 1 in the order of their times; and each draws from a sequence of its own, so that the
  /// others stay what they are without it.
  std::optional<FaultNumbers> only{};
  friend bool operator==(const Reduction&, const Reduction&) = default;
};

struct SimOptions {
  /// The time with faults, and the time after they have stopped in which the cluster has to
  /// recover.
  Duration chaos = std::chrono::seconds(50);
  Duration calm = std::chrono::seconds(15);
  /// If set, each clock runs at exactly +N or -N parts per million, whatever the bound in the
  /// nodes' settings, which is then 100 000 everywhere. Above that the clocks break the assumption
  /// and an oracle has to notice.
  std::optional<std::int64_t> drift_ppm;
  /// If set, a seed is a PartitionTrial: one partition of this shape, and no other fault.
  std::optional<PartitionShape> shape;
  /// A long life: for all of `chaos`, which takes hours then, things go wrong as seldom as this: a
  /// fault every ten seconds, a leader change a minute, two operations of clients a second. This
  /// also simulates the time between: growing terms, long logs, clocks far from each other.
  bool long_life = false;
  /// Clients that hold leases do most of the work, with many names and short times to live.
  bool lease_work = false;
  Reduction reduction;
  /// If set, this plan is run, and none is drawn. The seed is the plan's own.
  std::optional<Plan> plan;
  /// If set, makes replicas of an earlier version, and the group is upgraded from it.
  MakeReplica earlier;
  /// Only the oracles of the lease and the linearizability checker judge. Shows that a bug hurts
  /// readers, not only an internal rule.
  bool lease_oracles_only = false;
  /// Lines of the trace to keep for a report.
  std::size_t trace_tail = 40;
  /// If set, gets every record of the run. Setting it changes nothing else.
  story::Sink record;
};

}  // namespace leasehold::sim
