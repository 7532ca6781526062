// What the tests of the logs share: a sink that records, a temporary folder, a simple model.
#pragma once

#include <leasehold/base/random.h>
#include <leasehold/raft/log.h>
#include <leasehold/storage/storage.h>
#include <leasehold/tests/base/temporary_folder.h>

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::storage::testing {

inline constexpr std::chrono::seconds kPatience{30};

/// Remembers every completion. Any thread.
class RecordingSink final : public StorageSink {
 public:
  void persisted(raft::ReadyId id) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(failure_) << "persisted after failed";
    EXPECT_TRUE(persisted_.empty() || persisted_.back() < id) << "ids have to rise";
    persisted_.push_back(id);
    changed_.notify_all();
  }
  void entries_read(std::uint64_t token, Result<std::vector<raft::Entry>> entries) override {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(reads_.emplace(token, std::move(entries)).second) << "answered twice";
    changed_.notify_all();
  }
  void space(bool full) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(failure_) << "space after failed";
    EXPECT_NE(full, full_) << "said twice";
    full_ = full;
    if (!full) ++spaces_;
    changed_.notify_all();
  }
  void failed(Error error) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(failure_) << "failed twice";
    failure_ = std::move(error);
    changed_.notify_all();
  }

  /// False, at once, when the storage has failed instead.
  bool wait_persisted(raft::ReadyId id) {
    const auto done = [&] { return !persisted_.empty() && persisted_.back() >= id; };
    return wait([&] { return done() || failure_; }) && done();
  }
  bool wait_failed() {
    return wait([&] { return failure_.has_value(); });
  }
  bool wait_space(bool full) {
    return wait([&] { return full_ == full; });
  }
  bool full() {
    const std::lock_guard lock(mutex_);
    return full_;
  }
  /// How often it heard that there is space again.
  int spaces() {
    const std::lock_guard lock(mutex_);
    return spaces_;
  }
  bool wait_read(std::uint64_t token) {
    return wait([&] { return reads_.count(token) != 0; });
  }

  std::vector<raft::ReadyId> persisted_ids() {
    const std::lock_guard lock(mutex_);
    return persisted_;
  }
  std::optional<Error> failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }
  Result<std::vector<raft::Entry>> take_read(std::uint64_t token) {
    const std::lock_guard lock(mutex_);
    return reads_.at(token);
  }

 private:
  template <class Condition>
  bool wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, std::chrono::system_clock::now() + kPatience, condition);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<raft::ReadyId> persisted_;
  std::map<std::uint64_t, Result<std::vector<raft::Entry>>> reads_;
  std::optional<Error> failure_;
  bool full_ = false;
  int spaces_ = 0;
};

inline raft::Membership three_voters(raft::Uuid self = {1, 1}) {
  raft::Membership membership;
  membership.members = {{raft::NodeId(1), self, "10.0.0.1:7101"},
                        {raft::NodeId(2), {2, 2}, "10.0.0.2:7101"},
                        {raft::NodeId(3), {3, 3}, "10.0.0.3:7101"}};
  membership.voters = {raft::NodeId(1), raft::NodeId(2), raft::NodeId(3)};
  return membership;
}

inline raft::Entry command_entry(std::uint64_t index, std::uint64_t term, std::string payload) {
  return {
      {raft::Term(term), raft::Index(index)}, raft::EntryKind::command, Bytes(std::move(payload))};
}

/// The log as a vector.
struct Model {
  raft::HardState hard_state;
  raft::LogBase base;
  std::vector<raft::Entry> entries;  ///< from the one behind the base on

  raft::LogId last() const { return entries.empty() ? base.id : entries.back().id; }
  raft::LogId id_at(raft::Index index) const {
    return index == base.id.index ? base.id : entries.at(index - base.id.index - 1).id;
  }
  /// The newest membership at or below `index`.
  raft::Membership membership_at(raft::Index index) const {
    for (std::size_t i = index - base.id.index; i-- > 0;) {
      if (entries[i].kind != raft::EntryKind::membership) continue;
      return raft::decode_membership(entries[i].payload.view()).value();
    }
    return base.membership;
  }

  void apply(const raft::PersistBatch& batch) {
    if (batch.hard_state) hard_state = *batch.hard_state;
    if (batch.reset) {
      entries.clear();
      base = *batch.reset;
    }
    if (batch.truncate_from) entries.resize(*batch.truncate_from - base.id.index - 1);
    entries.insert(entries.end(), batch.entries.begin(), batch.entries.end());
    if (!batch.cut) return;
    entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(
                                                         batch.cut->id.index - base.id.index));
    base = *batch.cut;
  }
};

/// Which batches random_batch() may make.
enum class Cuts { none, some, many };

/// A random batch that a correct core could hand out.
inline raft::PersistBatch random_batch(Random& random, const Model& model, std::uint64_t id,
                                       Cuts cuts = Cuts::some) {
  raft::PersistBatch batch;
  batch.id = raft::ReadyId(id);
  std::uint64_t term = std::max<std::uint64_t>(1, model.hard_state.term.value());
  if (random.chance(1, 3)) {
    term += random.below(3);
    raft::HardState hard;
    hard.term = raft::Term(term);
    hard.voted_for = raft::NodeId(random.below(4));
    hard.vote_committed = random.chance(1, 2);
    hard.promise = {raft::NodeId(random.below(4)), raft::Term(term),
                    raft::Duration(static_cast<std::int64_t>(random.below(1000000000)))};
    batch.hard_state = hard;
  }
  raft::Index next = model.last().index.next();
  const std::uint64_t odds = cuts == Cuts::many ? 8 : 30;
  if (cuts != Cuts::none && random.chance(1, odds * 2)) {
    // Far ahead, or in the middle of the log, like that of a leader whose log differs after it.
    const std::uint64_t step = random.chance(1, 2) ? random.below(1000) : random.below(5);
    batch.reset = raft::LogBase{{raft::Term(term), model.base.id.index + step},
                                three_voters({random.next(), 8})};
    next = batch.reset->id.index.next();
  } else if (!model.entries.empty() && random.chance(1, 5)) {
    next = next - random.below(std::min<std::uint64_t>(model.entries.size(), 20)) - 1;
    batch.truncate_from = next;
  }
  const std::uint64_t count = random.below(8);
  for (std::uint64_t i = 0; i < count; ++i) {
    raft::Entry entry = command_entry(next.value() + i, term, "");
    const std::uint64_t kind = random.below(12);
    if (kind == 0) {
      entry.kind = raft::EntryKind::membership;
      entry.payload = raft::encode_membership(three_voters({random.next(), 7}));
    } else if (kind == 1) {
      entry.kind = raft::EntryKind::empty;
    } else {
      entry.payload = Bytes(std::string(random.below(600), static_cast<char>('a' + kind)));
    }
    batch.entries.push_back(std::move(entry));
  }
  if (cuts == Cuts::none || batch.reset || !random.chance(1, odds)) return batch;
  Model after = model;
  after.apply(batch);
  if (after.entries.empty()) return batch;
  const raft::Index to = after.base.id.index + random.below(after.entries.size()) + 1;
  batch.cut = raft::LogBase{after.id_at(to), after.membership_at(to)};
  return batch;
}

/// An endless sequence of batches that one seed determines, for a log that begins at `base`. Each
/// has a hard state whose term is the number of the batch, counted from that of the base on, so
/// that a log tells which of them it has seen.
class Sequence {
 public:
  explicit Sequence(std::uint64_t seed, Cuts cuts = Cuts::some, raft::LogId base = {})
      : random_(seed), cuts_(cuts), first_term_(base.term) {
    model_.hard_state.term = base.term;
    model_.base = {base, three_voters()};
  }

  /// How many batches were taken.
  std::uint64_t number() const { return number_; }
  const Model& model() const { return model_; }

  raft::PersistBatch next() {
    raft::PersistBatch batch = random_batch(random_, model_, ++number_, cuts_);
    raft::HardState hard = batch.hard_state.value_or(model_.hard_state);
    hard.term = raft::Term(first_term_.value() + number_);
    batch.hard_state = hard;
    for (raft::Entry& entry : batch.entries) entry.id.term = hard.term;
    if (batch.reset) batch.reset->id.term = hard.term;
    if (batch.cut) {
      Model after = model_;
      auto uncut = batch;
      uncut.cut.reset();
      after.apply(uncut);
      batch.cut->id = after.id_at(batch.cut->id.index);
    }
    model_.apply(batch);
    return batch;
  }

 private:
  Random random_;
  Cuts cuts_;
  raft::Term first_term_;
  Model model_;
  std::uint64_t number_ = 0;
};

/// Whether what the log says of itself is what the model holds.
inline void expect_initial_state(const raft::InitialState& state, const Model& model) {
  EXPECT_EQ(state.hard_state, model.hard_state);
  EXPECT_EQ(state.base, model.base.id);
  EXPECT_EQ(state.base_membership, model.base.membership);
  EXPECT_EQ(state.last_index, model.last().index);
  EXPECT_EQ(state.applied.value(), 0U);
  std::uint64_t bytes = 0;
  std::vector<raft::TermRun> runs;
  std::vector<raft::MembershipAt> memberships;
  for (const raft::Entry& entry : model.entries) {
    bytes += entry.payload.size();
    if (runs.empty() || runs.back().term != entry.id.term) {
      runs.push_back({entry.id.term, entry.id.index});
    }
    if (entry.kind == raft::EntryKind::membership) {
      memberships.push_back(
          {entry.id.index, raft::decode_membership(entry.payload.view()).value()});
    }
  }
  EXPECT_EQ(state.runs, runs);
  EXPECT_EQ(state.memberships, memberships);
  EXPECT_EQ(state.bytes, bytes);
}

}  // namespace leasehold::storage::testing
