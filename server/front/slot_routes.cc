#include <leasehold/base/assert.h>
#include <leasehold/server/front/slot_routes.h>

#include <memory>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

/// Where a record says that its slot is, or will be next.
std::size_t place_of(const kv::SlotRecord& record, std::size_t here) {
  const bool away = record.phase == kv::SlotPhase::left || record.phase == kv::SlotPhase::gone;
  return away ? record.other - 1 : here;
}

struct Found {
  std::size_t group = 0;
  std::uint64_t epoch = 0;
  bool open = true;
};

}  // namespace

std::optional<std::uint32_t> slot_in(const std::vector<KeyUse>& uses) {
  for (const KeyUse& use : uses) {
    const bool of_slot = use.kind == KeyUse::Kind::key || use.kind == KeyUse::Kind::prefix ||
                         use.kind == KeyUse::Kind::lease_name;
    if (of_slot) return kv::slot_of(use.text);
  }
  return std::nullopt;
}

SlotRoutes::SlotRoutes(std::vector<const kv::Store*> stores) : stores_(std::move(stores)) {
  LEASEHOLD_ASSERT(!stores_.empty() && stores_.size() <= kv::kSlots);
  if (stores_.size() > 1) listen();
  follow();
}

void SlotRoutes::listen() {
  for (const kv::Store* const store : stores_) {
    const kv::Slots& slots = store->slots();
    listeners_.emplace_back(&slots, slots.listen([this] { follow(); }));
  }
}

SlotRoutes::~SlotRoutes() {
  for (const auto& [slots, listener] : listeners_) slots->forget(listener);
}

void SlotRoutes::follow() {
  std::vector<Waited> ready;
  {
    const std::lock_guard lock(mutex_);
    update();
    for (auto at = waiters_.begin(); at != waiters_.end();) {
      if (!is_open(at->first)) {
        ++at;
        continue;
      }
      ready.push_back(std::move(at->second.done));
      at = waiters_.erase(at);
    }
  }
  for (const Waited& done : ready) done(true);
}

/// The caller holds mutex_.
void SlotRoutes::update() {
  std::vector<Found> newest(kv::kSlots);
  for (std::uint32_t slot = 0; slot < kv::kSlots; ++slot) {
    newest[slot].group = kv::first_group_of(slot, static_cast<std::uint32_t>(stores_.size()));
  }
  for (std::size_t group = 0; group < stores_.size(); ++group) {
    const auto records = stores_[group]->slots().list();
    for (const auto& [slot, record] : *records) {
      // It is there when the group that it comes from says so.
      if (record.phase == kv::SlotPhase::arriving) continue;
      const std::size_t place = place_of(record, group);
      if (place >= stores_.size() || record.epoch < newest[slot].epoch) continue;
      // A group that has let go says nothing of the other one, which is asked.
      const bool open = record.phase != kv::SlotPhase::frozen;
      newest[slot] = {place, record.epoch, open};
    }
  }
  std::size_t closed = 0;
  for (std::uint32_t slot = 0; slot < kv::kSlots; ++slot) {
    const auto group = static_cast<std::uint16_t>(newest[slot].group);
    groups_[slot].store(group, std::memory_order_relaxed);
    open_[slot].store(newest[slot].open, std::memory_order_relaxed);
    if (!newest[slot].open) ++closed;
  }
  closed_.store(closed, std::memory_order_relaxed);
  version_.fetch_add(1, std::memory_order_release);
}

void SlotRoutes::wait(std::uint32_t slot, std::chrono::nanoseconds until, Waited done) {
  {
    const std::lock_guard lock(mutex_);
    if (!is_open(slot)) {
      waiters_.emplace(slot, Waiter{until, std::move(done)});
      return;
    }
  }
  done(true);
}

void SlotRoutes::end_waits(std::chrono::nanoseconds now) {
  std::vector<Waited> late;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = waiters_.begin(); at != waiters_.end();) {
      if (now < at->second.until) {
        ++at;
        continue;
      }
      late.push_back(std::move(at->second.done));
      at = waiters_.erase(at);
    }
  }
  for (const Waited& done : late) done(false);
}

SlotStay::SlotStay(const kv::Slots& slots, const CommandTable& commands, const CommandSpec& spec,
                   const Arguments& args)
    : slots_(slots), commands_(commands), spec_(spec), args_(args), before_(look()) {}

bool SlotStay::stayed() const {
  const Seen now = look();
  return before_.serves && now.serves && before_.epoch == now.epoch;
}

SlotStay::Seen SlotStay::look() const {
  // Most groups never move a slot.
  if (slots_.changes() == kv::Slots::kNoChanges) return {};
  const auto slot = slot_in(commands_.uses_of(spec_, args_));
  if (!slot) return {};
  const auto records = slots_.list();
  const auto at = records->find(*slot);
  if (at == records->end()) return {};
  return {kv::serves(&at->second), at->second.epoch};
}

}  // namespace leasehold::server
