#include <leasehold/server/admin/readiness.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>

namespace leasehold::server {
namespace {

/// Of the groups that are here, those for which `wrong` holds: empty, or "in 3 of 16 groups, the
/// first is 2".
std::string where(const Look& look, const ServedGroups& groups,
                  const std::function<bool(std::size_t)>& wrong) {
  std::size_t count = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < look.statuses.size(); ++i) {
    if (!groups.all()[i].here() || !wrong(i)) continue;
    if (count++ == 0) first = i + 1;
  }
  if (count == 0) return {};
  if (look.statuses.size() == 1) return "in its group";
  return fmt::format("in {} of {} groups, the first is {}", count, look.statuses.size(), first);
}

ReadyCondition condition(const char* name, const char* problem, const std::string& place) {
  if (place.empty()) return {name, true, ""};
  return {name, false, fmt::format("{} {}", problem, place)};
}

std::uint64_t lag_of(const node::NodeStatus& status) {
  return status.commit > status.applied ? status.commit.value() - status.applied.value() : 0;
}

}  // namespace

std::vector<ReadyCondition> ready_conditions(const Look& look, const ServedGroups& groups,
                                             const ServerState& state) {
  const bool draining = state.draining.load(std::memory_order_relaxed);
  std::vector<ReadyCondition> all = {
      {"answers", look.answered, look.answered ? "" : "the threads of the groups do not answer"},
      {"not_draining", !draining, draining ? "this node is about to end" : ""},
  };
  if (!look.answered) return all;
  const auto& statuses = look.statuses;
  all.push_back(condition("formed", "its members have not all met",
                          where(look, groups, [&](std::size_t i) { return !statuses[i].formed; })));
  all.push_back(condition(
      "leader_known", "no leader is known",
      where(look, groups, [&](std::size_t i) { return statuses[i].leader == raft::kNobody; })));
  all.push_back(condition(
      "caught_up", "more than a thousand committed entries are not applied yet",
      where(look, groups, [&](std::size_t i) { return lag_of(statuses[i]) > kReadyLagMax; })));
  all.push_back(condition("disk_space", "the disk is full", where(look, groups, [&](std::size_t i) {
                            return statuses[i].disk_full;
                          })));
  all.push_back(condition(
      "state_sound", "the state is damaged and not served",
      where(look, groups, [&](std::size_t i) { return groups.all()[i].health.refuses.load(); })));
  return all;
}

bool is_ready(const std::vector<ReadyCondition>& conditions) {
  return std::all_of(conditions.begin(), conditions.end(),
                     [](const ReadyCondition& one) { return one.met; });
}

std::string ready_json(const std::vector<ReadyCondition>& conditions) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ReadyCondition& one : conditions) {
    list.push_back({{"name", one.name}, {"met", one.met}, {"detail", one.detail}});
  }
  return nlohmann::ordered_json{{"ready", is_ready(conditions)}, {"conditions", list}}.dump() +
         "\n";
}

}  // namespace leasehold::server
