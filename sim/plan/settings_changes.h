// Changes the settings of the group, now and then, whatever else happens.
#pragma once

#include <leasehold/sim/judge/agreed_numbers.h>
#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

namespace leasehold::sim {

/// Asks a node that believes that it leads: D becomes longer or shorter, the bound on the drift
/// larger or smaller, and so on, one to three of them at once; some of the numbers are impossible
/// together. The clocks follow what is agreed: they are good enough before a smaller bound is asked
/// for, and as bad as they may be as soon as a larger one is committed.
class SettingsChanges {
 public:
  /// `clocks`: what the nodes rely on has changed.
  SettingsChanges(World& world, std::vector<SimNode*> nodes, AgreedNumbers& numbers,
                  std::function<void()> clocks);
  /// Until the faults end.
  void start();
  void node_died(const SimNode& node);
  const SettingsCounts& counts() const { return counts_; }

 private:
  struct Asked {
    const SimNode* node = nullptr;
    std::uint64_t request = 0;
  };

  void schedule_next();
  void change();
  raft::SettingsEdit draw_edit(const raft::GroupSettings& newest);
  void draw_one(raft::SettingsEdit& edit, const raft::GroupSettings& newest);
  /// Every node could renew its leases: else the group might have no leader.
  bool all_can_read() const;
  bool suits_all(const raft::GroupSettings& wanted) const;
  void answered(std::uint64_t number, const replica::SettingsResult& result);

  World& world_;
  std::vector<SimNode*> nodes_;
  AgreedNumbers& numbers_;
  std::function<void()> clocks_;
  Random random_;
  std::map<std::uint64_t, Asked> asked_;
  std::uint64_t last_number_ = 0;
  SettingsCounts counts_;
};

}  // namespace leasehold::sim
