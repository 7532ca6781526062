#include <leasehold/sim/judge/election_oracle.h>
#include <leasehold/sim/judge/words.h>

#include <fmt/format.h>

namespace leasehold::sim {

std::optional<raft::NodeId> ElectionOracle::leader_of(raft::Term term) const {
  const auto leader = leaders_.find(term);
  if (leader == leaders_.end()) return std::nullopt;
  return leader->second.id;
}

void ElectionOracle::on_event(const SimNode& node, const raft::Event& event) {
  const auto* change = std::get_if<raft::RoleChanged>(&event.what);
  if (change != nullptr && change->to == raft::Role::leader) on_elected(node, event.term);
  const auto* ended = std::get_if<raft::HolderEnded>(&event.what);
  if (ended != nullptr) check_holder(node, *ended);
}

void ElectionOracle::on_elected(const SimNode& node, raft::Term term) {
  const auto [known, fresh] = leaders_.emplace(term, node.peer());
  if (!fresh && known->second.id != node.id()) {
    world_.fail("election_safety", fmt::format("{} and node {} both lead {}", name(node),
                                               known->second.id.value(), term_text(term)));
  }
  check_new_leader(node, term);
}

// Whatever the node believes: the process that was elected in that term is the one that may answer
// reads by the promise.
void ElectionOracle::check_holder(const SimNode& node, const raft::HolderEnded& ended) {
  const auto leader = leaders_.find(ended.promised);
  if (leader == leaders_.end()) return;
  const SimNode& holder = ledger_.node(leader->second.id);
  if (!holder.up() || holder.peer() != leader->second) return;
  world_.fail("holder_lives", fmt::format("{} ends its promise of {}, and {} lives", name(node),
                                          term_text(ended.promised), name(holder)));
}

void ElectionOracle::check_new_leader(const SimNode& node, raft::Term term) {
  for (raft::Index i(1); i <= ledger_.last(); i = i.next()) {
    const raft::LogId id = ledger_.id_at(i);
    if (ledger_.at(i).committed_in < term && !node.disk().written().holds(id)) {
      world_.fail("leader_completeness", fmt::format("{} leads {} without the committed {}",
                                                     name(node), term_text(term), id_text(id)));
      return;
    }
  }
}

void ElectionOracle::on_send(const SimNode& node, raft::NodeId to, const raft::Message& message) {
  if (const auto* reply = std::get_if<raft::VoteReply>(&message)) {
    if (reply->granted) check_vote(node, reply->request_term, to);
  }
  if (const auto* request = std::get_if<raft::VoteRequest>(&message)) {
    check_vote(node, request->term, node.id());
  }
}

void ElectionOracle::check_vote(const SimNode& node, raft::Term term, raft::NodeId candidate) {
  // The leader of the term is elected already: to note it in place of a vote loses nothing.
  const raft::NodeId elected = leader_of(term).value_or(raft::kNobody);
  const raft::HardState& durable = node.disk().durable().hard_state;
  const bool noted = durable.voted_for == candidate || durable.voted_for == elected;
  if (durable.term < term || (durable.term == term && !noted)) {
    world_.fail("vote_durability",
                fmt::format("{} tells of its vote for node {} in {} before it is durable",
                            name(node), candidate.value(), term_text(term)));
  }
  const auto [known, fresh] = votes_.emplace(std::pair(node.id(), term), candidate);
  if (!fresh && known->second != candidate && candidate != elected) {
    world_.fail("vote_durability",
                fmt::format("{} votes for node {} in {} after voting for node {}", name(node),
                            candidate.value(), term_text(term), known->second.value()));
  }
}

}  // namespace leasehold::sim
