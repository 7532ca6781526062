// What a data directory knows of the backup that it came from: the files RESTORING and RESTORED.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/raft/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace leasehold::node {

/// Of a group that was made of what a lost majority had left (`leasehold recover`): see
/// docs/decisions/0035-a-recovered-group-is-a-new-group.md.
struct Recovered {
  std::uint64_t cluster_id = 0;  ///< of the group that was given up; not zero
  /// Where the log ended that it goes on from. Nothing for a host's directory: its groups have
  /// theirs.
  raft::LogId end;
  std::uint64_t at_s = 0;  ///< seconds since 1970, for people
  friend bool operator==(const Recovered&, const Recovered&) = default;
};
/// What a node of the group that was given up hears from one of the group that `restored` is of.
std::string given_up_text(const Recovered& recovered);

/// A restored group is a different group from that of the backup, even if its name and its members
/// are the same: see docs/decisions/0008-a-restored-group-is-a-new-group.md.
struct Restored {
  /// Names the backup: equal for equal bytes. Above 0. Part of the cluster id.
  std::uint64_t generation = 0;
  /// What the state machine holds: the log of the group begins behind it.
  raft::Index base;
  /// None: it was made from a backup.
  std::optional<Recovered> recovered{};

  /// Where the log begins, the same at every member: at a term in which nobody has voted, and
  /// which the group's own elections leave behind.
  raft::LogId begin() const { return {raft::Term(1), base}; }
  friend bool operator==(const Restored&, const Restored&) = default;
};

/// None: the data directory was never restored, or does not exist. Errors: corrupted (the file is
/// damaged, or a restoration was begun here and never finished), unsupported_format (with both
/// numbers), io.
Result<std::optional<Restored>> load_restored(const std::string& data_dir);

// A restoration, in this order. A crash at any moment leaves a directory that load_restored()
// refuses and that can be restored to again, or a finished one.

/// Whether a restoration was begun here and not finished. Errors: io.
Result<bool> restoration_begun(const std::string& data_dir);
/// Makes the directory, with its parents, if it does not exist, and marks its content as
/// incomplete. Durable on return. Errors: io.
Result<void> begin_restoration(const std::string& data_dir);
/// Records which backup the directory was made from. Everything else in it has to be durable.
/// Durable on return. Errors: io.
Result<void> finish_restoration(const std::string& data_dir, const Restored& restored);

/// The text of RESTORED, and back. Errors: corrupted, unsupported_format (with both numbers).
std::string encode_restored(const Restored& restored);
Result<Restored> decode_restored(const std::string& text);

/// Whether a group with a new log may form here: the log begins empty, or behind what all its
/// members were restored from. `durable` is what the state machine holds. Errors: wrong_cluster,
/// corrupted.
Result<void> check_new_log(const std::string& data_dir, const std::optional<Restored>& restored,
                           raft::Index durable);

}  // namespace leasehold::node
