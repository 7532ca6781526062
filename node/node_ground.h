// What a node finds in its data directory when it starts, and writes into a new one.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/node.h>
#include <leasehold/node/node_restored.h>
#include <leasehold/raft/log.h>
#include <leasehold/storage/segment_log.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::node {

/// This process runs one group.
inline constexpr raft::GroupId kGroup{1};

/// What the node starts from. The directory is locked while `log` is open.
struct Ground {
  std::uint64_t cluster_id = 0;
  std::optional<Restored> restored;
  std::unique_ptr<storage::SegmentLog> log;
  /// Taken out of `log`, if that is formed.
  std::optional<raft::InitialState> initial;
  /// The initial members with which the group forms, or formed; empty at a node that joins, or
  /// joined.
  std::vector<raft::Member> members;
  std::string address;  ///< where peers reach this node
};

/// Opens the log of `options.data_dir`, or makes a new one; asks the members of a group to join for
/// its cluster id (NodeOptions::join). `open_machine` opens the state machine, once the log is
/// open, and says what it holds. Errors: those of Node::open().
Result<Ground> find_ground(const NodeOptions& options,
                           const std::function<Result<raft::Index>()>& open_machine);

}  // namespace leasehold::node
