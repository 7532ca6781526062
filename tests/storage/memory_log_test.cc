// What only the log in memory has: a disk that works when the test calls it.
#include <leasehold/storage/memory_log.h>
#include <leasehold/tests/storage/log_support.h>

namespace leasehold::storage::testing {
namespace {

class MemoryLogTest : public ::testing::Test {
 protected:
  void SetUp() override { log_.start(sink_); }
  void append(std::uint64_t index) {
    raft::PersistBatch batch;
    batch.id = raft::ReadyId(index);
    batch.entries.push_back(command_entry(index, 1, "x"));
    log_.persist(batch);
  }

  RecordingSink sink_;
  MemoryLog log_{three_voters()};
};

TEST_F(MemoryLogTest, NothingHappensWithoutAPump) {
  append(1);
  EXPECT_TRUE(sink_.persisted_ids().empty());
  EXPECT_EQ(log_.batches_waiting(), 1U);
  EXPECT_TRUE(log_.pump());
  EXPECT_FALSE(log_.pump());
  EXPECT_EQ(sink_.persisted_ids(), std::vector<raft::ReadyId>{raft::ReadyId(1)});
}

TEST_F(MemoryLogTest, APumpIsOneSync) {
  for (std::uint64_t i = 1; i <= 5; ++i) append(i);
  log_.pump(2);
  EXPECT_EQ(log_.syncs(), 1U);
  EXPECT_EQ(log_.durable_entries().size(), 2U);
  log_.pump();
  EXPECT_EQ(log_.syncs(), 2U);
  EXPECT_EQ(sink_.persisted_ids(),
            (std::vector<raft::ReadyId>{raft::ReadyId(2), raft::ReadyId(5)}));
}

TEST_F(MemoryLogTest, ACrashLosesWhatWaitsAndOnlyThat) {
  append(1);
  log_.pump();
  append(2);
  log_.read({7, raft::Index(2), raft::Index(2), 10});
  log_.crash();
  EXPECT_EQ(log_.initial_state().last_index, raft::Index(1));
  RecordingSink next;
  log_.start(next);
  EXPECT_FALSE(log_.pump());
  raft::PersistBatch batch;
  batch.id = raft::ReadyId(1);
  batch.entries.push_back(command_entry(2, 3, "again"));
  log_.persist(batch);
  log_.pump();
  EXPECT_EQ(log_.initial_state().last_index, raft::Index(2));
  EXPECT_EQ(log_.durable_entries().back().id.term, raft::Term(3));
}

TEST_F(MemoryLogTest, SaysWhenItIsTold) {
  log_.announce_space(true);
  EXPECT_TRUE(sink_.full());
  append(1);
  log_.pump();
  EXPECT_EQ(sink_.persisted_ids().size(), 1U);
  log_.announce_space(false);
  EXPECT_FALSE(sink_.full());
}

TEST_F(MemoryLogTest, ACutThatIsNotDurableIsLostInACrash) {
  append(1);
  append(2);
  log_.pump();
  raft::PersistBatch batch;
  batch.id = raft::ReadyId(3);
  batch.cut = raft::LogBase{{raft::Term(1), raft::Index(1)}, three_voters()};
  log_.persist(batch);
  log_.crash();
  EXPECT_EQ(log_.initial_state().base, raft::LogId{});
  log_.start(sink_);
  log_.persist(batch);
  log_.pump();
  EXPECT_EQ(log_.durable_base(), *batch.cut);
  EXPECT_EQ(log_.durable_entries().front().id.index, raft::Index(2));
}

TEST_F(MemoryLogTest, NothingIsPersistedAfterAFailure) {
  append(1);
  log_.fail({ErrorCode::io, "the disk is gone"});
  append(2);
  log_.read({7, raft::Index(1), raft::Index(1), 10});
  log_.pump();
  ASSERT_TRUE(sink_.failure());
  EXPECT_EQ(sink_.failure()->message, "the disk is gone");
  EXPECT_TRUE(sink_.persisted_ids().empty());
  EXPECT_EQ(sink_.take_read(7).error().code, ErrorCode::stopped);
  EXPECT_TRUE(log_.durable_entries().empty());
}

}  // namespace
}  // namespace leasehold::storage::testing
