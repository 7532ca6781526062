#include <leasehold/base/assert.h>
#include <leasehold/server/front/served_groups.h>
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

}  // namespace

std::optional<std::uint32_t> slot_in(const std::vector<KeyUse>& uses) {
  for (const KeyUse& use : uses) {
    const bool of_slot = use.kind == KeyUse::Kind::key || use.kind == KeyUse::Kind::prefix ||
                         use.kind == KeyUse::Kind::lease_name;
    if (of_slot) return kv::slot_of(use.text);
  }
  return std::nullopt;
}

SlotRoutes::SlotRoutes(std::vector<const kv::Store*> stores)
    : stores_(std::move(stores)), seen_(stores_.size()), changed_at_(kv::kSlots) {
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
  std::unique_lock lock(mutex_);
  update();
  // The thread that calls them already goes on with these.
  if (calling_) return;
  calling_ = true;
  for (std::vector<Waited> ready = take_ready(); !ready.empty(); ready = take_ready()) {
    lock.unlock();
    for (const Waited& done : ready) done(true);
    lock.lock();
  }
  calling_ = false;
}

/// The caller holds mutex_.
std::vector<SlotRoutes::Waited> SlotRoutes::take_ready() {
  std::vector<Waited> ready;
  for (auto at = waiters_.begin(); at != waiters_.end();) {
    if (!is_open(at->first)) {
      ++at;
      continue;
    }
    ready.push_back(std::move(at->second.done));
    at = waiters_.erase(at);
  }
  return ready;
}

/// The caller holds mutex_.
std::vector<SlotRoutes::Known> SlotRoutes::look() {
  std::vector<Known> newest(kv::kSlots);
  for (std::uint32_t slot = 0; slot < kv::kSlots; ++slot) {
    newest[slot].group = kv::first_group_of(slot, static_cast<std::uint32_t>(stores_.size()));
  }
  for (std::size_t group = 0; group < stores_.size(); ++group) {
    const kv::Slots& slots = stores_[group]->slots();
    seen_[group] = slots.changes();
    // Held: the thread of apply() replaces it at any time.
    const auto records = slots.list();
    for (const auto& [slot, record] : *records) {
      // It is there when the group that it comes from says so.
      if (record.phase == kv::SlotPhase::arriving) continue;
      Known& known = newest[slot];
      const std::size_t place = place_of(record, group);
      if (place >= stores_.size() || record.epoch < known.epoch) continue;
      const bool away = place != group;
      if (away && known.settled && record.epoch == known.epoch) continue;
      // A group that has let go says nothing of the other one, which is asked.
      const bool open = record.phase != kv::SlotPhase::frozen;
      known = {place, record.epoch, open, open && !away};
    }
  }
  return newest;
}

/// The caller holds mutex_.
void SlotRoutes::update() {
  std::vector<Known> newest = look();
  if (newest == known_) return;
  const std::uint64_t version = version_.load(std::memory_order_relaxed) + 1;
  std::size_t closed = 0;
  unsettled_ = 0;
  for (std::uint32_t slot = 0; slot < kv::kSlots; ++slot) {
    const Known& now = newest[slot];
    if (known_.empty() || known_[slot] != now) changed_at_[slot] = version;
    groups_[slot].store(static_cast<std::uint16_t>(now.group), std::memory_order_relaxed);
    open_[slot].store(now.open, std::memory_order_relaxed);
    if (!now.open) ++closed;
    if (!now.settled) ++unsettled_;
  }
  known_ = std::move(newest);
  closed_.store(closed, std::memory_order_relaxed);
  version_.store(version, std::memory_order_release);
}

/// The records of a store are seen a moment before its news is heard.
void SlotRoutes::catch_up() {
  bool behind = false;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t group = 0; group < stores_.size(); ++group) {
      behind = behind || stores_[group]->slots().changes() != seen_[group];
    }
  }
  if (behind) follow();
}

std::uint64_t SlotRoutes::newest_version() {
  catch_up();
  return version();
}

kv::SlotSet SlotRoutes::changed_since(std::uint64_t version) {
  kv::SlotSet changed;
  if (stores_.size() == 1) return changed;
  catch_up();
  const std::lock_guard lock(mutex_);
  if (unsettled_ == 0 && version_.load(std::memory_order_relaxed) <= version) return changed;
  for (std::uint32_t slot = 0; slot < kv::kSlots; ++slot) {
    if (changed_at_[slot] > version || !known_[slot].settled) changed.set(slot);
  }
  return changed;
}

void SlotRoutes::wait(std::uint32_t slot, std::chrono::nanoseconds until, Waited done) {
  {
    const std::lock_guard lock(mutex_);
    // Behind those that are called just now.
    if (!is_open(slot) || calling_) {
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

SlotStay::SlotStay(const ServedGroup& group, std::uint64_t justified_at,
                   const CommandTable& commands, const CommandSpec& spec, const Arguments& args)
    : group_(group),
      justified_at_(justified_at),
      commands_(commands),
      spec_(spec),
      args_(args),
      before_(look()) {}

bool SlotStay::stayed() const {
  const Seen now = look();
  const bool here = justified_at_ % 2 == 1 && justified_at_ == group_.stay();
  if (!here) return false;
  return before_.serves && now.serves && before_.epoch == now.epoch;
}

SlotStay::Seen SlotStay::look() const {
  Seen seen;
  const kv::Slots& slots = group_.store.slots();
  // Most groups never move a slot.
  if (slots.changes() == kv::Slots::kNoChanges) return seen;
  const auto slot = slot_in(commands_.uses_of(spec_, args_));
  if (!slot) return seen;
  const auto records = slots.list();
  const auto at = records->find(*slot);
  if (at == records->end()) return seen;
  seen.serves = kv::serves(&at->second);
  seen.epoch = at->second.epoch;
  return seen;
}

}  // namespace leasehold::server
