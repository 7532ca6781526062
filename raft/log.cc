#include <leasehold/base/assert.h>
#include <leasehold/raft/log.h>

#include <algorithm>

namespace leasehold::raft {

Log::Log(LogId base, Membership base_membership, std::vector<TermRun> runs, Index last,
         std::vector<MembershipAt> memberships)
    : base_(base), last_(last), runs_(std::move(runs)) {
  LEASEHOLD_ASSERT(last_ >= base_.index);
  LEASEHOLD_ASSERT(runs_.empty() == (last_ == base_.index));
  if (!runs_.empty()) LEASEHOLD_ASSERT(runs_.front().first == base_.index.next());
  for (std::size_t i = 1; i < runs_.size(); ++i) {
    LEASEHOLD_ASSERT(runs_[i - 1].term < runs_[i].term);
    LEASEHOLD_ASSERT(runs_[i - 1].first < runs_[i].first);
  }
  memberships_.push_back({base_.index, std::move(base_membership)});
  for (MembershipAt& at : memberships) {
    LEASEHOLD_ASSERT(at.index > memberships_.back().index && at.index <= last_);
    memberships_.push_back(std::move(at));
  }
}

std::optional<Term> Log::older_term_at(Index index) const {
  if (index == base_.index) return base_.term;
  if (index < base_.index || index > last_) return std::nullopt;
  const auto after =
      std::upper_bound(runs_.begin(), runs_.end(), index,
                       [](Index wanted, const TermRun& run) { return wanted < run.first; });
  LEASEHOLD_ASSERT(after != runs_.begin());
  return std::prev(after)->term;
}

Index Log::last_index_with_term_at_most(Term term, Index limit) const {
  Index index = std::min(limit, last_);
  for (auto run = runs_.rbegin(); run != runs_.rend() && index > base_.index; ++run) {
    if (run->first > index) continue;
    if (run->term <= term) return index;
    index = run->first.prev();
  }
  return std::max(index, base_.index);
}

void Log::append(Term term, const Membership* membership) {
  LEASEHOLD_ASSERT(term >= last_term());
  last_ = last_.next();
  if (runs_.empty() || runs_.back().term < term) runs_.push_back({term, last_});
  if (membership != nullptr) {
    memberships_.push_back({last_, *membership});
    ++membership_changes_;
  }
  LEASEHOLD_ASSERT(last_term() == term);
  LEASEHOLD_ASSERT(memberships_.back().index <= last_);
}

void Log::truncate(Index from) {
  LEASEHOLD_ASSERT(from > base_.index);
  LEASEHOLD_ASSERT(from <= last_);
  last_ = from.prev();
  while (!runs_.empty() && runs_.back().first > last_) runs_.pop_back();
  while (memberships_.back().index > last_) {
    memberships_.pop_back();
    ++membership_changes_;
  }
  LEASEHOLD_ASSERT(!memberships_.empty());  // the first stands at the base
  LEASEHOLD_ASSERT(runs_.empty() == (last_ == base_.index));
}

void Log::cut(Index to) {
  LEASEHOLD_ASSERT(to > base_.index);
  LEASEHOLD_ASSERT(to <= last_);
  Membership membership = membership_at(to);
  base_ = {term_at(to).value(), to};
  // The last run that begins at or below the new front is the first that stays.
  auto stays = runs_.end();
  if (to < last_) {
    stays = std::prev(
        std::upper_bound(runs_.begin(), runs_.end(), to.next(),
                         [](Index wanted, const TermRun& run) { return wanted < run.first; }));
    stays->first = to.next();
  }
  runs_.erase(runs_.begin(), stays);
  const auto above = std::find_if(memberships_.begin(), memberships_.end(),
                                  [to](const MembershipAt& at) { return at.index > to; });
  memberships_.erase(memberships_.begin(), above);
  memberships_.insert(memberships_.begin(), {to, std::move(membership)});
  ++membership_changes_;
  LEASEHOLD_ASSERT(memberships_.front().index == base_.index);
  LEASEHOLD_ASSERT(runs_.empty() == (last_ == base_.index));
}

void Log::reset(LogId base, Membership membership) {
  LEASEHOLD_ASSERT(base.index > base_.index);
  base_ = base;
  last_ = base.index;
  runs_.clear();
  memberships_.clear();
  memberships_.push_back({base.index, std::move(membership)});
  ++membership_changes_;
}

std::size_t Log::memberships_above(Index index) const {
  std::size_t count = 0;
  for (auto at = memberships_.rbegin(); at != memberships_.rend() && at->index > index; ++at) {
    ++count;
  }
  return count;
}

bool Log::ever_names(NodeId id, const Uuid& uuid) const {
  if (!memberships_.front().membership.members.empty()) return true;
  return std::any_of(memberships_.begin(), memberships_.end(), [&](const MembershipAt& at) {
    const Member* member = at.membership.find(id);
    return member != nullptr && member->uuid == uuid;
  });
}

bool Log::names(NodeId id, const Uuid& uuid) const {
  return std::any_of(memberships_.begin(), memberships_.end(), [&](const MembershipAt& at) {
    const Member* member = at.membership.find(id);
    return member != nullptr && member->uuid == uuid;
  });
}

const Membership& Log::membership_at(Index index) const {
  for (auto at = memberships_.rbegin(); at != memberships_.rend(); ++at) {
    if (at->index <= index) return at->membership;
  }
  return memberships_.front().membership;
}

}  // namespace leasehold::raft
