// Two would-be leaders, cut off in turn: the ground on which what one of them won is overwritten by
// the other, should a rule have a hole (figure 8 of the Raft paper, and its relatives).
#pragma once

#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace leasehold::sim {

/// A script for the faults, repeated again and again:
///
///   1. the elected node is cut off at that instant: what it appends stays its own;
///   2. the next elected node is cut off as well, the first one is back, and some of the voters of
///      the second die and start again, without what they had not synced;
///   3. when the first one commits a client's command, it is cut off before any node hears of it
///      (only the client does), and the second one is back;
///   4. the present leader is left in peace for a while, then all links are whole.
///
/// It only cuts links and stops processes, at times of its choice: a correct cluster loses nothing.
class Duel {
 public:
  struct Ports {
    /// Cuts this node off from all others; what is under way is lost.
    std::function<void(SimNode&)> isolate;
    /// Ends every cut.
    std::function<void()> join;
    /// The process dies and soon starts again.
    std::function<void(SimNode&)> crash;
  };

  Duel(World& world, std::vector<SimNode*> nodes, Ports ports);

  void start() { rest(); }
  void on_elected(SimNode& node);
  /// It has committed more than `before`.
  void on_commit(SimNode& node, raft::Index before);

 private:
  enum class Scene : std::uint8_t { peace, first, second, comeback, revenge };

  void enter(Scene scene, Duration longest);
  void rest();
  void swap(SimNode& out, std::uint64_t crash_percent);

  World& world_;
  std::vector<SimNode*> nodes_;
  Ports ports_;
  Random random_;
  Scene scene_ = Scene::peace;
  std::uint64_t scenes_ = 0;
  SimNode* first_ = nullptr;
  SimNode* second_ = nullptr;
};

}  // namespace leasehold::sim
