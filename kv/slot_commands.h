// The commands that move slots from one group to another. No client sends them.
//
// A move goes through these steps, each of which may come twice: the group that has the slots
// begins it (BeginMove) and the other one expects them (ExpectSlots). Their keys are copied, while
// they are served (ImportKeys). The first group freezes them (FreezeMove), what has changed since
// is copied, the other group takes them (TakeSlots), and then the first one lets go (LeaveSlots),
// drops their keys (DropKeys), and says that none is left (ForgetSlots). Each driver begins another
// attempt (RetryMove), since it does not know how far its predecessor came: all that the
// predecessor still sends is void. What is frozen stays so until the other group has it: it may
// have taken the slots already.
#pragma once

#include <leasehold/grant/lease_table.h>
#include <leasehold/lease/instant.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace leasehold::kv {

/// Slots of one command. Checked when it is made and again when it is decoded.
inline constexpr std::size_t kCommandSlotsMax = 1024;

/// Begins a move of slots that are here, all of them frozen or none. `group` of `groups` is where
/// this command is applied: without a record it has the slots that their numbers give it. Result:
/// Integer, the number of the move. Errors: moved (a slot is not here), slot_busy (a frozen one can
/// only go where it was going, and slots of one move go on together).
struct BeginMove {
  std::uint32_t group = 0;           ///< from 1 on
  std::uint32_t groups = 0;          ///< 2 at least
  std::uint32_t to = 0;              ///< from 1 on; another one
  std::vector<std::uint32_t> slots;  ///< ascending
};
/// Another attempt of a move that goes on, with all of its slots: it has another number from here
/// on. A driver whose replica lags may name a move that has ended, which must not begin again, or
/// see a part of its slots: the others would be frozen with them, and nobody would take them.
/// Result: Integer, the number; Nil: there is no such move (any more), or it has other slots.
struct RetryMove {
  std::uint64_t move = 0;
  std::vector<std::uint32_t> slots;  ///< ascending
};
/// Ends a move whose slots are not frozen: they stay. Result: Integer, how many there were.
struct CancelMove {
  std::uint64_t move = 0;
};
/// From here on nothing sees or changes the keys of the move's slots. Result: Integer, the newest
/// revision of a key in them, or above; Nil: there is no such move (any more), or the slots have
/// left. Errors: slot_busy: a client's lease has its name or a key in one of the slots.
struct FreezeMove {
  std::uint64_t move = 0;
};
struct ExpectedSlot {
  std::uint32_t slot = 0;
  std::uint64_t epoch = 0;  ///< how often the slot has changed its group, with this move
};
/// What earlier attempts and moves still send is void from here on. Result: Integer, 0: the keys
/// may come; 1: this group has taken all of the slots already; 2: earlier ones have left keys here,
/// which are of this move from now on: send what differs from them. Nil: a later attempt or move is
/// known here. Errors: slot_busy: the slots have not left this group as a whole, or a client's
/// lease has its name or a key in one of them.
struct ExpectSlots {
  std::uint32_t group = 0;  ///< as in BeginMove: where this is applied
  std::uint32_t groups = 0;
  std::uint32_t from = 0;
  std::uint64_t move = 0;
  std::vector<ExpectedSlot> slots;  ///< ascending
};
/// A key as it is in the group that it leaves.
struct MovedKey {
  std::string_view key;
  bool exists = false;  ///< else the key is deleted here, and only its token counts
  std::string_view value;
  std::uint64_t create_revision = 0;
  std::uint64_t mod_revision = 0;
  std::uint64_t version = 0;
  /// What is left of its time. None: it does not end by itself.
  std::optional<lease::Duration> ttl{};
  /// The largest token that has written it; 0: none.
  grant::FencingToken token{};
};
/// Writes keys of slots that are arriving by this very move, in the place of what is there. Result:
/// Integer, how many; Nil: a slot of one of them is not, and nothing was done. Errors: limit (of
/// leases, of a revision).
struct ImportKeys {
  std::uint32_t from = 0;
  std::uint64_t move = 0;
  std::vector<MovedKey> keys;  ///< ascending
};
/// All slots of the move that are arriving are here from now on, and later revisions are above
/// `revision`, the one that FreezeMove returned: so are the tokens that are granted here. Result:
/// Integer, how many slots. Errors: limit (of a revision).
struct TakeSlots {
  std::uint32_t from = 0;
  std::uint64_t move = 0;
  std::uint64_t revision = 0;
};
/// The other group has taken the frozen slots of this move. Result: Integer, how many.
struct LeaveSlots {
  std::uint64_t move = 0;
};
/// Deletes keys that nothing sees: of slots that have left, or are arriving, by this move. Result:
/// Integer, how many existed.
struct DropKeys {
  std::uint32_t other = 0;
  std::uint64_t move = 0;
  std::vector<std::string_view> keys;  ///< ascending
};
/// No key of the slots that have left by this move is here any more, or (`arriving`) the move by
/// which they were to arrive was cancelled. Of the latter those stay that still have keys here.
/// Result: Integer, how many slots.
struct ForgetSlots {
  std::uint32_t other = 0;
  std::uint64_t move = 0;
  /// Each group numbers the moves that it begins: a move from here and one to here may have the
  /// same number.
  bool arriving = false;
};

}  // namespace leasehold::kv
