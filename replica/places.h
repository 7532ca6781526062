// Where the replicas of a group are: each has a number of its own in the group, and runs in the
// process of a host.
#pragma once

#include <leasehold/raft/membership.h>
#include <leasehold/raft/types.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace leasehold::replica {

/// It also knows replicas that were members: a late message to one that has left, or from it, still
/// finds its way. Those that were named longest ago are forgotten once there are 256. The directory
/// of a member (Member::uuid) is its host's.
class Places {
 public:
  /// The number of the host with that directory; kNobody while nobody has met it.
  using HostOf = std::function<raft::NodeId(const raft::Uuid& directory)>;

  explicit Places(HostOf host_of) : host_of_(std::move(host_of)) {}

  void learn(const raft::Membership& membership);
  /// A message of the replica has come from that directory: this one may join, or have missed the
  /// membership that names it. A later one replaces that, but not what a membership says.
  void heard(raft::NodeId replica, const raft::Uuid& directory);
  /// Of an initial member, whose directory is not known yet.
  void assign(raft::NodeId replica, raft::NodeId host);
  /// kNobody: not a member, or its host is not known yet.
  raft::NodeId host_of(raft::NodeId replica) const;
  /// As a membership says; zero: none does.
  raft::Uuid directory_of(raft::NodeId replica) const;
  /// Of all replicas that the directory's host has, or had, the numbers.
  std::vector<raft::NodeId> replicas_of(const raft::Uuid& directory) const;

 private:
  struct Place {
    raft::NodeId replica;
    raft::Uuid directory;
    raft::NodeId host{};      ///< until the directory is known
    bool member = false;      ///< a membership says so
    std::uint64_t named = 0;  ///< the turn in which a membership or a message named it last
  };
  /// Made, if there is none: instead of the one that was named longest ago, if there are too many.
  std::vector<Place>::iterator at(raft::NodeId replica);
  const Place* find(raft::NodeId replica) const;

  HostOf host_of_;
  std::vector<Place> places_;  ///< ascending by replica
  std::uint64_t turn_ = 0;
  std::uint64_t newest_ = 0;  ///< the turn of the newest membership
};

}  // namespace leasehold::replica
