#include <leasehold/raft/quorum.h>
#include <leasehold/sim/judge/read_oracle.h>
#include <leasehold/sim/judge/words.h>

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <variant>

namespace leasehold::sim {

void ReadOracle::on_arrival(const SimNode& node, raft::NodeId from, const raft::Message& message) {
  const auto* request = std::get_if<raft::ReadIndexRequest>(&message);
  if (request == nullptr) return;
  waiting_[{node.id(), from, request->incarnation, request->id}].push_back(
      {request->quorum, node.clock().holder_now()});
}

void ReadOracle::on_crash(const SimNode& node) {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    at = std::get<0>(at->first) == node.id() ? waiting_.erase(at) : std::next(at);
  }
}

void ReadOracle::on_send(const SimNode& node, raft::NodeId to, const raft::Message& message) {
  const auto* reply = std::get_if<raft::ReadIndexReply>(&message);
  if (reply == nullptr) return;
  const auto found = waiting_.find({node.id(), to, reply->incarnation, reply->id});
  if (found == waiting_.end()) return;
  // Copies of a request that wait are answered in the order of their arrival. One that comes when
  // too many wait is refused before them. It is taken for the newest one: so no answer is judged by
  // the arrival of a later copy than its own.
  const Request request = reply->index ? found->second.front() : found->second.back();
  if (reply->index) {
    found->second.pop_front();
  } else {
    found->second.pop_back();
  }
  if (found->second.empty()) waiting_.erase(found);
  const raft::Core* core = node.running().present_core();
  // An earlier version does not show what its rounds are worth. The history of the clients is
  // judged all the same.
  if (core == nullptr) return;
  // The answer is older than the end of the leadership, which came in the same turn.
  if (!reply->index || !request.quorum || core->role() != raft::Role::leader) return;
  if (confirmed(*core, request.arrived)) return;
  world_.fail("read_round",
              fmt::format("{} gives node {} index {} for a quorum read, and no quorum has "
                          "acknowledged a round that began after the request came",
                          name(node), to.value(), reply->index->value()));
}

// By the newest membership, or by the one before it, if the newest was appended in this very turn.
bool ReadOracle::confirmed(const raft::Core& leader, lease::HolderInstant arrived) {
  const auto acknowledged = [&leader, arrived](raft::NodeId id) -> std::optional<int> {
    if (id == leader.id()) return 1;
    const auto peer = leader.progress().find(id);
    if (peer == leader.progress().end() || !peer->second.acked_round) return std::nullopt;
    return peer->second.acked_round->began >= arrived ? std::optional<int>(1) : std::nullopt;
  };
  const raft::Log& log = leader.log();
  if (raft::quorum_value<int>(log.membership(), acknowledged)) return true;
  if (log.membership_index() <= log.base().index) return false;
  const raft::Membership& before = log.membership_at(log.membership_index().prev());
  return raft::quorum_value<int>(before, acknowledged).has_value();
}

}  // namespace leasehold::sim
