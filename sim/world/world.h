// What all parts of one simulation share.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/sim/world/event_queue.h>
#include <leasehold/sim/world/options.h>
#include <leasehold/sim/world/outcome.h>
#include <leasehold/sim/world/plan.h>
#include <leasehold/sim/world/recorder.h>
#include <leasehold/sim/world/trace.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace leasehold::sim {

enum class FaultMoment : std::uint8_t { before, after };

/// One simulation's true time, plan, trace and verdict. Every part of a simulation refers to it;
/// there is nothing else that they share, and nothing global.
struct World {
  World(Plan drawn, const SimOptions& given)
      : options(given), plan(std::move(drawn)), trace(queue, given.trace_tail) {
    if (!given.record) return;
    recorder = std::make_unique<Recorder>(queue, given.record);
    trace.set_recorder(recorder.get());
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// An oracle's finding. Only the first one counts.
  void fail(const char* oracle, std::string story);
  bool failed() const { return violation.has_value(); }
  /// A fault is about to be triggered: whether it happens (Reduction::only).
  bool fault_happens();
  /// What a fault draws depends on the state that it finds. With Reduction::only each begins a
  /// sequence, and another after it: so the next one comes when it would have come, whatever was
  /// left out before. Otherwise this does nothing.
  void begin_sequence(Random& random, FaultMoment moment) const;
  /// An independent random sequence for one part of the simulation that triggers faults.
  Random random(std::uint64_t part) const;
  /// How long the plan keeps the plain clients from writing, from now on; 0: they may write.
  Duration quiet_left() const;
  /// The same for all that write.
  Duration all_quiet_left() const { return plan.workload.all_quiet ? quiet_left() : Duration{0}; }
  /// A fault took effect.
  void used(FaultClass fault) { faults_used.add(fault); }

  SimOptions options;
  Plan plan;
  EventQueue queue;
  Trace trace;
  /// Only if SimOptions::record is set.
  std::unique_ptr<Recorder> recorder;
  FaultSet faults_used;
  SnapshotCounts snapshots;
  /// Of every snapshot that was taken, by its tag: what a receiver may hold of it.
  std::map<std::uint64_t, Bytes> taken_snapshots;
  NodeCounts nodes;
  /// Faults that were about to be triggered.
  std::uint64_t triggered = 0;
  /// The faults have ended: nothing is lost, late or slow from now on.
  bool healed = false;
  std::optional<Violation> violation;
};

/// Whether this oracle judges what readers are promised, and not an internal rule of Raft.
bool is_lease_oracle(const std::string& oracle);

}  // namespace leasehold::sim
