// Which number this node's replica of each group has, and which of them were removed: a replica
// that was removed never comes back, and the node's next one of the group has a number of its own.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::server {

/// Removes what a replica has in its folder but its backups, and what says that it was restored
/// last: without that the next start would take the rest for a replica. Errors: io.
Result<void> remove_replica_files(const std::string& folder);

/// In the file REPLICAS of the node's directory. Groups count from 1. One thread.
class OwnReplicas {
 public:
  /// Of the node `self` with `groups` groups. Errors: corrupted, unsupported_format, io.
  static Result<OwnReplicas> load(const std::string& data_dir, raft::NodeId self,
                                  std::size_t groups);

  raft::NodeId of(std::size_t group) const;
  /// The groups whose replica waits to be added, as far as it is known.
  std::vector<std::size_t> waiting() const { return in(State::waits); }
  /// Of groups that have added such a replica of this node, those of which it is the one that
  /// waits. It may have been removed, and another one may wait, before this node hears of it.
  std::vector<std::size_t> just_added(
      const std::vector<std::pair<std::size_t, raft::NodeId>>& replicas) const;
  /// Whether a replica that is a member was removed before, and has not been replaced.
  bool returned(std::size_t group, raft::NodeId replica) const;
  /// The replica of each of `groups` was removed from it. Durable on return. Errors: io.
  Result<void> note_removed(const std::vector<std::size_t>& groups);
  /// The replica of each of `groups` waits no more. Durable on return. Errors: io.
  Result<void> note_added(const std::vector<std::size_t>& groups);
  /// The groups with a removed replica that may be deleted, to wait as a new one. Group 1 has the
  /// users, whose rights count in every group: it is there only once this node has left all others.
  std::vector<std::size_t> replaceable() const;
  /// The removed replica is deleted: the next one has its number from now on, and waits. Durable on
  /// return. Errors: io.
  Result<void> replace(std::size_t group);

 private:
  enum class State : std::uint8_t { member, removed, waits };
  struct Replica {
    raft::NodeId number;
    State state = State::member;
  };
  OwnReplicas(std::string data_dir, raft::NodeId self, std::size_t groups)
      : data_dir_(std::move(data_dir)), self_(self), groups_(groups) {}
  Result<void> take(std::string_view lines);
  bool take_line(std::string_view line);
  std::vector<std::size_t> in(State state) const;
  Result<void> save(std::map<std::size_t, Replica> changed);

  std::string data_dir_;
  raft::NodeId self_;
  std::size_t groups_;
  std::map<std::size_t, Replica> replicas_;  ///< without those that are the node's first
};

}  // namespace leasehold::server
