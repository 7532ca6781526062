// What a group's state says that has to be done about slots that move, and the doing of it.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/local/slot_move.h>
#include <leasehold/kv/slots.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace leasehold::kv {

/// Slots of one group that are in one phase of one move.
struct SlotJob {
  /// copying, frozen: they have to go to the group `other`. left: their keys have to be dropped.
  /// arriving: if the move was cancelled, what has come has to be dropped.
  SlotPhase phase = SlotPhase::copying;
  std::uint32_t other = 0;
  std::uint64_t move = 0;
  std::vector<std::uint32_t> slots;  ///< ascending
};

/// Of `group`, which counts from 0, of `groups`; what is nobody's comes first.
std::vector<SlotJob> slot_jobs(const SlotMap& records, std::size_t group, std::size_t groups);

/// Does a job of `group`, which counts from 0: returns how many keys were copied. `go_on` as in
/// SlotMove. Errors: as SlotMove::run().
Result<std::uint64_t> do_slot_job(const std::vector<MovingGroup*>& groups, std::size_t group,
                                  const SlotJob& job, const std::function<bool()>& go_on);

}  // namespace leasehold::kv
