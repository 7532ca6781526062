// Where the groups are, as a node of many groups knows it, and keeps it across its restarts.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/types.h>
#include <leasehold/server/front/group_place.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::server {

/// The places of all groups but the first, which is at every node. In the file PLACES of the node's
/// directory are those that it was not born with. Groups count from 1. Any thread, but for save().
class GroupPlaces {
 public:
  using Nodes = GroupPlace::Nodes;

  /// What the node `self` would know at its first start: of each group from the second one on.
  struct Start {
    bool here = true;
    Nodes nodes;
  };
  /// Errors: corrupted, unsupported_format, io.
  static Result<std::unique_ptr<GroupPlaces>> load(const std::string& data_dir, raft::NodeId self,
                                                   std::vector<Start> starts);

  /// Null: of the first group.
  GroupPlace* of(std::size_t group);
  /// The members of a group, by the log of the replica here. `among`: that is one of them. It may
  /// be so again: the entry of a removal may be taken back.
  void learn(std::size_t group, Nodes nodes, bool among);
  /// The replica here was removed.
  void leave(std::size_t group);
  /// The same as learn(), but somebody says so: it counts where no replica is. Errors:
  /// invalid_argument: a group or a node that cannot be.
  Result<void> hear(std::size_t group, const Nodes& nodes);
  /// Chooses the nodes that clients are sent to: one that is connected, if any is, and whose client
  /// address is known.
  void aim(const std::set<raft::NodeId>& connected,
           const std::map<raft::NodeId, std::string>& addresses);
  /// What is new, durably. One thread. Errors: io.
  Result<void> save();

 private:
  GroupPlaces(std::string data_dir, raft::NodeId self, std::vector<Start> starts);
  bool take_line(std::string_view line);
  void set(std::size_t group, Nodes nodes);
  void aim(GroupPlace& place) const;

  const std::string data_dir_;
  const raft::NodeId self_;
  const std::vector<Start> starts_;
  std::vector<std::unique_ptr<GroupPlace>> places_;
  std::atomic<bool> changed_{false};
  mutable std::mutex mutex_;
  /// Of the last aim(). Under mutex_.
  std::set<raft::NodeId> connected_;
  std::map<raft::NodeId, std::string> addresses_;
};

}  // namespace leasehold::server
