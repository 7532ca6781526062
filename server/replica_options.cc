#include <leasehold/server/host_cluster.h>
#include <leasehold/server/replica_options.h>

#include <algorithm>
#include <cstdint>

namespace leasehold::server {
namespace {

/// Many groups share what one has of memory and of the log. With less than this a group is slow.
constexpr std::size_t kCacheBytesMin = std::size_t{1} << 20U;
constexpr std::uint64_t kLogBytesMin = std::uint64_t{4} << 20U;

/// Threads that call state machines.
constexpr std::size_t kAppliersMax = 8;

/// What one of them gets of `all`.
template <class Bytes>
Bytes share_of(Bytes all, std::size_t groups, Bytes least) {
  return std::min(all, std::max<Bytes>(all / groups, least));
}

/// The nodes, beginning with another one for each group, which counts from 0.
std::vector<raft::NodeId> in_turn(const node::NodeOptions& options, std::size_t group) {
  std::vector<raft::NodeId> order;
  for (const node::Peer& peer : options.peers) order.push_back(peer.id);
  if (order.empty()) return order;
  std::sort(order.begin(), order.end());
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(group % order.size()),
              order.end());
  return order;
}

/// At first each host leads as many groups as any other, and again when it has been away. One that
/// joins leaves that to the others, and a pool to who balances it: replicas come and go there.
std::vector<raft::NodeId> preferred_leaders(const ServeSettings& settings,
                                            const node::NodeOptions& options, std::size_t group) {
  const bool given = !options.preferred_leaders.empty() || settings.replicas > 0;
  return given ? options.preferred_leaders : in_turn(options, group);
}

}  // namespace

std::vector<node::Peer> first_hosts(const ServeSettings& settings,
                                    const node::NodeOptions& options) {
  if (!options.peers.empty()) return options.peers;
  std::vector<node::Peer> hosts = settings.join_hosts;
  const bool named = std::any_of(hosts.begin(), hosts.end(),
                                 [&](const node::Peer& host) { return host.id == options.id; });
  if (!named) hosts.push_back({options.id, options.listen});
  return hosts;
}

node::HostOptions host_options(const ServeSettings& settings, const node::NodeOptions& options) {
  node::HostOptions host;
  host.id = options.id;
  host.data_dir = settings.data_dir;
  host.cluster = host_cluster(settings.node.cluster, settings.groups);
  host.hosts = first_hosts(settings, options);
  host.listen = options.listen;
  host.peer_security = options.peer_security;
  host.timing = options.timing;
  host.deputy = options.deputy;
  host.sync_times = options.sync_times;
  // A call may take long, and must not hold up all groups.
  host.appliers = std::clamp(settings.groups / 2, host.appliers, kAppliersMax);
  return host;
}

std::vector<raft::NodeId> first_nodes(const ServeSettings& settings,
                                      const node::NodeOptions& options, std::size_t group) {
  std::vector<raft::NodeId> nodes = in_turn(options, group);
  if (group > 0 && settings.replicas > 0) {
    nodes.resize(std::min(nodes.size(), settings.replicas), raft::kNobody);
  }
  return nodes;
}

node::GroupOptions group_options(const ServeSettings& settings, const node::NodeOptions& options,
                                 std::size_t number, raft::NodeId replica) {
  node::GroupOptions group;
  group.group = raft::GroupId(number + 1);
  group.replica = replica;
  // The first replicas have the numbers of their nodes. A later one joins what these have formed.
  const std::vector<raft::NodeId> first = first_nodes(settings, options, number);
  if (replica == options.id && contains(first, replica)) {
    for (const raft::NodeId node : first) group.members.push_back({node, node});
    group.preferred_leaders = preferred_leaders(settings, options, number);
  }
  group.timing = options.timing;
  group.preference_settle = options.preference_settle;
  group.tracer = options.tracer;
  group.limits = options.limits;
  replica::Limits& limits = group.limits;
  limits.cache_bytes_max = share_of(limits.cache_bytes_max, settings.groups, kCacheBytesMin);
  limits.log_tail_bytes = share_of(limits.log_tail_bytes, settings.groups, kLogBytesMin);
  limits.log_cut_bytes = share_of(limits.log_cut_bytes, settings.groups, kLogBytesMin);
  return group;
}

}  // namespace leasehold::server
