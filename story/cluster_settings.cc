// The settings of the group, and what a story may do to clocks that rely on them.
#include <leasehold/story/cluster.h>

#include <algorithm>
#include <optional>

namespace leasehold::story {

std::variant<raft::LogId, raft::SettingsRefused> Cluster::change_settings(
    Replica id, const raft::SettingsEdit& edit) {
  StoryNode& node = this->node(id.node);
  raft::Core& core = *replica(id).core;
  raft::GroupSettings newest;
  newest.timing = core.timing();
  const raft::GroupSettings wanted = edit.applied_to(core.membership().settings.value_or(newest));
  const auto answer = core.change_settings(node.clock.at(now_), wanted);
  drain(node);
  return answer;
}

// What is in effect anywhere may be what a lease rests on.
std::int64_t Cluster::drift_ppm_max(NodeId id) const {
  std::optional<std::int64_t> agreed;
  for (const auto& [any, node] : nodes_) {
    for (const StoryReplica& replica : node.replicas) {
      const auto& settings = replica.core->membership().settings;
      const std::int64_t here = settings ? settings->timing.max_clock_drift_ppm : 0;
      agreed = std::min(agreed.value_or(here), here);
    }
  }
  return std::max(node(id).options.timing.max_clock_drift_ppm, agreed.value_or(0));
}

}  // namespace leasehold::story
