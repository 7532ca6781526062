// The leases of a store, and which of them have to be written or timed.
#pragma once

#include <leasehold/grant/expiry_tracker.h>
#include <leasehold/grant/lease_table.h>
#include <leasehold/kv/command.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::kv {

/// A lease and the keys that are attached to it, in order.
struct FoundLease {
  grant::LeaseTable::Lease lease;
  std::vector<std::string> keys;
  std::size_t key_bytes = 0;  ///< of the names

  /// False: it has more than is shown.
  bool add(std::string_view key) {
    key_bytes += key.size();
    keys.emplace_back(key);
    return key_bytes <= kReplyBytesMax;
  }
};
/// The lease with these keys, as far as add() takes them.
FoundLease found_lease(const grant::LeaseTable::Lease& lease, const grant::LeaseTable::Keys& keys);

/// A lease, for the code that times it.
struct TimedLease {
  grant::LeaseId id;
  std::uint64_t stamp = 0;
  grant::ExpiryTracker::Times times;
};
/// `wants`: how often a client was refused its name.
TimedLease timed(const grant::LeaseTable::Lease& lease, std::uint32_t wants);
/// Whether the lease is one of the user of this name that was made by the revision `created`. A
/// lease's token is the revision of its grant: one that was granted before is of an earlier user.
inline bool is_of_user(const grant::LeaseTable::Lease& lease, std::string_view user,
                       std::uint64_t created) {
  return lease.owner == user && lease.token.value() > created;
}
struct LeaseChanges {
  std::uint64_t cursor = 0;  ///< for the next call
  /// `alive` has all that exist: forget every other one.
  bool whole = false;
  std::vector<TimedLease> alive;  ///< began, were renewed in the log, delayed or wanted
  std::vector<grant::LeaseId> gone;
};

/// A grant::LeaseTable that the thread of apply() changes, while others read. It remembers the
/// changes since the last saved(), for a store that writes leases one by one, and the recently
/// changed leases, for the code that times them.
class Leases {
 public:
  // Any thread.
  LeaseChanges changes(std::uint64_t cursor) const;
  std::optional<FoundLease> find(grant::LeaseId id, std::string_view name) const;
  std::optional<grant::LeaseTable::Lease> terms(grant::LeaseId id, std::string_view name) const;
  std::vector<grant::LeaseTable::Lease> list(grant::LeaseId after, std::size_t count) const;

  // The thread of apply().
  /// No other thread sees the table before end_step(), so that none sees half of a step.
  grant::LeaseTable& begin_step();
  /// Keeps the changes of the step. Does nothing if none was begun.
  void end_step();
  /// The next `count` ids are never given. With no step under way.
  void skip_ids(std::uint64_t count);

  // Changed since the last saved(); with no step under way.
  const std::set<grant::LeaseId>& changed() const { return changed_; }
  /// By name; 0: no lease has the name any more.
  const std::map<std::string, grant::LeaseId>& names() const { return names_; }
  /// True: attached now.
  const std::map<std::pair<grant::LeaseId, std::string>, bool>& attachments() const {
    return attachments_;
  }
  /// Whether the newest id has to be written although no lease has.
  bool skipped() const { return skipped_; }
  /// Their size in bytes, about.
  std::size_t unsaved_bytes() const { return unsaved_bytes_; }
  void saved();
  const grant::LeaseTable& table() const { return table_; }
  /// Then no lease has to be written.
  void replace(grant::LeaseTable table);
  /// Replaces `before`: a caller with a cursor of that one gets everything.
  void follow(const Leases& before);

 private:
  /// Older changes are forgotten: a caller with an older cursor gets everything.
  static constexpr std::size_t kJournalMax = 65536;

  void note(const grant::LeaseTable::Change& change);
  void note_key(grant::LeaseId id, const std::string& key, bool attached);
  void note_in_journal(grant::LeaseId id);
  TimedLease timed(const grant::LeaseTable::Lease& lease) const;

  /// Held during a step, and by readers on other threads. Only the commands of leases take it.
  mutable std::mutex mutex_;
  std::unique_lock<std::mutex> step_;
  grant::LeaseTable table_;
  std::deque<grant::LeaseId> journal_;
  std::uint64_t journal_begin_ = 1;  ///< the cursor at its front
  /// How often a client was refused the name of a lease with a soft limit. Not in the state.
  std::map<grant::LeaseId, std::uint32_t> wants_;
  std::set<grant::LeaseId> changed_;
  std::map<std::string, grant::LeaseId> names_;
  std::map<std::pair<grant::LeaseId, std::string>, bool> attachments_;
  std::size_t unsaved_bytes_ = 0;
  bool skipped_ = false;
};

}  // namespace leasehold::kv
