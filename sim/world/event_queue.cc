#include <leasehold/base/assert.h>
#include <leasehold/sim/world/event_queue.h>

#include <algorithm>
#include <utility>

namespace leasehold::sim {

void EventQueue::at(TrueInstant when, Action action) {
  LEASEHOLD_ASSERT(when >= now_);
  std::size_t place = actions_.size();
  if (free_.empty()) {
    actions_.push_back(std::move(action));
  } else {
    place = free_.back();
    free_.pop_back();
    actions_[place] = std::move(action);
  }
  const Item item{when, next_sequence_++, place};
  const std::int64_t slot = slot_of(when);
  if (slot > slot_) {
    far(slot).push_back(item);
    ++far_items_;
    return;
  }
  heap_.push_back(item);
  std::push_heap(heap_.begin(), heap_.end(), Later());
}

/// Takes the next slot into the heap. False: nothing is due up to `limit`.
bool EventQueue::next_slot(TrueInstant limit) {
  if (far_items_ == 0 || slot_ >= slot_of(limit)) return false;
  ++slot_;
  std::vector<Item>& items = far(slot_);
  std::size_t kept = 0;
  for (const Item& item : items) {
    if (slot_of(item.when) == slot_) {
      heap_.push_back(item);
      std::push_heap(heap_.begin(), heap_.end(), Later());
    } else {
      items[kept++] = item;
    }
  }
  far_items_ -= items.size() - kept;
  items.resize(kept);
  return true;
}

bool EventQueue::run_next(TrueInstant limit) {
  while (heap_.empty() && next_slot(limit)) {
  }
  if (heap_.empty() || heap_.front().when > limit) {
    now_ = limit;
    return false;
  }
  std::pop_heap(heap_.begin(), heap_.end(), Later());
  const Item item = heap_.back();
  heap_.pop_back();
  // Out of its place first: what runs may schedule more.
  const Action action = std::move(actions_[item.place]);
  free_.push_back(item.place);
  now_ = item.when;
  ++steps_;
  action();
  return true;
}

}  // namespace leasehold::sim
