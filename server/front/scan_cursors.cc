#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/scan_cursors.h>

#include <utility>

namespace leasehold::server {

ScanCursors::ScanCursors() : next_(static_cast<std::uint64_t>(wall_now().count())) {}

std::uint64_t ScanCursors::add(std::string last_key) {
  const std::lock_guard lock(mutex_);
  bytes_ += last_key.size();
  keys_.emplace(++next_, std::move(last_key));
  while (keys_.size() > 1 && (keys_.size() > kScanCursorsMax || bytes_ > kScanCursorBytesMax)) {
    bytes_ -= keys_.begin()->second.size();
    keys_.erase(keys_.begin());
  }
  return next_;
}

std::optional<std::string> ScanCursors::find(std::uint64_t cursor) const {
  const std::lock_guard lock(mutex_);
  const auto found = keys_.find(cursor);
  if (found == keys_.end()) return std::nullopt;
  return found->second;
}

}  // namespace leasehold::server
