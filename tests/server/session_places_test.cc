// A server of two groups without a replica of the second one: what it answers for its keys.
#include <leasehold/tests/server/session_fixture.h>

#include <gmock/gmock.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace leasehold::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// "bar" is of slot 5061 and so of the first group, "foo" of 12182 and of the second.
class SessionPlaces : public SessionTest {
 protected:
  SessionPlaces() {
    state_.options.client_addresses = {{raft::NodeId(1), "a:7201"}, {raft::NodeId(2), "b:7202"}};
    place_.set_target(raft::NodeId(2));
    session_ = std::make_shared<Session>(
        Session::Context{both_, state_, &state_.counters[0], &executor_, &executor_, &both_hubs_},
        7, "127.0.0.1:5", [this] { ++progress_; });
    node_.grant_lease(std::chrono::hours(1));
  }
  ~SessionPlaces() override { session_.reset(); }

  /// As a replica that was removed, whose store has not been emptied yet.
  void put_in_second(const std::string& key) {
    place_.set_here(true);
    EXPECT_EQ(send({"SET", key, "old"}), "");
    second_.commit_all();
    EXPECT_EQ(pump(), "+OK\r\n");
  }

  static constexpr const char* kMoved = "-MOVED 12182 b:7202\r\n";
  FakeNode second_{kv::kIdsOfGroup};
  GroupPlace place_{false, {raft::NodeId(2), raft::NodeId(3)}};
  ServedGroups both_{
      {ServedGroup{node_, node_.store(), node_.health()},
       ServedGroup{second_, second_.store(), second_.health(), nullptr, {}, {}, &place_}}};
  EventHubs both_hubs_{both_};
};

TEST_F(SessionPlaces, KeysOfAGroupThatIsElsewhereAreThere) {
  for (const char* command : {"GET foo", "SET foo 1", "DEL foo", "EXISTS foo", "EXPIRE foo 5",
                              "WATCH foo", "LEASEHOLD READ quorum GET foo", "EVAL x 1 foo",
                              "LEASEHOLD WATCH KEY foo", "LEASEHOLD RANGE foo EXACT"}) {
    const std::string reply = feed(std::string(command) + "\r\n");
    EXPECT_THAT(reply, StartsWith("-")) << command;
    EXPECT_EQ(second_.proposals() + second_.reads(), 0U) << command;
    if (std::string(command).find("EVAL") == 0) continue;  // it names a script that is not known
    EXPECT_EQ(reply, kMoved) << command;
  }
  EXPECT_EQ(send({"GET", "bar"}), "$-1\r\n");
}

TEST_F(SessionPlaces, ACommandWithoutKeysIsOfTheGroupThatIsSelected) {
  EXPECT_EQ(send({"LEASEHOLD", "GROUP", "2"}), "+OK\r\n");
  EXPECT_EQ(send({"LEASE.LIST"}), "-MOVED 8192 b:7202\r\n");
  EXPECT_EQ(send({"LEASEHOLD", "SESSION", "OPEN"}), "-MOVED 8192 b:7202\r\n");
  EXPECT_EQ(send({"LEASEHOLD", "BACKUP", "name"}), "-MOVED 8192 b:7202\r\n");
  EXPECT_EQ(send({"GET", "bar"}), "$-1\r\n");
}

TEST_F(SessionPlaces, ATransactionIsRefusedAsAWhole) {
  EXPECT_EQ(send({"MULTI"}), "+OK\r\n");
  EXPECT_EQ(send({"INCR", "foo"}), kMoved);
  EXPECT_THAT(send({"EXEC"}), StartsWith("-EXECABORT"));
  EXPECT_EQ(second_.proposals(), 0U);
}

TEST_F(SessionPlaces, WhatIsAboutAllKeysIsAboutThoseThatAreHere) {
  put_in_second("foo");
  EXPECT_EQ(write({"SET", "bar", "1"}), "+OK\r\n");
  second_.grant_lease(std::chrono::hours(1));
  EXPECT_EQ(send({"DBSIZE"}), ":2\r\n");
  place_.set_here(false);
  EXPECT_EQ(send({"DBSIZE"}), ":1\r\n");
  EXPECT_EQ(send({"KEYS", "*"}), "*1\r\n$3\r\nbar\r\n");
  EXPECT_EQ(send({"SCAN", "0"}), "*2\r\n$1\r\n0\r\n*1\r\n$3\r\nbar\r\n");
  EXPECT_EQ(send({"CLUSTER", "COUNTKEYSINSLOT", "12182"}), "-MOVED 8192 b:7202\r\n");
}

TEST_F(SessionPlaces, WhatIsAboutAllKeysPassesAGroupInTheMiddleThatIsElsewhere) {
  FakeNode third(2 * kv::kIdsOfGroup);
  ServedGroups three(
      {ServedGroup{node_, node_.store(), node_.health()},
       ServedGroup{second_, second_.store(), second_.health(), nullptr, {}, {}, &place_},
       ServedGroup{third, third.store(), third.health()}});
  EventHubs hubs(three);
  session_ = std::make_shared<Session>(
      Session::Context{three, state_, &state_.counters[0], &executor_, &executor_, &hubs}, 7,
      "127.0.0.1:5", [this] { ++progress_; });
  third.grant_lease(std::chrono::hours(1));
  EXPECT_EQ(send({"SET", "foo", "1"}), "");
  third.commit_all();
  EXPECT_EQ(pump(), "+OK\r\n");
  EXPECT_EQ(send({"DBSIZE"}), ":1\r\n");
  session_.reset();
}

TEST_F(SessionPlaces, AScanThatStandsInAGroupThatLeavesEnds) {
  put_in_second("foo");
  second_.grant_lease(std::chrono::hours(1));
  EXPECT_EQ(write({"SET", "bar", "1"}), "+OK\r\n");
  const std::string first = send({"SCAN", "0", "COUNT", "1"});
  const std::string cursor = first.substr(first.find("\r\n", 4) + 2);
  const std::string next = cursor.substr(0, cursor.find("\r\n"));
  const std::string second = send({"SCAN", next, "COUNT", "1"});
  ASSERT_THAT(second, Not(HasSubstr("\r\n0\r\n")));
  const std::string last = second.substr(second.find("\r\n", 4) + 2);
  place_.set_here(false);
  EXPECT_THAT(send({"SCAN", last.substr(0, last.find("\r\n"))}), HasSubstr("begin again with 0"));
}

// The store of a replica that was removed becomes empty: a read that was justified before must not
// find nothing there.
TEST_F(SessionPlaces, AReadThatWasJustifiedBeforeTheReplicaWentIsNotMade) {
  put_in_second("foo");
  EXPECT_EQ(send({"GET", "foo"}), "");
  ASSERT_EQ(second_.reads(), 1U);
  place_.set_here(false);
  second_.end_read(second_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), kMoved);
}

// It begins empty, and what it knows is of the time when it is asked.
TEST_F(SessionPlaces, AReadThatWasJustifiedAtAnEarlierReplicaIsJustifiedAgain) {
  put_in_second("foo");
  EXPECT_EQ(send({"GET", "foo"}), "");
  place_.set_here(false);
  place_.set_here(true);
  second_.end_read(second_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), "");
  ASSERT_EQ(second_.reads(), 1U) << "another one";
  second_.end_read(second_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), "$3\r\nold\r\n");
}

TEST_F(SessionPlaces, AReadUnderALeaseIsNotMadeEither) {
  put_in_second("foo");
  second_.grant_lease(std::chrono::hours(1));
  EXPECT_EQ(send({"GET", "foo"}), "$3\r\nold\r\n");
  second_.manual_clock().at_the_next_look([&] { place_.set_here(false); });
  EXPECT_EQ(send({"GET", "foo"}), kMoved);
}

// Their history ends here: a client that stayed would hear nothing any more.
TEST_F(SessionPlaces, AWatcherOfAGroupThatLeavesIsClosed) {
  put_in_second("foo");
  second_.grant_lease(std::chrono::hours(1));
  EXPECT_THAT(send({"LEASEHOLD", "WATCH", "KEY", "foo"}), HasSubstr("watching"));
  EXPECT_FALSE(session_->wants_progress(coarse_now()));
  place_.set_here(false);
  EXPECT_TRUE(session_->wants_progress(coarse_now()));
  EXPECT_EQ(pump(), "");
  EXPECT_TRUE(session_->finished());
}

TEST_F(SessionPlaces, ASubscriberOfAGroupThatIsReplacedIsClosed) {
  put_in_second("foo");
  EXPECT_THAT(send({"PSUBSCRIBE", "__key*__:*"}), HasSubstr("psubscribe"));
  place_.set_here(false);
  place_.set_here(true);
  EXPECT_TRUE(session_->wants_progress(coarse_now()));
  EXPECT_EQ(pump(), "");
  EXPECT_TRUE(session_->finished());
}

TEST_F(SessionPlaces, ASubscriberMayBeginWhereAGroupIsElsewhere) {
  EXPECT_THAT(send({"PSUBSCRIBE", "__key*__:*"}), HasSubstr("psubscribe"));
  EXPECT_FALSE(session_->wants_progress(coarse_now()));
  EXPECT_FALSE(session_->closing());
}

TEST_F(SessionPlaces, AWalkThroughAGroupThatLeavesIsNotMade) {
  put_in_second("foo");
  second_.grant_lease(std::chrono::hours(1));
  second_.manual_clock().at_the_next_look([&] { place_.set_here(false); });
  EXPECT_THAT(send({"KEYS", "*"}), StartsWith("-TRYAGAIN"));
}

TEST(GroupPlaces, AReplicaThatWentAndCameBackIsAnotherOne) {
  GroupPlace place(true, {});
  const std::uint64_t stay = place.stay();
  place.set_here(true);
  EXPECT_EQ(place.stay(), stay);
  place.set_here(false);
  place.set_here(true);
  EXPECT_TRUE(place.here());
  EXPECT_NE(place.stay(), stay);
}

TEST_F(SessionPlaces, TheLayoutNamesTheMembersOfAGroupThatIsElsewhere) {
  node::NodeStatus status;
  status.id = raft::NodeId(1);
  status.leader = raft::NodeId(1);
  status.members = {{raft::NodeId(1), "a:1", true, true, {}},
                    {raft::NodeId(2), "b:1", true, true, {}}};
  feed("CLUSTER SLOTS\r\n");
  node_.end_status(status);
  second_.end_status({});
  const std::string reply = pump();
  EXPECT_THAT(reply, StartsWith("*2\r\n*4\r\n:0\r\n:8191\r\n*4\r\n$1\r\na\r\n:7201\r\n"));
  EXPECT_THAT(reply, HasSubstr("*3\r\n:8192\r\n:16383\r\n*4\r\n$1\r\nb\r\n:7202\r\n"))
      << "the client address of node 3 is not known";
  feed("CLUSTER INFO\r\n");
  node_.end_status(status);
  second_.end_status({});
  EXPECT_THAT(pump(), AllOf(HasSubstr("cluster_state:ok"), HasSubstr("cluster_slots_fail:0")));
}

TEST_F(SessionPlaces, SlotsMoveAtANodeThatHasBothGroups) {
  const std::string refusal = send({"LEASEHOLD", "SLOTS", "MOVE", "1", "TO", "2"});
  EXPECT_THAT(refusal, HasSubstr("-ERR this node has no replica of group 2"));
  EXPECT_THAT(refusal, HasSubstr("node 2 at b:7202 has one"));
  EXPECT_EQ(send({"LEASEHOLD", "SLOTS", "MOVE", "16000", "TO", "1"}), refusal);
  EXPECT_EQ(send({"LEASEHOLD", "SLOTS", "CANCEL", "16000"}), refusal);
  EXPECT_EQ(node_.proposals() + second_.proposals(), 0U);
}

TEST_F(SessionPlaces, SomebodySaysWhereAGroupIs) {
  EXPECT_THAT(send({"LEASEHOLD", "POOL", "PLACE", "2", "1"}), HasSubstr("-ERR this node has one"));
  std::string heard;
  state_.options.hear_place = [&](std::size_t group, const auto& nodes) -> Result<void> {
    if (group == 9) return Error{ErrorCode::invalid_argument, "there is no group 9"};
    heard = std::to_string(group) + ":" + std::to_string(nodes.size());
    return {};
  };
  EXPECT_EQ(send({"LEASEHOLD", "POOL", "PLACE", "2", "1,3"}), "+OK\r\n");
  EXPECT_EQ(heard, "2:2");
  EXPECT_EQ(send({"LEASEHOLD", "POOL", "PLACE", "9", "1"}), "-ERR there is no group 9\r\n");
  for (const char* nodes : {"", "x", "0", "1,,2", "99999"}) {
    EXPECT_THAT(send({"LEASEHOLD", "POOL", "PLACE", "2", nodes}), StartsWith("-ERR expected"));
  }
  EXPECT_THAT(send({"LEASEHOLD", "POOL", "PLACE", "0", "1"}), StartsWith("-ERR expected"));
  feed("LEASEHOLD POOL\r\n");
  node_.end_status({});
  second_.end_status({});
  EXPECT_THAT(pump(), AllOf(HasSubstr("\"group\":2"), HasSubstr("\"here\":false"),
                            HasSubstr("\"nodes\":[2,3]")));
}

}  // namespace
}  // namespace leasehold::server
