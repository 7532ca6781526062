// Whether states of all groups, each as it was at another instant, divide the slots among them.
#pragma once

#include <leasehold/kv/slots.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::kv {

/// What the state of a group says of slots.
struct SlotsOfState {
  SlotMap slots;
  std::uint64_t revision = 0;
};

/// A sentence about the first slot that is on its way here or from here; none: none is. The keys of
/// a move that was cancelled count, until they are dropped.
std::optional<std::string> moving_slot(const SlotMap& slots);

/// Why the states, those of all groups in their order, are not of one store; none: each slot has
/// one owner, which has all its keys, and moves can go on from there.
///
/// The states need not be of one instant. A group's state has all keys of a slot or serves none, so
/// it is enough that just one has the slot, and that no other knows of a later change of its group:
/// that is what the epochs say. Else a slot that moved between two instants has no owner or two; or
/// its owner has an earlier epoch than others, which would ignore its next move. For the same
/// reason no group may know of a move that its beginning group has not begun: that would give the
/// number to another move.
///
/// A frozen slot counts as its group's: nobody serves it, and the same move can go on.
std::optional<std::string> layout_problem(const std::vector<SlotsOfState>& groups);

}  // namespace leasehold::kv
