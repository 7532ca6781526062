// What storage.h promises, asked of every implementation.
#include <leasehold/storage/memory_log.h>
#include <leasehold/storage/segment_log.h>
#include <leasehold/tests/storage/log_support.h>

#include <memory>

namespace leasehold::storage::testing {
namespace {

/// One implementation with its life around it.
class Subject {
 public:
  virtual ~Subject() = default;
  virtual Storage& log() = 0;
  virtual RecordingSink& sink() = 0;
  virtual raft::Membership base_membership() = 0;
  /// Returns when batch `id` is durable.
  virtual bool settle(raft::ReadyId id) = 0;
  virtual bool settle_read(std::uint64_t token) = 0;
  /// Ends the process's life in a tidy way and begins another.
  virtual raft::InitialState reopen() = 0;
};

class MemorySubject final : public Subject {
 public:
  MemorySubject() { log_.start(*sink_); }
  Storage& log() override { return log_; }
  RecordingSink& sink() override { return *sink_; }
  raft::Membership base_membership() override { return three_voters(); }
  bool settle(raft::ReadyId id) override {
    log_.pump();
    return sink_->persisted_ids().back() == id;
  }
  bool settle_read(std::uint64_t token) override {
    log_.pump(0);
    return sink_->wait_read(token);
  }
  raft::InitialState reopen() override {
    log_.pump();
    log_.crash();
    sink_ = std::make_unique<RecordingSink>();
    log_.start(*sink_);
    return log_.initial_state();
  }

 private:
  MemoryLog log_{three_voters()};
  std::unique_ptr<RecordingSink> sink_ = std::make_unique<RecordingSink>();
};

class SegmentSubject final : public Subject {
 public:
  SegmentSubject() { open(); }
  Storage& log() override { return *log_; }
  RecordingSink& sink() override { return *sink_; }
  raft::Membership base_membership() override { return three_voters(log_->identity().uuid); }
  bool settle(raft::ReadyId id) override { return sink_->wait_persisted(id); }
  bool settle_read(std::uint64_t token) override { return sink_->wait_read(token); }
  raft::InitialState reopen() override {
    log_.reset();
    return open();
  }

 private:
  raft::InitialState open() {
    SegmentLog::Options options;
    options.dir = folder_.path("log");
    options.cluster_id = 77;
    options.group = raft::GroupId(9);
    options.id = raft::NodeId(1);
    // Small, so that a test goes through many.
    options.first_segment_bytes = 4096;
    options.segment_bytes = 16384;
    auto opened = SegmentLog::open(options);
    if (!opened) ADD_FAILURE() << opened.error().message;
    log_ = std::move(opened).value();
    EXPECT_TRUE(log_->confirm_set(three_voters(log_->identity().uuid).members));
    EXPECT_TRUE(log_->form());
    auto state = log_->take_initial_state();
    sink_ = std::make_unique<RecordingSink>();
    log_->start(*sink_);
    return state;
  }

  TemporaryFolder folder_;
  std::unique_ptr<RecordingSink> sink_;
  std::unique_ptr<SegmentLog> log_;
};

enum class Kind { memory, segments };

class LogContract : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() == Kind::memory) {
      subject_ = std::make_unique<MemorySubject>();
    } else {
      subject_ = std::make_unique<SegmentSubject>();
    }
  }

  /// Persists entries first..last of `term`, each with its index as payload.
  raft::ReadyId append(std::uint64_t first, std::uint64_t last, std::uint64_t term,
                       bool truncate = false) {
    raft::PersistBatch batch;
    batch.id = raft::ReadyId(++ready_);
    if (truncate) batch.truncate_from = raft::Index(first);
    for (std::uint64_t i = first; i <= last; ++i) {
      batch.entries.push_back(command_entry(i, term, std::to_string(i)));
    }
    subject_->log().persist(batch);
    return batch.id;
  }

  /// Cuts the front off up to an entry.
  raft::ReadyId cut(std::uint64_t term, std::uint64_t index, raft::Membership membership) {
    raft::PersistBatch batch;
    batch.id = raft::ReadyId(++ready_);
    batch.cut = raft::LogBase{{raft::Term(term), raft::Index(index)}, std::move(membership)};
    subject_->log().persist(batch);
    return batch.id;
  }

  std::uint64_t ask(std::uint64_t first, std::uint64_t last, std::size_t bytes_max = 1U << 30U) {
    subject_->log().read({++token_, raft::Index(first), raft::Index(last), bytes_max});
    return token_;
  }
  Result<std::vector<raft::Entry>> answer(std::uint64_t token) {
    EXPECT_TRUE(subject_->settle_read(token));
    return subject_->sink().take_read(token);
  }
  /// "index/term" of each entry, or the error's name.
  std::string read(std::uint64_t first, std::uint64_t last, std::size_t bytes_max = 1U << 30U) {
    const auto entries = answer(ask(first, last, bytes_max));
    if (!entries) return error_code_name(entries.error().code);
    std::string out;
    for (const raft::Entry& entry : entries.value()) {
      if (!out.empty()) out += " ";
      out += std::to_string(entry.id.index.value()) + "/" + std::to_string(entry.id.term.value());
    }
    return out;
  }

  std::unique_ptr<Subject> subject_;
  std::uint64_t ready_ = 0;
  std::uint64_t token_ = 0;
};

TEST_P(LogContract, IdsRiseAndTheLastOneIsReported) {
  raft::ReadyId last;
  for (std::uint64_t i = 1; i <= 200; ++i) last = append(i, i, 1);
  ASSERT_TRUE(subject_->settle(last));
  EXPECT_EQ(subject_->sink().persisted_ids().back(), last);  // the sink checks that they rise
}

TEST_P(LogContract, ReadsWhatWasWritten) {
  ASSERT_TRUE(subject_->settle(append(1, 5, 1)));
  EXPECT_EQ(read(1, 5), "1/1 2/1 3/1 4/1 5/1");
  EXPECT_EQ(read(2, 3), "2/1 3/1");
  EXPECT_EQ(read(4, 9), "4/1 5/1");
  EXPECT_EQ(read(6, 9), "not_found");
}

TEST_P(LogContract, ReadsStopAtTheBytesButGiveOneEntry) {
  ASSERT_TRUE(subject_->settle(append(1, 9, 1)));
  EXPECT_EQ(read(1, 9, 0), "1/1");
  EXPECT_EQ(read(1, 9, 3), "1/1 2/1 3/1");
}

TEST_P(LogContract, ReadsSeeBatchesThatAreNotDurableYet) {
  for (std::uint64_t i = 1; i <= 300; i += 3) {
    append(i, i + 2, 1);
    EXPECT_EQ(read(i + 2, i + 2), std::to_string(i + 2) + "/1");
  }
  append(299, 301, 2, true);
  append(301, 301, 3, true);
  EXPECT_EQ(read(298, 305), "298/1 299/2 300/2 301/3");
}

TEST_P(LogContract, ATruncatedEntryIsNotFound) {
  ASSERT_TRUE(subject_->settle(append(1, 5, 1)));
  raft::PersistBatch batch;
  batch.id = raft::ReadyId(++ready_);
  batch.truncate_from = raft::Index(3);
  subject_->log().persist(batch);
  EXPECT_EQ(read(3, 5), "not_found");
  EXPECT_EQ(read(1, 5), "1/1 2/1");
  ASSERT_TRUE(subject_->settle(batch.id));
  EXPECT_EQ(read(3, 5), "not_found");
  EXPECT_EQ(read(1, 5), "1/1 2/1");
}

TEST_P(LogContract, TruncationAndAppendAreOneStep) {
  append(1, 6, 1);
  ASSERT_TRUE(subject_->settle(append(4, 5, 2, true)));
  EXPECT_EQ(read(1, 9), "1/1 2/1 3/1 4/2 5/2");
  const auto state = subject_->reopen();
  EXPECT_EQ(state.last_index, raft::Index(5));
  EXPECT_EQ(state.runs, (std::vector<raft::TermRun>{{raft::Term(1), raft::Index(1)},
                                                    {raft::Term(2), raft::Index(4)}}));
  EXPECT_EQ(read(1, 9), "1/1 2/1 3/1 4/2 5/2");
}

TEST_P(LogContract, HardStateAloneSurvives) {
  raft::PersistBatch batch;
  batch.id = raft::ReadyId(1);
  raft::HardState hard;
  hard.term = raft::Term(8);
  hard.voted_for = raft::NodeId(3);
  hard.vote_committed = true;
  hard.promise = {raft::NodeId(2), raft::Term(7), raft::Duration(123456789)};
  batch.hard_state = hard;
  subject_->log().persist(batch);
  ASSERT_TRUE(subject_->settle(batch.id));
  EXPECT_EQ(subject_->reopen().hard_state, hard);
}

TEST_P(LogContract, AWholeLogCanBeTruncated) {
  append(1, 3, 1);
  raft::PersistBatch batch;
  batch.id = raft::ReadyId(++ready_);
  batch.truncate_from = raft::Index(1);
  subject_->log().persist(batch);
  ASSERT_TRUE(subject_->settle(batch.id));
  const auto state = subject_->reopen();
  EXPECT_EQ(state.last_index, raft::Index(0));
  EXPECT_TRUE(state.runs.empty());
}

TEST_P(LogContract, ACutTakesTheFrontAndNothingElse) {
  ASSERT_TRUE(subject_->settle(append(1, 4, 1)));
  append(5, 9, 2);
  ASSERT_TRUE(subject_->settle(cut(2, 6, three_voters({6, 6}))));
  EXPECT_EQ(read(1, 9), "not_found");
  EXPECT_EQ(read(6, 9), "not_found");
  EXPECT_EQ(read(7, 9), "7/2 8/2 9/2");
  append(10, 10, 3);
  const auto state = subject_->reopen();
  EXPECT_EQ(state.base, (raft::LogId{raft::Term(2), raft::Index(6)}));
  EXPECT_EQ(state.base_membership, three_voters({6, 6}));
  EXPECT_EQ(state.last_index, raft::Index(10));
  EXPECT_EQ(state.runs, (std::vector<raft::TermRun>{{raft::Term(2), raft::Index(7)},
                                                    {raft::Term(3), raft::Index(10)}}));
  EXPECT_EQ(state.bytes, 5U);  // "7", "8", "9" and "10"
  EXPECT_EQ(read(6, 6), "not_found");
  EXPECT_EQ(read(7, 10), "7/2 8/2 9/2 10/3");
}

TEST_P(LogContract, ACutComesAfterTheEntriesOfItsBatch) {
  append(1, 3, 1);
  raft::PersistBatch batch;
  batch.id = raft::ReadyId(++ready_);
  batch.truncate_from = raft::Index(3);
  for (std::uint64_t i = 3; i <= 6; ++i) batch.entries.push_back(command_entry(i, 2, "x"));
  batch.cut = raft::LogBase{{raft::Term(2), raft::Index(4)}, three_voters()};
  subject_->log().persist(batch);
  EXPECT_EQ(read(4, 9), "not_found");
  EXPECT_EQ(read(5, 9), "5/2 6/2");
  ASSERT_TRUE(subject_->settle(batch.id));
  EXPECT_EQ(read(5, 9), "5/2 6/2");
  EXPECT_EQ(subject_->reopen().base.index, raft::Index(4));
}

TEST_P(LogContract, AWholeLogCanBeCut) {
  append(1, 5, 3);
  ASSERT_TRUE(subject_->settle(cut(3, 5, three_voters())));
  auto state = subject_->reopen();
  EXPECT_EQ(state.base, (raft::LogId{raft::Term(3), raft::Index(5)}));
  EXPECT_EQ(state.last_index, raft::Index(5));
  EXPECT_TRUE(state.runs.empty());
  EXPECT_EQ(state.bytes, 0U);
  ASSERT_TRUE(subject_->settle(append(6, 7, 3)));
  EXPECT_EQ(read(6, 7), "6/3 7/3");
  state = subject_->reopen();
  EXPECT_EQ(state.runs, (std::vector<raft::TermRun>{{raft::Term(3), raft::Index(6)}}));
}

TEST_P(LogContract, AfterACutTheRestCanBeTruncated) {
  append(1, 9, 1);
  cut(1, 4, three_voters());
  ASSERT_TRUE(subject_->settle(append(5, 6, 2, true)));
  EXPECT_EQ(read(5, 9), "5/2 6/2");
  const auto state = subject_->reopen();
  EXPECT_EQ(state.base, (raft::LogId{raft::Term(1), raft::Index(4)}));
  EXPECT_EQ(state.last_index, raft::Index(6));
}

TEST_P(LogContract, AResetPutsABaseInTheLogsPlace) {
  append(1, 4, 1);
  raft::HardState hard;
  hard.term = raft::Term(9);
  raft::PersistBatch batch;
  batch.id = raft::ReadyId(++ready_);
  batch.hard_state = hard;
  batch.reset = raft::LogBase{{raft::Term(8), raft::Index(100)}, three_voters({8, 8})};
  subject_->log().persist(batch);
  for (const std::uint64_t index : {1, 4, 100, 101}) EXPECT_EQ(read(index, 101), "not_found");
  append(101, 102, 9);
  EXPECT_EQ(read(4, 4), "not_found");
  EXPECT_EQ(read(101, 105), "101/9 102/9");
  ASSERT_TRUE(subject_->settle(raft::ReadyId(ready_)));
  EXPECT_EQ(read(4, 4), "not_found");
  EXPECT_EQ(read(101, 105), "101/9 102/9");
  const auto state = subject_->reopen();
  EXPECT_EQ(state.hard_state, hard);
  EXPECT_EQ(state.base, (raft::LogId{raft::Term(8), raft::Index(100)}));
  EXPECT_EQ(state.base_membership, three_voters({8, 8}));
  EXPECT_EQ(state.last_index, raft::Index(102));
  EXPECT_EQ(state.runs, (std::vector<raft::TermRun>{{raft::Term(9), raft::Index(101)}}));
  EXPECT_EQ(read(101, 105), "101/9 102/9");
}

// The snapshot's last entry may stand in the log, and more behind it: that goes too.
TEST_P(LogContract, AResetLeavesNothingOfALongerLog) {
  ASSERT_TRUE(subject_->settle(append(1, 9, 1)));
  raft::PersistBatch batch;
  batch.id = raft::ReadyId(++ready_);
  batch.reset = raft::LogBase{{raft::Term(2), raft::Index(5)}, three_voters()};
  batch.entries.push_back(command_entry(6, 3, "x"));
  subject_->log().persist(batch);
  ASSERT_TRUE(subject_->settle(batch.id));
  EXPECT_EQ(read(6, 9), "6/3");
  EXPECT_EQ(subject_->reopen().last_index, raft::Index(6));
  EXPECT_EQ(read(6, 9), "6/3");
}

TEST_P(LogContract, RandomBatchesAndReopeningsAgreeWithAVector) {
  Random random(GetParam() == Kind::memory ? 11 : 12);
  Model model;
  model.base.membership = subject_->base_membership();
  std::uint64_t id = 0;
  for (int life = 0; life < 30; ++life) {
    const Cuts cuts = life < 10 ? Cuts::none : life < 20 ? Cuts::some : Cuts::many;
    const std::uint64_t batches = random.below(120);
    for (std::uint64_t i = 0; i < batches; ++i) {
      const auto batch = random_batch(random, model, ++id, cuts);
      model.apply(batch);
      subject_->log().persist(batch);
      if (model.entries.empty() || !random.chance(1, 4)) continue;
      const std::uint64_t base = model.base.id.index.value();
      const std::uint64_t first = base + random.below(model.entries.size()) + 1;
      const std::uint64_t last = first + random.below(40);
      const auto entries = answer(ask(first, last));
      ASSERT_TRUE(entries) << entries.error().message;
      const auto end = std::min<std::uint64_t>(last, model.last().index.value());
      ASSERT_EQ(entries.value().size(), end - first + 1);
      for (std::uint64_t at = first; at <= end; ++at) {
        EXPECT_EQ(entries.value()[at - first], model.entries[at - base - 1]);
      }
      if (base > 0) {
        EXPECT_EQ(read(base - random.below(std::min<std::uint64_t>(base, 30)), last), "not_found");
      }
    }
    if (batches > 0) {
      ASSERT_TRUE(subject_->settle(raft::ReadyId(id)));
    }
    expect_initial_state(subject_->reopen(), model);
  }
}

INSTANTIATE_TEST_SUITE_P(Logs, LogContract, ::testing::Values(Kind::memory, Kind::segments),
                         [](const auto& kind) {
                           return kind.param == Kind::memory ? "memory" : "segments";
                         });

}  // namespace
}  // namespace leasehold::storage::testing
