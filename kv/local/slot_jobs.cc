#include <leasehold/kv/local/slot_jobs.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace leasehold::kv {
namespace {

bool is_job(const SlotRecord& record) {
  switch (record.phase) {
    case SlotPhase::owned:
    case SlotPhase::gone: return false;
    case SlotPhase::arriving:
    case SlotPhase::copying:
    case SlotPhase::frozen:
    case SlotPhase::left: return true;
  }
  return false;
}

Result<void> drop_all(MovingGroup& group, const SlotSet& slots, const SlotJob& job,
                      const std::function<bool()>& go_on) {
  auto dropped = drop_slot_keys(group, slots, job.other, job.move, go_on);
  if (!dropped) return dropped;
  const auto forgotten =
      group.execute(ForgetSlots{job.other, job.move, job.phase == SlotPhase::arriving});
  if (!forgotten) return forgotten.error();
  return {};
}

/// A move that may still go on is left alone: it has the slot as copying or frozen in the group
/// that the slot leaves. One that is neither there can never be frozen again.
Result<void> drop_abandoned(MovingGroup& group, MovingGroup& from, const SlotJob& job,
                            const std::function<bool()>& go_on) {
  if (auto newest = from.catch_up(); !newest) return newest;
  const auto records = from.store().slots().list();
  // The move's number is a revision of that group. A replica that is below it does not know the
  // move: it has failed, or was removed meanwhile.
  const bool knows = from.store().revision() >= job.move;
  if (!knows || from.store().slots().list() != records) {
    return Error{ErrorCode::unavailable, "the other group's replica here does not know the move"};
  }
  SlotSet abandoned;
  for (const std::uint32_t slot : job.slots) {
    const auto at = records->find(slot);
    const bool leaves = at != records->end() && (at->second.phase == SlotPhase::copying ||
                                                 at->second.phase == SlotPhase::frozen);
    if (!leaves) abandoned.set(slot);
  }
  if (abandoned.none()) return {};
  return drop_all(group, abandoned, job, go_on);
}

}  // namespace

std::vector<SlotJob> slot_jobs(const SlotMap& records, std::size_t group, std::size_t groups) {
  std::map<std::tuple<SlotPhase, std::uint32_t, std::uint64_t>, SlotJob> jobs;
  for (const auto& [slot, record] : records) {
    // Of an earlier number of groups, if at all: such a group is not here.
    const bool known = record.other > 0 && record.other <= groups && record.other != group + 1;
    if (!is_job(record) || !known) continue;
    SlotJob& job = jobs[{record.phase, record.other, record.move}];
    job.phase = record.phase;
    job.other = record.other;
    job.move = record.move;
    // No move has more.
    if (job.slots.size() < kCommandSlotsMax) job.slots.push_back(slot);
  }
  std::vector<SlotJob> out;
  out.reserve(jobs.size());
  for (auto& [which, job] : jobs) out.push_back(std::move(job));
  std::stable_partition(out.begin(), out.end(),
                        [](const SlotJob& job) { return job.phase == SlotPhase::frozen; });
  return out;
}

Result<std::uint64_t> do_slot_job(const std::vector<MovingGroup*>& groups, std::size_t group,
                                  const SlotJob& job, const std::function<bool()>& go_on) {
  MovingGroup& here = *groups[group];
  MovingGroup& other = *groups[job.other - 1];
  Result<void> done;
  if (job.phase == SlotPhase::left) {
    done = drop_all(here, set_of(job.slots), job, go_on);
  } else if (job.phase == SlotPhase::arriving) {
    done = drop_abandoned(here, other, job, go_on);
  } else {
    SlotMove attempt({here, other, static_cast<std::uint32_t>(group + 1), job.other,
                      static_cast<std::uint32_t>(groups.size())},
                     job.slots, go_on);
    done = attempt.run();
    if (done) return attempt.copied();
  }
  if (!done) return done.error();
  return std::uint64_t{0};
}

}  // namespace leasehold::kv
