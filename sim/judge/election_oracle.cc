#include <leasehold/sim/judge/election_oracle.h>
#include <leasehold/sim/judge/words.h>

#include <fmt/format.h>

namespace leasehold::sim {

std::optional<raft::NodeId> ElectionOracle::leader_of(raft::Term term) const {
  const auto leader = leaders_.find(term);
  if (leader == leaders_.end()) return std::nullopt;
  return leader->second;
}

void ElectionOracle::on_event(const SimNode& node, const raft::Event& event) {
  const auto* change = std::get_if<raft::RoleChanged>(&event.what);
  if (change == nullptr || change->to != raft::Role::leader) return;
  const auto [known, fresh] = leaders_.emplace(event.term, node.id());
  if (!fresh && known->second != node.id()) {
    world_.fail("election_safety", fmt::format("{} and node {} both lead {}", name(node),
                                               known->second.value(), term_text(event.term)));
  }
  check_new_leader(node, event.term);
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
