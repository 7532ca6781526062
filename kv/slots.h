// Which slots of keys a group has, for groups that share the slots and move them among themselves.
#pragma once

#include <leasehold/kv/key_slot.h>

#include <atomic>
#include <bitset>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::kv {

/// Pinned: the values are in databases and snapshots.
enum class SlotPhase : std::uint8_t {
  /// It is here, as a move has brought it, or as it was before a move that was cancelled.
  owned = 1,
  /// It is here, and its keys are being copied to another group.
  copying = 2,
  /// It is nobody's: no command here sees its keys, and they do not change.
  frozen = 3,
  /// The other group has it. Here are only keys that wait to be dropped.
  left = 4,
  /// The other group has it, and nothing of it is here.
  gone = 5,
  /// Its keys are coming from the other group; no command sees them yet.
  arriving = 6,
};

/// What a group knows of a slot that a move has concerned. Without a record a slot is where the
/// number of the groups puts it.
struct SlotRecord {
  SlotPhase phase = SlotPhase::owned;
  /// How often the slot has changed its group. Of two groups that say that they have it, the one
  /// with the larger number does. Of `arriving`: with this move.
  std::uint64_t epoch = 0;
  /// The group it goes to, is at or came from, from 1 on. 0, as `move`: its move was cancelled.
  std::uint32_t other = 0;
  /// The revision, in the group that it leaves, of the command that began the move. A later attempt
  /// has a larger one.
  std::uint64_t move = 0;
  std::uint64_t keys = 0;  ///< of `arriving`: how many are here
  friend bool operator==(const SlotRecord&, const SlotRecord&) = default;
};
using SlotMap = std::map<std::uint32_t, SlotRecord>;
using SlotSet = std::bitset<kSlots>;
SlotSet set_of(const std::vector<std::uint32_t>& slots);

/// Groups that share slots give no id of a lease or session twice: behind a move a client may name
/// one of the group that had the slot, in the group that has it now. Each group has so many.
inline constexpr std::uint64_t kIdsOfGroup = std::uint64_t{1} << 44U;

/// Why a record is none that a group writes; null: it may be one.
const char* slot_problem(std::uint32_t slot, const SlotRecord& record);

/// Whether commands and reads of a group with this record may see the keys of the slot. `record`
/// null: none.
inline bool serves(const SlotRecord* record) {
  return record == nullptr || record->phase == SlotPhase::owned ||
         record->phase == SlotPhase::copying;
}

/// The thread of apply() changes the records, while any other reads them. It remembers the changes
/// since the last saved(), for a store that writes them one by one.
///
/// Readers of a store look here before and after they read it. So what they see changes in two
/// steps around each write of the store: about_to_write() shows what is not here any more, and
/// saved() what is here since then. In between no slot seems to be here whose keys may be another
/// group's, or not all there.
class Slots {
 public:
  using Listener = std::uint64_t;
  static constexpr std::uint64_t kNoChanges = 1;

  // Any thread.

  /// A number of this process that rises with every change; kNoChanges at first. One atomic load.
  std::uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
  /// At least as new as the changes() that was read before. Never null.
  std::shared_ptr<const SlotMap> list() const;
  /// Calls `news` when a slot has another phase or another group, on the thread of apply(), so it
  /// must be quick. After forget() has returned it is not called any more.
  Listener listen(std::function<void()> news) const;
  void forget(Listener listener) const;

  // The thread of apply().

  /// With the changes that no other thread sees yet.
  const SlotMap& all() const { return all_; }
  /// Null: there is no record.
  const SlotRecord* find(std::uint32_t slot) const;
  bool serves_key(std::string_view key) const { return all_.empty() || serves(find(slot_of(key))); }
  void set(const std::vector<std::pair<std::uint32_t, SlotRecord>>& records);
  /// Written since the last saved().
  const std::set<std::uint32_t>& changed() const { return changed_; }
  void about_to_write();
  void saved();
  /// Another state with these records is about to replace the store; replace() follows.
  void about_to_replace(const SlotMap& records);
  /// Then none has to be written.
  void replace(SlotMap records);

 private:
  void show(SlotMap records);

  SlotMap all_;
  std::set<std::uint32_t> changed_;

  std::atomic<std::uint64_t> changes_{kNoChanges};
  /// Held while `shown_` is replaced, and by readers on other threads.
  mutable std::mutex mutex_;
  std::shared_ptr<const SlotMap> shown_ = std::make_shared<const SlotMap>();

  mutable std::mutex listeners_mutex_;
  mutable std::map<Listener, std::function<void()>> listeners_;
  mutable Listener next_listener_ = 1;
};

}  // namespace leasehold::kv
