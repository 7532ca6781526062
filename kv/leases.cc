#include <leasehold/kv/leases.h>

namespace leasehold::kv {

FoundLease found_lease(const grant::LeaseTable::Lease& lease, const grant::LeaseTable::Keys& keys) {
  FoundLease found;
  found.lease = lease;
  for (const std::string& key : keys) {
    if (!found.add(key)) break;
  }
  return found;
}

TimedLease timed(const grant::LeaseTable::Lease& lease, std::uint32_t wants) {
  // A delayed one has nothing left but its delay.
  if (lease.delayed) return {lease.id, lease.stamp, {lease.terms.delay, {}, wants, false}};
  return {lease.id, lease.stamp, {lease.ttl, lease.terms.grace, wants, true}};
}

TimedLease Leases::timed(const grant::LeaseTable::Lease& lease) const {
  const auto wants = wants_.find(lease.id);
  return kv::timed(lease, wants == wants_.end() ? 0 : wants->second);
}

LeaseChanges Leases::changes(std::uint64_t cursor) const {
  const std::lock_guard lock(mutex_);
  LeaseChanges out;
  out.cursor = journal_begin_ + journal_.size();
  if (cursor < journal_begin_) {
    out.whole = true;
    for (const auto& lease : table_.list(grant::LeaseId(0), table_.size())) {
      out.alive.push_back(timed(lease));
    }
    return out;
  }
  std::set<grant::LeaseId> told;
  for (std::uint64_t at = cursor; at < out.cursor; ++at) {
    const grant::LeaseId id = journal_[static_cast<std::size_t>(at - journal_begin_)];
    if (!told.insert(id).second) continue;
    if (const auto* lease = table_.find(id)) {
      out.alive.push_back(timed(*lease));
    } else {
      out.gone.push_back(id);
    }
  }
  return out;
}

std::optional<FoundLease> Leases::find(grant::LeaseId id, std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto* found = id == grant::LeaseId(0) ? table_.find(name) : table_.find(id);
  if (found == nullptr) return std::nullopt;
  return found_lease(*found, *table_.keys(found->id));
}

std::optional<grant::LeaseTable::Lease> Leases::terms(grant::LeaseId id,
                                                      std::string_view name) const {
  const std::lock_guard lock(mutex_);
  const auto* found = id == grant::LeaseId(0) ? table_.find(name) : table_.find(id);
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

std::vector<grant::LeaseTable::Lease> Leases::list(grant::LeaseId after, std::size_t count) const {
  const std::lock_guard lock(mutex_);
  return table_.list(after, count);
}

grant::LeaseTable& Leases::begin_step() {
  if (!step_.owns_lock()) step_ = std::unique_lock(mutex_);
  return table_;
}

void Leases::end_step() {
  if (!step_.owns_lock()) return;
  for (const grant::LeaseTable::Change& change : table_.step()) note(change);
  table_.keep();
  for (const grant::LeaseId id : table_.take_wanted()) {
    if (table_.find(id) == nullptr) continue;
    ++wants_[id];
    note_in_journal(id);
  }
  step_.unlock();
}

void Leases::skip_ids(std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  table_.restore_newest(grant::LeaseId(table_.newest().value() + count), table_.newest_stamp());
  skipped_ = true;
}

void Leases::note(const grant::LeaseTable::Change& change) {
  using What = grant::LeaseTable::Change::What;
  const bool attached = change.what == What::attached;
  for (const std::string& key : change.keys) note_key(change.id, key, attached);
  if (attached || change.what == What::detached) return;
  changed_.insert(change.id);
  unsaved_bytes_ += sizeof(grant::LeaseTable::Lease) + 2 * change.name.size();
  if (!change.name.empty()) {
    names_[change.name] = change.what == What::ended ? grant::LeaseId(0) : change.id;
  }
  if (change.what == What::ended) wants_.erase(change.id);
  note_in_journal(change.id);
}

void Leases::note_in_journal(grant::LeaseId id) {
  journal_.push_back(id);
  if (journal_.size() <= kJournalMax) return;
  journal_.pop_front();
  ++journal_begin_;
}

void Leases::note_key(grant::LeaseId id, const std::string& key, bool attached) {
  attachments_[{id, key}] = attached;
  unsaved_bytes_ += key.size();
}

void Leases::saved() {
  changed_.clear();
  names_.clear();
  attachments_.clear();
  unsaved_bytes_ = 0;
  skipped_ = false;
}

void Leases::follow(const Leases& before) {
  const std::uint64_t cursor = before.changes(std::uint64_t{0}).cursor;
  const std::lock_guard lock(mutex_);
  journal_begin_ = cursor + 1;
  journal_.clear();
}

void Leases::replace(grant::LeaseTable table) {
  const std::lock_guard lock(mutex_);
  table_ = std::move(table);
  wants_.clear();
  journal_begin_ += journal_.size() + 1;
  journal_.clear();
  saved();
}

}  // namespace leasehold::kv
