#include <leasehold/base/assert.h>
#include <leasehold/lease/lease_table.h>

#include <algorithm>
#include <utility>

namespace leasehold::lease {
namespace {

bool fits(std::string_view name, std::string_view holder, Duration ttl) {
  return name.size() <= kLeaseNameBytesMax && holder.size() <= kLeaseHolderBytesMax &&
         ttl >= kLeaseTtlMin && ttl <= kLeaseTtlMax;
}

Error malformed(const char* how) {
  return {ErrorCode::malformed, std::string("lease: ") + how};
}

}  // namespace

const char* LeaseTerms::problem(bool named) const {
  if (grace > kLeaseGraceMax) return "a grace period lasts at most 30 days";
  if (delay > kLeaseDelayMax) return "a lock delay lasts at most a day";
  if (soft && !(named && grace > Milliseconds(0))) {
    return "a soft limit needs a name that others may want, and a grace period behind it";
  }
  if (delay > Milliseconds(0) && !named) return "a lock delay needs a name that it keeps";
  if (delay > Milliseconds(0) && soft) {
    return "a soft limit lets others have the name early, a lock delay late: not both";
  }
  return nullptr;
}

LeaseTable::Granted LeaseTable::grant(const Request& request, FencingToken token) {
  if (!fits(request.name, request.holder, request.ttl) || request.id > kChosenLeaseIdMax ||
      request.terms.problem(!request.name.empty()) != nullptr) {
    return {Verdict::out_of_range, request.id};
  }
  if (const Lease* other = find(request.id); other != nullptr) {
    // Who always asks with the same id and name is refused the name, too.
    if (other->terms.soft && other->name == request.name) wanted_.insert(other->id);
    return {Verdict::id_taken, other->id};
  }
  if (const Lease* other = find(request.name); other != nullptr) {
    if (other->terms.soft) wanted_.insert(other->id);
    return {Verdict::name_taken, other->id};
  }
  if (ended_ids_.count(request.id) != 0 || ended_names_.count(request.name) != 0) {
    return {Verdict::ended_in_this_step, request.id};
  }
  if (leases_.size() >= kLeasesMax) return {Verdict::too_many, {}};
  LeaseId id = request.id;
  if (id == LeaseId(0)) {
    newest_ = newest_.next();
    id = newest_;
  }
  Lease lease{id,    std::string(request.name), std::string(request.holder), request.ttl,
              token, ++newest_stamp_,           request.asked_at_ms,         request.terms};
  if (!lease.name.empty()) names_.emplace(lease.name, id);
  step_.push_back({Change::What::granted, id, lease.name, {}, {}});
  leases_.emplace(id, std::move(lease));
  return {Verdict::granted, id};
}

std::optional<LeaseId> LeaseTable::grant_to_key(Duration ttl, FencingToken token) {
  LEASEHOLD_ASSERT(fits({}, {}, ttl));
  if (leases_.size() >= kLeasesMax) return std::nullopt;
  const std::uint64_t stamp = ++newest_stamp_;
  const LeaseId id(kKeyLeaseIdMin.value() | stamp);
  step_.push_back({Change::What::granted, id, {}, {}, {}});
  leases_.emplace(id, Lease{id, {}, {}, ttl, token, stamp, 0, {}});
  return id;
}

void LeaseTable::retime(LeaseId id, Duration ttl) {
  LEASEHOLD_ASSERT(is_of_key(id) && fits({}, {}, ttl));
  Lease& lease = leases_.at(id);
  step_.push_back({Change::What::renewed, id, {}, {}, lease});
  lease.ttl = ttl;
  lease.stamp = ++newest_stamp_;
}

bool LeaseTable::renew(LeaseId id) {
  const auto at = leases_.find(id);
  if (at == leases_.end() || at->second.delayed) return false;
  step_.push_back({Change::What::renewed, id, {}, {}, at->second});
  at->second.stamp = ++newest_stamp_;
  return true;
}

const LeaseTable::Keys* LeaseTable::end(LeaseId id) {
  const auto at = leases_.find(id);
  return at == leases_.end() ? nullptr : end(at);
}

const LeaseTable::Keys* LeaseTable::expire(LeaseId id, std::uint64_t stamp) {
  const auto at = leases_.find(id);
  if (at == leases_.end() || at->second.stamp != stamp) return nullptr;
  const Lease& lease = at->second;
  const bool delays = lease.terms.delay > LeaseTerms::Milliseconds(0) && !lease.delayed;
  return delays ? delay(at->second) : end(at);
}

const LeaseTable::Keys* LeaseTable::delay(Lease& lease) {
  step_.push_back({Change::What::delayed, lease.id, {}, take_keys(lease.id), lease});
  lease.delayed = true;
  lease.stamp = ++newest_stamp_;
  return &step_.back().keys;
}

const LeaseTable::Keys* LeaseTable::end(At at) {
  Lease& lease = at->second;
  ended_ids_.insert(at->first);
  if (!lease.name.empty()) {
    ended_names_.insert(lease.name);
    names_.erase(lease.name);
  }
  std::string name = lease.name;
  step_.push_back(
      {Change::What::ended, at->first, std::move(name), take_keys(at->first), std::move(lease)});
  leases_.erase(at);
  return &step_.back().keys;
}

LeaseTable::Keys LeaseTable::take_keys(LeaseId id) {
  auto node = keys_.extract(id);
  return node.empty() ? Keys() : std::move(node.mapped());
}

void LeaseTable::put_keys(LeaseId id, Keys keys) {
  if (!keys.empty()) keys_.emplace(id, std::move(keys));
}

void LeaseTable::remove_key(LeaseId id, const std::string& key) {
  const auto at = keys_.find(id);
  at->second.erase(key);
  if (at->second.empty()) keys_.erase(at);
}

LeaseTable::Attached LeaseTable::attach(LeaseId id, std::string_view key) {
  const auto at = leases_.find(id);
  if (at == leases_.end() || at->second.delayed) return Attached::no_lease;
  if (keys(id)->size() >= kLeaseKeysMax) return Attached::too_many_keys;
  const auto added = keys_[id].emplace(key);
  LEASEHOLD_ASSERT(added.second);
  step_.push_back({Change::What::attached, id, {}, {*added.first}, {}});
  return Attached::attached;
}

void LeaseTable::detach(LeaseId id, std::string_view key) {
  const auto at = keys_.find(id);
  // The lease ended in this step, and its keys with it.
  if (at == keys_.end() || at->second.count(key) == 0) return;
  const std::string gone(key);
  step_.push_back({Change::What::detached, id, {}, {gone}, {}});
  remove_key(id, gone);
  if (is_of_key(id)) end(leases_.find(id));
}

void LeaseTable::move(LeaseId id, std::string_view from, std::string_view to) {
  const std::string gone(from);
  LEASEHOLD_ASSERT(keys(id)->count(gone) != 0);
  step_.push_back({Change::What::detached, id, {}, {gone}, {}});
  remove_key(id, gone);
  const auto attached = attach(id, to);
  LEASEHOLD_ASSERT(attached == Attached::attached);
}

void LeaseTable::keep() {
  step_.clear();
  ended_ids_.clear();
  ended_names_.clear();
  step_newest_ = newest_;
  step_stamp_ = newest_stamp_;
}

void LeaseTable::roll_back() {
  while (!step_.empty()) {
    Change change = std::move(step_.back());
    step_.pop_back();
    switch (change.what) {
      case Change::What::granted:
        leases_.erase(change.id);
        if (!change.name.empty()) names_.erase(change.name);
        break;
      case Change::What::renewed: leases_.at(change.id) = std::move(change.lease); break;
      case Change::What::delayed:
        leases_.at(change.id) = std::move(change.lease);
        put_keys(change.id, std::move(change.keys));
        break;
      case Change::What::ended:
        if (!change.name.empty()) names_.emplace(change.name, change.id);
        leases_.emplace(change.id, std::move(change.lease));
        put_keys(change.id, std::move(change.keys));
        break;
      case Change::What::attached: remove_key(change.id, *change.keys.begin()); break;
      case Change::What::detached: keys_[change.id].merge(change.keys); break;
    }
  }
  newest_ = step_newest_;
  newest_stamp_ = step_stamp_;
  keep();
}

const LeaseTable::Lease* LeaseTable::find(LeaseId id) const {
  const auto at = leases_.find(id);
  return at == leases_.end() ? nullptr : &at->second;
}

const LeaseTable::Lease* LeaseTable::find(std::string_view name) const {
  const auto at = names_.find(name);
  return at == names_.end() ? nullptr : find(at->second);
}

const LeaseTable::Keys* LeaseTable::keys(LeaseId id) const {
  static const Keys kNone;
  if (leases_.count(id) == 0) return nullptr;
  const auto at = keys_.find(id);
  return at == keys_.end() ? &kNone : &at->second;
}

std::vector<LeaseTable::Lease> LeaseTable::list(LeaseId after, std::size_t count) const {
  std::vector<Lease> out;
  for (auto at = leases_.upper_bound(after); at != leases_.end() && out.size() < count; ++at) {
    out.push_back(at->second);
  }
  return out;
}

void LeaseTable::restore_newest(LeaseId id, std::uint64_t stamp) {
  newest_ = std::max(id, kChosenLeaseIdMax);
  newest_stamp_ = stamp;
  keep();
}

Result<void> LeaseTable::restore(const Lease& lease, Keys keys) {
  const LeaseId highest =
      is_of_key(lease.id) ? LeaseId(kKeyLeaseIdMin.value() | lease.stamp) : newest_;
  if (lease.id == LeaseId(0) || lease.id > highest) return malformed("its id was never given");
  if (is_of_key(lease.id) && !(lease.name.empty() && lease.holder.empty() && keys.size() <= 1)) {
    return malformed("that of a key has a name, a holder or another key");
  }
  if (!fits(lease.name, lease.holder, lease.ttl)) return malformed("it is beyond a limit");
  if (const char* problem = lease.terms.problem(!lease.name.empty())) return malformed(problem);
  if (lease.delayed && (lease.terms.delay == LeaseTerms::Milliseconds(0) || !keys.empty())) {
    return malformed("a delayed one has no lock delay, or a key");
  }
  if (lease.stamp > newest_stamp_) return malformed("its stamp was never given");
  if (lease.token == FencingToken(0)) return malformed("it has no token");
  if (leases_.count(lease.id) != 0) return malformed("named twice");
  if (find(lease.name) != nullptr) return malformed("two have the same name");
  if (leases_.size() >= kLeasesMax) return malformed("there are more than may be");
  if (keys.size() > kLeaseKeysMax) return malformed("it has more keys than it may");
  if (!lease.name.empty()) names_.emplace(lease.name, lease.id);
  leases_.emplace(lease.id, lease);
  put_keys(lease.id, std::move(keys));
  return {};
}

Result<void> LeaseTable::restore_key(LeaseId id, std::string_view key) {
  const auto at = leases_.find(id);
  if (at == leases_.end()) return malformed("a key is attached to one that there is not");
  if (at->second.delayed) return malformed("a key is attached to a delayed one");
  const std::size_t most = is_of_key(id) ? 1 : kLeaseKeysMax;
  if (keys(id)->size() >= most) return malformed("it has more keys than it may");
  if (!keys_[id].emplace(key).second) return malformed("a key is attached twice");
  return {};
}

Result<void> LeaseTable::restored() const {
  for (auto at = leases_.lower_bound(kKeyLeaseIdMin); at != leases_.end(); ++at) {
    if (keys_.count(at->first) == 0) return malformed("that of a key has no key");
  }
  return {};
}

}  // namespace leasehold::lease
