#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/scan_cursors.h>

#include <utility>

namespace leasehold::server {

ScanCursors::ScanCursors() : next_(static_cast<std::uint64_t>(wall_now().count())) {}

std::uint64_t ScanCursors::add(ScanPosition position) {
  const std::lock_guard lock(mutex_);
  bytes_ += position.after ? position.after->size() : 0;
  positions_.emplace(++next_, std::move(position));
  while (positions_.size() > 1 &&
         (positions_.size() > kScanCursorsMax || bytes_ > kScanCursorBytesMax)) {
    const auto& oldest = positions_.begin()->second;
    bytes_ -= oldest.after ? oldest.after->size() : 0;
    positions_.erase(positions_.begin());
  }
  return next_;
}

std::optional<ScanPosition> ScanCursors::find(std::uint64_t cursor) const {
  const std::lock_guard lock(mutex_);
  const auto found = positions_.find(cursor);
  if (found == positions_.end()) return std::nullopt;
  return found->second;
}

}  // namespace leasehold::server
