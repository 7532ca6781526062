#include <leasehold/base/assert.h>
#include <leasehold/raft/lease_classes.h>
#include <leasehold/raft/quorum.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

namespace leasehold::raft {
namespace {

auto all_of(const LeaseBasis& basis) {
  return std::tie(basis.max_clock_drift_ppm, basis.margin, basis.heartbeat, basis.voters, basis.own,
                  basis.bound);
}

}  // namespace

bool operator<(const LeaseBasis& a, const LeaseBasis& b) {
  return all_of(a) < all_of(b);
}

LeaseClassId LeaseClasses::join(const LeaseBasis& basis, const lease::Beats& beats,
                                const Supporters& supporters, HolderInstant now) {
  LEASEHOLD_ASSERT(std::is_sorted(basis.bound.begin(), basis.bound.end()));
  LEASEHOLD_ASSERT(basis.bound.size() + (basis.own ? 1 : 0) <= basis.voters);
  const auto [known, fresh] = by_basis_.try_emplace(basis, newest_.next());
  if (fresh && newest_ == last_) {
    by_basis_.erase(known);
    return kNoClass;
  }
  if (fresh) {
    newest_ = known->second;
    entries_.emplace(newest_, Entry{basis, {}, true});
    for (const LeaseBasis::Bound& voter : basis.bound) by_voter_[voter.directory].insert(newest_);
  }
  Entry& entry = entries_.at(known->second);
  const LeaseClass value = value_of(basis, beats, supporters);
  advance(entry, value);
  // A beat of a longer D may carry it further than the present ones: one that began before this
  // leader could rest on it.
  if (entry.state.end > value.end || about_to_end(entry, now)) return kNoClass;
  return known->second;
}

// A leader that wakes then has about one heartbeat of its group left to renew its lease.
bool LeaseClasses::about_to_end(const Entry& entry, HolderInstant now) const {
  return entry.state.end <= now + entry.basis.heartbeat + heartbeat_;
}

const LeaseClass* LeaseClasses::find(LeaseClassId id) const {
  const auto found = entries_.find(id);
  return found != entries_.end() ? &found->second.state : nullptr;
}

// The quorum value of the newest beats, as Core derives it for a leader whose members lack nothing.
LeaseClass LeaseClasses::value_of(const LeaseBasis& basis, const lease::Beats& beats,
                                  const Supporters& supporters) {
  ReachedValues<HolderInstant> ends;
  ReachedValues<HolderInstant> begins;
  lease::Timing numbers;
  numbers.max_clock_drift_ppm = basis.max_clock_drift_ppm;
  numbers.margin = basis.margin;
  const auto add = [&](std::optional<lease::RoundStart> beat) {
    if (!beat) return;
    beat->limit(numbers);
    ends.add(beat->end());
    begins.add(beat->began);
  };
  if (const lease::RoundStart* own = beats.find(beats.newest()); basis.own && own != nullptr) {
    add(*own);
  }
  for (const LeaseBasis::Bound& voter : basis.bound) {
    const auto supporter = supporters.find(voter.directory);
    if (supporter != supporters.end()) add(supporter->second.acknowledged(voter.epoch));
  }
  const std::size_t majority = basis.voters / 2 + 1;
  LeaseClass value;
  value.end = ends.reached_by(majority).value_or(value.end);
  value.began = begins.reached_by(majority).value_or(value.began);
  return value;
}

bool LeaseClasses::advance(Entry& entry, const LeaseClass& value) {
  LeaseClass& state = entry.state;
  state.began = std::max(state.began, value.began);
  if (value.end <= state.end) return false;
  state.end = value.end;
  if (std::exchange(entry.lapsed, false)) ++living_;
  return true;
}

void LeaseClasses::derive(const lease::Beats& beats, const Supporters& supporters, const Uuid* by,
                          std::set<LeaseClassId>& moved) {
  const auto advance_one = [&](LeaseClassId id, Entry& entry) {
    if (advance(entry, value_of(entry.basis, beats, supporters))) moved.insert(id);
  };
  if (by == nullptr) {
    for (auto& [id, entry] : entries_) advance_one(id, entry);
  } else if (const auto rest = by_voter_.find(*by); rest != by_voter_.end()) {
    for (const LeaseClassId id : rest->second) advance_one(id, entries_.at(id));
  }
}

void LeaseClasses::look(HolderInstant now, std::vector<LeaseClassId>& lapsed) {
  for (auto& [id, entry] : entries_) {
    if (entry.lapsed || !about_to_end(entry, now)) continue;
    entry.lapsed = true;
    --living_;
    lapsed.push_back(id);
  }
}

void LeaseClasses::retain(const std::set<LeaseClassId>& used) {
  for (auto one = by_basis_.begin(); one != by_basis_.end();) {
    if (used.contains(one->second)) {
      ++one;
      continue;
    }
    if (!entries_.at(one->second).lapsed) --living_;
    for (const LeaseBasis::Bound& voter : one->first.bound) {
      const auto rest = by_voter_.find(voter.directory);
      rest->second.erase(one->second);
      if (rest->second.empty()) by_voter_.erase(rest);
    }
    entries_.erase(one->second);
    one = by_basis_.erase(one);
  }
}

}  // namespace leasehold::raft
