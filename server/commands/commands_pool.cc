// LEASEHOLD POOL: what a node knows of all its groups, for those who plan where replicas should be.
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/commands/report.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <utility>

namespace leasehold::server {
namespace {

using PoolJson = nlohmann::ordered_json;

PoolJson pool_members(const node::NodeStatus& status, const ServerOptions& options) {
  PoolJson members = PoolJson::array();
  for (const node::MemberStatus& member : status.members) {
    members.push_back({{"id", member.id.value()},
                       {"node", options.node_of(member.id).value()},
                       {"address", member.address},
                       {"voter", member.voter},
                       {"leaving", member.leaving},
                       {"connected", member.connected},
                       {"match", member.match.value()}});
  }
  return members;
}

PoolJson pool_group(const node::NodeStatus& status, const ServedGroup& group, std::size_t number,
                    const ServerOptions& options) {
  PoolJson out = {{"group", number},
                  {"id", status.id.value()},
                  {"here", group.here()},
                  {"joining", status.joining},
                  {"formed", status.formed},
                  {"role", role_name(status.role)},
                  {"term", status.term.value()},
                  {"leader", status.leader.value()},
                  {"last", status.last.value()},
                  {"settled", status.membership_committed && !status.membership_joint},
                  {"membership", raft::text_of(status.membership_id)},
                  {"keys", group.store.size()},
                  {"members", pool_members(status, options)}};
  if (group.here()) return out;
  PoolJson nodes = PoolJson::array();
  for (const raft::NodeId node : group.place->nodes()) nodes.push_back(node.value());
  out["nodes"] = std::move(nodes);
  return out;
}

void pool_place(Session& session, const Arguments& args, std::string& out) {
  const auto& hear = session.context().state.options.hear_place;
  if (!hear) return session.refuse(out, "ERR this node has one group, which is here");
  const auto group = parse_integer(args[3]);
  const auto nodes = parse_nodes(args[4]);
  if (!group || *group < 1 || !nodes) {
    return session.refuse(out, "ERR expected LEASEHOLD POOL [PLACE group id,...]");
  }
  const auto heard = hear(static_cast<std::size_t>(*group), *nodes);
  if (!heard) return session.refuse(out, "ERR " + heard.error().message);
  append_simple(out, "OK");
}

}  // namespace

void run_leasehold_pool(Session& session, const Arguments& args, std::string& out) {
  if (args.size() == 5 && equals_ignoring_case(args[2], "place")) {
    return pool_place(session, args, out);
  }
  if (args.size() != 2) {
    return session.refuse(out, "ERR expected LEASEHOLD POOL [PLACE group id,...]");
  }
  session.with_statuses([&state = session.context().state, &groups = session.context().groups](
                            const std::vector<node::NodeStatus>& statuses, std::string& reply) {
    PoolJson all = PoolJson::array();
    for (std::size_t i = 0; i < statuses.size(); ++i) {
      all.push_back(pool_group(statuses[i], groups.all()[i], i + 1, state.options));
    }
    const PoolJson pool = {{"node", state.options.node_of(statuses.front().id).value()},
                           {"peer_address", statuses.front().address},
                           {"client_address", state.options.advertise},
                           {"replicas", state.options.replicas},
                           {"groups", std::move(all)}};
    append_bulk(reply, pool.dump(-1, ' ', false, PoolJson::error_handler_t::replace));
  });
}

}  // namespace leasehold::server
