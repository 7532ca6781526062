// Passes committed entries to the applier, in order, a bounded number of calls at a time.
#pragma once

#include <leasehold/replica/driver_context.h>
#include <leasehold/replica/entry_cache.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace leasehold::replica {

/// Entries come from the cache, or from the storage after a restart or when the applier is far
/// behind. Between the reset of the log by a snapshot and install() there is nothing to pass on.
/// While the allowed calls are under way the rest waits, and later makes one larger call.
class ApplyQueue {
 public:
  /// `applied`: what the state machine has already applied.
  ApplyQueue(DriverContext& context, const EntryCache& cache, raft::Index applied)
      : context_(context), cache_(cache), target_(applied), handed_(applied) {}

  /// The last entry given to the applier.
  raft::Index handed() const { return handed_; }

  /// More is committed than the applier has got.
  bool behind() const { return handed_ < target_; }

  /// Everything up to `target` is committed and durable here.
  void raise_target(raft::Index target);
  /// Gives the applier as many calls as it may have now.
  void pump();
  /// The state of a snapshot replaces everything up to its last entry. The call follows those
  /// already passed on, without a limit, because there is only one. At a witness, which stores no
  /// state, another may follow: each only says where its log begins.
  void install(const raft::SnapshotId& id);
  /// A call of the applier ended, with everything up to `last` applied. Returns the last entry of
  /// the snapshot when the call was install().
  std::optional<raft::LogId> applied(raft::Index last);
  /// The answer to a read of this part. False: the token is not the one of this part.
  bool entries_read(EntriesRead& event, std::optional<Error>& failure);

 private:
  void pass_on(std::vector<raft::Entry> entries);

  DriverContext& context_;
  const EntryCache& cache_;
  raft::Index target_;
  /// Invariant: context_.applied <= handed_ <= target_.
  raft::Index handed_;
  std::size_t under_way_ = 0;
  /// Of the read under way; 0: none.
  std::uint64_t token_ = 0;
  /// The last entries of the snapshots that are being installed, in order.
  std::vector<raft::LogId> installing_;
};

}  // namespace leasehold::replica
