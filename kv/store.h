// Store: a revisioned key-value store as a replicated state machine.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/grant/lease_table.h>
#include <leasehold/kv/command.h>
#include <leasehold/kv/events.h>
#include <leasehold/kv/leases.h>
#include <leasehold/kv/slots.h>
#include <leasehold/kv/users.h>
#include <leasehold/raft/types.h>
#include <leasehold/replica/session_table.h>
#include <leasehold/replica/state_machine.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::kv {

/// The value of a key. Revisions count the commands that changed anything, over the whole store,
/// from 1 on; all keys that one command changes get the same one.
struct Value {
  Bytes bytes;
  std::uint64_t create_revision = 0;  ///< when the key came into being
  std::uint64_t mod_revision = 0;     ///< when it was last written
  std::uint64_t version = 0;          ///< writes since it came into being, from 1 on
  grant::LeaseId lease{};             ///< the key is deleted with this lease; 0: none
  std::size_t left_out = 0;           ///< bytes that a read did not load (Load::revisions)
};

/// What a read of several keys loads of each.
enum class Load : std::uint8_t {
  whole,
  revisions,  ///< and no bytes
};

/// Value bytes of one Store::get_all(): to find a value its bytes are read, also if it is not
/// shown.
constexpr std::size_t bytes_max(Load load) {
  return load == Load::whole ? kReplyBytesMax : std::size_t{256} << 20U;
}

/// A key and its value.
struct Row {
  std::string key;
  Value value;
};
/// Keys with one prefix, in ascending order, at one instant.
struct Rows {
  std::uint64_t revision = 0;  ///< the newest one at that instant: the rows are its state
  std::vector<Row> rows;
  bool more = false;  ///< there are more after the last row
};
/// Keys of some slots, in ascending order, at one instant.
struct SlotRows {
  std::vector<Row> rows;
  std::optional<std::string> reached;  ///< go on after this key; none: there are no more
};
/// Keys, also deleted ones, that were written with a token, and the largest of each.
struct SlotFences {
  std::vector<std::pair<std::string, grant::FencingToken>> fences;
  std::optional<std::string> reached;  ///< as in SlotRows
};
/// Keys, of any slot, that one Store::slot_rows() or slot_fences() looks at.
inline constexpr std::size_t kSlotKeysSeenMax = 16384;
/// Value bytes of one Store::rows() or slot_rows(), give or take one value.
inline constexpr std::size_t kRowsBytesMax = std::size_t{4} << 20U;

/// The error of a read whose values have more than `max` bytes together.
inline Error values_too_large(std::size_t max = kReplyBytesMax) {
  return {ErrorCode::invalid_argument,
          "the values have more than " + std::to_string(max) + " bytes together: ask for fewer"};
}

/// The read side. apply() runs on one thread (see replica::StateMachine); every other method may
/// run on any thread meanwhile.
///
/// A command takes effect at one instant: no reader sees a part of it, and after one read has seen
/// it, every later read on any thread sees it. After apply() has returned, every read sees its
/// effects.
///
/// apply() takes each index once: a command at or below the applied index is a bug of the caller
/// and asserts. So the caller starts at durable_index() + 1.
///
/// A store whose disk failed answers every read with `io` and every command with store_failed, from
/// the first failure on; it never serves a value that may be old.
class Store : public replica::StateMachine {
 public:
  /// The value, or none if the key does not exist. Errors: io, corrupted (the store has failed).
  virtual Result<std::optional<Value>> get(std::string_view key) const = 0;
  /// The value of each of the keys, in their order, all at one instant. Errors as get(), and
  /// invalid_argument when the values have more than bytes_max(load) bytes together.
  virtual Result<std::vector<std::optional<Value>>> get_all(
      const std::vector<std::string_view>& keys, Load load) const = 0;
  /// Keys in ascending order of their bytes, from the first one after `after` on (from the very
  /// first one without it), at most `count` of them, as they were at one instant. Fewer than
  /// `count`: there are no more. Errors as get().
  virtual Result<std::vector<std::string>> keys_after(std::optional<std::string_view> after,
                                                      std::size_t count) const = 0;
  /// The keys that begin with `prefix`, from the first one after `after` on (from the very first
  /// one without it), at most `count`, above 0, of them and about kRowsBytesMax of values. To read
  /// all keys of a prefix and then watch them, watch from the revision after that of the first
  /// part. Changes that the later parts already contain then come once more. Errors as get().
  virtual Result<Rows> rows(std::string_view prefix, std::optional<std::string_view> after,
                            std::size_t count, Load load) const = 0;
  /// The keys in `slots` from the first one after `after` on (from the very first one without it),
  /// as many as one call finds. Errors as get().
  virtual Result<SlotRows> slot_rows(const SlotSet& slots, std::optional<std::string_view> after,
                                     Load load) const = 0;
  /// The same of the keys that were written with a token.
  virtual Result<SlotFences> slot_fences(const SlotSet& slots,
                                         std::optional<std::string_view> after) const = 0;
  /// The largest token that has written the key; it outlives the key. 0: none. Errors as get().
  virtual Result<grant::FencingToken> fence(std::string_view key) const = 0;
  /// Of the value; none if the key does not exist. Errors as get().
  virtual Result<std::optional<std::size_t>> length(std::string_view key) const = 0;
  Result<bool> exists(std::string_view key) const {
    const auto found = length(key);
    if (!found) return found.error();
    return found.value().has_value();
  }
  /// The sessions that are open, in the order of their ids. Errors as get().
  virtual Result<std::vector<replica::SessionTable::Session>> sessions() const = 0;
  /// A lease by its id, or (0) by its name, at one instant; none if there is no such lease. Of its
  /// keys only so many that their names have more than kReplyBytesMax bytes. Errors as get().
  virtual Result<std::optional<FoundLease>> find_lease(grant::LeaseId id,
                                                       std::string_view name) const = 0;
  /// The same without its keys, which may be many.
  virtual Result<std::optional<grant::LeaseTable::Lease>> lease_terms(
      grant::LeaseId id, std::string_view name) const = 0;
  /// Leases in the order of their ids, from the first one above `after` on, at most `count` of
  /// them, at one instant. Fewer than `count`: there are no more. Errors as get().
  virtual Result<std::vector<grant::LeaseTable::Lease>> leases_after(grant::LeaseId after,
                                                                     std::size_t count) const = 0;
  /// For the code that times the leases: those that have begun, were renewed in the log or have
  /// ended since `cursor` (LeaseChanges::cursor of the last call; 0 at first). It may be ahead of
  /// reads. Errors as get().
  virtual Result<LeaseChanges> lease_changes(std::uint64_t cursor) const = 0;
  /// The changes of the latest revisions.
  virtual const EventHistory& events() const = 0;
  /// The users of the client port. They may be ahead of reads.
  virtual const Users& users() const = 0;
  /// Which slots this group has. Reads do not ask: the keys of a slot that is not here are found,
  /// too. Look before and after a read (Slots).
  virtual const Slots& slots() const = 0;
  /// How many keys exist. After a failure: the last count.
  virtual std::uint64_t size() const = 0;
  /// How many keys, also deleted ones, were written with a token: what is kept of them is never
  /// removed. May be ahead of reads.
  virtual std::uint64_t fences() const = 0;
  /// The newest revision; 0 for a store that never changed.
  virtual std::uint64_t revision() const = 0;
  /// The last index given to apply(), or durable_index() before the first call.
  virtual raft::Index applied_index() const = 0;
};

}  // namespace leasehold::kv
