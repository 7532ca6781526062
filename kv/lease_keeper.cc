#include <leasehold/kv/lease_keeper.h>

#include <algorithm>
#include <utility>

namespace leasehold::kv {

/// Takes in what has changed; returns the time after that.
Result<lease::PromiseInstant> LeaseKeeper::take_in() {
  const auto changes = changes_(cursor_);
  if (!changes) return changes.error();
  // A lease that is seen for the first time was asked for before this.
  const lease::PromiseInstant now = clock_.now().promise;
  cursor_ = changes.value().cursor;
  if (changes.value().whole) {
    std::vector<std::uint64_t> ids;
    for (const TimedLease& lease : changes.value().alive) ids.push_back(lease.id.value());
    tracker_.forget_others(ids);
  }
  for (const grant::LeaseId id : changes.value().gone) tracker_.forget(id.value());
  for (const TimedLease& lease : changes.value().alive) {
    tracker_.see(lease.id.value(), lease.stamp, lease.times, now);
  }
  return now;
}

Result<lease::PromiseInstant> LeaseKeeper::enter(raft::Term leads_in) {
  const auto now = take_in();
  if (!now) return now.error();
  // The leader lease had lapsed, or the term is a new one: no client could renew meanwhile. The log
  // may still end the leases that were named in this term.
  if (leads_in != leads_in_) tracker_.begin(now.value(), leads_in > newest_);
  leads_in_ = leads_in;
  newest_ = leads_in;
  return now;
}

Result<std::vector<SeenLease>> LeaseKeeper::look(std::optional<raft::Term> leads_in,
                                                 std::size_t count) {
  const std::lock_guard lock(mutex_);
  std::vector<SeenLease> out;
  if (!leads_in || *leads_in < newest_) {
    leads_in_.reset();
    if (const auto now = take_in(); !now) return now.error();
    return out;
  }
  const auto now = enter(*leads_in);
  if (!now) return now.error();
  for (const grant::ExpiryTracker::Due& due : tracker_.due(now.value(), count)) {
    out.push_back({grant::LeaseId(due.id), due.stamp});
  }
  return out;
}

Result<std::optional<LeaseKeeper::Renewal>> LeaseKeeper::renew(
    const std::vector<grant::LeaseId>& ids, raft::Term leads_in) {
  using Done = std::optional<Renewal>;
  using Renewed = grant::ExpiryTracker::Renewed;
  const std::lock_guard lock(mutex_);
  // A look at the leader lease in a term that has passed.
  if (leads_in < newest_) return Done();
  const auto now = enter(leads_in);
  if (!now) return now.error();
  Renewal renewal;
  for (const grant::LeaseId id : ids) {
    if (grant::is_of_key(id)) {
      renewal.ttl.push_back(std::nullopt);
      continue;
    }
    switch (tracker_.renew(id.value(), now.value())) {
      case Renewed::renewed: renewal.ttl.push_back(tracker_.ttl(id.value())); break;
      case Renewed::unknown: renewal.ttl.push_back(std::nullopt); break;
      case Renewed::too_late: return Done();
    }
  }
  return Done(std::move(renewal));
}

Result<std::optional<LeaseKeeper::Left>> LeaseKeeper::left(grant::LeaseId id) {
  const std::lock_guard lock(mutex_);
  const auto now = take_in();
  if (!now) return now.error();
  const auto stamp = tracker_.stamp(id.value());
  if (!stamp) return std::optional<Left>();
  const bool known = leads_in_ || grant::is_of_key(id);
  const auto left = known ? tracker_.left(id.value(), now.value()) : tracker_.ttl(id.value());
  return std::optional<Left>(Left{*stamp, *left, leads_in_.has_value()});
}

SeenTime LeaseKeeper::seen(grant::LeaseId id) {
  const auto found = left(id);
  if (!found || !found.value()) return {};
  const lease::Duration most = grant::kLeaseTtlMax;
  return {found.value()->stamp, std::clamp(found.value()->left, lease::Duration(0), most)};
}

}  // namespace leasehold::kv
