#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/slow_log.h>

#include <algorithm>
#include <utility>

namespace leasehold::server {

void SlowLog::add(SlowCommand entry) {
  entry.unix_seconds = std::chrono::duration_cast<std::chrono::seconds>(wall_now()).count();
  const std::lock_guard lock(mutex_);
  entry.id = next_id_++;
  entries_.push_front(std::move(entry));
  if (entries_.size() > kSlowLogEntriesMax) entries_.pop_back();
}

std::vector<SlowCommand> SlowLog::newest(std::size_t count) const {
  const std::lock_guard lock(mutex_);
  const auto kept = static_cast<std::ptrdiff_t>(std::min(count, entries_.size()));
  return {entries_.begin(), entries_.begin() + kept};
}

std::size_t SlowLog::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

void SlowLog::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
}

}  // namespace leasehold::server
