#include <leasehold/kv/slots.h>

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
  for (const auto& [slot, record] : records) {
    all.insert_or_assign(slot, record);
    changed_.insert(slot);
  }
  show(std::move(all));
}

void Slots::replace(SlotMap records) {
  saved();
  show(std::move(records));
}

void Slots::show(SlotMap records) {
  auto shown = std::make_shared<const SlotMap>(std::move(records));
  const std::lock_guard lock(mutex_);
  map_.swap(shown);
  changes_.fetch_add(1, std::memory_order_release);
}

}  // namespace leasehold::kv
