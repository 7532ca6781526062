#include <leasehold/base/scaled.h>
#include <leasehold/sim/judge/leader_lease_oracle.h>
#include <leasehold/sim/judge/words.h>

#include <fmt/format.h>

#include <string>

namespace leasehold::sim {
namespace {

/// Clocks are read in whole nanoseconds, and at a change of their rates once more.
constexpr Duration kRounding{1'000};

}  // namespace

bool LeaderLeaseOracle::bound_to(const SimNode& voter, const SimNode& leader,
                                 raft::Term term) const {
  // A crash at this instant must not set the voter free, so what is durable counts as well.
  const raft::StoredPromise& stored = voter.disk().durable().hard_state.promise;
  if (stored.holder != leader.id() || stored.term != term) return false;
  if (!voter.up()) return true;  // it will start with a full promise
  const raft::StoredPromise promise = voter.running().stored_promise();
  return promise.holder == leader.id() && promise.term == term &&
         voter.clock().now().promise < voter.running().promise_until();
}

// The leader grants no vote while its lease is valid, if it is still a voter.
template <class Lasts>
bool LeaderLeaseOracle::on_quorum(const SimNode& leader, raft::Term term,
                                  const Lasts& lasts) const {
  const auto holds = [this, &leader, term, &lasts](const SimNode& node) {
    return &node == &leader || (bound_to(node, leader, term) && lasts(node));
  };
  if (ledger_.on_quorum(holds)) return true;
  // In a joint state nobody is elected without the voters that go. Only the leader of this term can
  // end it: a node that ended it in an earlier term lacks a committed entry of this one.
  return leader.running().membership().joint() && ledger_.on_outgoing_quorum(holds);
}

bool LeaderLeaseOracle::covered(const SimNode& leader, raft::Term term) const {
  return on_quorum(leader, term, [](const SimNode&) { return true; });
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

/// In true time, whatever the two clocks may do from now on. A process that is down starts with a
/// full promise.
bool LeaderLeaseOracle::outlasts(const SimNode& voter, Duration used, std::int64_t slowest) const {
  if (!voter.up()) return true;
  const Duration left = voter.running().promise_until() - voter.clock().now().promise;
  const std::int64_t fastest = kMillion + numbers_.drift_ppm(voter);
  return used.count() * fastest <= (left + kRounding).count() * slowest;
}

bool LeaderLeaseOracle::covered_for_good(const SimNode& leader, raft::Term term) const {
  const Duration used =
      leader.published().end - leader.clock().holder_now() + numbers_.margin(leader);
  const std::int64_t slowest = kMillion - numbers_.drift_ppm(leader);
  return on_quorum(leader, term, [this, used, slowest](const SimNode& node) {
    return outlasts(node, used, slowest);
  });
}

void LeaderLeaseOracle::check_promises(const SimNode& leader, raft::Term term) {
  const bool bounded = !world_.plan.drift_unbounded;
  if (bounded && covered_for_good(leader, term)) return;
  check_coverage(leader, term);
  if (!bounded) return;
  std::string bounds;
  for (const SimNode* node : ledger_.nodes()) {
    bounds += fmt::format(" {}", numbers_.drift_ppm(*node));
  }
  world_.fail("lease_numbers",
              fmt::format("{} holds a lease of {} that may last longer than the promises of a "
                          "quorum: its margin is {} ns, the clocks may be wrong by{} ppm",
                          name(leader), term_text(term), numbers_.margin(leader).count(), bounds));
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
    check_promises(*node, term);
  }
}

}  // namespace leasehold::sim
