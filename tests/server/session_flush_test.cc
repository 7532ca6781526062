// FLUSHALL: every key that exists, in each group, in parts.
#include <leasehold/server/commands/key_flush.h>
#include <leasehold/tests/server/groups_fixture.h>
#include <leasehold/tests/server/users_fixture.h>

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SessionFlush : public SessionGroups {
 protected:
  void put(FakeNode& node, const kv::Command& command) {
    auto encoded = kv::encode_command(command);
    ASSERT_TRUE(encoded.ok());
    node.commit_first(encoded.value());
  }
  /// Answers the read that the flush makes in a group, and goes on.
  std::string let_read(FakeNode& node) {
    node.end_read(node.granted(raft::ReadBasis::lease));
    return pump();
  }
  std::string let_commit(FakeNode& node) {
    node.commit_one();
    return pump();
  }
};

TEST_F(SessionFlush, EachGroupReadsAndThenDeletes) {
  put(node_, kv::Set{"bar", "1"});
  put(second_, kv::MSet{kv::MSetCondition::none, {{"foo", "1"}, {"{foo}2", "2"}}});
  EXPECT_EQ(send({"FLUSHALL"}), "");
  EXPECT_EQ(node_.proposals(), 0U) << "first the newest state is asked for";
  EXPECT_EQ(let_read(node_), "");
  EXPECT_EQ(node_.proposals(), 1U);
  EXPECT_EQ(second_.reads(), 0U) << "one group after the other";
  EXPECT_EQ(let_commit(node_), "");
  EXPECT_EQ(let_read(second_), "");
  EXPECT_EQ(let_commit(second_), "+OK\r\n");
  EXPECT_EQ(node_.store().size() + second_.store().size(), 0U);
  EXPECT_EQ(second_.store().revision(), 2U) << "its keys went together";
}

TEST_F(SessionFlush, WithoutKeysNothingIsWritten) {
  EXPECT_EQ(send({"flushdb", "sync"}), "");
  EXPECT_EQ(let_read(node_), "");
  EXPECT_EQ(let_read(second_), "+OK\r\n");
  EXPECT_EQ(node_.proposals() + second_.proposals(), 0U);
}

TEST_F(SessionFlush, WhatComesBehindItWaits) {
  put(node_, kv::Set{"bar", "1"});
  EXPECT_EQ(feed("SET bar 2\r\nFLUSHALL\r\nSET bar 3\r\nPING\r\n"), "");
  EXPECT_EQ(node_.proposals(), 1U);
  EXPECT_EQ(node_.reads(), 0U) << "it waits for what is before it";
  EXPECT_EQ(let_commit(node_), "+OK\r\n");
  EXPECT_EQ(let_read(node_), "");
  EXPECT_EQ(node_.proposals(), 1U) << "the deletion alone";
  EXPECT_EQ(let_commit(node_), "");
  EXPECT_EQ(let_read(second_), "+OK\r\n");
  EXPECT_EQ(node_.store().size(), 0U);
  EXPECT_EQ(let_commit(node_), "+OK\r\n+PONG\r\n");
  EXPECT_EQ(node_.store().size(), 1U);
}

TEST_F(SessionFlush, ManyKeysGoInParts) {
  for (std::size_t i = 0; i < kFlushKeys + 1; ++i) {
    put(node_, kv::Set{"{bar}" + std::to_string(i), "1"});
  }
  EXPECT_EQ(send({"FLUSHALL"}), "");
  EXPECT_EQ(let_read(node_), "");
  EXPECT_EQ(let_commit(node_), "");
  EXPECT_EQ(node_.store().size(), 1U);
  EXPECT_EQ(let_commit(node_), "");
  EXPECT_EQ(node_.store().size(), 0U);
  EXPECT_EQ(let_read(second_), "+OK\r\n");
}

TEST_F(SessionFlush, LargeValuesGoInSmallerParts) {
  for (int i = 0; i < 9; ++i) {
    put(node_, kv::SetRange{kv::kValueBytesMax - 1, "{bar}" + std::to_string(i), "x"});
  }
  EXPECT_EQ(send({"FLUSHALL"}), "");
  EXPECT_EQ(let_read(node_), "");
  EXPECT_EQ(let_commit(node_), "") << "refused: all of them are too much at once";
  EXPECT_EQ(node_.store().size(), 9U);
  EXPECT_EQ(let_commit(node_), "");
  EXPECT_EQ(node_.store().size(), 5U);
  EXPECT_EQ(let_commit(node_), "");
  EXPECT_EQ(let_commit(node_), "");
  EXPECT_EQ(node_.store().size(), 0U);
  EXPECT_EQ(let_read(second_), "+OK\r\n");
}

TEST_F(SessionFlush, AnErrorSaysWhetherSomeAreGone) {
  put(node_, kv::Set{"bar", "1"});
  put(second_, kv::Set{"foo", "1"});
  EXPECT_EQ(send({"FLUSHALL"}), "");
  node_.end_read({});
  EXPECT_THAT(pump(), AllOf(StartsWith("-NOLEADER"), HasSubstr("not executed")));

  EXPECT_EQ(send({"FLUSHALL"}), "");
  EXPECT_EQ(let_read(node_), "");
  replica::ProposeResult unknown;
  unknown.status = replica::ProposeStatus::unknown;
  node_.end_proposal(unknown);
  EXPECT_THAT(pump(), StartsWith("-UNKNOWNOUTCOME"));

  EXPECT_EQ(send({"FLUSHALL"}), "");
  EXPECT_EQ(let_read(node_), "");
  EXPECT_EQ(let_commit(node_), "");
  EXPECT_EQ(let_read(second_), "");
  replica::ProposeResult dropped;
  dropped.status = replica::ProposeStatus::dropped;
  second_.end_proposal(dropped);
  EXPECT_THAT(pump(), StartsWith("-TRYAGAIN some keys were deleted, and not all"));
  EXPECT_EQ(second_.store().size(), 1U);

  put(node_, kv::Set{"bar", "1"});
  EXPECT_EQ(send({"FLUSHALL"}), "");
  EXPECT_EQ(let_read(node_), "");
  EXPECT_EQ(let_commit(node_), "");
  EXPECT_EQ(let_read(second_), "");
  second_.end_proposal(unknown);
  EXPECT_THAT(pump(), StartsWith("-UNKNOWNOUTCOME some keys were deleted, and not all"));
}

// The keys of a slot that a move has frozen are nobody's for a moment.
TEST_F(SessionFlush, ASlotOnItsWayIsSaid) {
  put(node_, kv::Set{"bar", "1"});
  put(node_, kv::BeginMove{1, 2, 2, {kv::slot_of("bar")}});
  put(node_, kv::FreezeMove{node_.store().revision()});
  EXPECT_EQ(send({"FLUSHALL"}), "");
  EXPECT_EQ(let_read(node_), "");
  EXPECT_EQ(node_.proposals(), 0U);
  EXPECT_THAT(let_read(second_), StartsWith("-TRYAGAIN a slot is on its way"));
}

TEST_F(SessionFlush, WrongWordsAndTransactions) {
  EXPECT_EQ(send({"FLUSHALL", "NOW"}), "-ERR syntax error\r\n");
  EXPECT_EQ(send({"FLUSHDB", "SYNC", "ASYNC"}), "-ERR syntax error\r\n");
  EXPECT_EQ(send({"MULTI"}), "+OK\r\n");
  EXPECT_THAT(send({"FLUSHALL"}), HasSubstr("cannot be in a transaction"));
  EXPECT_THAT(send({"EXEC"}), StartsWith("-EXECABORT"));
  state_.draining.store(true);
  EXPECT_THAT(send({"FLUSHALL"}), StartsWith("-TRYAGAIN this node is about to stop"));
}

class FlushOfUsers : public SessionUsersTest {};

// A user of a few keys may have all commands, and does not delete those of others by them.
TEST_F(FlushOfUsers, OnlyOneWhoMayWriteEveryKeyDeletesAll) {
  write({"SET", "other:k", "v"});
  be({"~app:*", "%R~*", "+@all"});
  for (const char* name : {"FLUSHALL", "FLUSHDB"}) {
    EXPECT_THAT(send({name}), StartsWith("-NOPERM No permissions to access a key"));
  }
  EXPECT_EQ(node_.store().size(), 1U);
  change({"%W~*", "-flushall"});
  EXPECT_THAT(send({"FLUSHALL"}), StartsWith("-NOPERM User ann has no permissions to run"));
  EXPECT_EQ(send({"FLUSHDB"}), "");
  node_.end_read(node_.granted(raft::ReadBasis::lease));
  EXPECT_EQ(pump(), "");
  node_.commit_one();
  EXPECT_EQ(pump(), "+OK\r\n");
  EXPECT_EQ(node_.store().size(), 0U);
}

}  // namespace
}  // namespace leasehold::server
