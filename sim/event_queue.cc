#include <leasehold/base/assert.h>
#include <leasehold/sim/event_queue.h>

#include <algorithm>
#include <utility>

namespace leasehold::sim {

void EventQueue::at(TrueInstant when, Action action) {
  LEASEHOLD_ASSERT(when >= now_);
  heap_.push_back({when, next_sequence_++, std::move(action)});
  std::push_heap(heap_.begin(), heap_.end(), later);
}

bool EventQueue::run_next(TrueInstant limit) {
  if (heap_.empty() || heap_.front().when > limit) {
    now_ = limit;
    return false;
  }
  std::pop_heap(heap_.begin(), heap_.end(), later);
  Item item = std::move(heap_.back());
  heap_.pop_back();
  now_ = item.when;
  ++steps_;
  item.action();
  return true;
}

}  // namespace leasehold::sim
