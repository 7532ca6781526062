// Turns the core's append intents into messages with entries.
#pragma once

#include <leasehold/replica/driver_context.h>
#include <leasehold/replica/entry_cache.h>

#include <map>
#include <optional>
#include <vector>

namespace leasehold::replica {

/// The core knows the shape of its log, not the payloads. An intent is filled from the cache, or,
/// for a peer that lags behind the cache, from the storage: one read per peer at a time, so memory
/// stays bounded even if many intents replace each other meanwhile.
class AppendFiller {
 public:
  AppendFiller(DriverContext& context, const EntryCache& cache)
      : context_(context), cache_(cache) {}

  void fill(lease::Now now, const raft::AppendIntent& intent);
  /// The answer to a read of this part. False: the token is not from this part. An error in
  /// `failure` means that the log on disk contradicts the core.
  bool entries_read(lease::Now now, EntriesRead& event, std::optional<Error>& failure);

 private:
  struct Pending {
    std::uint64_t token = 0;    ///< of the read under way; 0: none
    raft::Index first;          ///< what it asked for
    raft::AppendIntent intent;  ///< the peer's newest
  };

  void read(Pending& pending);
  void send(lease::Now now, const raft::AppendIntent& intent, std::vector<raft::Entry> entries);

  DriverContext& context_;
  const EntryCache& cache_;
  std::map<raft::NodeId, Pending> pending_;
};

}  // namespace leasehold::replica
