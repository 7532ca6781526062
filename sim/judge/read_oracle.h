// What an index for a read rests on.
#pragma once

#include <leasehold/raft/message.h>
#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <cstdint>
#include <deque>
#include <map>
#include <tuple>

namespace leasehold::sim {

/// Judges, by the name that a violation carries:
///   read_round              a leader gives a follower the index for a quorum read, and no quorum
///                           has acknowledged a round that began after the request had arrived
/// `read_index`, in clients.h: the index for a read is below what was committed when it arrived.
class ReadOracle {
 public:
  explicit ReadOracle(World& world) : world_(world) {}

  void on_arrival(const SimNode& node, raft::NodeId from, const raft::Message& message);
  void on_send(const SimNode& node, raft::NodeId to, const raft::Message& message);
  void on_crash(const SimNode& node);

 private:
  /// The node that was asked, the asker, its incarnation, and its number.
  using Key = std::tuple<raft::NodeId, raft::NodeId, raft::Incarnation, std::uint64_t>;
  struct Request {
    bool quorum = false;
    lease::HolderInstant arrived;  ///< on the clock of the node that was asked
  };

  static bool confirmed(const raft::Core& leader, lease::HolderInstant arrived);

  World& world_;
  /// Requests without an answer, each as often as it came.
  std::map<Key, std::deque<Request>> waiting_;
};

}  // namespace leasehold::sim
