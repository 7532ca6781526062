// What a simulated node remembers of its promises to the processes of others.
#pragma once

#include <leasehold/replica/process_driver.h>
#include <leasehold/sim/world/sim_disk.h>
#include <leasehold/sim/world/world.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

namespace leasehold::sim {

/// Writes become durable in order, each some time after it was asked for. A crash keeps any number
/// of those that wait, in order.
class SimSupports : public replica::SupportStore {
 public:
  SimSupports(World& world, std::uint64_t node);

  /// A new process begins. `done` gets the number of each write that is durable, by way of `run`.
  void open(std::function<void(std::uint64_t write)> done, RunInProcess run);
  void crash();
  std::vector<raft::RememberedSupport> remembered() const;

  void remember(std::vector<raft::RememberedSupport> supports, std::uint64_t write) override;

 private:
  struct Write {
    std::uint64_t number;
    std::vector<raft::RememberedSupport> supports;
  };
  void finish();
  void keep(const Write& write);

  World& world_;
  const std::uint64_t node_;
  Random random_;
  std::function<void(std::uint64_t write)> done_;
  RunInProcess run_;
  /// Rises with each crash.
  std::uint64_t life_ = 0;
  TrueInstant last_end_;
  std::deque<Write> waiting_;
  std::map<raft::Uuid, raft::RememberedSupport> durable_;
};

}  // namespace leasehold::sim
