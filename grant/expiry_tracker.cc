#include <leasehold/grant/expiry_tracker.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace leasehold::grant {
namespace {

std::int64_t number(lease::PromiseInstant instant) {
  return instant.since_origin().count();
}

}  // namespace

void ExpiryTracker::take_out(At at) {
  order_.erase({number(at->second.due()), at->first});
}

void ExpiryTracker::put_back(At at) {
  order_.emplace(number(at->second.due()), at->first);
}

void ExpiryTracker::begin(lease::PromiseInstant now, bool forget_named) {
  order_.clear();
  for (auto at = timed_.begin(); at != timed_.end(); ++at) {
    Timed& timed = at->second;
    timed.deadline = std::max(timed.deadline, now + timed.times.ttl);
    timed.wanted = false;
    if (forget_named) timed.named = false;
    put_back(at);
  }
}

void ExpiryTracker::see(std::uint64_t id, std::uint64_t stamp, const Times& times,
                        lease::PromiseInstant now) {
  const auto [at, fresh] = timed_.try_emplace(id);
  Timed& timed = at->second;
  const bool begins = fresh || timed.stamp != stamp;
  if (!begins && times.wants == timed.times.wants) return;
  if (!fresh) take_out(at);
  if (begins) {
    timed = {stamp, times, now + times.ttl};
  } else {
    const std::uint32_t before = std::exchange(timed.times.wants, times.wants);
    timed.wanted |= times.wants > before && now >= timed.deadline;
  }
  put_back(at);
}

void ExpiryTracker::forget(std::uint64_t id) {
  const auto at = timed_.find(id);
  if (at == timed_.end()) return;
  take_out(at);
  timed_.erase(at);
}

void ExpiryTracker::forget_others(const std::vector<std::uint64_t>& ids) {
  std::vector<std::uint64_t> others;
  for (const auto& [id, timed] : timed_) {
    if (!std::binary_search(ids.begin(), ids.end(), id)) others.push_back(id);
  }
  for (const std::uint64_t id : others) forget(id);
}

ExpiryTracker::Renewed ExpiryTracker::renew(std::uint64_t id, lease::PromiseInstant now) {
  const auto at = timed_.find(id);
  if (at == timed_.end() || !at->second.times.renewable) return Renewed::unknown;
  Timed& timed = at->second;
  if (timed.named) return Renewed::too_late;
  take_out(at);
  timed.deadline = std::max(timed.deadline, now + timed.times.ttl);
  timed.wanted = false;
  put_back(at);
  return Renewed::renewed;
}

std::vector<ExpiryTracker::Due> ExpiryTracker::due(lease::PromiseInstant now, std::size_t count) {
  std::vector<Due> out;
  const auto name = [&](auto at, auto to) {
    for (; at != to && out.size() < count; ++at) {
      Timed& timed = timed_.at(at->second);
      timed.named = true;
      out.push_back({at->second, timed.stamp});
      named_to_ = *at;
    }
  };
  const auto end = order_.upper_bound({number(now), std::numeric_limits<std::uint64_t>::max()});
  const bool goes_on = named_to_ && named_to_->first <= number(now);
  const auto from = goes_on ? order_.upper_bound(*named_to_) : order_.begin();
  name(from, end);
  name(order_.begin(), from);
  if (out.size() < count) named_to_.reset();
  return out;
}

std::optional<std::uint64_t> ExpiryTracker::stamp(std::uint64_t id) const {
  const auto at = timed_.find(id);
  if (at == timed_.end()) return std::nullopt;
  return at->second.stamp;
}

std::optional<lease::Duration> ExpiryTracker::ttl(std::uint64_t id) const {
  const auto at = timed_.find(id);
  if (at == timed_.end()) return std::nullopt;
  return at->second.times.ttl;
}

std::optional<lease::Duration> ExpiryTracker::left(std::uint64_t id,
                                                   lease::PromiseInstant now) const {
  const auto at = timed_.find(id);
  if (at == timed_.end()) return std::nullopt;
  return at->second.deadline - now;
}

}  // namespace leasehold::grant
