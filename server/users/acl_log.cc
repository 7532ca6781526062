#include <leasehold/base/assert.h>
#include <leasehold/server/users/acl_log.h>

#include <algorithm>
#include <utility>

namespace leasehold::server {
namespace {

constexpr std::chrono::minutes kAlike{1};

}  // namespace

const char* acl_reason_name(AclReason reason) {
  switch (reason) {
    case AclReason::auth: return "auth";
    case AclReason::command: return "command";
    case AclReason::key: return "key";
    case AclReason::channel: return "channel";
  }
  LEASEHOLD_UNREACHABLE();
}

void AclLog::add(AclRefusal refusal, std::chrono::microseconds now) {
  refused_[static_cast<std::size_t>(refusal.reason)].fetch_add(1, std::memory_order_relaxed);
  for (std::string* text : {&refusal.object, &refusal.user}) {
    if (text->size() > kAclLogBytes) text->resize(kAclLogBytes);
  }
  const std::lock_guard lock(mutex_);
  const auto alike = std::find_if(entries_.begin(), entries_.end(), [&](const AclRefusal& old) {
    return old.reason == refusal.reason && old.context == refusal.context &&
           old.object == refusal.object && old.user == refusal.user && now - old.updated < kAlike;
  });
  if (alike != entries_.end()) {
    AclRefusal found = std::move(*alike);
    entries_.erase(alike);
    ++found.count;
    found.updated = now;
    found.client = std::move(refusal.client);
    entries_.push_front(std::move(found));
    return;
  }
  refusal.id = next_id_++;
  refusal.count = 1;
  refusal.created = refusal.updated = now;
  entries_.push_front(std::move(refusal));
  if (entries_.size() > kAclLogEntriesMax) entries_.pop_back();
}

std::vector<AclRefusal> AclLog::newest(std::size_t count) const {
  const std::lock_guard lock(mutex_);
  const auto end = entries_.begin() + static_cast<std::ptrdiff_t>(std::min(count, entries_.size()));
  return {entries_.begin(), end};
}

void AclLog::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
}

}  // namespace leasehold::server
