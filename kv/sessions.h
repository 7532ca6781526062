// The sessions of a store, and which of them the store has to write.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/replica/session_table.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace leasehold::kv {

/// A replica::SessionTable that the thread of apply() changes, while any other lists it. It
/// remembers the changes since the last saved(), for a store that writes sessions one by one.
class Sessions {
 public:
  // Any thread.
  std::vector<replica::SessionTable::Session> list() const;

  // The thread of apply(). As in replica::SessionTable.
  std::optional<replica::SessionId> open(std::string_view owner, std::uint64_t above);
  bool close(replica::SessionId id);
  /// All of this owner, who is not empty.
  void close_all_of(std::string_view owner);
  bool touch(replica::SessionId id);
  bool expire(replica::SessionId id, std::uint64_t activity);
  replica::SessionTable::Begun begin(replica::SessionId id, std::uint64_t sequence,
                                     std::uint64_t answered_below);
  void finish(replica::SessionId id, std::uint64_t sequence, Bytes result);
  /// The next `count` ids are never given.
  void skip_ids(std::uint64_t count);

  /// Opened, changed or closed since the last saved().
  const std::set<replica::SessionId>& changed() const { return changed_; }
  /// Whether the newest id has to be written although no session has.
  bool skipped() const { return skipped_; }
  void saved() {
    changed_.clear();
    skipped_ = false;
  }
  const replica::SessionTable& table() const { return table_; }
  /// Then no session has to be written.
  void replace(replica::SessionTable table);

 private:
  /// Held for every change, and by readers on other threads. Only the commands of sessions take it.
  mutable std::mutex mutex_;
  replica::SessionTable table_;
  std::set<replica::SessionId> changed_;
  bool skipped_ = false;
};

}  // namespace leasehold::kv
