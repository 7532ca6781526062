#include <leasehold/base/assert.h>
#include <leasehold/kv/local/slot_agenda.h>

#include <algorithm>
#include <utility>

namespace leasehold::kv {

SlotAgenda::Kind SlotAgenda::kind_of(const SlotJob& job) {
  if (job.phase == SlotPhase::frozen) return Kind::frozen;
  return job.phase == SlotPhase::copying ? Kind::copying : Kind::dropping;
}

SlotAgenda::Which SlotAgenda::which(const SlotTask& task) {
  return {kind_of(task.job), task.group, task.job.slots.front()};
}

bool SlotAgenda::has_room(Kind kind) const {
  const auto count = std::count_if(in_hand_.begin(), in_hand_.end(), [kind](const SlotTask& task) {
    return kind_of(task.job) == kind;
  });
  return static_cast<std::size_t>(count) < (kind == Kind::frozen ? kFrozenMax : 1);
}

/// An attempt that began with copying has its slots frozen and left before it ends: another one
/// would make it void.
bool SlotAgenda::is_in_hand(const SlotTask& task) const {
  return std::any_of(in_hand_.begin(), in_hand_.end(), [&task](const SlotTask& one) {
    if (one.group != task.group) return false;
    return (set_of(one.job.slots) & set_of(task.job.slots)).any();
  });
}

std::vector<SlotTask> SlotAgenda::begin(std::vector<SlotTask> found, Instant now) {
  // One group after the other: one with many moves does not hold up the rest.
  std::stable_partition(found.begin(), found.end(), [this](const SlotTask& task) {
    const auto last = last_group_.find(kind_of(task.job));
    return last != last_group_.end() && task.group > last->second;
  });
  std::vector<SlotTask> begun;
  for (SlotTask& task : found) {
    const Kind kind = kind_of(task.job);
    const auto rest = rests_.find(which(task));
    if (rest != rests_.end() && now < rest->second.until) continue;
    if (!has_room(kind) || is_in_hand(task)) continue;
    last_group_[kind] = task.group;
    in_hand_.push_back(task);
    begun.push_back(std::move(task));
  }
  return begun;
}

bool SlotAgenda::end(const SlotTask& task, const Result<std::uint64_t>& done, Instant now) {
  const auto at = std::find_if(in_hand_.begin(), in_hand_.end(),
                               [&task](const SlotTask& one) { return which(one) == which(task); });
  LEASEHOLD_ASSERT(at != in_hand_.end());
  in_hand_.erase(at);
  if (done && task.job.phase != SlotPhase::arriving) {
    rests_.erase(which(task));
    return false;
  }
  Rest& rest = rests_[which(task)];
  if (done) {
    // The move may go on: only time or another record says that it has ended.
    rest = {now + options_.interval, {}, {}};
    return false;
  }
  const bool fixed = task.job.phase == SlotPhase::frozen;
  rest.pause = fixed ? options_.retry_min
                     : std::clamp(rest.pause * 2, options_.retry_min, options_.retry_max);
  rest.until = now + rest.pause;
  const Error& error = done.error();
  if (error.code == ErrorCode::stopped || error.message == rest.said) return false;
  rest.said = error.message;
  return true;
}

std::optional<SlotAgenda::Instant> SlotAgenda::next(Instant now) const {
  std::optional<Instant> soonest;
  for (const auto& [task, rest] : rests_) {
    if (rest.until > now && (!soonest || rest.until < *soonest)) soonest = rest.until;
  }
  return soonest;
}

}  // namespace leasehold::kv
