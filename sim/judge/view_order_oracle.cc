#include <leasehold/sim/judge/view_order_oracle.h>
#include <leasehold/sim/judge/words.h>

#include <fmt/format.h>

#include <string>

namespace leasehold::sim {

// A reader may run at the very instant at which a message leaves: it must already see what the
// receivers of the message may act upon.
void ViewOrderOracle::on_send(const SimNode& node, raft::NodeId to, const raft::Message& message) {
  const raft::LeaseState state = node.view().load();
  if (node.clock().holder_now() >= state.end) return;
  std::string what;
  raft::Term term = state.term;
  if (const auto* append = std::get_if<raft::AppendRequest>(&message)) {
    term = append->term;
    // What a witness knows, nobody sees: it has no state.
    const bool shows_it = !world_.plan.nodes[to.value() - 1].witness;
    if (append->commit > state.sent_commit && shows_it) {
      what = fmt::format("tells of commit {} while readers see {}", append->commit.value(),
                         state.sent_commit.value());
    }
  } else if (const auto* chunk = std::get_if<raft::SnapshotChunk>(&message)) {
    term = chunk->term;
    if (chunk->id.last.index > state.commit) {
      what = fmt::format("sends a snapshot up to {} while readers see {}",
                         chunk->id.last.index.value(), state.commit.value());
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
    what = "transfers the leadership";
  } else if (const auto* read = std::get_if<raft::ReadIndexReply>(&message)) {
    if (read->index && *read->index > state.commit) {
      what = fmt::format("answers a read with index {} while readers see {}", read->index->value(),
                         state.commit.value());
    }
  }
  if (term > state.term) what = "speaks of " + term_text(term);
  if (what.empty()) return;
  world_.fail("lease_view_order", fmt::format("{} {} under a valid published lease of {}",
                                              name(node), what, term_text(state.term)));
}

void ViewOrderOracle::on_apply_asked(const SimNode& node, const std::vector<raft::Entry>& entries) {
  const raft::LeaseState state = node.view().load();
  const raft::Index last = entries.back().id.index;
  if (node.clock().holder_now() >= state.end || state.commit >= last) return;
  world_.fail("lease_view_order",
              fmt::format("{} hands index {} to its state machine while readers see commit {} "
                          "under a valid lease",
                          name(node), last.value(), state.commit.value()));
}

}  // namespace leasehold::sim
