#include <leasehold/base/assert.h>
#include <leasehold/sim/oracles.h>
#include <leasehold/sim/sim_node.h>

#include <string>

namespace leasehold::sim {
namespace {

std::uint64_t digest(const raft::Entry& entry) {
  std::uint64_t hash = 14695981039346656037U + static_cast<std::uint64_t>(entry.kind);
  for (const char byte : entry.payload.view()) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211U;
  }
  return hash;
}

std::string name(const SimNode& node) {
  return "node " + std::to_string(node.id().value());
}

std::string term_text(raft::Term term) {
  return "term " + std::to_string(term.value());
}

std::string id_text(raft::LogId id) {
  return "entry " + std::to_string(id.index.value()) + " of " + term_text(id.term);
}

}  // namespace

Oracles::Oracles(World& world) : world_(world), memories_(world.plan.nodes.size()) {}

Oracles::Memory& Oracles::memory(const SimNode& node) {
  return memories_[node.id().value() - 1];
}

// ---- Start, crash, events ----

void Oracles::on_start(const SimNode& node) {
  Memory& known = memory(node);
  const raft::Term durable = node.disk().durable().hard_state.term;
  if (node.driver().core().term() < durable) {
    world_.fail("monotonic", name(node) + " starts with a term below its durable one");
  }
  known = Memory{durable, raft::Index(), node.machine().applied(), {}};
}

void Oracles::on_crash(const SimNode& node) {
  if (ledger_.empty()) return;
  // Only the newest: Log Matching carries the ones before it.
  const raft::LogId id{ledger_.back().term, committed()};
  if (!durable_on_quorum(id)) {
    world_.fail("lost_commit", "after the crash of " + name(node) + ", " + id_text(id) +
                                   " is durable on no quorum");
  }
}

void Oracles::on_event(const SimNode& node, const raft::Event& event) {
  const auto* change = std::get_if<raft::RoleChanged>(&event.what);
  if (change == nullptr || change->to != raft::Role::leader) return;
  const auto [known, fresh] = leaders_.emplace(event.term, node.id());
  if (!fresh && known->second != node.id()) {
    world_.fail("election_safety", name(node) + " and node " +
                                       std::to_string(known->second.value()) + " both lead " +
                                       term_text(event.term));
  }
  check_new_leader(node, event.term);
}

void Oracles::check_new_leader(const SimNode& node, raft::Term term) {
  for (raft::Index i(1); i <= committed(); i = i.next()) {
    const Committed& entry = ledger_[i.value() - 1];
    const raft::LogId id{entry.term, i};
    if (entry.committed_in < term && !node.disk().written().holds(id)) {
      world_.fail("leader_completeness", name(node) + " leads " + term_text(term) +
                                             " without the committed " + id_text(id));
      return;
    }
  }
}

// ---- The committed log ----

bool Oracles::durable_on_quorum(raft::LogId id, const SimNode* without) const {
  std::size_t holders = 0;
  for (const SimNode* node : nodes_) {
    if (node != without && node->disk().durable().holds(id)) ++holders;
  }
  return holders > nodes_.size() / 2;
}

void Oracles::advance_ledger(const SimNode& node) {
  Memory& known = memory(node);
  const raft::Index commit = node.driver().core().commit_index();
  const DiskImage& log = node.disk().written();
  for (raft::Index i = known.commit.next(); i <= commit; i = i.next()) {
    if (i > log.last_index()) {
      world_.fail("log_matching", name(node) + " has committed index " + std::to_string(i.value()) +
                                      " that its log does not hold");
      break;
    }
    const raft::Entry& entry = log.entry(i);
    if (i <= committed()) {
      const Committed& expected = ledger_[i.value() - 1];
      if (expected.term == entry.id.term && expected.digest == digest(entry)) continue;
      world_.fail("log_matching", name(node) + " has committed " + id_text(entry.id) + ", where " +
                                      id_text({expected.term, i}) + " was committed before");
      continue;
    }
    ledger_.push_back({entry.id.term, node.driver().core().term(), digest(entry)});
    newest_committed_term_ = std::max(newest_committed_term_, entry.id.term);
  }
  if (commit > known.commit && commit == committed() &&
      !durable_on_quorum({ledger_.back().term, commit})) {
    world_.fail("lost_commit", name(node) + " has committed " +
                                   id_text({ledger_.back().term, commit}) +
                                   ", which is durable on no quorum");
  }
  known.commit = std::max(known.commit, commit);
}

void Oracles::on_persist(const SimNode& node, const raft::PersistBatch& batch) {
  if (!batch.truncate_from) return;
  const DiskImage& log = node.disk().written();
  for (raft::Index i = *batch.truncate_from; i <= log.last_index() && i <= committed();
       i = i.next()) {
    const raft::LogId id = log.entry(i).id;
    // An overtaken leader may still remove it from a node that no quorum for it has counted.
    if (id.term == ledger_[i.value() - 1].term && !durable_on_quorum(id, &node)) {
      world_.fail("lost_commit", name(node) + " truncates the committed " + id_text(id) +
                                     ", which no quorum of the others holds");
      return;
    }
  }
}

void Oracles::on_apply_asked(const SimNode& node, const std::vector<raft::Entry>& entries) {
  const raft::LeaseState state = node.view().load();
  const raft::Index last = entries.back().id.index;
  if (node.clock().holder_now() < state.end && state.commit < last) {
    world_.fail("lease_view_order", name(node) + " hands index " + std::to_string(last.value()) +
                                        " to its state machine while readers see commit " +
                                        std::to_string(state.commit.value()) +
                                        " under a valid lease");
  }
  const raft::LogId id = entries.back().id;
  if (!node.disk().durable().holds(id)) {
    world_.fail("state_machine_safety",
                name(node) + " applies " + id_text(id) + ", which is not durable there");
  }
}

void Oracles::on_applied(const SimNode& node, const std::vector<raft::Entry>& entries) {
  Memory& known = memory(node);
  for (const raft::Entry& entry : entries) {
    const raft::Index i = entry.id.index;
    if (i != known.applied.next()) {
      world_.fail("state_machine_safety", name(node) + " applies index " +
                                              std::to_string(i.value()) + " after " +
                                              std::to_string(known.applied.value()));
    }
    known.applied = i;
    if (i > committed()) {
      world_.fail("state_machine_safety",
                  name(node) + " applies " + id_text(entry.id) + ", which is not committed");
      continue;
    }
    const Committed& expected = ledger_[i.value() - 1];
    if (expected.term != entry.id.term || expected.digest != digest(entry)) {
      world_.fail("state_machine_safety", name(node) + " applies " + id_text(entry.id) + ", but " +
                                              id_text({expected.term, i}) + " is committed");
    }
  }
}

// ---- Messages ----

void Oracles::on_send(const SimNode& node, raft::NodeId to, const net::PeerMessage& message) {
  const auto* raft_message = std::get_if<raft::Message>(&message.payload);
  if (raft_message == nullptr) return;
  check_view_order(node, *raft_message);
  if (const auto* reply = std::get_if<raft::VoteReply>(raft_message)) {
    if (reply->granted) check_vote(node, reply->request_term, to);
  }
  if (const auto* request = std::get_if<raft::VoteRequest>(raft_message)) {
    check_vote(node, request->term, node.id());
  }
}

void Oracles::check_vote(const SimNode& node, raft::Term term, raft::NodeId candidate) {
  // Whoever leads the term is elected: to note it in place of an own vote takes nothing away.
  const auto leader = leaders_.find(term);
  const raft::NodeId elected = leader == leaders_.end() ? raft::kNobody : leader->second;
  const raft::HardState& durable = node.disk().durable().hard_state;
  const bool noted = durable.voted_for == candidate || durable.voted_for == elected;
  if (durable.term < term || (durable.term == term && !noted)) {
    world_.fail("vote_durability", name(node) + " tells of its vote for node " +
                                       std::to_string(candidate.value()) + " in " +
                                       term_text(term) + " before it is durable");
  }
  const auto [known, fresh] = votes_.emplace(std::pair(node.id(), term), candidate);
  if (!fresh && known->second != candidate && candidate != elected) {
    world_.fail("vote_durability", name(node) + " votes for node " +
                                       std::to_string(candidate.value()) + " in " +
                                       term_text(term) + " after voting for node " +
                                       std::to_string(known->second.value()));
  }
}

// A reader may run at the very instant at which a message leaves: it must already see what the
// receivers of the message may act upon.
void Oracles::check_view_order(const SimNode& node, const raft::Message& message) {
  const raft::LeaseState state = node.view().load();
  if (node.clock().holder_now() >= state.end) return;
  std::string what;
  raft::Term term = state.term;
  if (const auto* append = std::get_if<raft::AppendRequest>(&message)) {
    term = append->term;
    if (append->commit > state.commit) {
      what = "tells of commit " + std::to_string(append->commit.value()) + " while readers see " +
             std::to_string(state.commit.value());
    }
  } else if (const auto* reply = std::get_if<raft::AppendReply>(&message)) {
    term = reply->term;
  } else if (const auto* vote = std::get_if<raft::VoteReply>(&message)) {
    term = vote->term;
    if (vote->granted) what = "grants a vote";
  } else if (const auto* pre_vote = std::get_if<raft::PreVoteReply>(&message)) {
    term = pre_vote->term;
  } else if (std::holds_alternative<raft::VoteRequest>(message) ||
             std::holds_alternative<raft::PreVoteRequest>(message)) {
    what = "asks for a vote";
  } else if (const auto* read = std::get_if<raft::ReadIndexReply>(&message)) {
    if (read->index && *read->index > state.commit) {
      what = "answers a read with index " + std::to_string(read->index->value()) +
             " while readers see " + std::to_string(state.commit.value());
    }
  }
  if (term > state.term) what = "speaks of " + term_text(term);
  if (what.empty()) return;
  world_.fail("lease_view_order", name(node) + " " + what + " under a valid published lease of " +
                                      term_text(state.term));
}

// ---- After each turn and step ----

void Oracles::after_handle(const SimNode& node) {
  check_monotonic(node);
  advance_ledger(node);
}

void Oracles::check_monotonic(const SimNode& node) {
  Memory& known = memory(node);
  const raft::Core& core = node.driver().core();
  if (core.term() < known.term) world_.fail("monotonic", name(node) + ": its term moved back");
  if (core.commit_index() < known.commit) {
    world_.fail("monotonic", name(node) + ": its commit index moved back");
  }
  const raft::LeaseState state = node.view().load();
  if (state.term < known.lease.term || state.commit < known.lease.commit) {
    world_.fail("monotonic", name(node) + ": the published term or commit index moved back");
  }
  const bool same_term = state.term == known.lease.term;
  if (same_term && state.end < known.lease.end && state.end != lease::HolderInstant::earliest()) {
    world_.fail("monotonic", name(node) + ": the lease end moved back within a term");
  }
  known.term = core.term();
  known.lease = state;
}

bool Oracles::holds_valid_lease(const SimNode& node) const {
  return node.up() && node.clock().holder_now() < node.view().load().end;
}

bool Oracles::bound_to(const SimNode& voter, const SimNode& leader, raft::Term term) const {
  // A crash at this instant must not set the voter free, so what is durable counts as well.
  const raft::StoredPromise& stored = voter.disk().durable().hard_state.promise;
  if (stored.holder != leader.id() || stored.term != term) return false;
  if (!voter.up()) return true;  // it will start with a full promise
  const raft::Core& core = voter.driver().core();
  const raft::StoredPromise& promise = core.hard_state().promise;
  return promise.holder == leader.id() && promise.term == term &&
         core.promise().live(voter.clock().now().promise);
}

void Oracles::check_coverage(const SimNode& leader, raft::Term term) {
  std::size_t bound = 1;
  std::string free;
  for (const SimNode* node : nodes_) {
    if (node == &leader) continue;
    if (bound_to(*node, leader, term)) {
      ++bound;
    } else {
      free += " " + std::to_string(node->id().value());
    }
  }
  if (bound > nodes_.size() / 2) return;
  world_.fail("lease_outlives_promise", name(leader) + " holds a valid lease of " +
                                            term_text(term) +
                                            " while these nodes are not bound to it:" + free);
}

void Oracles::after_step() {
  const SimNode* holder = nullptr;
  for (const SimNode* node : nodes_) {
    if (!holds_valid_lease(*node)) continue;
    const raft::Term term = node->view().load().term;
    if (holder != nullptr) {
      world_.fail("two_leases", name(*holder) + " (" + term_text(holder->view().load().term) +
                                    ") and " + name(*node) + " (" + term_text(term) +
                                    ") both hold a valid lease");
    }
    holder = node;
    if (newest_committed_term_ > term) {
      world_.fail("lease_and_newer_commit",
                  name(*node) + " holds a valid lease of " + term_text(term) + ", but " +
                      term_text(newest_committed_term_) + " has committed an entry");
    }
    check_coverage(*node, term);
  }
}

}  // namespace leasehold::sim
