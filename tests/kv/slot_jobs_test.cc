// Jobs of slots that move, for drivers that do not see what is so now.
#include <leasehold/kv/local/slot_jobs.h>
#include <leasehold/tests/kv/quick_group.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace leasehold::kv::testing {
namespace {

constexpr std::uint32_t kSlot = 5061;  // of "bar"

class SlotJobsTest : public ::testing::Test {
 protected:
  Result<std::uint64_t> work(std::size_t group, const SlotJob& job) {
    return do_slot_job({&from_, &to_}, group, job, [] { return true; });
  }

  QuickGroup from_;
  QuickGroup to_;
};

// It leads, and has not applied yet that the move was cancelled.
TEST_F(SlotJobsTest, ADriverWhoseReplicaLagsDoesNotBeginACancelledMoveAgain) {
  from_.run(BeginMove{1, 2, 2, {kSlot}});
  const SlotJob job = slot_jobs(*from_.store().slots().list(), 0, 2).at(0);
  from_.before = [&](const Command&) {
    from_.run(CancelMove{job.move});
    return QuickGroup::Fate::executed;
  };
  for (int i = 0; i < 2; ++i) {
    const auto done = work(0, job);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::not_found);
    EXPECT_EQ(from_.store().slots().list()->at(kSlot).phase, SlotPhase::owned);
  }
}

// As the list shows it while it is being written, if some slots have just come to the group.
TEST_F(SlotJobsTest, ADriverThatHasSeenAPartOfAMoveDoesNotGoOn) {
  from_.run(BeginMove{1, 2, 2, {kSlot, kSlot + 1}});
  SlotJob job = slot_jobs(*from_.store().slots().list(), 0, 2).at(0);
  const auto go_on = [&] { return work(0, job); };
  job.slots.pop_back();
  ASSERT_FALSE(go_on());
  EXPECT_EQ(from_.store().slots().list()->at(kSlot + 1).phase, SlotPhase::copying);
  job.slots.push_back(kSlot + 1);
  EXPECT_TRUE(go_on());
}

// What is here of the other group has failed, or was removed since it was asked.
TEST_F(SlotJobsTest, NoMoveIsAbandonedByTheWordOfAReplicaThatDoesNotKnowIt) {
  constexpr std::uint64_t kMove = 2;
  MovedKey key;
  key.key = "bar";
  key.exists = true;
  key.create_revision = key.mod_revision = key.version = 1;
  to_.run(ExpectSlots{2, 2, 1, kMove, {{kSlot, 1}}});
  EXPECT_EQ(to_.run(ImportKeys{1, kMove, {key}}), "1");
  const SlotJob job = slot_jobs(*to_.store().slots().list(), 1, 2).at(0);
  const auto drop = [&] { return work(1, job); };
  ASSERT_FALSE(drop());
  EXPECT_EQ(to_.store().slots().list()->at(kSlot).keys, 1U);
  from_.run(Set{"bar", "v"});
  EXPECT_EQ(from_.run(BeginMove{1, 2, 2, {kSlot}}), std::to_string(kMove));
  EXPECT_TRUE(drop());
  EXPECT_EQ(to_.store().slots().list()->at(kSlot).keys, 1U) << "it goes on";
  from_.run(CancelMove{kMove});
  EXPECT_TRUE(drop());
  EXPECT_EQ(to_.store().slots().list()->at(kSlot).phase, SlotPhase::gone);
}

}  // namespace
}  // namespace leasehold::kv::testing
