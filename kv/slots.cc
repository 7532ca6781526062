#include <leasehold/kv/slots.h>

#include <utility>

namespace leasehold::kv {

const char* slot_problem(std::uint32_t slot, const SlotRecord& record) {
  if (slot >= kSlots) return "there is no such slot";
  if (record.phase < SlotPhase::owned || record.phase > SlotPhase::arriving) {
    return "a slot is in no phase";
  }
  if (record.phase != SlotPhase::arriving && record.keys > 0) {
    return "a slot that does not arrive counts keys";
  }
  if (record.other == 0 || record.move == 0) return "a slot has moved without a move";
  return nullptr;
}

std::shared_ptr<const SlotMap> Slots::list() const {
  const std::lock_guard lock(mutex_);
  return map_;
}

const SlotRecord* Slots::find(std::uint32_t slot) const {
  const auto at = map_->find(slot);
  return at == map_->end() ? nullptr : &at->second;
}

void Slots::set(const std::vector<std::pair<std::uint32_t, SlotRecord>>& records) {
  SlotMap all = *map_;
  bool elsewhere = false;
  for (const auto& [slot, record] : records) {
    const auto [at, first] = all.try_emplace(slot, record);
    elsewhere = elsewhere || first || at->second.phase != record.phase ||
                at->second.other != record.other || at->second.epoch != record.epoch;
    at->second = record;
    changed_.insert(slot);
  }
  show(std::move(all), elsewhere);
}

void Slots::replace(SlotMap records) {
  // A store without moves begins with no records: that is no change.
  if (records.empty() && map_->empty()) return;
  saved();
  show(std::move(records), true);
}

void Slots::show(SlotMap records, bool elsewhere) {
  auto shown = std::make_shared<const SlotMap>(std::move(records));
  {
    const std::lock_guard lock(mutex_);
    map_.swap(shown);
    changes_.fetch_add(1, std::memory_order_release);
  }
  if (!elsewhere) return;
  const std::lock_guard lock(listeners_mutex_);
  for (const auto& [listener, news] : listeners_) news();
}

Slots::Listener Slots::listen(std::function<void()> news) const {
  const std::lock_guard lock(listeners_mutex_);
  listeners_.emplace(next_listener_, std::move(news));
  return next_listener_++;
}

void Slots::forget(Listener listener) const {
  const std::lock_guard lock(listeners_mutex_);
  listeners_.erase(listener);
}

}  // namespace leasehold::kv
