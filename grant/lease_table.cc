#include <leasehold/base/assert.h>
#include <leasehold/grant/lease_table.h>

#include <algorithm>
#include <utility>

namespace leasehold::grant {
namespace {

bool fits(std::string_view name, std::string_view holder, lease::Duration ttl) {
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

// ---- By id and by name ----

LeaseTable::Leases::Leases(const Leases& other) : by_id_(other.by_id_), of_owner_(other.of_owner_) {
  for (const auto& [id, lease] : by_id_) {
    if (!lease.name.empty()) by_name_.emplace(lease.name, &lease);
  }
}

LeaseTable::Leases& LeaseTable::Leases::operator=(Leases other) noexcept {
  by_id_.swap(other.by_id_);
  by_name_.swap(other.by_name_);
  of_owner_.swap(other.of_owner_);
  return *this;
}

LeaseTable::Lease* LeaseTable::Leases::find(LeaseId id) {
  const auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : &at->second;
}

const LeaseTable::Lease* LeaseTable::Leases::find(LeaseId id) const {
  const auto at = by_id_.find(id);
  return at == by_id_.end() ? nullptr : &at->second;
}

const LeaseTable::Lease* LeaseTable::Leases::find(std::string_view name) const {
  const auto at = by_name_.find(name);
  return at == by_name_.end() ? nullptr : at->second;
}

void LeaseTable::Leases::insert(Lease lease) {
  const LeaseId id = lease.id;
  const auto [at, added] = by_id_.emplace(id, std::move(lease));
  LEASEHOLD_ASSERT(added);
  if (!at->second.name.empty()) by_name_.emplace(at->second.name, &at->second);
  if (!at->second.owner.empty()) ++of_owner_[at->second.owner];
}

LeaseTable::Lease LeaseTable::Leases::take(LeaseId id) {
  const auto at = by_id_.find(id);
  LEASEHOLD_ASSERT(at != by_id_.end());
  by_name_.erase(at->second.name);
  Lease lease = std::move(at->second);
  by_id_.erase(at);
  const auto owned = of_owner_.find(lease.owner);
  if (owned != of_owner_.end() && --owned->second == 0) of_owner_.erase(owned);
  return lease;
}

std::size_t LeaseTable::Leases::count_of(std::string_view owner) const {
  const auto owned = of_owner_.find(owner);
  return owned == of_owner_.end() ? 0 : owned->second;
}

// ---- The table ----

LeaseTable::Granted LeaseTable::grant(const Request& request, FencingToken token) {
  if (!fits(request.name, request.holder, request.ttl) || request.id > kChosenLeaseIdMax ||
      request.terms.problem(!request.name.empty()) != nullptr) {
    return {Verdict::out_of_range, request.id};
  }
  if (const Lease* other = find(request.id); other != nullptr) {
    // A client that always asks with the same id and name is refused the name, too.
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
  if (size() >= kLeasesMax) return {Verdict::too_many, {}};
  if (size_of(request.owner) >= kLeasesOfOwnerMax) return {Verdict::too_many_of_owner, {}};
  LeaseId id = request.id;
  if (id == LeaseId(0)) {
    newest_ = std::max(newest_, LeaseId(request.above)).next();
    id = newest_;
  }
  Lease lease{id,    std::string(request.name), std::string(request.holder), request.ttl,
              token, ++newest_stamp_,           request.asked_at_ms,         request.terms};
  lease.owner = request.owner;
  step_.push_back({Change::What::granted, id, lease.name, {}, {}});
  leases_.insert(std::move(lease));
  return {Verdict::granted, id};
}

std::optional<LeaseId> LeaseTable::grant_to_key(lease::Duration ttl, FencingToken token,
                                                std::int64_t end_ms) {
  LEASEHOLD_ASSERT(fits({}, {}, ttl));
  if (size() >= kLeasesMax) return std::nullopt;
  const std::uint64_t stamp = ++newest_stamp_;
  const LeaseId id(kKeyLeaseIdMin.value() | stamp);
  step_.push_back({Change::What::granted, id, {}, {}, {}});
  leases_.insert({id, {}, {}, ttl, token, stamp, end_ms, {}});
  return id;
}

void LeaseTable::retime(LeaseId id, lease::Duration ttl, std::int64_t end_ms) {
  LEASEHOLD_ASSERT(is_of_key(id) && fits({}, {}, ttl));
  Lease* lease = leases_.find(id);
  LEASEHOLD_ASSERT(lease != nullptr);
  step_.push_back({Change::What::renewed, id, {}, {}, *lease});
  lease->ttl = ttl;
  lease->asked_at_ms = end_ms;
  lease->stamp = ++newest_stamp_;
}

bool LeaseTable::renew(LeaseId id) {
  Lease* lease = leases_.find(id);
  if (lease == nullptr || lease->delayed) return false;
  step_.push_back({Change::What::renewed, id, {}, {}, *lease});
  lease->stamp = ++newest_stamp_;
  return true;
}

const LeaseTable::Keys* LeaseTable::end(LeaseId id) {
  const Lease* lease = find(id);
  return lease == nullptr ? nullptr : end(*lease);
}

const LeaseTable::Keys* LeaseTable::expire(LeaseId id, std::uint64_t stamp) {
  Lease* lease = leases_.find(id);
  if (lease == nullptr || lease->stamp != stamp) return nullptr;
  const bool delays = lease->terms.delay > LeaseTerms::Milliseconds(0) && !lease->delayed;
  return delays ? delay(*lease) : end(*lease);
}

const LeaseTable::Keys* LeaseTable::delay(Lease& lease) {
  step_.push_back({Change::What::delayed, lease.id, {}, take_keys(lease.id), lease});
  lease.delayed = true;
  lease.stamp = ++newest_stamp_;
  return &step_.back().keys;
}

const LeaseTable::Keys* LeaseTable::end(const Lease& lease) {
  const LeaseId id = lease.id;
  std::string name = lease.name;
  ended_ids_.insert(id);
  if (!name.empty()) ended_names_.insert(name);
  step_.push_back({Change::What::ended, id, std::move(name), take_keys(id), leases_.take(id)});
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
  const Lease* lease = find(id);
  if (lease == nullptr || lease->delayed) return Attached::no_lease;
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
  if (is_of_key(id)) end(id);
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
      case Change::What::granted: leases_.take(change.id); break;
      case Change::What::renewed:
      case Change::What::delayed:
        leases_.take(change.id);
        leases_.insert(std::move(change.lease));
        put_keys(change.id, std::move(change.keys));
        break;
      case Change::What::ended:
        leases_.insert(std::move(change.lease));
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

const LeaseTable::Keys* LeaseTable::keys(LeaseId id) const {
  static const Keys kNone;
  if (find(id) == nullptr) return nullptr;
  const auto at = keys_.find(id);
  return at == keys_.end() ? &kNone : &at->second;
}

std::vector<LeaseTable::Lease> LeaseTable::list(LeaseId after, std::size_t count) const {
  std::vector<Lease> out;
  const Leases::ById& all = leases_.by_id();
  for (auto at = all.upper_bound(after); at != all.end() && out.size() < count; ++at) {
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
  if (is_of_key(lease.id) &&
      !(lease.name.empty() && lease.holder.empty() && lease.owner.empty() && keys.size() <= 1)) {
    return malformed("the lease of a key has a name, a holder or another key");
  }
  if (!fits(lease.name, lease.holder, lease.ttl) || lease.owner.size() > kLeaseOwnerBytesMax) {
    return malformed("it is beyond a limit");
  }
  if (const char* problem = lease.terms.problem(!lease.name.empty())) return malformed(problem);
  if (lease.delayed && (lease.terms.delay == LeaseTerms::Milliseconds(0) || !keys.empty())) {
    return malformed("a delayed lease has no lock delay, or a key");
  }
  if (lease.stamp > newest_stamp_) return malformed("its stamp was never given");
  if (lease.token == FencingToken(0)) return malformed("it has no token");
  if (find(lease.id) != nullptr) return malformed("named twice");
  if (find(lease.name) != nullptr) return malformed("two have the same name");
  if (size() >= kLeasesMax) return malformed("there are too many leases");
  if (keys.size() > kLeaseKeysMax) return malformed("it has too many keys");
  leases_.insert(lease);
  put_keys(lease.id, std::move(keys));
  return {};
}

Result<void> LeaseTable::restore_key(LeaseId id, std::string_view key) {
  const Lease* lease = find(id);
  if (lease == nullptr) return malformed("a key is attached to a lease that does not exist");
  if (lease->delayed) return malformed("a key is attached to a delayed lease");
  const std::size_t most = is_of_key(id) ? 1 : kLeaseKeysMax;
  if (keys(id)->size() >= most) return malformed("it has too many keys");
  if (!keys_[id].emplace(key).second) return malformed("a key is attached twice");
  return {};
}

Result<void> LeaseTable::restored() const {
  const Leases::ById& all = leases_.by_id();
  for (auto at = all.lower_bound(kKeyLeaseIdMin); at != all.end(); ++at) {
    if (keys_.count(at->first) == 0) return malformed("the lease of a key has no key");
  }
  return {};
}

}  // namespace leasehold::grant
