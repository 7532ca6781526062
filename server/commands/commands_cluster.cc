// What cluster-aware clients of Redis ask. A node serves the keys of every group of which it has a
// replica: each group has one range of slots, which its leader serves as the master and the others
// as its replicas. A client that learns this sends its writes to the node where they are cheapest.
//
// Of a group that is elsewhere a node knows members, and not who leads: the one to which it would
// send a client is named as the master, since that serves the keys as well.
//
// While no leader is known, which lasts for about an election timeout, the last known leader is
// named: clients keep an empty layout forever, but ask again when a node does not answer.
#include <leasehold/server/commands/commands.h>
#include <leasehold/server/commands/key_walk.h>
#include <leasehold/server/commands/report.h>
#include <leasehold/server/front/glob.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

struct ClusterNode {
  raft::NodeId id;   ///< as a member of the group
  std::string name;  ///< 40 hexadecimal digits, as Redis has them
  std::string host;
  std::int64_t port = 0;
  bool leads = false;
  bool self = false;
  bool connected = false;
};

std::string node_name(std::uint64_t cluster, raft::NodeId id) {
  return fmt::format("{:016x}{:08x}{:016x}", cluster, 0, id.value());
}

/// None: its client address is not known.
std::optional<ClusterNode> node_at(raft::NodeId number, std::uint64_t cluster,
                                   const ServerState& state) {
  const auto address = state.options.client_addresses.find(number);
  if (address == state.options.client_addresses.end()) return std::nullopt;
  const std::size_t colon = address->second.rfind(':');
  ClusterNode node;
  node.id = number;
  node.name = node_name(cluster, number);
  node.host = address->second.substr(0, colon);
  node.port = parse_integer(std::string_view(address->second).substr(colon + 1)).value_or(0);
  return node;
}

/// The nodes whose client address is known, first the one that leads or has led last.
std::vector<ClusterNode> known_nodes(const node::NodeStatus& status, const ServerState& state) {
  const raft::NodeId leader = status.leader != raft::kNobody ? status.leader : status.last_leader;
  std::vector<ClusterNode> nodes;
  for (const node::MemberStatus& member : status.members) {
    auto node = node_at(state.options.node_of(member.id), status.cluster_id, state);
    if (!node) continue;
    node->id = member.id;
    if (node->port == 0 && member.id == status.id) node->port = state.port;
    node->leads = member.id == leader;
    node->self = member.id == status.id;
    node->connected = member.connected;
    nodes.push_back(*std::move(node));
  }
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const ClusterNode& a, const ClusterNode& b) { return a.leads && !b.leads; });
  return nodes;
}

/// The nodes that serve, the master first. If the leader or its client address is not known, this
/// node is named as the master, since it serves every key as well.
std::vector<ClusterNode> serving_nodes(const node::NodeStatus& status, const ServerState& state) {
  std::vector<ClusterNode> nodes = known_nodes(status, state);
  if (!nodes.empty() && nodes.front().leads) return nodes;
  const auto self =
      std::find_if(nodes.begin(), nodes.end(), [](const ClusterNode& node) { return node.self; });
  if (self == nodes.end()) return {};
  std::rotate(nodes.begin(), self, self + 1);
  return nodes;
}

/// Those of a group that is elsewhere, first the one that clients are sent to. `home`: every node
/// is a member of the first group.
std::vector<ClusterNode> elsewhere_nodes(const GroupPlace& place, const node::NodeStatus& home,
                                         const ServerState& state) {
  std::vector<ClusterNode> nodes;
  for (const raft::NodeId number : place.nodes()) {
    auto node = node_at(number, home.cluster_id, state);
    if (!node) continue;
    node->leads = number == place.target();
    for (const node::MemberStatus& member : home.members) {
      if (state.options.node_of(member.id) == number) node->connected = member.connected;
    }
    nodes.push_back(*std::move(node));
  }
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const ClusterNode& a, const ClusterNode& b) { return a.leads && !b.leads; });
  return nodes;
}

void append_slots_node(std::string& out, const ClusterNode& node) {
  append_array(out, 4);
  append_bulk(out, node.host);
  append_integer(out, node.port);
  append_bulk(out, node.name);
  append_array(out, 0);
}

void append_shards_node(std::string& out, const ClusterNode& node, bool master,
                        const node::NodeStatus& status, Protocol protocol) {
  append_map(out, 7, protocol);
  append_bulk(out, "id");
  append_bulk(out, node.name);
  append_bulk(out, "port");
  append_integer(out, node.port);
  append_bulk(out, "ip");
  append_bulk(out, node.host);
  append_bulk(out, "endpoint");
  append_bulk(out, node.host);
  append_bulk(out, "role");
  append_bulk(out, master ? "master" : "replica");
  append_bulk(out, "replication-offset");
  append_integer(out, static_cast<std::int64_t>(status.applied.value()));
  append_bulk(out, "health");
  append_bulk(out, node.connected || node.self ? "online" : "fail");
}

/// A group with the slots from `first` to `last`, and the nodes that serve it, the master first.
struct Range {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  const node::NodeStatus* status = nullptr;
  std::vector<ClusterNode> nodes;
};

/// What the node knows about all groups.
struct Layout {
  const std::vector<node::NodeStatus>& statuses;
  const ServedGroups& groups;
  const ServerState& state;
};

/// In the order of the slots, without those that nobody serves as far as this node knows.
using Ranges = std::vector<Range>;
Ranges ranges_of(const Layout& layout) {
  std::vector<std::vector<ClusterNode>> nodes;
  for (std::size_t i = 0; i < layout.statuses.size(); ++i) {
    const ServedGroup& group = layout.groups.all()[i];
    nodes.push_back(group.here()
                        ? serving_nodes(layout.statuses[i], layout.state)
                        : elsewhere_nodes(*group.place, layout.statuses.front(), layout.state));
  }
  Ranges ranges;
  for (std::uint32_t slot = 0; slot < kv::kSlots; ++slot) {
    const std::size_t group = layout.groups.number_of_slot(slot);
    if (nodes[group].empty()) continue;
    const bool goes_on = !ranges.empty() && ranges.back().last + 1 == slot &&
                         ranges.back().status == &layout.statuses[group];
    if (goes_on) {
      ranges.back().last = slot;
    } else {
      ranges.push_back({slot, slot, &layout.statuses[group], nodes[group]});
    }
  }
  return ranges;
}

using FormatGroups = void (*)(const Layout&, Protocol, std::string&);
void with_groups(Session& session, FormatGroups format) {
  session.with_statuses([format, protocol = session.protocol, &state = session.context().state,
                         &groups = session.context().groups](
                            const std::vector<node::NodeStatus>& statuses, std::string& reply) {
    format({statuses, groups, state}, protocol, reply);
  });
}

using Format = void (*)(const node::NodeStatus&, const ServerState&, Protocol, std::string&);
void with_cluster(Session& session, Format format) {
  session.with_status([format, protocol = session.protocol, &state = session.context().state](
                          const node::NodeStatus& status, std::string& reply) {
    format(status, state, protocol, reply);
  });
}

void format_slots(const Layout& layout, Protocol, std::string& out) {
  const Ranges ranges = ranges_of(layout);
  append_array(out, ranges.size());
  for (const Range& range : ranges) {
    append_array(out, 2 + range.nodes.size());
    append_integer(out, range.first);
    append_integer(out, range.last);
    for (const ClusterNode& node : range.nodes) append_slots_node(out, node);
  }
}

void format_shards(const Layout& layout, Protocol protocol, std::string& out) {
  const Ranges ranges = ranges_of(layout);
  append_array(out, ranges.size());
  for (const Range& range : ranges) {
    append_map(out, 2, protocol);
    append_bulk(out, "slots");
    append_array(out, 2);
    append_integer(out, range.first);
    append_integer(out, range.last);
    append_bulk(out, "nodes");
    append_array(out, range.nodes.size());
    for (std::size_t i = 0; i < range.nodes.size(); ++i) {
      append_shards_node(out, range.nodes[i], i == 0, *range.status, protocol);
    }
  }
}

/// Each node once: a master if it is that of any group, and else a replica of the first one's.
void format_nodes(const Layout& layout, Protocol, std::string& out) {
  const Ranges ranges = ranges_of(layout);
  const node::NodeStatus& home = layout.statuses.front();
  std::string text;
  for (const ClusterNode& node : known_nodes(home, layout.state)) {
    std::string slots;
    for (const Range& range : ranges) {
      if (range.nodes.front().name != node.name) continue;
      fmt::format_to(std::back_inserter(slots), " {}-{}", range.first, range.last);
    }
    const bool leads = !slots.empty();
    const std::string_view master =
        ranges.empty() ? std::string_view() : std::string_view(ranges.front().nodes.front().name);
    const std::string_view follows = leads || master.empty() ? "-" : master;
    fmt::format_to(std::back_inserter(text), "{} {}:{}@0 {}{} {} 0 0 {} {}{}\n", node.name,
                   node.host, node.port, node.self ? "myself," : "", leads ? "master" : "slave",
                   follows, home.term.value(),
                   node.connected || node.self ? "connected" : "disconnected", slots);
  }
  append_bulk(out, text);
}

void format_info(const Layout& layout, Protocol, std::string& out) {
  const std::vector<node::NodeStatus>& groups = layout.statuses;
  std::uint32_t led = 0;
  std::set<raft::NodeId> leaders;
  std::uint64_t epoch = 0;
  for (const node::NodeStatus& status : groups) {
    epoch = std::max(epoch, status.term.value());
    if (status.leader != raft::kNobody) leaders.insert(layout.state.options.node_of(status.leader));
  }
  for (std::uint32_t slot = 0; slot < kv::kSlots; ++slot) {
    const std::size_t group = layout.groups.number_of_slot(slot);
    const ServedGroup& served = layout.groups.all()[group];
    // What is elsewhere is led as far as is known here.
    const bool is_led = served.here() ? groups[group].leader != raft::kNobody
                                      : served.place->target() != raft::kNobody;
    led += is_led ? 1 : 0;
  }
  append_bulk(
      out, fmt::format("cluster_enabled:1\r\ncluster_state:{}\r\ncluster_slots_assigned:16384\r\n"
                       "cluster_slots_ok:{}\r\ncluster_slots_pfail:0\r\ncluster_slots_fail:{}\r\n"
                       "cluster_known_nodes:{}\r\ncluster_size:{}\r\ncluster_current_epoch:{}\r\n"
                       "cluster_my_epoch:{}\r\n",
                       led == kv::kSlots ? "ok" : "fail", led, kv::kSlots - led,
                       known_nodes(groups.front(), layout.state).size(),
                       std::max<std::size_t>(leaders.size(), 1), epoch, epoch));
}

void format_role(const node::NodeStatus& status, const ServerState& state, Protocol,
                 std::string& out) {
  const auto nodes = known_nodes(status, state);
  if (status.role == raft::Role::leader) {
    append_array(out, 3);
    append_bulk(out, "master");
    append_integer(out, static_cast<std::int64_t>(status.applied.value()));
    append_array(out, nodes.empty() ? 0 : nodes.size() - 1);
    for (const ClusterNode& node : nodes) {
      if (node.self) continue;
      const auto member = std::find_if(status.members.begin(), status.members.end(),
                                       [&](const auto& m) { return m.id == node.id; });
      append_array(out, 3);
      append_bulk(out, node.host);
      append_bulk(out, std::to_string(node.port));
      append_bulk(out, std::to_string(member->match.value()));
    }
    return;
  }
  const bool known = !nodes.empty() && nodes.front().leads;
  append_array(out, 5);
  append_bulk(out, "slave");
  append_bulk(out, known ? nodes.front().host : "");
  append_integer(out, known ? nodes.front().port : 0);
  append_bulk(out, status.leader == raft::kNobody ? "connect" : "connected");
  append_integer(out, static_cast<std::int64_t>(status.applied.value()));
}

}  // namespace

void run_cluster_slots(Session& session, const Arguments&, std::string&) {
  with_groups(session, format_slots);
}

void run_cluster_shards(Session& session, const Arguments&, std::string&) {
  with_groups(session, format_shards);
}

void run_cluster_nodes(Session& session, const Arguments&, std::string&) {
  with_groups(session, format_nodes);
}

void run_cluster_info(Session& session, const Arguments&, std::string&) {
  with_groups(session, format_info);
}

void run_role(Session& session, const Arguments&, std::string&) {
  with_cluster(session, format_role);
}

void run_cluster_myid(Session& session, const Arguments&, std::string&) {
  with_cluster(session, [](const node::NodeStatus& status, const ServerState& state, Protocol,
                           std::string& out) {
    append_bulk(out, node_name(status.cluster_id, state.options.node_of(status.id)));
  });
}

void run_cluster_keyslot(Session&, const Arguments& args, std::string& out) {
  append_integer(out, kv::slot_of(args[2]));
}

void scan_slot(StoreReader& reader, const Arguments& args, std::string& out) {
  const auto slot = parse_integer(args[2]);
  if (!slot || *slot < 0 || *slot >= kv::kSlots) return reader.refuse(out, "ERR Invalid slot");
  std::int64_t in_slot = 0;
  std::size_t budget = kPatternStepsMax;
  std::string error;
  const Walked walked = walk_keys(
      reader.group.store,
      [&](const std::string& key) {
        if (kv::slot_of(key) == *slot && reader.may_show(key, budget)) ++in_slot;
        return budget > 0;
      },
      error);
  if (walked == Walked::all) return append_integer(out, in_slot);
  if (walked == Walked::failed) return append_error(out, "ERR the store failed: " + error);
  reader.refuse(out, fmt::format("ERR there are more than {} keys, or their names are too long, or "
                                 "the user's patterns cost too much, to be counted by slot",
                                 kWalkedKeysMax));
}

std::size_t group_of_slot(const ServerState&, const Arguments& args, const ServedGroups& groups) {
  const auto slot = parse_integer(args[2]);
  if (!slot || *slot < 0 || *slot >= kv::kSlots) return 0;  // it will be refused
  return groups.number_of_slot(static_cast<std::uint32_t>(*slot));
}

void run_readonly(Session&, const Arguments&, std::string& out) {
  append_simple(out, "OK");
}

}  // namespace leasehold::server
