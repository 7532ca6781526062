#include <leasehold/base/assert.h>
#include <leasehold/kv/draft.h>
#include <leasehold/kv/query.h>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace leasehold::kv {

bool Draft::is_here(std::string_view key) {
  if (slots_ == nullptr || slots_->serves_key(key)) return true;
  not_here_ = slot_of(key);
  return false;
}

std::optional<ErrorReply> Draft::not_here() const {
  if (!not_here_) return std::nullopt;
  return ErrorReply{ErrorKind::moved, fmt::format("slot {} is not of this group now; nothing was "
                                                  "done, ask the group that has it",
                                                  *not_here_)};
}

bool Draft::expire(const SeenLease& seen) {
  if (slots_ != nullptr && grant::is_of_key(seen.id)) {
    const auto* const keys = leases().keys(seen.id);
    if (keys != nullptr && !keys->empty() && !slots_->serves_key(*keys->begin())) return false;
  }
  return erase_ended(leases().expire(seen.id, seen.stamp), EventKind::expired, seen.id);
}

Result<std::optional<Value>> Draft::load(std::string_view key) {
  if (!is_here(key)) return Error{ErrorCode::invalid_argument, "the key is of another group"};
  if (!changes_.empty()) {
    const auto changed = changes_.find(key);
    if (changed != changes_.end()) return changed->second.value;
  }
  if (!keeps_loaded_) return backend_.load(key);
  const auto known = loaded_.find(key);
  if (known != loaded_.end()) return known->second;
  auto loaded = backend_.load(key);
  if (!loaded) return loaded;
  if (auto kept = keep(key, loaded.value()); !kept) return kept.error();
  return loaded;
}

Result<void> Draft::keep(std::string_view key, const std::optional<Value>& value) {
  const std::size_t bytes = value ? value->bytes.size() : 0;
  if (load_limit_ && loaded_bytes_ + bytes > *load_limit_) {
    loads_too_much_ = true;
    return Error{ErrorCode::invalid_argument, "the command loads too much"};
  }
  if (!load_limit_ && loaded_bytes_ + bytes > kKeptBytesMax) {
    loaded_.clear();
    loaded_bytes_ = 0;
  }
  loaded_bytes_ += bytes;
  loaded_.emplace(key, value);
  return {};
}

void Draft::write(std::string_view key, Bytes bytes, const std::optional<Value>& old,
                  grant::LeaseId lease) {
  Value value;
  written_bytes_ += bytes.size();
  value.bytes = std::move(bytes);
  value.mod_revision = revision();
  value.create_revision = old ? old->create_revision : value.mod_revision;
  value.version = old ? old->version + 1 : 1;
  value.lease = lease;
  if (lease_of(old) != lease) {
    if (lease_of(old) != grant::LeaseId(0)) leases().detach(old->lease, key);
    if (lease != grant::LeaseId(0)) {
      const auto attached = leases().attach(lease, key);
      LEASEHOLD_ASSERT(attached == grant::LeaseTable::Attached::attached);
    }
  }
  if (!old) ++keys_;
  change(key, old.has_value(), {std::move(value), {}, EventKind::set, cause_, {}});
}

void Draft::erase(std::string_view key, const Value& old) {
  if (old.lease != grant::LeaseId(0)) leases().detach(old.lease, key);
  --keys_;
  change(key, true, {std::nullopt, {}, EventKind::deleted, cause_, {}});
}

/// `existed`: as the command sees it, so it counts for the first change of a key alone.
void Draft::change(std::string_view key, bool existed, Change change) {
  change.existed = existed;
  const auto [at, first] = changes_.try_emplace(key, std::move(change));
  if (first) return;
  change.existed = at->second.existed;
  at->second = std::move(change);
}

std::optional<ErrorReply> Draft::take_steps(std::uint64_t steps) {
  steps_ += std::min(steps, kStepsMax + 1);
  if (steps_ <= kStepsMax) return std::nullopt;
  return too_many_steps();
}

Event Draft::event_of(std::string_view key, const Change& change) {
  Event event;
  event.kind = change.kind;
  event.cause = change.cause;
  event.key = key;
  event.lease = change.ended;
  if (!change.value) return event;
  event.value = change.value->bytes.view();
  event.value_kept = true;
  event.create_revision = change.value->create_revision;
  event.version = change.value->version;
  event.lease = change.value->lease;
  return event;
}

void Draft::move(std::string_view from, const Value& value, std::string_view to,
                 const std::optional<Value>& old) {
  Value moved = value;
  const bool leased = value.lease != grant::LeaseId(0);
  // Not off the lease and on again: that of a key would end.
  if (leased && lease_of(old) != value.lease) {
    if (lease_of(old) != grant::LeaseId(0)) leases().detach(old->lease, to);
    leases().move(value.lease, from, to);
  } else {
    if (leased) leases().detach(value.lease, from);
    if (lease_of(old) != value.lease && old) leases().detach(old->lease, to);
  }
  written_bytes_ += value.bytes.size();
  moved.mod_revision = revision();
  moved.create_revision = old ? old->create_revision : moved.mod_revision;
  moved.version = old ? old->version + 1 : 1;
  if (old) --keys_;
  change(from, true, {std::nullopt, {}, EventKind::deleted, cause_, {}});
  change(to, old.has_value(), {std::move(moved), {}, EventKind::set, cause_, {}});
}

std::optional<ErrorReply> Draft::cannot_attach(const std::optional<Value>& old,
                                               grant::LeaseId lease) {
  if (lease == grant::LeaseId(0)) return std::nullopt;
  const auto* found = grant::is_of_key(lease) ? nullptr : leases().find(lease);
  const bool lives = found != nullptr && !found->delayed;
  const auto* keys = lives ? leases().keys(lease) : nullptr;
  if (keys != nullptr && lease_of(old) == lease) return std::nullopt;
  if (keys == nullptr) {
    return ErrorReply{
        ErrorKind::no_lease,
        fmt::format("lease {} was never granted, or has ended; nothing was done", lease.value())};
  }
  if (auto why = not_owner(lease)) return why;
  if (keys->size() < grant::kLeaseKeysMax) return std::nullopt;
  return ErrorReply{ErrorKind::limit,
                    fmt::format("lease {} has {} keys, which is the limit; nothing was done",
                                lease.value(), keys->size())};
}

std::optional<ErrorReply> Draft::cannot_time(std::size_t keys) {
  if (leases().size() + keys <= grant::kLeasesMax) return std::nullopt;
  return ErrorReply{
      ErrorKind::limit,
      fmt::format("there would be more than {} leases: each key that ends by itself has one; "
                  "nothing was done",
                  grant::kLeasesMax)};
}

void Draft::write_timed(std::string_view key, Bytes bytes, const std::optional<Value>& old,
                        KeyTime ttl, std::int64_t end_ms) {
  if (ttl == KeyTime(0)) {
    if (old) erase(key, *old);
    return;
  }
  grant::LeaseId own = lease_of(old);
  if (grant::is_of_key(own)) {
    leases().retime(own, ttl, end_ms);
  } else {
    const auto granted = leases().grant_to_key(ttl, grant::FencingToken(revision()), end_ms);
    LEASEHOLD_ASSERT(granted);
    own = *granted;
  }
  write(key, std::move(bytes), old, own);
}

std::optional<ErrorReply> Draft::not_owner(grant::LeaseId lease) {
  if (acting_ == nullptr || acting_->others) return std::nullopt;
  const auto* found = leases().find(lease);
  if (found == nullptr || found->owner.empty()) return std::nullopt;
  const User* const user = backend_.users().find(acting_->user);
  if (is_of_user(*found, acting_->user, user == nullptr ? 0 : user->created)) return std::nullopt;
  const std::string whose = found->owner == acting_->user ? "that of an earlier user of this name"
                                                          : "user " + found->owner + "'s";
  return ErrorReply{
      ErrorKind::not_owner,
      fmt::format("User {} has no permissions to change lease {}, which is {}; nothing was done",
                  acting_->user, lease.value(), whose)};
}

grant::LeaseTable::Granted Draft::grant(grant::LeaseTable::Request request) {
  if (acting_ != nullptr) request.owner = acting_->user;
  request.above = backend_.ids_above();
  const auto granted = leases().grant(request, grant::FencingToken(revision()));
  if (granted.verdict == grant::LeaseTable::Verdict::granted) lease_began_or_ended_ = true;
  return granted;
}

Result<std::optional<ErrorReply>> Draft::pass_fence(std::string_view key,
                                                    grant::FencingToken token) {
  using Why = std::optional<ErrorReply>;
  // A number that is made up would shut out every holder to come.
  if (token.value() > counters_.revision) {
    return Why(
        ErrorReply{ErrorKind::fenced,
                   fmt::format("no lease was granted with the token {} yet", token.value())});
  }
  const auto changed = fences_.find(key);
  auto highest = changed == fences_.end() ? backend_.fence(key) : changed->second.token;
  if (!highest) return highest.error();
  if (!grant::fence_passes(highest.value(), token)) {
    return Why(ErrorReply{
        ErrorKind::fenced,
        fmt::format("the token {} is older than the token {}, which has written this key; the "
                    "lease has gone to another",
                    token.value(), highest.value().value())});
  }
  const bool first = highest.value() == grant::FencingToken(0);
  // Nothing removes what is kept here, so users do not make it grow without end. A command without
  // a user may be one of an earlier version, whose replicas know no limit.
  if (first && acting_ != nullptr && backend_.fence_count() + first_fences_ >= kFencesMax) {
    return Why(ErrorReply{
        ErrorKind::limit,
        fmt::format("{} keys were written with a token, which is the limit: use keys that were; "
                    "nothing was done",
                    kFencesMax)});
  }
  first_fences_ += first ? 1 : 0;
  if (token > highest.value()) {
    fences_.insert_or_assign(
        key, Fence{token, first || (changed != fences_.end() && changed->second.first)});
  }
  return Why();
}

void Draft::commit() {
  const bool changed = !changes_.empty() || lease_began_or_ended_;
  if (changed) ++counters_.revision;
  counters_.keys = keys_;
  Revision told;  // its values live on where they are put
  told.number = counters_.revision;
  told.events.reserve(changes_.size());
  for (auto& [key, change] : changes_) {
    if (change.value || change.existed) told.events.push_back(event_of(key, change));
    if (change.value) {
      backend_.put(key, std::move(*change.value));
    } else {
      backend_.erase(key);
    }
  }
  for (const auto& [key, fence] : fences_) backend_.put_fence(key, fence.token, fence.first);
  leases_ = nullptr;
  if (changed) backend_.tell(told);
}

grant::LeaseTable& Draft::leases() {
  if (leases_ == nullptr) leases_ = &backend_.leases();
  return *leases_;
}

bool Draft::erase_ended(const grant::LeaseTable::Keys* keys, EventKind kind, grant::LeaseId id) {
  if (keys == nullptr) return false;
  lease_began_or_ended_ = true;
  ended_keys_ += keys->size();
  for (const std::string& key : *keys) {
    --keys_;
    change(key, true, {std::nullopt, {}, kind, EventCause::none, id});
  }
  return true;
}

}  // namespace leasehold::kv
