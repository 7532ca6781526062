#include <leasehold/base/assert.h>
#include <leasehold/kv/events.h>

#include <algorithm>
#include <utility>

namespace leasehold::kv {
namespace {

/// What a revision and an event take beside their bytes: the objects, and what the allocator adds.
constexpr std::size_t kRevisionBytes = 128;
constexpr std::size_t kEventBytes = 224;

}  // namespace

EventHistory::Batch EventHistory::read(std::uint64_t from, std::size_t count) const {
  Batch batch;
  const std::lock_guard lock(mutex_);
  const std::uint64_t head = head_.load(std::memory_order_relaxed);
  const std::uint64_t first = head + 1 - kept_.size();
  if (from < first) {
    batch.lost = true;
    return batch;
  }
  if (from > head) return batch;
  const auto begin = kept_.begin() + static_cast<std::ptrdiff_t>(from - first);
  const auto there = static_cast<std::size_t>(kept_.end() - begin);
  batch.revisions.reserve(std::min(count, there));
  for (auto at = begin; batch.revisions.size() < std::min(count, there); ++at) {
    batch.revisions.push_back(at->revision);
  }
  return batch;
}

EventHistory::Figures EventHistory::figures() const {
  const std::lock_guard lock(mutex_);
  Figures figures;
  figures.head = head_.load(std::memory_order_relaxed);
  figures.first = figures.head + 1 - kept_.size();
  figures.events = events_;
  figures.bytes = bytes_;
  figures.forgotten = forgotten_;
  return figures;
}

EventHistory::Listener EventHistory::listen(std::function<void()> news) const {
  const std::lock_guard lock(listeners_mutex_);
  listeners_.emplace(next_listener_, std::move(news));
  return next_listener_++;
}

void EventHistory::forget(Listener listener) const {
  const std::lock_guard lock(listeners_mutex_);
  listeners_.erase(listener);
}

void EventHistory::tell() const {
  const std::lock_guard lock(listeners_mutex_);
  for (const auto& [listener, news] : listeners_) news();
}

void EventHistory::add(std::vector<Revision>& revisions) {
  if (revisions.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    for (Revision& revision : revisions) keep(std::move(revision));
  }
  revisions.clear();
  tell();
}

void EventHistory::keep(Revision revision) {
  LEASEHOLD_ASSERT(revision.number == head_.load(std::memory_order_relaxed) + 1);
  std::size_t bytes = kRevisionBytes;
  for (Event& event : revision.events) {
    if (event.value.size() > limits_.value_bytes_max) {
      event.value = Bytes();
      event.value_kept = false;
    }
    bytes += kEventBytes + event.key.size() + event.value.size();
  }
  head_.store(revision.number, std::memory_order_release);
  events_ += revision.events.size();
  bytes_ += bytes;
  kept_.push_back({std::make_shared<const Revision>(std::move(revision)), bytes});
  while (!kept_.empty() && (bytes_ > limits_.bytes_max || events_ > limits_.events_max)) {
    const Kept& oldest = kept_.front();
    events_ -= oldest.revision->events.size();
    bytes_ -= oldest.bytes;
    forgotten_ += oldest.revision->events.size();
    kept_.pop_front();
  }
}

void EventHistory::restart(std::uint64_t revision) {
  {
    const std::lock_guard lock(mutex_);
    kept_.clear();
    events_ = 0;
    bytes_ = 0;
    head_.store(revision, std::memory_order_release);
  }
  tell();
}

bool KeyFilter::wants(std::string_view key) const {
  if (keys_.find(key) != keys_.end()) return true;
  return std::any_of(prefixes_.begin(), prefixes_.end(), [key](const std::string& prefix) {
    return key.substr(0, prefix.size()) == prefix;
  });
}

}  // namespace leasehold::kv
