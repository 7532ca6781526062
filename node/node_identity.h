// Which cluster a node's directory belongs to: from its initial peers, from what the directory
// holds, or, for a node that is to join, from what a member says.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/node/node.h>
#include <leasehold/raft/log.h>
#include <leasehold/storage/disk.h>
#include <leasehold/storage/folder.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::node {

/// The mark of the log in the data directory; none if there is no log. Errors: corrupted,
/// unsupported_format, io.
Result<std::optional<storage::FolderMark>> load_mark(const std::string& data_dir);
/// The same of a log on a disk of the program's.
Result<std::optional<storage::FolderMark>> load_mark(const storage::Disk& disk);

/// Checks the options alone, without the directory. Errors: invalid_argument.
Result<void> validate_options(const NodeOptions& options);
/// Whether a node whose directory has no group yet can join one. Errors: invalid_argument.
Result<void> may_join(const NodeOptions& options);
/// Where peers reach this node: what its log says, else what it was formed with (`initial`), else
/// where it listens. Errors: invalid_argument, when nothing is known.
Result<std::string> own_address(const NodeOptions& options,
                                const std::optional<raft::InitialState>& log,
                                const std::vector<raft::Member>& initial);

/// Asks no other node. `disk`: what NodeOptions::log_disk has opened. None: the directory is new
/// and `options.join` names the nodes to ask. Errors: invalid_argument (what options lack, or what
/// contradicts), and those of reading the directory: corrupted, unsupported_format, io.
Result<std::optional<std::uint64_t>> known_cluster_id(const NodeOptions& options,
                                                      const storage::Disk* disk = nullptr);

/// Asks each address of `options.join`, in order, until one answers; waits up to two seconds for
/// each. Errors: unavailable (no node answers, or none that answers knows yet: ask again later),
/// wrong_cluster (another cluster's name), in_use (the id is taken by a node that runs),
/// unsupported_format.
Result<std::uint64_t> ask_cluster_id(const NodeOptions& options);

}  // namespace leasehold::node
