// One attempt to move slots from one group to another, from wherever an earlier one has come, to
// its end. Why this is safe: docs/decisions/0030-slots-move-through-both-logs.md.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/grant/lease_table.h>
#include <leasehold/kv/command.h>
#include <leasehold/kv/local/held_keys.h>
#include <leasehold/kv/reply.h>
#include <leasehold/kv/slots.h>
#include <leasehold/kv/store.h>
#include <leasehold/lease/instant.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::kv {

/// A group, as those see it who move its slots. Any thread. Its calls wait.
class MovingGroup {
 public:
  virtual ~MovingGroup() = default;
  /// The reply of a command that has been applied; it may be an ErrorReply. Errors: unavailable
  /// (nothing was done), timed_out (it may have been, or may still be).
  virtual Result<Reply> execute(const Command& command) = 0;
  /// After it, store() has all that had been applied anywhere before the call. Errors: unavailable.
  virtual Result<void> catch_up() = 0;
  virtual const Store& store() const = 0;
  /// Of the lease of a key; none: there is no such lease any more.
  virtual Result<std::optional<lease::Duration>> time_left(grant::LeaseId id) = 0;
};

/// A group with a replica here.
class LedGroup : public MovingGroup {
 public:
  /// Whether this replica leads the group, with a lease: then it is the one to move its slots.
  virtual bool leads() const = 0;
};

/// Between which groups. The groups outlive it; numbers are from 1 on.
struct MoveRoute {
  MovingGroup& from;
  MovingGroup& to;
  std::uint32_t from_number = 0;
  std::uint32_t to_number = 0;
  std::uint32_t groups = 0;  ///< that share the slots
};

/// Deletes all keys of the slots, which have left the group or are arriving there by this move
/// (DropKeys). `go_on` is asked from time to time; after it has said no, the rest stays. Errors:
/// those of the group; stopped: it said no.
Result<void> drop_slot_keys(MovingGroup& group, const SlotSet& slots, std::uint32_t other,
                            std::uint64_t move, const std::function<bool()>& go_on);

/// One thread. Goes on with a move that a command has begun, as another attempt. What an earlier
/// attempt has copied is not copied again where it is still the same. After an error, another
/// attempt may be begun at once, also elsewhere, while this one still runs.
class SlotMove {
 public:
  /// `slots`: ascending, at most kCommandSlotsMax. If they are not all slots of a move, the attempt
  /// does not begin. `go_on`: see drop_slot_keys().
  SlotMove(MoveRoute route, std::vector<std::uint32_t> slots, std::function<bool()> go_on);

  /// Until the other group has the slots and the first one has let go; the keys that it still has
  /// wait to be dropped. Errors: in_use (something keeps a slot where it is, and what it is),
  /// not_found (the move was cancelled, or another attempt has begun), overloaded (the keys changed
  /// faster than they were copied), stopped, those of the groups.
  Result<void> run();

  std::uint64_t copied() const { return copied_; }  ///< keys, also those that came more than once

 private:
  /// What ImportKeys needs of a key.
  struct Key {
    std::string key;
    std::optional<Value> value;
    grant::FencingToken token{};
  };

  Result<std::uint64_t> newest() const;
  Result<void> begin();
  Result<void> check_leases() const;
  Result<bool> expect();
  Result<void> copy();
  Result<std::vector<Key>> to_copy(SlotRows some);
  Result<void> copy_changes();
  Result<void> freeze();
  Result<void> take();
  Result<void> leave();

  Result<void> check() const;
  Result<void> note_changes(const std::optional<std::string>& copied_to);
  Result<void> note_fences();
  Result<void> send_changes();
  Result<void> send(const std::vector<Key>& keys);
  Result<MovedKey> moved(const Key& key) const;

  const MoveRoute route_;
  const std::vector<std::uint32_t> slots_;
  const std::function<bool()> go_on_;
  SlotSet set_;

  std::uint64_t move_ = 0;  ///< of this attempt
  std::vector<ExpectedSlot> expected_;
  std::optional<HeldKeys> held_;  ///< none: the other group has no key of the slots yet
  bool frozen_ = false;           ///< since the attempt began, or by it
  std::uint64_t frozen_at_ = 0;
  std::uint64_t next_revision_ = 0;  ///< of the events that have not been looked at
  /// Keys of the slots that have changed since they were copied.
  std::set<std::string, std::less<>> changed_;
  std::uint64_t copied_ = 0;
};

}  // namespace leasehold::kv
