#include <leasehold/server/admin/readiness.h>
#include <leasehold/server/admin/status_report.h>
#include <leasehold/server/commands/report.h>
#include <leasehold/server/front/people_time.h>

#include <nlohmann/json.hpp>

#include <chrono>

namespace leasehold::server {
namespace {

using Json = nlohmann::ordered_json;

double in_milliseconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

Json group_members(const ReportSource& source, const node::NodeStatus& status) {
  Json members = Json::array();
  for (const node::MemberStatus& member : status.members) {
    const raft::NodeId node = source.state.options.node_of(member.id);
    const auto address = source.addresses.find(node);
    Json one = {{"id", node.value()},
                {"address", member.address},
                {"admin", address == source.addresses.end() ? "" : address->second},
                {"voter", member.voter},
                {"witness", member.witness},
                {"connected", member.connected}};
    if (status.role == raft::Role::leader) {
      // What a peer has is not known before this leader has heard from it.
      if (member.id == status.id || member.heard_ago) {
        one["behind"] = status.last > member.match ? status.last.value() - member.match.value() : 0;
      }
      if (member.heard_ago) one["heard_ago_ms"] = in_milliseconds(*member.heard_ago);
    }
    members.push_back(std::move(one));
  }
  return members;
}

Json group_sums(const ReportSource& source, std::size_t selected) {
  std::size_t led = 0;
  std::size_t leased = 0;
  std::size_t leaderless = 0;
  for (const node::NodeStatus& status : source.look.statuses) {
    led += status.role == raft::Role::leader ? 1 : 0;
    leased += status.lease_left > lease::Duration(0) ? 1 : 0;
    leaderless += status.leader == raft::kNobody ? 1 : 0;
  }
  return {{"count", source.groups.all().size()},
          {"selected", selected + 1},
          {"led", led},
          {"leased", leased},
          {"without_leader", leaderless}};
}

Json counts(const ReportSource& source) {
  std::uint64_t syncs = 0;
  for (std::size_t i = 0; i < storage::SyncTimes::kBuckets; ++i) syncs += source.syncs.count(i);
  const ServerState& state = source.state;
  return {{"commands", state.sum(&Counters::commands)},
          {"lease_hits", state.sum(&Counters::lease_hits)},
          {"lease_fallbacks", state.sum(&Counters::lease_fallbacks)},
          {"writes_committed", state.sum(&Counters::writes_committed)},
          {"syncs", syncs},
          {"sync_ms", in_milliseconds(source.syncs.sum())}};
}

Json latest_steps(const EventCounts& events) {
  Json list = Json::array();
  for (const EventCounts::Recent& recent : events.recent()) {
    list.push_back({{"at_ms", recent.at.count() / 1000},
                    {"group", recent.group},
                    {"term", recent.term},
                    {"text", recent.text}});
  }
  return list;
}

void add_group(const ReportSource& source, std::size_t selected, Json& out) {
  const node::NodeStatus& status = source.look.statuses[selected];
  const ServerOptions& options = source.state.options;
  out["node"] = options.node_of(status.id).value();
  out["role"] = role_name(status.role);
  out["term"] = status.term.value();
  out["leader"] = options.node_of(status.leader).value();
  out["commit"] = status.commit.value();
  out["applied"] = status.applied.value();
  out["last"] = status.last.value();
  out["durable"] = status.durable.value();
  out["lease_left_ms"] = in_milliseconds(status.lease_left);
  out["promise_left_ms"] = in_milliseconds(status.promise_left);
  out["promise_to"] = options.node_of(status.promise_to).value();
  out["lease_ms"] = in_milliseconds(status.timing.lease);
  out["calls_waiting"] = status.calls_waiting;
  out["members"] = group_members(source, status);
}

}  // namespace

std::string status_report(const ReportSource& source, std::size_t selected) {
  const ServerState& state = source.state;
  Json out = {{"version", kVersion}, {"cluster", state.options.cluster}};
  if (source.look.answered) add_group(source, selected, out);
  Json unmet = Json::array();
  for (const ReadyCondition& one : ready_conditions(source.look, source.groups, state)) {
    if (!one.met) unmet.push_back({{"name", one.name}, {"detail", one.detail}});
  }
  out["unmet"] = std::move(unmet);
  out["now_ms"] = wall_now().count() / 1000;
  out["uptime_s"] = uptime_seconds(state);
  out["clients"] = state.clients.load(std::memory_order_relaxed);
  out["groups"] = group_sums(source, selected);
  out["counts"] = counts(source);
  out["events"] = latest_steps(source.events);
  // Names and addresses are text of the operator: bytes that are not UTF-8 are replaced.
  return out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace leasehold::server
