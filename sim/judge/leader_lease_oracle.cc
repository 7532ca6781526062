#include <leasehold/sim/judge/leader_lease_oracle.h>
#include <leasehold/sim/judge/words.h>

#include <fmt/format.h>

#include <string>

namespace leasehold::sim {

bool LeaderLeaseOracle::bound_to(const SimNode& voter, const SimNode& leader,
                                 raft::Term term) const {
  // A crash at this instant must not set the voter free, so what is durable counts as well.
  const raft::StoredPromise& stored = voter.disk().durable().hard_state.promise;
  if (stored.holder != leader.id() || stored.term != term) return false;
  if (!voter.up()) return true;  // it will start with a full promise
  const raft::Core& core = voter.driver().core();
  const raft::StoredPromise& promise = core.hard_state().promise;
  return promise.holder == leader.id() && promise.term == term &&
         core.promise().live(voter.clock().now().promise);
}

bool LeaderLeaseOracle::covered(const SimNode& leader, raft::Term term) const {
  // The leader grants no vote while its lease is valid, if it is still a voter.
  return ledger_.on_quorum([this, &leader, term](const SimNode& node) {
    return &node == &leader || bound_to(node, leader, term);
  });
}

void LeaderLeaseOracle::check_coverage(const SimNode& leader, raft::Term term) {
  if (covered(leader, term)) return;
  std::string free;
  for (const SimNode* node : ledger_.nodes()) {
    if (node == &leader || bound_to(*node, leader, term)) continue;
    free += fmt::format(" {}", node->id().value());
  }
  world_.fail("lease_outlives_promise",
              fmt::format("{} holds a valid lease of {} while these nodes are not bound to it:{}",
                          name(leader), term_text(term), free));
}

void LeaderLeaseOracle::after_step() {
  const SimNode* holder = nullptr;
  for (const SimNode* node : ledger_.nodes()) {
    if (!node->up() || node->published().end == lease::HolderInstant::earliest()) continue;
    if (node->witness()) world_.fail("witness_serves", name(*node) + " shows a lease");
    if (node->clock().holder_now() >= node->published().end) continue;
    const raft::Term term = node->published().term;
    if (holder != nullptr) {
      world_.fail("two_leases",
                  fmt::format("{} ({}) and {} ({}) both hold a valid lease", name(*holder),
                              term_text(holder->published().term), name(*node), term_text(term)));
    }
    holder = node;
    if (ledger_.newest_term() > term) {
      world_.fail("lease_and_newer_commit",
                  fmt::format("{} holds a valid lease of {}, but {} has committed an entry",
                              name(*node), term_text(term), term_text(ledger_.newest_term())));
    }
    check_coverage(*node, term);
  }
}

}  // namespace leasehold::sim
