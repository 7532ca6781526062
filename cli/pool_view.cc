#include <leasehold/cli/access.h>
#include <leasehold/cli/pool_view.h>
#include <leasehold/server/front/replica_number.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <thread>

namespace leasehold::cli {
namespace {

using PoolAnswer = nlohmann::ordered_json;

/// A learner that lacks no more is promoted: the leader waits for the rest.
constexpr std::uint64_t kPoolNearlyThere = 1000;

raft::NodeId node_in(const PoolAnswer& object, const char* key) {
  return raft::NodeId(object.at(key).get<std::uint64_t>());
}

Result<PoolAnswer> ask_of_pool(const std::string& server, client::RespClient::Timeout timeout) {
  auto client = client::RespClient::connect(server, timeout, access().in_group(0));
  if (!client) return client.error();
  const auto reply = client.value().call({"LEASEHOLD", "POOL"}, timeout);
  if (!reply) return reply.error();
  if (reply.value().kind != client::RespValue::Kind::bulk) {
    return Error{ErrorCode::invalid_argument, reply.value().text};
  }
  PoolAnswer answer = PoolAnswer::parse(reply.value().text, nullptr, false);
  if (answer.is_object()) return answer;
  return Error{ErrorCode::malformed, "its answer is no JSON object"};
}

PoolSeat seat_of(const PoolAnswer& group) {
  PoolSeat seat;
  seat.replica = node_in(group, "id");
  seat.here = group.at("here").get<bool>();
  seat.addable = group.at("joining").get<bool>();
  for (const PoolAnswer& node : group.value("nodes", PoolAnswer::array())) {
    seat.nodes.emplace_back(node.get<std::uint64_t>());
  }
  return seat;
}

/// Takes it if it is newer than what is known of the group.
void take_group(const PoolAnswer& said, const std::string& server, PoolGroup& group) {
  const bool leads = said.at("role") == "leader";
  const auto term = said.at("term").get<std::uint64_t>();
  if (said.at("members").empty() || term < group.term) return;
  if (term == group.term && !group.members.empty() && !leads) return;
  group.term = term;
  group.leader_server = leads ? server : "";
  group.leader = leads ? node_in(said, "id") : raft::kNobody;
  group.settled = said.at("settled").get<bool>();
  group.membership = said.value("membership", "");
  group.keys = said.at("keys").get<std::uint64_t>();
  const auto last = said.at("last").get<std::uint64_t>();
  group.members.clear();
  for (const PoolAnswer& member : said.at("members")) {
    const auto match = member.at("match").get<std::uint64_t>();
    group.members.push_back({node_in(member, "id"), node_in(member, "node"),
                             member.at("voter").get<bool>(), last > match ? last - match : 0});
  }
}

void take_node(const PoolAnswer& answer, const std::string& server, PoolView& view) {
  PoolNode node;
  node.number = node_in(answer, "node");
  node.server = server;
  node.peer_address = answer.at("peer_address").get<std::string>();
  view.replicas = std::max(view.replicas, answer.at("replicas").get<std::size_t>());
  for (const PoolAnswer& said : answer.at("groups")) {
    const raft::GroupId id(said.at("group").get<std::uint64_t>());
    node.seats[id] = seat_of(said);
    PoolGroup& group = view.groups[id];
    group.id = id;
    take_group(said, server, group);
  }
  view.nodes[node.number] = std::move(node);
}

raft::NodeId highest_number(const PoolView& view, raft::GroupId group) {
  raft::NodeId highest;
  for (const auto& [number, node] : view.nodes) {
    if (const PoolSeat* seat = view.seat(number, group)) highest = std::max(highest, seat->replica);
  }
  for (const PoolMember& member : view.groups.at(group).members) {
    highest = std::max(highest, member.replica);
  }
  return highest;
}

}  // namespace

const PoolMember* PoolGroup::at(raft::NodeId node) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const PoolMember& member) { return member.node == node; });
  return found == members.end() ? nullptr : &*found;
}

const PoolMember* PoolGroup::member(raft::NodeId replica) const {
  const auto found = std::find_if(members.begin(), members.end(), [&](const PoolMember& member) {
    return member.replica == replica;
  });
  return found == members.end() ? nullptr : &*found;
}

std::size_t PoolGroup::voters() const {
  return static_cast<std::size_t>(std::count_if(
      members.begin(), members.end(), [](const PoolMember& member) { return member.voter; }));
}

std::vector<raft::NodeId> PoolGroup::nodes() const {
  std::vector<raft::NodeId> found;
  for (const PoolMember& member : members) {
    found.insert(member.replica == leader ? found.begin() : found.end(), member.node);
  }
  return found;
}

const PoolSeat* PoolView::seat(raft::NodeId node, raft::GroupId group) const {
  const auto at = nodes.find(node);
  if (at == nodes.end()) return nullptr;
  const auto found = at->second.seats.find(group);
  return found == at->second.seats.end() ? nullptr : &found->second;
}

bool PoolView::is_stray(raft::NodeId node, raft::GroupId group) const {
  const PoolSeat* const own = seat(node, group);
  const PoolGroup& said = groups.at(group);
  if (own == nullptr || !own->here || said.leader_server.empty() || !said.settled) return false;
  return said.at(node) == nullptr;
}

bool PoolView::is_deleted(const PoolMember& member, raft::GroupId group) const {
  const PoolSeat* const own = seat(member.node, group);
  return own != nullptr && !own->here && own->replica > member.replica;
}

void Strays::note(PoolView& view, Clock::time_point now) {
  decltype(since_) found;
  for (auto& [number, node] : view.nodes) {
    for (auto& [group, seat] : node.seats) {
      if (!view.is_stray(number, group)) continue;
      const auto known = since_.find({number, group});
      const auto since = known == since_.end() ? now : known->second;
      found.emplace(std::pair(number, group), since);
      if (now - since >= kTime) seat.addable = true;
    }
  }
  since_ = std::move(found);
}

std::uint64_t PoolView::behind() const {
  std::uint64_t sum = 0;
  for (const auto& [id, group] : groups) {
    for (const PoolMember& member : group.members) sum += member.voter ? 0 : member.behind;
  }
  return sum;
}

Result<PoolView> look_at_pool(const std::vector<std::string>& servers,
                              client::RespClient::Timeout timeout) {
  std::vector<std::optional<Result<PoolAnswer>>> answers(servers.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    threads.emplace_back([&answer = answers[i], &server = servers[i], timeout] {
      answer.emplace(ask_of_pool(server, timeout));
    });
  }
  for (std::thread& thread : threads) thread.join();
  PoolView view;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const Result<PoolAnswer>& answer = *answers[i];
    if (answer) {
      take_node(answer.value(), servers[i], view);
      continue;
    }
    view.silent.push_back(fmt::format("{}: {}", servers[i], answer.error().message));
    if (answer.error().code == ErrorCode::invalid_argument) {
      return Error{answer.error().code, view.silent.back()};
    }
  }
  if (view.nodes.empty()) {
    return Error{ErrorCode::unavailable,
                 view.silent.empty() ? "no server is named" : view.silent.front()};
  }
  if (view.groups.size() < 2) {
    return Error{ErrorCode::invalid_argument,
                 "these nodes have one group, which leasehold member changes: a pool has many "
                 "(serve --groups)"};
  }
  return view;
}

placement::Pool pool_of(const PoolView& view, const PoolWishes& wishes,
                        const std::map<raft::GroupId, raft::NodeId>& leaving) {
  placement::Pool pool;
  std::set<raft::NodeId> numbers;
  for (const auto& [number, node] : view.nodes) numbers.insert(number);
  for (const auto& [id, group] : view.groups) {
    for (const PoolMember& member : group.members) numbers.insert(member.node);
  }
  for (const raft::NodeId number : numbers) {
    placement::Host host;
    host.id = number;
    const auto zone = wishes.zones.find(number);
    // Else each is a zone of its own.
    host.zone = zone == wishes.zones.end() ? fmt::format("node {}", number.value()) : zone->second;
    host.draining = wishes.draining.count(number) > 0;
    if (view.nodes.count(number) == 0) host.contact = placement::Contact::unreachable;
    if (wishes.gone.count(number) > 0) host.contact = placement::Contact::gone;
    pool.hosts.push_back(std::move(host));
  }
  for (const auto& [id, group] : view.groups) {
    if (id == view.home().id || group.voters() == 0) continue;
    placement::Group planned;
    planned.id = id;
    planned.replicas = static_cast<std::uint32_t>(wishes.replicas);
    const PoolMember* const leads = group.member(group.leader);
    // One that is leaving leads on until its removal is complete.
    if (leads != nullptr && leads->voter) planned.leader = group.leader;
    planned.last_replica = highest_number(view, id);
    planned.changing = !group.settled;
    const auto leaves = leaving.find(id);
    if (leaves != leaving.end()) planned.leaving = leaves->second;
    for (const PoolMember& member : group.members) {
      if (member.voter) planned.voters.push_back({member.replica, member.node});
      if (member.voter) continue;
      // It is removed before anything else is done with its group.
      if (view.is_deleted(member, id)) planned.changing = true;
      planned.learners.push_back({member.replica, member.node, member.behind <= kPoolNearlyThere});
    }
    pool.groups.push_back(std::move(planned));
  }
  return pool;
}

std::string sentence_of(const placement::Step& step) {
  using What = placement::Step::What;
  std::string text = fmt::format("group {}: ", step.group.value());
  const std::uint64_t node = step.host.value();
  switch (step.what) {
    case What::add_learner: text += fmt::format("add node {}", node); break;
    case What::promote: text += fmt::format("promote node {}", node); break;
    case What::remove: text += fmt::format("remove node {}", node); break;
    case What::transfer: text += fmt::format("transfer the leadership to node {}", node); break;
  }
  if (step.instead_of != raft::kNobody) {
    text += fmt::format(" in place of node {}", server::node_of(step.instead_of).value());
  }
  return fmt::format("{} ({})", text, placement::rule_name(step.rule));
}

}  // namespace leasehold::cli
