#include <leasehold/lease/expiry_tracker.h>

#include <algorithm>

namespace leasehold::lease {
namespace {

std::int64_t number(PromiseInstant instant) {
  return instant.since_origin().count();
}

}  // namespace

void ExpiryTracker::begin(PromiseInstant now, bool forget_named) {
  order_.clear();
  for (auto& [id, timed] : timed_) {
    timed.deadline = std::max(timed.deadline, now + timed.ttl);
    if (forget_named) timed.named = false;
    order_.emplace(number(timed.deadline), id);
  }
}

void ExpiryTracker::see(std::uint64_t id, std::uint64_t stamp, Duration ttl, PromiseInstant now) {
  const auto [at, fresh] = timed_.try_emplace(id);
  if (!fresh && at->second.stamp == stamp) return;
  if (!fresh) order_.erase({number(at->second.deadline), id});
  at->second = {stamp, ttl, now + ttl, false};
  order_.emplace(number(at->second.deadline), id);
}

void ExpiryTracker::forget(std::uint64_t id) {
  const auto at = timed_.find(id);
  if (at == timed_.end()) return;
  order_.erase({number(at->second.deadline), id});
  timed_.erase(at);
}

void ExpiryTracker::forget_others(const std::vector<std::uint64_t>& ids) {
  std::vector<std::uint64_t> others;
  for (const auto& [id, timed] : timed_) {
    if (!std::binary_search(ids.begin(), ids.end(), id)) others.push_back(id);
  }
  for (const std::uint64_t id : others) forget(id);
}

ExpiryTracker::Renewed ExpiryTracker::renew(std::uint64_t id, PromiseInstant now) {
  const auto at = timed_.find(id);
  if (at == timed_.end()) return Renewed::unknown;
  if (at->second.named) return Renewed::too_late;
  const PromiseInstant deadline = std::max(at->second.deadline, now + at->second.ttl);
  order_.erase({number(at->second.deadline), id});
  at->second.deadline = deadline;
  order_.emplace(number(deadline), id);
  return Renewed::renewed;
}

std::vector<ExpiryTracker::Due> ExpiryTracker::due(PromiseInstant now, std::size_t count) {
  std::vector<Due> out;
  for (const auto& [deadline, id] : order_) {
    if (deadline > number(now) || out.size() == count) break;
    Timed& timed = timed_.at(id);
    timed.named = true;
    out.push_back({id, timed.stamp});
  }
  return out;
}

std::optional<std::uint64_t> ExpiryTracker::stamp(std::uint64_t id) const {
  const auto at = timed_.find(id);
  if (at == timed_.end()) return std::nullopt;
  return at->second.stamp;
}

std::optional<Duration> ExpiryTracker::ttl(std::uint64_t id) const {
  const auto at = timed_.find(id);
  if (at == timed_.end()) return std::nullopt;
  return at->second.ttl;
}

std::optional<Duration> ExpiryTracker::left(std::uint64_t id, PromiseInstant now) const {
  const auto at = timed_.find(id);
  if (at == timed_.end()) return std::nullopt;
  return at->second.deadline - now;
}

}  // namespace leasehold::lease
