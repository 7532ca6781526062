// The sessions of a store, and which of them have to be written.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/node/session_table.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

namespace leasehold::kv {

/// A node::SessionTable that one thread changes, that of apply(), while any other lists it. It
/// remembers what was changed since the last saved(), for a store that writes sessions one by one.
class Sessions {
 public:
  // Any thread.
  std::vector<node::SessionTable::Session> list() const;

  // The thread of apply(). As in node::SessionTable.
  std::optional<node::SessionId> open();
  bool close(node::SessionId id);
  bool touch(node::SessionId id);
  bool expire(node::SessionId id, std::uint64_t activity);
  node::SessionTable::Begun begin(node::SessionId id, std::uint64_t sequence,
                                  std::uint64_t answered_below);
  void finish(node::SessionId id, std::uint64_t sequence, Bytes result);

  /// Opened, changed or closed since the last saved().
  const std::set<node::SessionId>& changed() const { return changed_; }
  void saved() { changed_.clear(); }
  const node::SessionTable& table() const { return table_; }
  /// With nothing to be written.
  void replace(node::SessionTable table);

 private:
  /// Held for every change, and by whoever reads on another thread. Nobody but the commands of
  /// sessions takes it.
  mutable std::mutex mutex_;
  node::SessionTable table_;
  std::set<node::SessionId> changed_;
};

}  // namespace leasehold::kv
