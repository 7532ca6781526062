// Commands while a slot moves from one group to another.
#include <leasehold/tests/server/slots_fixture.h>

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kMoves = "-TRYAGAIN ";

TEST_F(SessionSlots, CommandsGoWhereTheSlotHasGone) {
  begin();
  send({"SET", "bar", "w"});
  EXPECT_EQ(node_.proposals(), 1U) << "it is copied";
  node_.commit_all();
  EXPECT_EQ(pump(), "+OK\r\n");
  EXPECT_EQ(send({"GET", "bar"}), "$1\r\nw\r\n");
  freeze();
  take();
  EXPECT_EQ(send({"SET", "bar", "x"}), "");
  EXPECT_EQ(node_.proposals(), 0U);
  EXPECT_EQ(second_.proposals(), 1U);
  second_.commit_all();
  EXPECT_EQ(pump(), "+OK\r\n");
  EXPECT_EQ(send({"GET", "bar"}), "$1\r\nx\r\n");
}

TEST_F(SessionSlots, ANodeThatHasOnlyHeardOfTheLeavingAsksTheOtherGroup) {
  begin();
  freeze();
  leave();
  EXPECT_EQ(send({"SET", "bar", "x"}), "");
  EXPECT_EQ(second_.proposals(), 1U);
}

TEST_F(SessionSlots, WhatIsNobodysIsWaitedFor) {
  begin();
  freeze();
  EXPECT_EQ(send({"GET", "bar"}), "");
  EXPECT_EQ(send({"SET", "bar", "x"}), "");
  EXPECT_EQ(node_.proposals() + second_.proposals(), 0U);
  EXPECT_TRUE(session_->busy());
  take();
  EXPECT_EQ(pump(), "$1\r\nv\r\n") << "the group that has it answers";
  EXPECT_EQ(second_.proposals(), 1U);
  second_.commit_all();
  EXPECT_EQ(pump(), "+OK\r\n");
  EXPECT_FALSE(session_->busy());
}

TEST_F(SessionSlots, AWaitForASlotEnds) {
  begin();
  freeze();
  EXPECT_EQ(send({"GET", "foo"}), "$-1\r\n") << "of another slot";
  EXPECT_EQ(send({"GET", "bar"}), "");
  both_.routes().end_waits(coarse_now());
  EXPECT_EQ(pump(), "");
  both_.routes().end_waits(coarse_now() + state_.options.command_timeout);
  EXPECT_THAT(pump(), StartsWith(kMoves));
  EXPECT_EQ(send({"SET", "bar", "x"}), "") << "the next one waits again";
  state_.draining = true;
  both_.routes().end_waits(std::chrono::nanoseconds::max());
  EXPECT_THAT(pump(), StartsWith(kMoves));
  EXPECT_THAT(send({"GET", "bar"}), StartsWith(kMoves)) << "a node that stops holds up nobody";
}

TEST_F(SessionSlots, AWriteThatComesBehindTheFreezeGoesToTheOtherGroup) {
  begin();
  EXPECT_EQ(send({"INCR", "{bar}n"}), "");
  EXPECT_EQ(node_.proposals(), 1U);
  apply_before(node_, kv::FreezeMove{move_});
  EXPECT_EQ(pump(), "") << "it was refused, and waits";
  EXPECT_EQ(second_.proposals(), 0U);
  take();
  EXPECT_EQ(pump(), "");
  EXPECT_EQ(second_.proposals(), 1U);
  second_.commit_all();
  EXPECT_EQ(pump(), ":1\r\n");
}

TEST_F(SessionSlots, AReadThatWaitedMeetsTheSlotAsItIsThen) {
  begin();
  EXPECT_EQ(send({"LEASEHOLD", "READ", "quorum", "GET", "bar"}), "");
  ASSERT_EQ(node_.reads(), 1U);
  freeze();
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), "") << "the other group may have a newer value";
  take();
  apply(second_, kv::Set{"bar", "w"});
  EXPECT_EQ(pump(), "");
  ASSERT_EQ(second_.reads(), 1U);
  second_.end_read(second_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), "$1\r\nw\r\n");
}

TEST_F(SessionSlots, AWatchOfAMovingSlotFailsItsTransaction) {
  begin();
  freeze();
  EXPECT_EQ(send({"WATCH", "bar"}), "");
  both_.routes().end_waits(std::chrono::nanoseconds::max());
  EXPECT_THAT(pump(), StartsWith(kMoves));
  EXPECT_EQ(send({"MULTI"}), "+OK\r\n");
  send({"SET", "bar", "w"});
  EXPECT_EQ(send({"EXEC"}), "");
  both_.routes().end_waits(std::chrono::nanoseconds::max());
  EXPECT_THAT(pump(), StartsWith("-EXECABORT"));
}

TEST_F(SessionSlots, AKeyIsListedOnce) {
  const auto listed = [this] { return send({"KEYS", "*"}); };
  const std::string once = "*1\r\n$3\r\nbar\r\n";
  EXPECT_EQ(listed(), once);
  begin();
  EXPECT_EQ(listed(), once) << "it is in the store of both groups";
  freeze();
  take();
  EXPECT_EQ(listed(), once);
  leave();
  EXPECT_EQ(listed(), once);
  EXPECT_EQ(send({"RANDOMKEY"}), "$3\r\nbar\r\n");
  EXPECT_EQ(send({"CLUSTER", "COUNTKEYSINSLOT", "5061"}), ":1\r\n");
}

class ScanOfSlots : public SessionSlots {
 protected:
  ScanOfSlots() { apply(second_, kv::Set{"foo", "v"}); }
  /// The next part; false: it was the last one.
  bool scan(const std::string& count = "1") {
    const std::string reply = send({"SCAN", cursor_, "COUNT", count});
    const std::size_t begin = reply.find("\r\n", 4) + 2;
    cursor_ = reply.substr(begin, reply.find('\r', begin) - begin);
    for (const char* key : {"bar", "foo"}) {
      if (reply.find("\r\n" + std::string(key) + "\r\n") != std::string::npos) {
        found_.emplace_back(key);
      }
    }
    return cursor_ != "0";
  }
  /// Of the whole scan, or what is left of it.
  std::vector<std::string> rest() {
    for (int i = 0; i < 20 && scan(); ++i) {
    }
    EXPECT_EQ(cursor_, "0");
    return std::move(found_);
  }

  std::string cursor_ = "0";
  std::vector<std::string> found_;
};

TEST_F(ScanOfSlots, FindsWhatGoesToAGroupThatItIsThroughWith) {
  EXPECT_TRUE(scan("10"));
  EXPECT_THAT(found_, ElementsAre("bar"));
  apply(second_, kv::BeginMove{2, 2, 1, {kFoo}});
  const std::uint64_t move = second_.store().slots().list()->at(kFoo).move;
  apply(node_, kv::ExpectSlots{1, 2, 2, move, {{kFoo, 1}}});
  kv::MovedKey moved;
  moved.key = "foo";
  moved.exists = true;
  moved.create_revision = moved.mod_revision = moved.version = 1;
  apply(node_, kv::ImportKeys{2, move, {moved}});
  apply(second_, kv::FreezeMove{move});
  apply(node_, kv::TakeSlots{2, move, second_.store().revision()});
  apply(second_, kv::LeaveSlots{move});
  EXPECT_THAT(rest(), ElementsAre("bar", "foo")) << "and what has not moved comes once";
  EXPECT_THAT(rest(), ElementsAre("bar", "foo")) << "a scan of its own begins behind the move";
}

TEST_F(ScanOfSlots, FindsWhatIsNobodysWhenItsGroupIsLookedAt) {
  begin();
  freeze();
  EXPECT_TRUE(scan("10"));
  EXPECT_TRUE(scan()) << "in the second group it is behind the key, which is not there yet";
  EXPECT_TRUE(found_.empty());
  take();
  EXPECT_THAT(rest(), ElementsAre("foo", "bar"));
}

// This node's state of a group may be behind, and a scan that accepts old reads sees that state.
TEST_F(ScanOfSlots, GoesOnWhileNoGroupSaysThatItHasTheSlot) {
  begin();
  freeze();
  leave();
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(scan());
  EXPECT_THAT(found_, ElementsAre("foo"));
  take();
  EXPECT_THAT(rest(), ElementsAre("foo", "bar", "bar")) << "it has come in the midst of a round";
}

class NamesOfSlots : public SessionSlots {
 protected:
  /// The slot has gone, and a client has a lease of its name in the other group.
  void move_and_grant() {
    begin();
    freeze();
    take();
    leave();
    grant();
  }
  void grant() {
    apply(second_, kv::GrantLease{grant::LeaseId(77), std::chrono::seconds(9), "bar", "holder"});
  }
};

TEST_F(NamesOfSlots, LeasesAreFoundWhereTheSlotOfTheirNameHasGone) {
  move_and_grant();
  EXPECT_THAT(send({"LEASE.INFO", "NAME", "bar"}), HasSubstr("holder"));
  EXPECT_THAT(send({"LEASE.INFO", "bar"}), HasSubstr("holder"));
  EXPECT_EQ(send({"LEASE.INFO", "77"}), "$-1\r\n") << "an id is of the selected group";
  EXPECT_EQ(send({"LEASE.RENEW", "bar"}), "");
  EXPECT_EQ(second_.proposals(), 1U);
  second_.commit_all();
  EXPECT_EQ(pump(), "*1\r\n:9000\r\n");
  EXPECT_THAT(send({"LEASE.RENEW", "bar", "77"}), StartsWith("-CROSSSLOT"));
  EXPECT_THAT(send({"LEASE.RENEW", "bar", "foo"}), StartsWith("-CROSSSLOT"));
  EXPECT_EQ(send({"LEASE.REVOKE", "bar"}), "");
  EXPECT_EQ(second_.proposals(), 1U);
  second_.commit_all();
  EXPECT_EQ(pump(), "+OK\r\n");
  EXPECT_EQ(node_.proposals(), 0U);
}

TEST_F(NamesOfSlots, OfSlotsThatHaveNotMovedAreOfTheSelectedGroup) {
  EXPECT_EQ(send({"LEASE.RENEW", "foo", "bar", "5"}), "");
  EXPECT_EQ(node_.proposals(), 1U);
  node_.commit_all();
  EXPECT_EQ(pump(), "*3\r\n$-1\r\n$-1\r\n$-1\r\n");
}

TEST_F(NamesOfSlots, AreWaitedForWhileTheirSlotIsNobodys) {
  begin();
  freeze();
  EXPECT_EQ(send({"LEASE.INFO", "NAME", "bar"}), "");
  take();
  grant();
  EXPECT_THAT(pump(), HasSubstr("holder"));
}

// It hears of the freeze in the group's answer: there is no such lease in it any more.
TEST_F(NamesOfSlots, ANodeThatLagsBehindDoesNotSayThatThereIsNoLease) {
  const std::vector<std::vector<std::string>> by_name = {{"LEASE.RENEW", "bar"},
                                                         {"LEASE.REVOKE", "bar"},
                                                         {"SET", "{bar}2", "v", "LEASE", "bar"},
                                                         {"LEASE.ATTACH", "bar", "{bar}2"}};
  begin();
  for (const auto& words : by_name) EXPECT_EQ(send(words), "") << words[0];
  EXPECT_EQ(node_.proposals(), by_name.size());
  apply_before(node_, kv::FreezeMove{move_});
  std::string all = pump();
  for (const auto& words : by_name) {
    EXPECT_THAT(all, StartsWith(kMoves)) << words[0];
    all.erase(0, all.find('\n') + 1);
  }
  EXPECT_EQ(all, "");
}

node::NodeStatus led_by(std::uint64_t leader) {
  node::NodeStatus status;
  status.id = raft::NodeId(1);
  status.leader = raft::NodeId(leader);
  status.members = {{raft::NodeId(1), "a:1", true, true, {}},
                    {raft::NodeId(2), "b:1", true, true, {}}};
  return status;
}

TEST_F(SessionSlots, TheLayoutFollows) {
  state_.options.client_addresses = {{raft::NodeId(1), "a:7201"}, {raft::NodeId(2), "b:7202"}};
  const auto layout = [this] {
    EXPECT_EQ(send({"CLUSTER", "SLOTS"}), "");
    second_.end_status(led_by(2));
    node_.end_status(led_by(1));
    return pump();
  };
  EXPECT_THAT(layout(), StartsWith("*2\r\n"));
  begin();
  freeze();
  EXPECT_THAT(layout(), StartsWith("*2\r\n"));
  take();
  EXPECT_THAT(layout(), AllOf(StartsWith("*4\r\n*4\r\n:0\r\n:5060\r\n*4\r\n$1\r\na\r\n"),
                              HasSubstr("*4\r\n:5061\r\n:5061\r\n*4\r\n$1\r\nb\r\n"),
                              HasSubstr("*4\r\n:5062\r\n:8191\r\n*4\r\n$1\r\na\r\n"),
                              HasSubstr("*4\r\n:8192\r\n:16383\r\n*4\r\n$1\r\nb\r\n")));
  EXPECT_THAT(send({"LEASEHOLD", "GROUP"}), HasSubstr("slots\r\n:8191\r\n"));
}

const auto kSelectAnother = AllOf(StartsWith("-CROSSSLOT"), HasSubstr("LEASEHOLD GROUP KEY"));

TEST_F(SessionGroups, ASessionIsOfTheSelectedGroup) {
  EXPECT_THAT(send_and_see({"LEASEHOLD", "ONCE", "1", "1", "SET", "foo", "v"}), kSelectAnother);
  EXPECT_EQ(feed("MULTI\r\nSET foo v\r\n"), "+OK\r\n+QUEUED\r\n");
  EXPECT_THAT(send_and_see({"LEASEHOLD", "ONCE", "1", "2", "EXEC"}), kSelectAnother);
  EXPECT_THAT(send({"EXEC"}), StartsWith("-ERR EXEC without MULTI"));
  EXPECT_EQ(node_.proposals() + second_.proposals(), 0U);
  EXPECT_EQ(send({"LEASEHOLD", "ONCE", "1", "1", "SET", "bar", "v"}), "");
  EXPECT_EQ(node_.proposals(), 1U);
  node_.commit_all();
  pump();
  EXPECT_EQ(feed("LEASEHOLD GROUP KEY foo\r\nMULTI\r\nSET foo v\r\nLEASEHOLD ONCE 1 2 EXEC\r\n"),
            "+OK\r\n+OK\r\n+QUEUED\r\n");
  node_.end_read(node_.granted(raft::ReadBasis::lease));
  pump();
  EXPECT_EQ(second_.proposals(), 1U);
}

// A client that has lost its connection selects the group of its keys, and sends once more what it
// knows no answer to.
class OnceOfSlots : public SessionSlots {
 protected:
  OnceOfSlots() {
    EXPECT_EQ(send({"LEASEHOLD", "SESSION", "OPEN"}), "");
    node_.commit_all();
    EXPECT_EQ(pump(), ":1\r\n");
  }
  std::string once(const std::string& sequence, std::vector<std::string> words) {
    words.insert(words.begin(), {"LEASEHOLD", "ONCE", "1", sequence, "ANSWERED", "1"});
    std::string out = send(words);
    node_.commit_all();
    second_.commit_all();
    return out + pump();
  }
  void move() {
    apply(second_, kv::OpenSession{});  // of another client
    begin();
    freeze();
    take();
    leave();
  }
};

TEST_F(OnceOfSlots, ASessionAnswersInItsGroupWhatWasExecutedBeforeAMove) {
  EXPECT_EQ(once("1", {"INCR", "{bar}n"}), ":1\r\n");
  EXPECT_EQ(send({"MULTI"}), "+OK\r\n");
  EXPECT_EQ(send({"INCR", "{bar}n"}), "+QUEUED\r\n");
  EXPECT_EQ(once("2", {"EXEC"}), "*1\r\n:2\r\n");
  move();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(once("1", {"INCR", "{bar}n"}), ":1\r\n");
    EXPECT_EQ(send({"MULTI"}), "+OK\r\n");
    EXPECT_EQ(send({"INCR", "{bar}n"}), "+QUEUED\r\n");
    EXPECT_EQ(once("2", {"EXEC"}), "*1\r\n:2\r\n");
    EXPECT_THAT(once("3", {"INCR", "{bar}n"}),
                AllOf(StartsWith("-CROSSSLOT"), HasSubstr("was not executed there")));
    EXPECT_EQ(send({"LEASEHOLD", "GROUP", "KEY", "bar"}), "+OK\r\n") << "the same from there";
  }
  EXPECT_EQ(send({"GET", "{bar}n"}), "$-1\r\n") << "it did not come along in this test";
}

TEST_F(OnceOfSlots, WhatIsNobodysIsOfTheOtherGroupFromThenOn) {
  EXPECT_EQ(once("1", {"INCR", "{bar}n"}), ":1\r\n");
  begin();
  freeze();
  EXPECT_EQ(once("1", {"INCR", "{bar}n"}), ":1\r\n");
  EXPECT_THAT(once("2", {"INCR", "{bar}n"}), StartsWith("-CROSSSLOT"));
}

TEST_F(OnceOfSlots, ASessionThatIsOverDoesNotSayThatNothingWasExecuted) {
  EXPECT_EQ(once("1", {"INCR", "{bar}n"}), ":1\r\n");
  move();
  apply(node_, kv::CloseSession{replica::SessionId(1)});
  EXPECT_THAT(once("1", {"INCR", "{bar}n"}), HasSubstr("an earlier try may have been executed"));
}

TEST_F(OnceOfSlots, OfAnotherGroupIsRefusedWhereNothingHasMoved) {
  const auto seen = [this] {
    EXPECT_EQ(once("1", {"INCR", "foo"}), "");
    EXPECT_EQ(node_.reads(), 1U);
    EXPECT_EQ(node_.proposals() + second_.proposals(), 0U);
    node_.end_read(node_.granted(raft::ReadBasis::lease));
    return pump();
  };
  EXPECT_THAT(seen(), StartsWith("-CROSSSLOT a session is of the group"));
  EXPECT_EQ(node_.proposals() + second_.proposals(), 0U);
  EXPECT_EQ(send({"LEASEHOLD", "GROUP", "KEY", "foo"}), "+OK\r\n");
  EXPECT_EQ(seen(), "");
  second_.commit_all();
  EXPECT_THAT(pump(), StartsWith("-NOSESSION"));
}

// A node that was away: its replicas have not applied the move.
TEST_F(OnceOfSlots, IsOfAGroupWhoseMovesThisNodeHasYetToSee) {
  apply(second_, kv::OpenSession{});
  const std::string id = std::to_string(kv::kIdsOfGroup + 1);
  const std::vector<std::string> words = {"LEASEHOLD", "ONCE", id, "1", "INCR", "{bar}n"};
  for (const bool selected : {false, true}) {
    if (selected) {
      EXPECT_EQ(send({"LEASEHOLD", "GROUP", "KEY", "bar"}), "+OK\r\n");
    }
    EXPECT_EQ(send(words), "");
    EXPECT_EQ(second_.reads(), 1U);
    second_.end_read({});
    EXPECT_THAT(pump(), StartsWith("-TRYAGAIN this node could not learn"));
  }
  EXPECT_EQ(send(words), "");
  begin();
  freeze();
  take();
  EXPECT_EQ(node_.proposals() + second_.proposals(), 0U);
  second_.end_read(second_.granted(raft::ReadBasis::lease));
  EXPECT_EQ(pump(), "");
  EXPECT_EQ(second_.proposals(), 1U);
  second_.commit_all();
  EXPECT_EQ(pump(), ":1\r\n");
}

TEST_F(SessionSlots, AConnectionSelectsTheGroupThatHasTheKey) {
  begin();
  freeze();
  take();
  EXPECT_EQ(send({"LEASEHOLD", "GROUP", "KEY", "bar"}), "+OK\r\n");
  EXPECT_THAT(send({"LEASEHOLD", "GROUP"}), HasSubstr("group\r\n:2\r\n"));
  EXPECT_THAT(send({"LEASEHOLD", "GROUP", "KEY", "{bar}2"}), Not(HasSubstr("-")));
}

}  // namespace
}  // namespace leasehold::server
