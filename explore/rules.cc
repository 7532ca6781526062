// What no state may show, and what no step may do.
#include <leasehold/explore/rules.h>
#include <leasehold/explore/world.h>
#include <leasehold/raft/quorum.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::explore {

void World::fail(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

void World::committed(std::size_t i, Index index) {
  const raft::Log& log = at(i).core->log();
  std::vector<Term>& ledger = facts_[group_of(i)].ledger;
  for (Index k = log.base().index.next(); k <= index; k = k.next()) {
    const Term term = log.term_at(k).value_or(Term(0));
    if (k > Index(ledger.size())) {
      ledger.push_back(term);
      const auto& settings = log.membership_at(k).settings;
      if (settings && k == index) rely_on(*settings);
    } else if (ledger[static_cast<std::size_t>(k.value()) - 1] != term) {
      fail(fmt::format(
          "two committed prefixes: entry {} of term {} at node {}, where another term's "
          "was committed",
          k.value(), term.value(), name(i)));
    }
  }
}

/// From now on the clocks may be as wrong as the group allows.
void World::rely_on(const raft::GroupSettings& settings) {
  const bool trusted = settings.timing.max_clock_drift_ppm > 0;
  if (trusted == trusted_) return;
  trusted_ = trusted;
  left_.drift = trusted && drifts_;
}

// ---- States ----

void World::check() {
  for (std::size_t i = 0; i < replicas(); ++i) {
    const raft::Core& core = *at(i).core;
    std::vector<NodeId>& leaders = facts_[group_of(i)].leaders;
    const std::size_t term = static_cast<std::size_t>(core.term().value());
    if (core.role() != raft::Role::leader || term >= leaders.size()) continue;
    if (leaders[term] == raft::kNobody) leaders[term] = core.id();
    if (leaders[term] != core.id()) {
      fail(fmt::format("two leaders of term {}: node {} and node {}", term, name(i),
                       leaders[term].value()));
    }
  }
  check_views();
}

/// A lease may rest on the process: then it ends when all those do that rest on the same promises.
raft::HolderInstant World::shown_end(std::size_t i) const {
  const raft::LeaseState& view = at(i).view;
  if (view.lease_class == raft::kNoClass) return view.end;
  return std::max(view.end, nodes_[node_of(i)]->promises->lease_class(view.lease_class).end);
}

/// A machine that sleeps serves no reads.
void World::check_views() {
  std::array<std::optional<std::size_t>, kGroupsMax> holders;
  for (std::size_t i = 0; i < replicas(); ++i) {
    const Replica& replica = at(i);
    if (shown_end(i) <= clock(i).holder || clocks_[node_of(i)].suspended()) continue;
    if (replica.options.witness) fail("node " + name(i) + " is a witness and shows a lease");
    std::optional<std::size_t>& holder = holders[group_of(i)];
    if (holder) fail(fmt::format("two valid leases: node {} and node {}", name(*holder), name(i)));
    holder = i;
    const std::vector<Term>& ledger = facts_of(i).ledger;
    if (!ledger.empty() && ledger.back() > replica.view.term) {
      fail(fmt::format("the lease of node {} is valid, and term {} has committed an entry", name(i),
                       ledger.back().value()));
    }
    if (replica.view.commit < Index(ledger.size())) {
      fail(fmt::format("the lease of node {} is valid at index {}, though {} are committed",
                       name(i), replica.view.commit.value(), ledger.size()));
    }
    check_sent_commit(i);
    if (!left_.readers_only) check_promises(i);
  }
}

/// Under the lease of replica i a reader waits for the commit that was sent, and sees what is
/// shown.
void World::check_sent_commit(std::size_t i) {
  const Index seen = std::max(at(i).view.sent_commit, at(i).shown);
  for (std::size_t other = 0; other < replicas(); ++other) {
    const Index known = at(other).core->commit_index();
    const bool shows_it = group_of(other) == group_of(i) && !at(other).options.witness;
    if (other == i || !shows_it || known <= seen) continue;
    fail(
        fmt::format("node {} knows that {} are committed, and a reader at node {}, whose lease is "
                    "valid, need not see more than {}",
                    name(other), known.value(), name(i), seen.value()));
  }
}

/// A valid lease stands on a quorum of promises that are live and would survive a crash now.
void World::check_promises(std::size_t holder) {
  const raft::Core& leader = *at(holder).core;
  const auto promised_in = [this, holder](const raft::Membership& membership) {
    const auto promised = [this, holder, &membership](NodeId id) -> std::optional<int> {
      const std::size_t i = replica_of(static_cast<std::size_t>(id.value()) - 1, group_of(holder));
      if (i == holder) return 1;
      const Replica& replica = at(i);
      const raft::StoredPromise& stored = replica.disk_hard_state.promise;
      // A directory that is gone elects no node, and no other one votes for it (rule 25).
      if (!membership.is_voter(id, replica.options.uuid)) return 1;
      const bool kept = clock(i).promise < replica.core->promise_until() &&
                        replica.core->hard_state().promise.holder == at(holder).options.id &&
                        stored.holder == at(holder).options.id && !silent(i);
      return kept ? std::optional<int>(1) : std::nullopt;
    };
    return raft::quorum_value<int>(membership, promised).has_value();
  };
  if (promised_in(leader.membership()) ||
      promised_in(leader.log().membership_at(leader.commit_index()))) {
    return;
  }
  fail(fmt::format("the lease of node {} is valid, but no quorum of live promises covers it",
                   name(holder)));
}

// ---- Steps ----

World::Before World::before(std::size_t i, const Flight* flight) const {
  const Replica& replica = at(i);
  const raft::Core& core = *replica.core;
  const raft::Now now = clock(i);
  Before before;
  before.node = i;
  before.role = core.role();
  before.term = core.term();
  before.timing = core.timing();
  before.view = replica.view;
  before.lease_valid = replica.view.end > now.holder;
  before.bound = flight != nullptr && core.promise().live(now.promise) &&
                 core.hard_state().promise.holder != flight->from;
  for (const auto& [id, progress] : core.progress()) {
    if (progress.acked_round) before.acknowledged[id] = progress.acked_round->round;
  }
  return before;
}

/// The rules of lease/README.md for what one node does in one step, even if another node makes up
/// for a breach. `inside`: its core got an input.
void World::check_rules(const Before& before, const Flight* flight, bool inside) {
  const std::size_t i = before.node;
  const Replica& replica = at(i);
  const raft::Core& core = *replica.core;
  const bool granted = std::exchange(granted_, false);
  if (before.lease_valid && granted) {
    fail("node " + name(i) + " grants a vote although its own lease is valid");
  }
  if (flight != nullptr) {
    const auto* vote = std::get_if<raft::VoteRequest>(flight->message.get());
    if (vote != nullptr) check_vote(before, flight->from, *vote, granted);
  }
  if (core.role() != raft::Role::leader) return;
  const bool still = before.role == raft::Role::leader && before.term == core.term();
  const bool held =
      still && before.lease_valid && replica.view.end != raft::HolderInstant::earliest();
  // More careful settings shorten a lease.
  const bool same = core.timing() == before.timing;
  if (held && same && replica.view.end < before.view.end) {
    fail(fmt::format("the end of the lease of node {} moves back", name(i)));
  }
  check_acknowledged(before, still, flight);
  if (still && inside) check_quorum(i);
  check_appended(i);
}

/// Rules 3, 4, 20, 23 and 25: an acknowledged round is a promise that was given, and reported.
void World::check_acknowledged(const Before& before, bool still, const Flight* flight) {
  const std::size_t i = before.node;
  const raft::Core& core = *at(i).core;
  for (const auto& [id, progress] : core.progress()) {
    if (!progress.acked_round) continue;
    const auto known = before.acknowledged.find(id);
    const raft::Round round = progress.acked_round->round;
    if (still && known != before.acknowledged.end() && known->second == round) continue;
    if (flight == nullptr || flight->from != id || !proves(*flight, core, round)) {
      fail(fmt::format("node {} counts round {} for node {}, which has not promised for it",
                       name(i), round.value(), id.value()));
    }
  }
}

/// Rule 16: each input looks at the time first.
void World::check_quorum(std::size_t i) {
  const raft::Core& core = *at(i).core;
  const auto acknowledged = [&core, this, i](NodeId id) -> std::optional<raft::HolderInstant> {
    if (id == core.id()) return clock(i).holder;
    const auto progress = core.progress().find(id);
    if (progress == core.progress().end() || !progress->second.acked_round) return std::nullopt;
    return progress->second.acked_round->began;
  };
  const auto since = raft::quorum_value<raft::HolderInstant>(core.membership(), acknowledged);
  // Of a longer D that was in effect before, the rest counts.
  Duration lease = core.timing().lease;
  for (const auto& [id, progress] : core.progress()) {
    if (progress.acked_round) lease = std::max(lease, progress.acked_round->duration);
  }
  if (since && *since + lease <= clock(i).holder) {
    fail("node " + name(i) + " leads on though no quorum has answered for a whole D");
  }
}

/// Rules 21 and 27: what a leader appends, and when.
void World::check_appended(std::size_t i) {
  const Replica& replica = at(i);
  const raft::Core& core = *replica.core;
  const raft::Log& log = core.log();
  const bool out = replica.token && replica.token->term == core.term();
  if (out && log.last_index() > replica.token->last) {
    fail("node " + name(i) + " appends an entry while its token is out");
  }
  // Entries of earlier leaders are not its own.
  const bool changes = log.membership_index() > core.commit_index() &&
                       log.term_at(log.membership_index()) == core.term();
  if (changes && log.memberships_above(core.commit_index()) > 1) {
    fail("node " + name(i) + " begins a change while another one is not committed");
  }
  if (changes && log.term_at(core.commit_index()) != core.term()) {
    fail("node " + name(i) + " begins a change before an entry of its term is committed");
  }
}

/// Rules 8 and 28 of a promise to another leader: a request that it stops changes nothing, and one
/// that the holder itself let pass is not stopped by it.
void World::check_vote(const Before& before, NodeId candidate, const raft::VoteRequest& request,
                       bool granted) {
  if (!before.bound) return;
  const std::size_t i = before.node;
  const raft::Core& core = *at(i).core;
  const std::optional<raft::TransferToken>& token = request.token;
  const Term promised = core.hard_state().promise.term;
  if (granted && token && token->term != promised) {
    fail(fmt::format("node {} lets a token of term {} pass its promise of term {}", name(i),
                     token->term.value(), promised.value()));
  }
  if (granted) return;
  if (core.term() != before.term) {
    fail(fmt::format("node {} is bound and refuses a vote, and yet takes the term of node {}",
                     name(i), candidate.value()));
  }
  const bool passes = token && token->target == candidate && token->term == promised &&
                      token->last == request.last.index && request.term == token->term.next();
  if (passes && before.term < request.term && request.last >= core.log().last()) {
    fail(fmt::format("node {} refuses node {}, which the holder of its promise has let pass",
                     name(i), candidate.value()));
  }
}

/// An answer to `round` in the leader's term, by the directory that the membership names, which had
/// promised by then.
bool World::proves(const Flight& flight, const raft::Core& leader, raft::Round round) const {
  const raft::Member* member = leader.membership().find(flight.from);
  if (!flight.proof.promised || (member != nullptr && member->uuid != flight.proof.uuid)) {
    return false;
  }
  const auto of = [&](const auto& reply) {
    return reply.round == round && reply.request_term == leader.term() &&
           reply.term == leader.term();
  };
  if (const auto* append = std::get_if<raft::AppendReply>(flight.message.get())) {
    return of(*append);
  }
  const auto* chunk = std::get_if<raft::SnapshotReply>(flight.message.get());
  return chunk != nullptr && of(*chunk);
}

}  // namespace leasehold::explore
