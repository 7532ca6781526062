// Readers of the committed log: who follows what a group has done, in order, in another place.
#pragma once

#include <leasehold/replica/driver_context.h>
#include <leasehold/replica/entry_cache.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace leasehold::replica {

/// Nothing is pushed: a reader asks for the next part when it has dealt with the last one, and
/// waits where there is none yet. So a slow reader costs a bounded amount of memory, and the group
/// does not wait for it. The log may be cut before the reader has read it: then the answer says so
/// (LogPart::cut). A reader with a place (LogReadFrom::reader) delays the cut for a while.
///
/// Entries come from the cache, or from the storage, one read at a time for each call.
class LogReads {
 public:
  LogReads(DriverContext& context, const EntryCache& cache) : context_(context), cache_(cache) {}

  void read(lease::Now now, ReadLog& event);
  /// After the effects of a turn: answers the calls for which there is something.
  void look(lease::Now now);
  /// The answer to a read of this part. False: the token is not from this part. An error in
  /// `failure` means that the log on disk contradicts the core.
  bool entries_read(lease::Now now, EntriesRead& event, std::optional<Error>& failure);
  /// As SnapshotSender::holds(): for the readers that have a place.
  std::optional<raft::Index> holds(lease::Now now) const;

  void expired(std::uint64_t number);
  void cancelled(CallGroup group);
  /// The node stops.
  void complete_all();

  bool waits(std::uint64_t number) const { return waiting_.count(number) != 0; }
  std::size_t size() const { return waiting_.size(); }

 private:
  struct Waiting {
    LogReadFrom from;
    CallGroup group;
    LogReadCompletion done;
    std::uint64_t token = 0;  ///< of the read under way; 0: none
  };
  /// Where a reader goes on.
  struct Place {
    raft::Index next;
    raft::PromiseInstant until;  ///< while no call of it waits
  };
  using Calls = std::map<std::uint64_t, Waiting>;

  bool take_place(lease::Now now, const LogReadFrom& from);
  /// Answers the call, or asks the storage. True: it is answered.
  bool answer(lease::Now now, Waiting& call);
  void finish(lease::Now now, Waiting& call, std::vector<raft::Entry> entries,
              std::optional<Error>& failure);
  Calls::iterator end(Calls::iterator call, Error error);

  DriverContext& context_;
  const EntryCache& cache_;
  std::uint64_t last_number_ = 0;
  /// In the order in which they came. Bounded by Limits::log_reads_max, as the places are.
  Calls waiting_;
  std::map<std::uint64_t, Place> places_;  ///< by reader
};

}  // namespace leasehold::replica
