#include <leasehold/sim/judge/monotonic_oracle.h>
#include <leasehold/sim/judge/words.h>

#include <algorithm>

namespace leasehold::sim {

void MonotonicOracle::on_start(const SimNode& node) {
  const raft::Term durable = node.disk().durable().hard_state.term;
  if (node.running().term() < durable) {
    world_.fail("monotonic", name(node) + " starts with a term below its durable one");
  }
  memories_[node.id()] = {
      durable, raft::Index(), {}, node.running().timing(), node.running().membership().joint()};
}

void MonotonicOracle::after_handle(const SimNode& node) {
  Memory& known = memories_[node.id()];
  const RunningReplica& running = node.running();
  if (running.term() < known.term) world_.fail("monotonic", name(node) + ": its term moved back");
  if (running.commit_index() < known.commit) {
    world_.fail("monotonic", name(node) + ": its commit index moved back");
  }
  const raft::LeaseState state = node.view().load();
  if (state.term < known.lease.term || state.commit < known.lease.commit ||
      state.sent_commit < known.lease.sent_commit) {
    world_.fail("monotonic", name(node) + ": the published term, or an index, moved back");
  }
  // More careful settings shorten a lease, and so does the end of a joint state (lease/README.md,
  // rules 33 and 35); nothing else does.
  const lease::Timing& timing = running.timing();
  const bool more_careful = timing.max_clock_drift_ppm > known.timing.max_clock_drift_ppm ||
                            timing.margin > known.timing.margin;
  const bool left_joint = known.joint && !running.membership().joint();
  const bool same_term = state.term == known.lease.term;
  if (same_term && !more_careful && !left_joint && state.end < known.lease.end &&
      state.end != lease::HolderInstant::earliest()) {
    world_.fail("monotonic", name(node) + ": the lease end moved back within a term");
  }
  known.term = running.term();
  known.commit = std::max(known.commit, running.commit_index());
  known.lease = state;
  known.timing = timing;
  known.joint = running.membership().joint();
}

}  // namespace leasehold::sim
