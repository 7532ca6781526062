// Snapshots of state machines whose state is a set of files, or a stream of bytes of which nobody
// knows the length before it has ended.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/types.h>
#include <leasehold/replica/state_machine.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace leasehold::node {

/// One file of a snapshot.
struct SnapshotPart {
  std::string name;  ///< in the snapshot: 1 to 255 bytes without '/', not "." and not ".."
  std::string path;  ///< where it lies now
  /// What digests_of_file() has said when the file was complete; remember it with the file. A
  /// replica that holds the same bytes is not sent them. Empty: this file is always sent.
  std::string digests{};
};

/// The bytes of a file that one digest is of: a replica that holds a part of a file, for example
/// the front of one that has grown, is not sent these blocks of it.
inline constexpr std::size_t kDigestBlockBytes = std::size_t{1} << 20U;

/// The digests (SHA-256) of the blocks of a file that changes no more: 32 bytes for each MiB. Reads
/// all of it. Any thread. Errors: io.
Result<std::string> digests_of_file(const std::string& path);

/// A snapshot that holds `parts`, in their order, and each with the size that it has now. All are
/// opened at once: they may be removed behind this call, and must not change. A build that knows no
/// digests cannot unpack a snapshot that has some. Any thread. Errors: invalid_argument (a name, or
/// one twice; digests of another size), io.
Result<std::shared_ptr<const replica::Snapshot>> snapshot_of_files(
    raft::Index last, const std::vector<SnapshotPart>& parts);

/// The largest number of files in one snapshot.
inline constexpr std::size_t kSnapshotPartsMax = std::size_t{1} << 16U;
/// The largest number of blocks with digests (of 1 TiB); files beyond it are always sent.
inline constexpr std::size_t kSnapshotBlocksMax = std::size_t{1} << 20U;

/// Where a file may lie that has this name in a snapshot, and this size. Empty: nowhere.
using PartLookup = std::function<std::string(const std::string& name, std::uint64_t size)>;

/// For StateMachine::held_blocks(): the blocks of files that are here. `where` is asked during the
/// call, about each file with digests. It need not be right, and the files need not stay: a block
/// with other bytes, or of a file that is gone, is sent.
replica::HeldAnswer held_files(const replica::Snapshot& arriving, std::uint64_t arrived,
                               const PartLookup& where);

/// For install_snapshot(): writes the files of `snapshot`, which another replica has made with
/// snapshot_of_files(), into `folder`, which is made, or is empty. Durable on return; after an
/// error the folder may hold a part of them. Returns the names, in their order. Errors: corrupted
/// (these bytes are no snapshot of files; or a file is not what its digests say), invalid_argument
/// (the folder holds something), io.
Result<std::vector<std::string>> unpack_files(const replica::Snapshot& snapshot,
                                              const std::string& folder);

/// Gives the next bytes of a stream: `bytes` at most, and at least one unless it has ended, which 0
/// says.
using SnapshotStream = std::function<Result<std::size_t>(char* to, std::size_t bytes)>;

/// A snapshot that holds all of `stream`. A peer is sent a snapshot whose size is known, and may
/// ask for any part of it again, so the stream goes first into a file of `folder` without a name,
/// which ends with the snapshot. Any thread. Errors: those of the stream, invalid_argument (it is
/// empty), io.
Result<std::shared_ptr<const replica::Snapshot>> snapshot_of_stream(raft::Index last,
                                                                    const SnapshotStream& stream,
                                                                    const std::string& folder);

/// For install_snapshot(): the bytes of `snapshot`, which outlives the result, from front to back.
SnapshotStream stream_of(const replica::Snapshot& snapshot);

}  // namespace leasehold::node
