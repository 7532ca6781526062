// Pool: hosts, and the groups whose replicas they run, as a planner sees them.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::placement {

// Bounds of what a pool may contain: within them no sum or product overflows.

inline constexpr std::size_t kHostsMax = 10'000;
inline constexpr std::size_t kGroupsMax = 1'000'000;
inline constexpr std::uint32_t kReplicasMax = 15;  ///< of a group, wanted
inline constexpr std::uint32_t kWeightMax = 10'000;
inline constexpr std::uint32_t kLoadMax = 1'000'000;

/// What is known of a host's process.
enum class Contact : std::uint8_t {
  reachable,
  unreachable,  ///< it may come back: its replicas stay, and it gets no others
  gone,         ///< for good, as the operator says: its replicas are replaced
};

/// One host of the pool.
struct Host {
  raft::NodeId id;   ///< above 0
  std::string zone;  ///< hosts of one zone may fail together; any text
  /// Its capacity, relative to others: its share of the load. 0: it is emptied, as if it drained.
  /// At most kWeightMax.
  std::uint32_t weight = 1;
  bool draining = false;  ///< it gives up its leaderships, then its replicas
  Contact contact = Contact::reachable;

  /// It may get a replica.
  bool takes() const { return keeps() && contact == Contact::reachable; }
  /// A replica that it has may stay.
  bool keeps() const { return weight > 0 && !draining && contact != Contact::gone; }
};

/// A replica of a group, and the host that runs it.
struct Replica {
  raft::NodeId id;  ///< its number in the group, above 0
  raft::NodeId host;
};

/// A replica on its way to vote.
struct Learner {
  raft::NodeId id;
  raft::NodeId host;
  bool caught_up = false;  ///< the leader would promote it
};

/// One group. `last_replica` and `leaving` have to be remembered from one plan to the next, and are
/// best stored before the step is begun; the leader's status shows the rest.
struct Group {
  raft::GroupId id;            ///< above 0
  std::uint32_t replicas = 3;  ///< voters wanted: 1 to kReplicasMax
  std::uint32_t load = 1;      ///< of each replica, relative to other groups: 1 to kLoadMax
  std::vector<Replica> voters;
  /// All of them are to vote; one that is being added is among them.
  std::vector<Learner> learners;
  raft::NodeId leader;  ///< the number of a voter; kNobody: unknown
  /// The highest number that a replica of the group ever had: the next one gets a higher one.
  raft::NodeId last_replica;
  /// Step::instead_of of the last replica that was added. Without it (kNobody) the planner still
  /// finishes a move, but may choose another replica to remove.
  raft::NodeId leaving;
  /// A step of the group is being carried out, or another change of its members is.
  bool changing = false;
};

struct Pool {
  std::vector<Host> hosts;
  std::vector<Group> groups;
};

/// Errors: invalid_argument, with the host or the group in question: a value out of its range, a
/// number that stands twice, a replica at a host that is not listed, two replicas of a group at one
/// host, a leader that is no voter, no voter at all.
Result<void> validate(const Pool& pool);

}  // namespace leasehold::placement
