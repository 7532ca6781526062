// What the tests of the logs share: a sink that remembers, a folder that goes away, a dumb model.
#pragma once

#include <leasehold/base/random.h>
#include <leasehold/raft/log.h>
#include <leasehold/storage/storage.h>

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::storage::testing {

inline constexpr std::chrono::seconds kPatience{60};

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
  void space(bool) override {}
  void failed(Error error) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(failure_) << "failed twice";
    failure_ = std::move(error);
    changed_.notify_all();
  }

  bool wait_persisted(raft::ReadyId id) {
    return wait([&] { return !persisted_.empty() && persisted_.back() >= id; });
  }
  bool wait_failed() {
    return wait([&] { return failure_.has_value(); });
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
};

/// A folder of its own, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "leasehold-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
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
  raft::Membership base_membership;
  std::vector<raft::Entry> entries;

  void apply(const raft::PersistBatch& batch) {
    if (batch.hard_state) hard_state = *batch.hard_state;
    if (batch.truncate_from) entries.resize(batch.truncate_from->value() - 1);
    entries.insert(entries.end(), batch.entries.begin(), batch.entries.end());
  }
  std::uint64_t last_term() const { return entries.empty() ? 0 : entries.back().id.term.value(); }
};

/// A random batch that a correct core could hand out.
inline raft::PersistBatch random_batch(Random& random, const Model& model, std::uint64_t id) {
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
  std::uint64_t next = model.entries.size() + 1;
  if (!model.entries.empty() && random.chance(1, 5)) {
    next -= random.below(std::min<std::uint64_t>(model.entries.size(), 20)) + 1;
    batch.truncate_from = raft::Index(next);
  }
  const std::uint64_t count = random.below(8);
  for (std::uint64_t i = 0; i < count; ++i) {
    raft::Entry entry = command_entry(next + i, term, "");
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
  return batch;
}

/// An endless sequence of batches that one seed determines. Each has a hard state whose term is the
/// number of the batch, so that a log tells which of them it has seen.
class Sequence {
 public:
  explicit Sequence(std::uint64_t seed) : random_(seed) { model_.base_membership = three_voters(); }

  /// How many batches were taken.
  std::uint64_t number() const { return number_; }
  const Model& model() const { return model_; }

  raft::PersistBatch next() {
    raft::PersistBatch batch = random_batch(random_, model_, ++number_);
    raft::HardState hard = batch.hard_state.value_or(model_.hard_state);
    hard.term = raft::Term(number_);
    batch.hard_state = hard;
    for (raft::Entry& entry : batch.entries) entry.id.term = raft::Term(number_);
    model_.apply(batch);
    return batch;
  }

 private:
  Random random_;
  Model model_;
  std::uint64_t number_ = 0;
};

/// Whether what the log says of itself is what the model holds.
inline void expect_initial_state(const raft::InitialState& state, const Model& model) {
  EXPECT_EQ(state.hard_state, model.hard_state);
  EXPECT_EQ(state.base, raft::LogId{});
  EXPECT_EQ(state.base_membership, model.base_membership);
  EXPECT_EQ(state.last_index.value(), model.entries.size());
  EXPECT_EQ(state.applied.value(), 0U);
  std::vector<raft::TermRun> runs;
  std::vector<raft::MembershipAt> memberships;
  for (const raft::Entry& entry : model.entries) {
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
}

}  // namespace leasehold::storage::testing
