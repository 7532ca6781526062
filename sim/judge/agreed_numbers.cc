#include <leasehold/sim/judge/agreed_numbers.h>

#include <algorithm>

namespace leasehold::sim {

std::uint64_t AgreedNumbers::asked(const raft::SettingsEdit& edit) {
  // Those that no longer matter.
  for (auto at = requests_.begin(); at != requests_.end();) {
    at = matters(at->second) ? std::next(at) : requests_.erase(at);
  }
  const std::uint64_t number = ++last_request_;
  requests_[number] = {edit.max_clock_drift_ppm, edit.margin, {}};
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

std::int64_t AgreedNumbers::drift_ppm(const SimNode& node) const {
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
