#include <leasehold/sim/judge/agreed_numbers.h>

#include <algorithm>

namespace leasehold::sim {

std::uint64_t AgreedNumbers::asked(const raft::SettingsEdit& edit) {
  // Those that no longer matter.
  for (auto at = requests_.begin(); at != requests_.end();) {
    at = matters(at->second) ? std::next(at) : requests_.erase(at);
  }
  const std::uint64_t number = ++last_request_;
  requests_[number] = {edit.max_clock_drift_ppm, edit.margin, edit.lease_reads.value_or(false), {}};
  return number;
}

// The leader of a term has a quorum's votes in it, and each of those is durable.
void AgreedNumbers::lost(std::uint64_t request) {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return;
  raft::Term newest = ledger_.newest_term();
  for (const SimNode* node : ledger_.nodes()) {
    newest = std::max(newest, node->disk().durable().hard_state.term);
  }
  found->second.term = newest;
}

// A node that has crashed holds no lease when it returns, and does not lead without what is
// committed.
bool AgreedNumbers::without_leases() const {
  const auto off = [](const std::optional<raft::GroupSettings>& settings) {
    return settings && !settings->lease_reads;
  };
  if (drift_ppm_without_leases_ == 0 || !off(ledger_.membership().settings)) return false;
  for (const auto& [number, request] : requests_) {
    if (request.lease_reads && matters(request)) return false;
  }
  const std::vector<SimNode*>& nodes = ledger_.nodes();
  return std::all_of(nodes.begin(), nodes.end(), [&off](const SimNode* node) {
    return !node->up() || off(node->running().membership().settings);
  });
}

std::int64_t AgreedNumbers::drift_ppm(const SimNode& node) const {
  if (without_leases()) return drift_ppm_without_leases_;
  const std::int64_t own = node.timing().max_clock_drift_ppm;
  const std::optional<raft::GroupSettings>& settings = ledger_.membership().settings;
  if (!settings) return own;
  std::int64_t group = settings->timing.max_clock_drift_ppm;
  for (const auto& [number, request] : requests_) {
    if (request.drift_ppm && matters(request)) group = std::min(group, *request.drift_ppm);
  }
  return std::max(own, group);
}

Duration AgreedNumbers::margin(const SimNode& holder) const {
  const std::optional<raft::GroupSettings>& settings = ledger_.membership().settings;
  Duration margin = settings ? settings->timing.margin : holder.timing().margin;
  for (const auto& [number, request] : requests_) {
    if (request.margin && matters(request)) margin = std::min(margin, *request.margin);
  }
  return margin;
}

}  // namespace leasehold::sim
