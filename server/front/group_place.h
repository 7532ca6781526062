// Where the replicas of a group are, at a node that may have none.
#pragma once

#include <leasehold/raft/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::server {

/// What this node knows of one group's place. Any thread.
///
/// At a node with a replica the members are those of its log. At another one they are the last that
/// it knew, or that it was given: those nodes have a replica, or have had one later than what is
/// known here, and then know better. So a client that follows what the nodes say comes to a member.
class GroupPlace {
 public:
  using Nodes = std::vector<raft::NodeId>;

  /// `nodes`: what is known at the start, the one to ask first at the front.
  GroupPlace(bool here, Nodes nodes) : stay_(here ? 1 : 0), nodes_(std::move(nodes)) {}

  /// A replica here is a member. One atomic load.
  bool here() const { return stay() % 2 == 1; }
  /// Rises with each change of here(). Who reads the store here looks at it before and after: the
  /// store of a replica that was removed becomes empty.
  std::uint64_t stay() const { return stay_.load(std::memory_order_acquire); }
  /// One thread at a time.
  void set_here(bool here) {
    if (here != this->here()) stay_.fetch_add(1, std::memory_order_acq_rel);
  }
  Nodes nodes() const;
  /// False: it knows them already.
  bool set_nodes(Nodes nodes);
  /// The node that clients are sent to; kNobody: none is known.
  raft::NodeId target() const { return raft::NodeId(target_.load(std::memory_order_relaxed)); }
  void set_target(raft::NodeId node) { target_.store(node.value(), std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> stay_;  ///< odd: here
  std::atomic<std::uint64_t> target_{0};
  mutable std::mutex mutex_;
  Nodes nodes_;  ///< under mutex_
};

/// "1,2,5". None: no such list, or a number that is no node's.
std::optional<GroupPlace::Nodes> parse_nodes(std::string_view text);

/// The error for a key of the slot, at a node without a replica of its group, whose number is
/// `group`, from 1 on. `addresses`: those of the nodes for clients.
std::string moved_text(const GroupPlace& place, std::size_t group, std::uint32_t slot,
                       const std::map<raft::NodeId, std::string>& addresses);

}  // namespace leasehold::server
