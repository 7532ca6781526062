#include <leasehold/kv/slots.h>

#include <utility>

namespace leasehold::kv {
namespace {

/// What is shown of a record while its keys are being written: none that was not here before, or
/// that has been away since, is here.
void narrow(SlotMap& shown, std::uint32_t slot, const SlotRecord& record) {
  const auto before = shown.find(slot);
  const SlotRecord* const old = before == shown.end() ? nullptr : &before->second;
  const bool stays = serves(old) && record.epoch == (old == nullptr ? 0 : old->epoch);
  SlotRecord narrowed = record;
  if (serves(&record) && !stays) narrowed.phase = SlotPhase::arriving;
  shown.insert_or_assign(slot, narrowed);
}

}  // namespace

SlotSet set_of(const std::vector<std::uint32_t>& slots) {
  SlotSet set;
  for (const std::uint32_t slot : slots) set.set(slot);
  return set;
}

std::uint64_t arriving_keys(const SlotMap& slots) {
  std::uint64_t keys = 0;
  for (const auto& [slot, record] : slots) keys += record.keys;
  return keys;
}

const char* slot_problem(std::uint32_t slot, const SlotRecord& record) {
  if (slot >= kSlots) return "there is no such slot";
  if (record.phase < SlotPhase::owned || record.phase > SlotPhase::arriving) {
    return "a slot is in no phase";
  }
  if (record.phase != SlotPhase::arriving && record.keys > 0) {
    return "a slot that does not arrive counts keys";
  }
  const bool cancelled = record.phase == SlotPhase::owned && record.other == 0 && record.move == 0;
  if ((record.other == 0 || record.move == 0) && !cancelled) {
    return "a slot has moved without a move";
  }
  return nullptr;
}

std::shared_ptr<const SlotMap> Slots::list() const {
  const std::lock_guard lock(mutex_);
  return shown_;
}

std::uint64_t Slots::taken_at(std::uint32_t slot) const {
  const std::lock_guard lock(mutex_);
  const auto at = taken_.find(slot);
  return at == taken_.end() ? 0 : at->second;
}

void Slots::note_taken(std::uint32_t slot, std::uint64_t revision) {
  const std::lock_guard lock(mutex_);
  taken_.insert_or_assign(slot, revision);
}

const SlotRecord* Slots::find(std::uint32_t slot) const {
  const auto at = all_.find(slot);
  return at == all_.end() ? nullptr : &at->second;
}

void Slots::set(const std::vector<std::pair<std::uint32_t, SlotRecord>>& records) {
  for (const auto& [slot, record] : records) {
    all_.insert_or_assign(slot, record);
    changed_.insert(slot);
  }
}

void Slots::about_to_write() {
  if (changed_.empty()) return;
  SlotMap narrowed = *shown_;
  for (const std::uint32_t slot : changed_) narrow(narrowed, slot, all_.at(slot));
  show(std::move(narrowed));
}

void Slots::saved() {
  if (changed_.empty()) return;
  changed_.clear();
  show(all_);
}

void Slots::about_to_replace(const SlotMap& records) {
  if (records.empty() && shown_->empty()) return;
  SlotMap narrowed = *shown_;
  for (const auto& [slot, record] : records) narrow(narrowed, slot, record);
  show(std::move(narrowed));
}

void Slots::replace(SlotMap records) {
  changed_.clear();
  all_ = std::move(records);
  // A store without moves begins with no records: that is no change.
  if (all_.empty() && shown_->empty()) return;
  show(all_);
}

void Slots::show(SlotMap records) {
  bool elsewhere = records.size() != shown_->size();
  for (const auto& [slot, record] : records) {
    if (elsewhere) break;
    const auto at = shown_->find(slot);
    elsewhere = at == shown_->end() || at->second.phase != record.phase ||
                at->second.other != record.other || at->second.epoch != record.epoch;
  }
  auto shown = std::make_shared<const SlotMap>(std::move(records));
  {
    const std::lock_guard lock(mutex_);
    shown_.swap(shown);
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
