// LEASEHOLD TRANSFER: a client asks for a transfer of the leadership.
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <limits>
#include <utility>

namespace leasehold::server {
namespace {

/// "node 2 leads, at 10.0.0.2:7201".
std::string who_leads(raft::NodeId leader, const ServerOptions& options) {
  if (leader == raft::kNobody) return "no leader is known";
  const raft::NodeId node = options.node_of(leader);
  std::string out = fmt::format("node {} leads", node.value());
  const auto address = options.client_addresses.find(node);
  if (address != options.client_addresses.end()) out += ", at " + address->second;
  return out;
}

/// The first word tells the client what to do: look for the leader, try again here, or give up.
std::string text_of_refusal(const replica::TransferResult& result, const ServerOptions& options) {
  const raft::TransferRefused refused = result.refused.value_or(raft::TransferRefused{});
  switch (refused.obstacle) {
    case raft::TransferObstacle::not_leader:
      return "NOLEADER this node does not lead, and only the leader transfers the leadership; " +
             who_leads(result.leader, options);
    case raft::TransferObstacle::not_a_voter:
    case raft::TransferObstacle::witness: return "ERR " + raft::text_of(refused);
    case raft::TransferObstacle::transfer_under_way:
    case raft::TransferObstacle::already_leads:
    case raft::TransferObstacle::nobody_to_follow:
    case raft::TransferObstacle::too_late: return "TRYAGAIN " + raft::text_of(refused);
  }
  return "ERR refused";
}

std::string reply_of(const replica::TransferResult& result, lease::Duration took,
                     const ServerOptions& options) {
  std::string reply;
  switch (result.status) {
    case replica::GroupCallStatus::done: {
      const auto us = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
      append_bulk(
          reply,
          nlohmann::ordered_json({{"leader", result.leader.value()}, {"took_us", us}}).dump());
      break;
    }
    case replica::GroupCallStatus::refused:
      append_error(reply, text_of_refusal(result, options));
      break;
    case replica::GroupCallStatus::failed:
      append_error(reply,
                   fmt::format("TRYAGAIN the other node did not take over in time; {} as before",
                               who_leads(result.leader, options)));
      break;
    case replica::GroupCallStatus::unknown:
      append_error(
          reply,
          fmt::format("UNKNOWNOUTCOME begun, and not seen to end within --command-timeout; {}, as "
                      "far as this node knows",
                      who_leads(result.leader, options)));
      break;
  }
  return reply;
}

}  // namespace

void run_leasehold_transfer(Session& session, const Arguments& args, std::string& out) {
  raft::NodeId to = raft::kNobody;
  if (args.size() > 3) return session.refuse(out, "ERR expected LEASEHOLD TRANSFER [id]");
  if (args.size() == 3) {
    const auto id = parse_integer(args[2]);
    if (!id || *id < 1 || *id > std::numeric_limits<std::uint32_t>::max()) {
      return session.refuse(out,
                            fmt::format("ERR {} is not the number of a node", quoted(args[2])));
    }
    to = raft::NodeId(static_cast<std::uint64_t>(*id));
  }
  if (session.refuse_when_draining(out)) return;
  const ServerOptions& options = session.context().state.options;
  node::Group& node = session.group().group;
  node.transfer_leadership(to, options.command_timeout,
                           [answer = session.answer_later(), begun = node.clock().now().promise,
                            &node, &options](const replica::TransferResult& result) {
                             answer(reply_of(result, node.clock().now().promise - begun, options));
                           });
}

}  // namespace leasehold::server
