#include <leasehold/base/assert.h>
#include <leasehold/replica/command_envelope.h>
#include <leasehold/sim/judge/oracles.h>
#include <leasehold/sim/world/sim_node.h>

#include <string>
#include <utility>

namespace leasehold::sim {
namespace {

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

Oracles::Oracles(World& world)
    : world_(world),
      memories_(world.plan.nodes.size()),
      membership_(founding_membership(world.plan)),
      leases_(world),
      key_locks_(world, tip_.leases) {}

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
  known = Memory{durable, raft::Index(), node.applied_at_start(), {}};
}

void Oracles::on_crash(const SimNode& node) {
  const std::optional<raft::LogBase>& base = node.disk().durable().base;
  if (base) check_base(node, *base);
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

// Of the newest committed membership; while that is joint, of the voters that are to stay: whoever
// is elected has asked a majority of them, before the joint state is left and after. That a newer
// membership stands in some log and is not committed takes nothing away: if it is joint, the voters
// of this one are half of it, and if not, it leaves the joint state or has the same voters.
template <class Holds>
bool Oracles::on_quorum(const Holds& holds) const {
  std::size_t holders = 0;
  for (const raft::NodeId voter : membership_.voters) {
    if (holds(*nodes_[voter.value() - 1])) ++holders;
  }
  return holders > membership_.voters.size() / 2;
}

bool Oracles::durable_on_quorum(raft::LogId id, const SimNode* without) const {
  return on_quorum([id, without](const SimNode& node) {
    return &node != without && node.disk().durable().holds(id);
  });
}

void Oracles::advance_ledger(const SimNode& node) {
  Memory& known = memory(node);
  const raft::Index commit = node.driver().core().commit_index();
  const DiskImage& log = node.disk().written();
  // What is below the base was judged when the log was cut or reset there.
  const raft::Index known_up_to = std::max(known.commit, log.base_id().index);
  for (raft::Index i = known_up_to.next(); i <= commit; i = i.next()) {
    if (i > log.last_index() || i > committed().next()) {
      world_.fail("log_matching", name(node) + " has committed index " + std::to_string(i.value()) +
                                      " that its log does not hold");
      break;
    }
    const raft::Entry& entry = log.entry(i);
    if (i <= committed()) {
      const Committed& expected = ledger_[i.value() - 1];
      if (expected.is(entry)) continue;
      world_.fail("log_matching", name(node) + " has committed " + id_text(entry.id) + ", where " +
                                      id_text({expected.term, i}) + " was committed before");
      continue;
    }
    add_to_ledger(node, entry);
  }
  if (commit > known.commit && commit == committed() &&
      !durable_on_quorum({ledger_.back().term, commit})) {
    world_.fail("lost_commit", name(node) + " has committed " +
                                   id_text({ledger_.back().term, commit}) +
                                   ", which is durable on no quorum");
  }
  known.commit = std::max(known.commit, commit);
}

void Oracles::add_to_ledger(const SimNode& node, const raft::Entry& entry) {
  Committed added;
  added.term = entry.id.term;
  added.committed_in = node.driver().core().term();
  added.kind = entry.kind;
  added.payload = entry.payload;
  if (entry.kind == raft::EntryKind::command) {
    const Result<replica::CommandEnvelope> envelope = replica::decode_envelope(entry.payload);
    LEASEHOLD_ASSERT(envelope.ok());
    added.command = RegisterMachine::decode_command(envelope.value().command.view());
  }
  const auto leader = leaders_.find(entry.id.term);
  if (entry.kind == raft::EntryKind::command && leader != leaders_.end() &&
      nodes_[leader->second.value() - 1]->witness()) {
    world_.fail("witness_serves", "a witness has appended " + id_text(entry.id));
  }
  if (added.command) execute(entry.id, *added.command);
  if (entry.kind == raft::EntryKind::membership) {
    Result<raft::Membership> membership = raft::decode_membership(entry.payload.view());
    LEASEHOLD_ASSERT(membership.ok());
    membership_ = std::move(membership).value();
    ++membership_entries_;
  }
  added.history = tip_.history;
  ledger_.push_back(std::move(added));
  newest_committed_term_ = std::max(newest_committed_term_, entry.id.term);
}

void Oracles::execute(raft::LogId id, const RegisterMachine::Command& command) {
  if (command.kind == RegisterMachine::Kind::leases) {
    leases_.before(command.of_store, tip_.leases);
  }
  RegisterMachine::Done done = RegisterMachine::apply_to(tip_, id, command);
  if (command.kind == RegisterMachine::Kind::leases) {
    leases_.after(id, command.of_store, done.result, tip_.leases, std::move(done.told));
    key_locks_.after(id);
  }
  tip_.values.clear();
  using Kind = RegisterMachine::Kind;
  const auto number = RegisterMachine::decode_number(done.result.view());
  if (command.kind == Kind::open && number && *number != 0) {
    sessions_[replica::SessionId(*number)] = {0, world_.queue.now()};
  }
  if (command.kind == Kind::expire) check_expiry(id, command, number && *number != 0);
  if (command.kind == Kind::once) {
    const auto session = sessions_.find(command.session);
    if (session != sessions_.end()) {
      session->second = {session->second.activity + 1, world_.queue.now()};
    }
  }
  if (!done.wrote) return;
  const auto [known, fresh] = executed_.emplace(command.value, id.index);
  if (fresh) return;
  const bool once = command.kind == Kind::once;
  world_.fail(once ? "executed_twice" : "exactly_once",
              id_text(id) + (once ? " executes" : " holds") + " the command that was " +
                  (once ? "executed" : "committed") + " at " +
                  std::to_string(known->second.value()) + " already: value " +
                  std::to_string(command.value));
}

// A clock of the nodes shows at most (1 + drift) of the time that has passed.
void Oracles::check_expiry(raft::LogId id, const RegisterMachine::Command& command, bool gone) {
  const auto session = sessions_.find(command.session);
  if (!gone || session == sessions_.end()) return;
  const SessionSeen seen = session->second;
  sessions_.erase(session);
  ++sessions_expired_;
  const std::int64_t million = 1'000'000;
  const Duration idle_max = world_.plan.sessions.idle_max;
  const Duration shortest = idle_max / (million + world_.plan.drift_ppm_max) * million;
  const bool early = world_.queue.now() - seen.since < shortest;
  if (seen.activity == command.activity && !early) return;
  world_.fail("session_expiry", id_text(id) + " closes session " +
                                    std::to_string(command.session.value()) +
                                    (early ? ", which has not been idle for long enough"
                                           : " after a command that its leader had not seen"));
}

void Oracles::on_persist(const SimNode& node, const raft::PersistBatch& batch) {
  // From now on a crash may leave it.
  if (batch.cut) check_base(node, *batch.cut);
  if (batch.reset) {
    check_base(node, *batch.reset);
    check_removal(node, batch.reset->id.index.next());
  }
  if (batch.truncate_from) check_removal(node, *batch.truncate_from);
}

void Oracles::check_removal(const SimNode& node, raft::Index from) {
  const DiskImage& log = node.disk().written();
  for (raft::Index i = std::max(from, log.base_id().index.next());
       i <= log.last_index() && i <= committed(); i = i.next()) {
    const raft::LogId id = log.entry(i).id;
    // An overtaken leader may still remove it from a node that no quorum for it has counted.
    if (id.term == ledger_[i.value() - 1].term && !durable_on_quorum(id, &node)) {
      world_.fail("lost_commit", name(node) + " removes the committed " + id_text(id) +
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
    if (!expected.is(entry)) {
      world_.fail("state_machine_safety", name(node) + " applies " + id_text(entry.id) + ", but " +
                                              id_text({expected.term, i}) + " is committed");
    }
  }
  const RegisterMachine::State& state = node.machine().present();
  const std::uint64_t at = state.applied.value();
  if (at > 0 && at <= ledger_.size() && state.history != ledger_[at - 1].history) {
    world_.fail("state_machine_safety", name(node) + " has applied up to " + std::to_string(at) +
                                            " something else than was committed");
  }
}

// ---- Snapshots ----

bool Oracles::is_committed(raft::LogId id) const {
  const std::uint64_t index = id.index.value();
  return index > 0 && index <= ledger_.size() && ledger_[index - 1].term == id.term;
}

const RegisterMachine::State& Oracles::state_at(raft::Index index) {
  LEASEHOLD_ASSERT(index <= committed());
  if (index < state_.applied) state_ = milestones_[index.value() / kMilestone];
  for (raft::Index i = state_.applied.next(); i <= index; i = i.next()) {
    const Committed& entry = ledger_[i.value() - 1];
    if (entry.command) RegisterMachine::apply_to(state_, {entry.term, i}, *entry.command);
    state_.applied = i;
    if (i.value() == milestones_.size() * kMilestone) milestones_.push_back(state_);
  }
  return state_;
}

/// A log may begin there if what is below it would survive a crash at this instant.
void Oracles::check_base(const SimNode& node, const raft::LogBase& base) {
  const std::optional<StagedSnapshot>& staged = node.staged();
  const bool arrived = staged && staged->complete && staged->id.last == base.id;
  if (!node.witness() && node.machine().durable_index() < base.id.index && !arrived) {
    world_.fail("cut_beyond_durable", name(node) + "'s log begins behind " + id_text(base.id) +
                                          ", but its state machine is durable only up to " +
                                          std::to_string(node.machine().durable_index().value()));
  }
  if (!is_committed(base.id)) {
    world_.fail("log_matching", name(node) + "'s log begins behind " + id_text(base.id) +
                                    ", which is not committed");
  }
}

void Oracles::on_snapshot_taken(const SimNode& node, std::uint64_t tag,
                                const SnapshotBytes& snapshot) {
  taken_.emplace(tag, snapshot);
  if (snapshot.last() > committed()) {
    world_.fail("snapshot_state", name(node) + " takes a snapshot of what is not committed");
    return;
  }
  const auto state = RegisterMachine::decode(snapshot.bytes().view());
  if (!state || !(*state == state_at(snapshot.last()))) {
    world_.fail("snapshot_state", name(node) + " takes a snapshot up to " +
                                      std::to_string(snapshot.last().value()) +
                                      " that is not what was committed");
  }
}

void Oracles::on_snapshot_arrived(const SimNode& node, const StagedSnapshot& snapshot) {
  const auto taken = taken_.find(snapshot.id.tag);
  const char* wrong = nullptr;
  if (taken == taken_.end() || taken->second.last() != snapshot.id.last.index) {
    wrong = "was never taken";
  } else if (taken->second.bytes().view() != snapshot.bytes) {
    wrong = "is not the one that was taken";
  } else if (!is_committed(snapshot.id.last)) {
    wrong = "ends at an entry that is not committed";
  }
  if (wrong == nullptr) return;
  world_.fail("snapshot_state", "the snapshot up to " + id_text(snapshot.id.last) + " that " +
                                    name(node) + " was sent " + wrong);
}

void Oracles::on_snapshot_deleted(const SimNode& node) {
  const raft::LogId base = node.disk().written().base_id();
  if (base.index <= node.machine().durable_index()) return;
  world_.fail("cut_beyond_durable", name(node) + " deletes the snapshot that its log stands on, " +
                                        "which begins behind " + id_text(base));
}

void Oracles::on_install_asked(const SimNode& node, const raft::SnapshotId& id) {
  if (node.disk().durable().base_id() == id.last) return;
  world_.fail("state_machine_safety", name(node) + " installs the snapshot up to " +
                                          id_text(id.last) +
                                          " before its log begins there durably");
}

void Oracles::on_installed(const SimNode& node, const raft::SnapshotId& id, bool at_start) {
  Memory& known = memory(node);
  if (!at_start && id.last.index <= known.applied) {
    world_.fail("monotonic", name(node) + " installs a snapshot up to " +
                                 std::to_string(id.last.index.value()) + " after applying " +
                                 std::to_string(known.applied.value()));
  }
  known.applied = id.last.index;
  const bool right = is_committed(id.last) &&
                     (node.witness() || node.machine().present() == state_at(id.last.index));
  if (!right) {
    world_.fail("snapshot_state", name(node) + " has installed a state up to " + id_text(id.last) +
                                      " that is not what was committed");
  }
}

void Oracles::check_dropped(const std::vector<std::uint64_t>& values) {
  for (const std::uint64_t value : values) {
    const auto found = executed_.find(value);
    if (found == executed_.end()) continue;
    world_.fail("exactly_once", "the write of value " + std::to_string(value) +
                                    " was refused as never executed, and is committed at " +
                                    std::to_string(found->second.value()));
    return;
  }
}

void Oracles::check_executed(std::uint64_t value, raft::Index index) {
  const auto found = executed_.find(value);
  if (found != executed_.end() && found->second == index) return;
  world_.fail(
      "session_answer",
      "a client was told that its write of value " + std::to_string(value) + " was executed at " +
          std::to_string(index.value()) + ", and it was executed " +
          (found == executed_.end() ? "never" : "at " + std::to_string(found->second.value())));
}

void Oracles::check_no_session(replica::SessionId id) {
  if (sessions_.count(id) == 0) return;
  world_.fail("session_answer", "a client was told that there is no session " +
                                    std::to_string(id.value()) + ", and nobody has closed it");
}

void Oracles::check_states() {
  for (const SimNode* node : nodes_) {
    const RegisterMachine::State& state = node->machine().present();
    if (state.applied > committed() || state == state_at(state.applied)) continue;
    world_.fail("session_state", name(*node) + " has applied up to " +
                                     std::to_string(state.applied.value()) +
                                     " and holds something else than was committed");
  }
}

// ---- Messages ----

void Oracles::on_send(const SimNode& node, raft::NodeId to, const wire::PeerMessage& message) {
  const auto* raft_message = std::get_if<raft::Message>(&message.payload);
  if (raft_message == nullptr) return;
  check_view_order(node, *raft_message);
  if (const auto* append = std::get_if<raft::AppendRequest>(raft_message)) {
    check_told(node, to, append->commit);
  }
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

// What a witness takes for committed it may cut, and a full member that lacks it could then be
// brought up by nobody once this leader is gone. Who was added behind that entry, or removed and
// added again, came too late.
void Oracles::check_told(const SimNode& leader, raft::NodeId to, raft::Index commit) {
  const raft::Log& log = leader.driver().core().log();
  const auto term = log.term_at(commit);
  if (!nodes_[to.value() - 1]->witness() || commit <= log.base().index || !term) return;
  for (const raft::Member& member : log.membership_at(commit).members) {
    const SimNode& other = *nodes_[member.id.value() - 1];
    if (other.witness() || log.membership().find(member.id) == nullptr) continue;
    if (other.disk().durable().holds({*term, commit})) continue;
    bool stayed = true;
    for (raft::Index at = commit; at < log.last_index(); at = at + 1) {
      stayed = stayed && log.membership_at(at).find(member.id) != nullptr;
    }
    if (!stayed) continue;
    world_.fail("witness_told", name(leader) + " tells a witness of commit " +
                                    std::to_string(commit.value()) + ", which " + name(other) +
                                    " does not hold durably");
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
  } else if (const auto* chunk = std::get_if<raft::SnapshotChunk>(&message)) {
    term = chunk->term;
    if (chunk->id.last.index > state.commit) {
      what = "sends a snapshot up to " + std::to_string(chunk->id.last.index.value()) +
             " while readers see " + std::to_string(state.commit.value());
    }
  } else if (const auto* reply = std::get_if<raft::AppendReply>(&message)) {
    term = reply->term;
  } else if (const auto* stored = std::get_if<raft::SnapshotReply>(&message)) {
    term = stored->term;
  } else if (const auto* vote = std::get_if<raft::VoteReply>(&message)) {
    term = vote->term;
    if (vote->granted) what = "grants a vote";
  } else if (const auto* pre_vote = std::get_if<raft::PreVoteReply>(&message)) {
    term = pre_vote->term;
  } else if (std::holds_alternative<raft::VoteRequest>(message) ||
             std::holds_alternative<raft::PreVoteRequest>(message)) {
    what = "asks for a vote";
  } else if (std::holds_alternative<raft::TimeoutNow>(message)) {
    what = "hands over";
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

bool Oracles::covered(const SimNode& leader, raft::Term term) const {
  // The leader grants no vote while its lease is valid, if it is still a voter.
  return on_quorum([this, &leader, term](const SimNode& node) {
    return &node == &leader || bound_to(node, leader, term);
  });
}

void Oracles::check_coverage(const SimNode& leader, raft::Term term) {
  if (covered(leader, term)) return;
  std::string free;
  for (const SimNode* node : nodes_) {
    if (node == &leader || bound_to(*node, leader, term)) continue;
    free += " " + std::to_string(node->id().value());
  }
  world_.fail("lease_outlives_promise", name(leader) + " holds a valid lease of " +
                                            term_text(term) +
                                            " while these nodes are not bound to it:" + free);
}

void Oracles::after_step() {
  const SimNode* holder = nullptr;
  for (const SimNode* node : nodes_) {
    if (!node->up() || node->published().end == lease::HolderInstant::earliest()) continue;
    if (node->witness()) world_.fail("witness_serves", name(*node) + " shows a lease");
    if (node->clock().holder_now() >= node->published().end) continue;
    const raft::Term term = node->published().term;
    if (holder != nullptr) {
      world_.fail("two_leases", name(*holder) + " (" + term_text(holder->published().term) +
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
