#include <leasehold/base/assert.h>
#include <leasehold/storage/group_load.h>

#include <fmt/format.h>

#include <iterator>
#include <limits>
#include <string>
#include <utility>

namespace leasehold::storage {
namespace {

Error corrupted(const std::string& message) {
  return {ErrorCode::corrupted, message};
}

Error stray(raft::Index index) {
  return corrupted(fmt::format("entry {} does not follow from the one before", index.value()));
}

/// No log reaches as far: a number above it is damage, and one more does not overflow.
constexpr raft::Index kIndexLimit{std::numeric_limits<std::uint64_t>::max() / 2};

}  // namespace

GroupLoader::Runs::const_iterator GroupLoader::run_of(raft::Index index) const {
  auto at = runs_.upper_bound(index);
  if (at == runs_.begin()) return runs_.end();
  --at;
  return index - at->first < at->second.payload_bytes.size() ? at : runs_.end();
}

std::optional<raft::Term> GroupLoader::term_at(raft::Index index) const {
  if (foundation_.base && index == foundation_.base->id.index) return foundation_.base->id.term;
  if (!foundation_.base && index == raft::Index(0)) return raft::Term(0);
  const auto run = run_of(index);
  if (run != runs_.end()) return run->second.term;
  const auto expected = expected_.find(index);
  return expected != expected_.end() ? std::optional(expected->second) : std::nullopt;
}

/// A section says that this entry is, or was, in the log.
Result<void> GroupLoader::expect(raft::LogId id) {
  const auto known = term_at(id.index);
  if (known) return *known == id.term ? Result<void>() : stray(id.index.next());
  if (whole_) return stray(id.index.next());
  expected_.emplace(id.index, id.term);
  return {};
}

Result<void> GroupLoader::begin(const BatchBody& batch, std::uint64_t segment) {
  batch_ = batch;
  segment_ = segment;
  next_ = batch.first;
  if (!begun_) whole_ = !floating_;
  if (batch.first == raft::Index(0) || batch.first > kIndexLimit ||
      batch.state.last.index > kIndexLimit) {
    return stray(batch.first);
  }
  if (batch.reset) {
    whole_ = true;
    runs_.clear();
    memberships_.clear();
    expected_.clear();
    const auto& base = *batch.foundation.base;
    if (foundation_.base && base.id.index < foundation_.base->id.index) {
      return corrupted("the log begins again in front of its base");
    }
    if (base.id.index > kIndexLimit) return stray(base.id.index);
    foundation_.base = base;
    last_ = base.id.index;
    begun_ = true;
  }
  auto done = batch.moved ? begin_moved() : begin_append();
  begun_ = true;
  return done;
}

/// The section cuts the log to the entries below the first one, and appends.
Result<void> GroupLoader::begin_append() {
  const raft::LogId before{batch_.previous_term, batch_.first.prev()};
  if (!begun_ && floating_) last_ = before.index;
  if (batch_.first > last_.next()) return stray(batch_.first);
  const auto& base = foundation_.base;
  if (base && batch_.first <= base->id.index) return stray(batch_.first);
  if (!base && whole_ && batch_.count > 0) {
    return corrupted("entries stand before the group was formed");
  }
  truncate(batch_.first);
  return expect(before);
}

/// The entries are copies.
Result<void> GroupLoader::begin_moved() {
  if (!begun_) last_ = batch_.state.last.index;
  const std::uint64_t count = batch_.count;
  if (batch_.state.last.index != last_ ||
      (count > 0 && batch_.first.value() + count - 1 > last_.value())) {
    return corrupted("copies of entries that are not in the log");
  }
  return {};
}

void GroupLoader::truncate(raft::Index from) {
  while (!runs_.empty() && runs_.rbegin()->first >= from) runs_.erase(std::prev(runs_.end()));
  if (!runs_.empty()) {
    auto& [first, run] = *runs_.rbegin();
    if (from - first < run.payload_bytes.size()) run.payload_bytes.resize(from - first);
  }
  memberships_.erase(memberships_.lower_bound(from), memberships_.end());
  expected_.erase(expected_.lower_bound(from), expected_.end());
  last_ = from.prev();
}

Result<void> GroupLoader::add(const EntryView& entry) {
  const raft::LogId id = entry.id;
  if (id.index != next_ || id.term == raft::Term(0)) return stray(id.index);
  next_ = next_.next();
  const bool copy = batch_.moved && run_of(id.index) != runs_.end();
  if (copy) return term_at(id.index) == id.term ? Result<void>() : stray(id.index);
  if (batch_.moved) {
    const auto expected = term_at(id.index);
    if (expected && *expected != id.term) return stray(id.index);
    expected_.erase(id.index);
    if (foundation_.base && id.index <= foundation_.base->id.index) return stray(id.index);
  } else {
    const auto before = term_at(last_);
    if (before && id.term < *before) return stray(id.index);
    last_ = id.index;
  }
  if (entry.kind == raft::EntryKind::membership) {
    auto membership = raft::decode_membership(entry.payload);
    if (!membership) {
      return Error{membership.error().code == ErrorCode::unsupported_format
                       ? ErrorCode::unsupported_format
                       : ErrorCode::corrupted,
                   fmt::format("entry {}: {}", id.index.value(), membership.error().message)};
    }
    memberships_.insert_or_assign(id.index, std::move(membership).value());
  }
  insert(entry);
  return {};
}

void GroupLoader::insert(const EntryView& entry) {
  const auto bytes = static_cast<std::uint32_t>(entry.payload.size());
  auto after = runs_.upper_bound(entry.id.index);
  if (after != runs_.begin()) {
    auto& [first, run] = *std::prev(after);
    LEASEHOLD_ASSERT(entry.id.index - first >= run.payload_bytes.size());
    if (entry.id.index - first == run.payload_bytes.size() && run.term == entry.id.term &&
        run.segment == segment_) {
      run.payload_bytes.push_back(bytes);
      return;
    }
  }
  runs_.emplace_hint(after, entry.id.index, Run{entry.id.term, segment_, {bytes}});
}

Result<void> GroupLoader::end() {
  const raft::LogId last = batch_.state.last;
  if (next_ - batch_.first != batch_.count || last.index != last_) {
    return corrupted("the batch does not hold what it says");
  }
  if (auto laid = lay(batch_.foundation); !laid) return laid;
  if (auto known = expect(last); !known) {
    return corrupted("the batch does not hold what it says");
  }
  state_ = batch_.state;
  state_segment_ = segment_;
  return {};
}

Result<void> GroupLoader::lay(const Foundation& foundation) {
  if (foundation.confirmed) {
    const auto& known = foundation_.confirmed;
    if (known && !(*known == *foundation.confirmed)) {
      return corrupted("it holds another confirmed set of members than the log before it");
    }
    foundation_.confirmed = foundation.confirmed;
    foundation_segment_ = segment_;
  }
  return foundation.base ? cut(*foundation.base) : Result<void>();
}

Result<void> GroupLoader::cut(const raft::LogBase& base) {
  const auto& known = foundation_.base;
  const bool back = known && base.id.index < known->id.index;
  // What is unknown may be the base only where the front of the files is gone.
  const auto term = term_at(base.id.index);
  const bool there = term ? *term == base.id.term : !whole_ && base.id.index <= last_;
  if (back || !there || base.id.index > last_) {
    return corrupted(fmt::format("the log cannot begin behind entry {}: it is not there",
                                 base.id.index.value()));
  }
  foundation_.base = base;
  const raft::Index above = base.id.index.next();
  while (!runs_.empty() && runs_.begin()->first < above) {
    auto run = runs_.extract(runs_.begin());
    auto& sizes = run.mapped().payload_bytes;
    const std::uint64_t gone = above - run.key();
    if (gone >= sizes.size()) continue;
    sizes.erase(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(gone));
    run.key() = above;
    runs_.insert(std::move(run));
  }
  memberships_.erase(memberships_.begin(), memberships_.lower_bound(above));
  expected_.erase(expected_.begin(), expected_.lower_bound(above));
  return {};
}

Result<LoadedGroup> GroupLoader::finish(Holders& holders) {
  LoadedGroup group;
  group.foundation = foundation_;
  const raft::LogId base = foundation_.base ? foundation_.base->id : raft::LogId();
  if (!foundation_.base && !whole_) return corrupted("no frame says where the log begins");
  group.shape = Shape(base, {}, base);
  group.index.cut(base.index, holders);
  for (const auto& [first, run] : runs_) {
    const raft::LogId last = group.shape.last();
    if (first != last.index.next()) {
      return corrupted(fmt::format("entry {} is missing", last.index.next().value()));
    }
    if (run.term < last.term) return stray(first);
    raft::Index index = first;
    for (const std::uint32_t bytes : run.payload_bytes) {
      group.shape.append({run.term, index});
      group.index.add(index, bytes, run.segment, holders);
      group.payload_bytes += bytes;
      index = index.next();
    }
  }
  if (group.shape.last() != state_.last) {
    return corrupted(fmt::format("entry {} is missing", group.shape.last().index.next().value()));
  }
  for (const auto& [index, membership] : memberships_) {
    group.memberships.push_back({index, membership});
  }
  for (const auto& [index, term] : expected_) {
    if (group.shape.term_at(index) != term) return stray(index.next());
  }
  group.index.set_state(state_, state_segment_, holders);
  group.index.set_foundation(foundation_segment_, holders);
  return group;
}

}  // namespace leasehold::storage
