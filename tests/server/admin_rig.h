// What the tests of the admin port look at: a fake node, and a page about it.
#pragma once

#include <leasehold/server/admin/admin_routes.h>
#include <leasehold/server/admin/looks.h>
#include <leasehold/server/commands/command_table.h>
#include <leasehold/tests/server/fake_node.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::server {

/// Node 1 of three leads, in term 7.
inline node::NodeStatus leading_status() {
  node::NodeStatus status;
  status.id = status.leader = raft::NodeId(1);
  status.formed = true;
  status.role = raft::Role::leader;
  status.term = raft::Term(7);
  status.commit = status.applied = raft::Index(40);
  status.last = status.durable = raft::Index(42);
  status.lease_left = std::chrono::milliseconds(750);
  for (const std::uint64_t id : {1U, 2U, 3U}) {
    node::MemberStatus member;
    member.id = raft::NodeId(id);
    member.address = "127.0.0.1:" + std::to_string(7100 + id);
    member.connected = id != 3;
    member.match = raft::Index(42 - 10 * (id - 1));
    status.members.push_back(std::move(member));
  }
  return status;
}

/// Routes over `count` groups of fake nodes, of which the last one may be elsewhere.
struct AdminRig {
  explicit AdminRig(std::size_t count = 1, bool loopback = true, ServerOptions options = {},
                    const GroupPlace* last = nullptr)
      : state(std::move(options), command_table()) {
    std::vector<ServedGroup> served;
    for (std::size_t i = 0; i < count; ++i) {
      nodes.push_back(std::make_unique<FakeNode>());
      served.push_back({*nodes[i], nodes[i]->store(), nodes[i]->health()});
      look.statuses.push_back(leading_status());
    }
    served.back().place = last;
    look.answered = true;
    groups = std::make_unique<ServedGroups>(std::move(served));
    AdminOptions admin;
    admin.listen = "127.0.0.1:7301";
    admin.data_dir = "/";
    routes = std::make_unique<AdminRoutes>(admin, loopback, *groups, state, sources(), counts);
  }
  AdminSources sources() const { return {events, syncs}; }
  HttpAnswer get(const std::string& path, const std::string& host = "127.0.0.1:7301") {
    HttpRequest request;
    request.path = path.substr(0, path.find('?'));
    if (const auto query = path.find("?group="); query != std::string::npos) {
      request.query["group"] = path.substr(query + 7);
    }
    request.host = host;
    return routes->answer(request, look);
  }

  std::vector<std::unique_ptr<FakeNode>> nodes;
  std::unique_ptr<ServedGroups> groups;
  ServerState state;
  AdminCounts counts;
  EventCounts events{false};
  ManualClock clock;
  storage::SyncTimes syncs{clock};
  Look look;
  std::unique_ptr<AdminRoutes> routes;
};

}  // namespace leasehold::server
