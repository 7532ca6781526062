#include <leasehold/server/front/replica_number.h>
#include <leasehold/server/replica_options.h>
#include <leasehold/server/slots_away.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdint>

namespace leasehold::server {
namespace {

/// Entries that the next leader may lack: the group takes no writes until it has them.
constexpr std::uint64_t kLagMax = 1000;

constexpr lease::Duration kTransferTimeout = std::chrono::seconds(5);

/// The voter at one of `nodes` that has most of the log; kNobody: there is none.
raft::NodeId voter_at(const GroupPlace::Nodes& nodes, const node::NodeStatus& status) {
  const node::MemberStatus* best = nullptr;
  for (const node::MemberStatus& member : status.members) {
    const bool may_lead = member.voter && !member.witness && !member.leaving && member.connected;
    if (!may_lead || member.id == status.id || !contains(nodes, node_of(member.id))) continue;
    if (member.match.value() + kLagMax < status.commit.value()) continue;
    if (best == nullptr || member.match > best->match) best = &member;
  }
  return best == nullptr ? raft::kNobody : best->id;
}

void lead_at_one_of(node::Group& group, std::size_t number, const GroupPlace::Nodes& nodes) {
  group.status([&group, number, nodes](const node::NodeStatus& status) {
    if (status.role != raft::Role::leader) return;
    const raft::NodeId to = voter_at(nodes, status);
    if (to == raft::kNobody) return;
    group.transfer_leadership(
        to, kTransferTimeout, [number](const replica::TransferResult& result) {
          if (result.status != replica::GroupCallStatus::done) return;
          spdlog::info("group {}: gave the leadership to node {}, which can move its frozen slots",
                       number, node_of(result.leader).value());
        });
  });
}

}  // namespace

std::string cannot_move_here(node::Group& group, const GroupPlace* to, const LeavingSlots& slots) {
  if (to == nullptr || to->here()) return {};
  if (slots.frozen) lead_at_one_of(group, slots.from, to->nodes());
  return fmt::format(
      "this node leads the group that they leave, and has no replica of the other one: {}, or add "
      "a replica of group {} here",
      slots.frozen ? "the leadership goes to a node that has both, once this one reaches it"
                   : "transfer the leadership to a node that has both",
      slots.to);
}

}  // namespace leasehold::server
