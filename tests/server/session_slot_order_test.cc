// What a connection may count on while a slot moves, and this node hears of it late.
#include <leasehold/tests/server/slots_fixture.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leasehold::server {
namespace {

// This node hears of the taking before it hears of the freeze.
TEST_F(SessionSlots, WritesOfAPipelineStayInTheirOrder) {
  begin();
  EXPECT_EQ(send({"APPEND", "{bar}n", "1"}), "");
  EXPECT_EQ(node_.proposals(), 1U);
  const std::uint64_t frozen_at = node_.store().revision() + 1;
  apply(second_, kv::TakeSlots{1, move_, frozen_at});
  EXPECT_EQ(send({"APPEND", "{bar}n", "2"}), "") << "it waits for the one before";
  EXPECT_EQ(send({"SET", "foo", "x"}), "");
  EXPECT_EQ(second_.proposals(), 0U);
  apply_before(node_, kv::FreezeMove{move_});
  EXPECT_EQ(pump(), "");
  EXPECT_EQ(second_.proposals(), 3U);
  second_.commit_all();
  EXPECT_EQ(pump(), ":1\r\n:2\r\n+OK\r\n");
  EXPECT_EQ(send({"GET", "{bar}n"}), "$2\r\n12\r\n");
}

// What it may still not know of the other group is not older than the bound, and says nothing of
// the slot.
TEST_F(SessionSlots, AReadOfAnOldStateAsksForASlotThatItDoesNotKnow) {
  EXPECT_EQ(send({"LEASEHOLD", "READMODE", "stale", "60m"}), "+OK\r\n");
  EXPECT_EQ(send({"GET", "foo"}), "$-1\r\n");
  second_.grant_lease(std::chrono::seconds(0));
  apply(node_, kv::BeginMove{1, 2, 2, {kBar}});
  move_ = node_.store().slots().list()->at(kBar).move;
  freeze();
  leave();
  EXPECT_EQ(send({"GET", "foo"}), "$-1\r\n") << "of a slot that was always there";
  EXPECT_EQ(send({"GET", "bar"}), "");
  EXPECT_EQ(second_.reads(), 1U);
}

TEST_F(SessionSlots, AWatchThatMeetsALeavingSlotBeginsOnce) {
  begin();
  EXPECT_EQ(send({"LEASEHOLD", "READMODE", "quorum"}), "+OK\r\n");
  EXPECT_EQ(send({"LEASEHOLD", "WATCH", "KEY", "bar"}), "");
  ASSERT_EQ(node_.reads(), 1U);
  freeze();
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), "");
  EXPECT_FALSE(session_->watching()) << "the slot is nobody's";
  take();
  EXPECT_EQ(pump(), "");
  ASSERT_EQ(second_.reads(), 1U);
  second_.end_read(second_.granted(raft::ReadBasis::quorum));
  EXPECT_THAT(pump(), ::testing::StartsWith("*2\r\n$8\r\nwatching\r\n"));
  EXPECT_TRUE(session_->watching());
}

}  // namespace
}  // namespace leasehold::server
