#include <leasehold/base/assert.h>
#include <leasehold/kv/events.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace leasehold::kv {
namespace {

/// The head of one event; its key and its value follow.
struct Head {
  std::uint64_t create_revision;
  std::uint64_t version;
  std::uint64_t lease;
  std::uint32_t key_bytes;
  std::uint32_t value_bytes;
  EventKind kind;
  EventCause cause;
  bool value_kept;
};

constexpr std::size_t kChunkBytesMin = std::size_t{4} << 10U;
constexpr std::size_t kChunkBytesMax = std::size_t{256} << 10U;

}  // namespace

/// A chunk is freed when none of its events is kept any more: so it is a small part of the whole.
EventHistory::EventHistory(Limits limits)
    : limits_(limits),
      chunk_bytes_(std::clamp(limits.bytes_max / 16, kChunkBytesMin, kChunkBytesMax)) {}

EventHistory::Batch EventHistory::read(std::uint64_t from, std::size_t count) const {
  Batch batch;
  std::vector<Place> places;
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    const std::uint64_t first = head + 1 - places_.size();
    if (from < first || from > head + 1) {
      batch.lost = true;
      return batch;
    }
    if (from > head) return batch;
    const auto begin = places_.begin() + static_cast<std::ptrdiff_t>(from - first);
    const auto there = std::min(count, static_cast<std::size_t>(places_.end() - begin));
    places.assign(begin, begin + static_cast<std::ptrdiff_t>(there));
  }
  batch.revisions.reserve(places.size());
  for (const Place& place : places) batch.revisions.push_back(decode(from++, place));
  return batch;
}

Revision EventHistory::decode(std::uint64_t number, const Place& place) {
  Revision revision;
  revision.number = number;
  if (place.chunk == nullptr) return revision;
  revision.owner = place.chunk;
  revision.events.reserve(place.events);
  const char* at = place.chunk->bytes.get() + place.offset;
  for (std::uint32_t i = 0; i < place.events; ++i) {
    Head head{};
    std::memcpy(&head, at, sizeof head);
    at += sizeof head;
    Event event;
    event.kind = head.kind;
    event.cause = head.cause;
    event.value_kept = head.value_kept;
    event.key = {at, head.key_bytes};
    event.value = {at + head.key_bytes, head.value_bytes};
    event.create_revision = head.create_revision;
    event.version = head.version;
    event.lease = grant::LeaseId(head.lease);
    revision.events.push_back(event);
    at += head.key_bytes + head.value_bytes;
  }
  return revision;
}

EventHistory::Figures EventHistory::figures() const {
  const std::lock_guard lock(mutex_);
  Figures figures;
  figures.head = head_.load(std::memory_order_relaxed);
  figures.first = figures.head + 1 - places_.size();
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

char* EventHistory::room_for(std::size_t bytes) {
  if (chunk_ == nullptr || chunk_->capacity - chunk_->used < bytes) {
    chunk_ = std::make_shared<Chunk>(std::max(bytes, chunk_bytes_));
  }
  return chunk_->bytes.get() + chunk_->used;
}

void EventHistory::stage(const Revision& revision) {
  const std::uint64_t before = skips_to_.value_or(head_.load(std::memory_order_relaxed));
  LEASEHOLD_ASSERT(revision.number == before + 1 + staged_.size());
  Place place;
  place.bytes = sizeof(Place);
  place.events = static_cast<std::uint32_t>(revision.events.size());
  const auto kept = [this](const Event& event) {
    return event.value_kept && event.value.size() <= limits_.value_bytes_max;
  };
  std::size_t bytes = 0;
  for (const Event& event : revision.events) {
    bytes += sizeof(Head) + event.key.size() + (kept(event) ? event.value.size() : 0);
  }
  if (bytes > 0) {
    char* at = room_for(bytes);
    place.chunk = chunk_;
    place.offset = static_cast<std::uint32_t>(chunk_->used);
    place.bytes += bytes;
    chunk_->used += bytes;
    for (const Event& event : revision.events) {
      const std::string_view value = kept(event) ? event.value : std::string_view();
      const Head head{event.create_revision,
                      event.version,
                      event.lease.value(),
                      static_cast<std::uint32_t>(event.key.size()),
                      static_cast<std::uint32_t>(value.size()),
                      event.kind,
                      event.cause,
                      kept(event)};
      std::memcpy(at, &head, sizeof head);
      at += sizeof head;
      at += event.key.copy(at, event.key.size());
      at += value.copy(at, value.size());
    }
  }
  staged_.push_back(std::move(place));
}

void EventHistory::skip_to(std::uint64_t revision) {
  staged_.clear();
  skips_to_ = revision;
}

void EventHistory::publish() {
  if (staged_.empty() && !skips_to_) return;
  {
    const std::lock_guard lock(mutex_);
    if (skips_to_) forget_all(*std::exchange(skips_to_, std::nullopt));
    for (Place& place : staged_) {
      events_ += place.events;
      bytes_ += place.bytes;
      places_.push_back(std::move(place));
    }
    head_.store(head_.load(std::memory_order_relaxed) + staged_.size(), std::memory_order_release);
    while (!places_.empty() && (bytes_ > limits_.bytes_max || events_ > limits_.events_max)) {
      const Place& oldest = places_.front();
      events_ -= oldest.events;
      bytes_ -= oldest.bytes;
      forgotten_ += oldest.events;
      places_.pop_front();
    }
  }
  staged_.clear();
  tell();
}

void EventHistory::unstage() {
  staged_.clear();
  skips_to_.reset();
}

void EventHistory::forget_all(std::uint64_t head) {
  places_.clear();
  events_ = 0;
  bytes_ = 0;
  head_.store(head, std::memory_order_release);
}

void EventHistory::restart(std::uint64_t revision) {
  LEASEHOLD_ASSERT(staged_.empty());
  {
    const std::lock_guard lock(mutex_);
    forget_all(revision);
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
