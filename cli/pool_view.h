// What the nodes of a pool say of their groups, and what a planner makes of it.
#pragma once

#include <leasehold/client/resp_client.h>
#include <leasehold/placement/planner.h>
#include <leasehold/raft/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::cli {

/// What a node says of its replica of a group.
struct PoolSeat {
  raft::NodeId replica;             ///< its number in the group
  bool here = false;                ///< it is a member, as far as it has heard
  bool addable = false;             ///< it waits to be added, or is a stray for long (Strays)
  std::vector<raft::NodeId> nodes;  ///< without a replica: where it sends clients
};

struct PoolNode {
  raft::NodeId number;
  std::string server;  ///< where it answered
  std::string peer_address;
  std::map<raft::GroupId, PoolSeat> seats;
};

struct PoolMember {
  raft::NodeId replica;
  raft::NodeId node;
  bool voter = true;
  std::uint64_t behind = 0;  ///< entries that it lacks, as the leader says
};

/// A group as its leader says; or, without a leader, as the server says that knows its newest term.
struct PoolGroup {
  raft::GroupId id;
  std::string leader_server;  ///< empty: none of the servers leads
  raft::NodeId leader;        ///< the number of its replica
  std::uint64_t term = 0;
  bool settled = false;
  std::string membership;  ///< its id, for MEMBER EXPECT; empty: an older server does not say it
  std::uint64_t keys = 0;
  std::vector<PoolMember> members;

  const PoolMember* at(raft::NodeId node) const;
  const PoolMember* member(raft::NodeId replica) const;
  std::size_t voters() const;
  /// The nodes of its members, that of the leader first.
  std::vector<raft::NodeId> nodes() const;
};

struct PoolView {
  std::map<raft::NodeId, PoolNode> nodes;  ///< those that answered
  std::map<raft::GroupId, PoolGroup> groups;
  std::size_t replicas = 0;         ///< of a group at its beginning; 0: one at each node
  std::vector<std::string> silent;  ///< the servers that did not answer, and why

  const PoolGroup& home() const { return groups.at(raft::GroupId(1)); }
  const PoolSeat* seat(raft::NodeId node, raft::GroupId group) const;
  /// The node's replica was removed and has not heard of it.
  bool is_stray(raft::NodeId node, raft::GroupId group) const;
  /// Its node has deleted this replica, and waits to be added as another one.
  bool is_deleted(const PoolMember& member, raft::GroupId group) const;
  /// Of all learners together: less is nearer to the end.
  std::uint64_t behind() const;
};

/// Asks all servers at once; takes about `timeout` at most. Errors: unavailable (nobody answers),
/// invalid_argument (a server has one group, or is of a build without pools).
Result<PoolView> look_at_pool(const std::vector<std::string>& servers,
                              client::RespClient::Timeout timeout);

/// Replicas that were removed and have not heard of it (PoolView::is_stray). Most hear of it soon,
/// and are deleted. If such a replica were added just before, the group would have a member that
/// does not exist. A replica whose node was down when it was removed never hears of it.
class Strays {
 public:
  using Clock = std::chrono::steady_clock;
  /// More than it takes to hear of a removal and to delete the replica.
  static constexpr std::chrono::seconds kTime{10};
  /// A replica that has been a stray in all views for that time may be added.
  void note(PoolView& view, Clock::time_point now);

 private:
  std::map<std::pair<raft::NodeId, raft::GroupId>, Clock::time_point> since_;
};

/// What the operator says of the nodes.
struct PoolWishes {
  std::size_t replicas = 0;  ///< of each group but the first
  std::set<raft::NodeId> draining;
  std::set<raft::NodeId> gone;
  std::map<raft::NodeId, std::string> zones;
};

/// For placement::next_steps(): all groups but the first, which is at every node. `leaving`: of
/// each group what Step::instead_of was when its last replica was added.
placement::Pool pool_of(const PoolView& view, const PoolWishes& wishes,
                        const std::map<raft::GroupId, raft::NodeId>& leaving);

/// A step for a person: "group 7: add node 4 in place of node 2 (load)".
std::string sentence_of(const placement::Step& step);

}  // namespace leasehold::cli
