// A server of two groups: commands go to the group of their keys.
#include <leasehold/server/commands/command_categories.h>
#include <leasehold/tests/server/groups_fixture.h>

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kCrossSlot = "-CROSSSLOT Keys in request don't hash to the same slot\r\n";

TEST(KeySlot, IsThatOfRedisCluster) {
  EXPECT_EQ(kv::slot_of("123456789"), 12739U);
  EXPECT_EQ(kv::slot_of("foo"), 12182U);
  EXPECT_EQ(kv::slot_of("bar"), 5061U);
  EXPECT_EQ(kv::slot_of("{user1000}.following"), kv::slot_of("user1000"));
  EXPECT_EQ(kv::slot_of("foo{}{bar}"), 8363U);
  EXPECT_EQ(kv::slot_of("foo{{bar}}zap"), kv::slot_of("{bar"));
}

TEST_F(SessionGroups, EachKeyIsInTheGroupOfItsSlot) {
  EXPECT_EQ(send({"SET", "bar", "1"}), "");
  EXPECT_EQ(node_.proposals(), 1U);
  EXPECT_EQ(second_.proposals(), 0U);
  EXPECT_EQ(send({"SET", "foo", "2"}), "");
  EXPECT_EQ(second_.proposals(), 1U);
  node_.commit_all();
  second_.commit_all();
  EXPECT_EQ(pump(), "+OK\r\n+OK\r\n");
  node_.grant_lease(std::chrono::hours(1));
  EXPECT_EQ(send({"GET", "bar"}), "$1\r\n1\r\n");
  EXPECT_EQ(send({"GET", "foo"}), "") << "the second group has no lease here";
  EXPECT_EQ(second_.reads(), 1U);
  second_.end_read(second_.granted(raft::ReadBasis::lease));
  EXPECT_EQ(pump(), "$1\r\n2\r\n");
}

TEST_F(SessionGroups, ReadsOfOnePipelineAskEachGroup) {
  EXPECT_EQ(feed("GET foo\r\nGET bar\r\nGET foo\r\n"), "");
  EXPECT_EQ(node_.reads(), 1U);
  EXPECT_EQ(second_.reads(), 2U);
}

TEST_F(SessionGroups, EachSlotIsInTheRangeOfItsGroup) {
  for (const std::size_t count : {1U, 2U, 3U, 7U, 16U, 1000U}) {
    const ServedGroups groups(
        std::vector<ServedGroup>(count, ServedGroup{node_, node_.store(), node_.health()}));
    std::vector<std::size_t> slots(count);
    std::size_t before = 0;
    for (std::uint32_t slot = 0; slot < kv::kSlots; ++slot) {
      const std::size_t group = groups.number_of_slot(slot);
      EXPECT_TRUE(group == before || group == before + 1) << count << " " << slot;
      EXPECT_EQ(&groups.of_slot(slot), &groups.all()[group]);
      ++slots[group];
      before = group;
    }
    for (const std::size_t of_group : slots) {
      EXPECT_GE(of_group, kv::kSlots / count);
      EXPECT_LE(of_group, kv::kSlots / count + 1);
    }
  }
}

TEST_F(SessionGroups, KeysOfOneCommandAreOfOneSlot) {
  EXPECT_EQ(send({"MSET", "foo", "1", "bar", "2"}), kCrossSlot);
  EXPECT_EQ(send({"DEL", "foo", "foo5"}), kCrossSlot) << "also within a group";
  EXPECT_EQ(send({"MSET", "{foo}1", "1", "{foo}2", "2"}), "");
  EXPECT_EQ(second_.proposals(), 1U);
}

TEST_F(SessionGroups, ATransactionIsOfOneSlot) {
  EXPECT_EQ(send({"MULTI"}), "+OK\r\n");
  EXPECT_EQ(send({"SET", "{foo}1", "v"}), "+QUEUED\r\n");
  EXPECT_EQ(send({"GET", "foo"}), "+QUEUED\r\n");
  EXPECT_EQ(send({"EXEC"}), "");
  EXPECT_EQ(second_.proposals(), 1U);
  second_.commit_all();
  EXPECT_EQ(pump(), "*2\r\n+OK\r\n$-1\r\n");

  EXPECT_EQ(send({"MULTI"}), "+OK\r\n");
  EXPECT_EQ(send({"SET", "foo", "v"}), "+QUEUED\r\n");
  EXPECT_EQ(send({"SET", "bar", "v"}), kCrossSlot);
  EXPECT_THAT(send({"EXEC"}), StartsWith("-EXECABORT"));
  EXPECT_EQ(node_.proposals() + second_.proposals(), 0U);
}

TEST_F(SessionGroups, WhatIsWatchedIsOfTheSlotOfTheTransaction) {
  second_.grant_lease(std::chrono::hours(1));
  EXPECT_EQ(send({"WATCH", "foo"}), "+OK\r\n");
  EXPECT_EQ(send({"WATCH", "bar"}), kCrossSlot);
  EXPECT_EQ(send({"MULTI"}), "+OK\r\n");
  EXPECT_THAT(send({"EXEC"}), StartsWith("-EXECABORT"));

  EXPECT_EQ(send({"WATCH", "foo"}), "+OK\r\n");
  EXPECT_EQ(send({"GET", "bar"}), "") << "that is before MULTI";
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), "$-1\r\n");
  EXPECT_EQ(send({"MULTI"}), "+OK\r\n");
  EXPECT_EQ(send({"SET", "bar", "v"}), kCrossSlot);
  EXPECT_THAT(send({"EXEC"}), StartsWith("-EXECABORT"));
}

TEST_F(SessionGroups, WhatIsExpectedIsOfTheSlotOfTheTransaction) {
  EXPECT_EQ(feed("LEASEHOLD EXPECT bar 0\r\nMULTI\r\n"), "+OK\r\n+OK\r\n");
  EXPECT_EQ(send({"SET", "foo", "v"}), kCrossSlot);
  EXPECT_THAT(send({"EXEC"}), StartsWith("-EXECABORT"));

  EXPECT_EQ(send({"LEASEHOLD", "EXPECT", "foo", "0", "bar", "0"}), kCrossSlot);
  EXPECT_EQ(feed("MULTI\r\nSET foo v\r\n"), "+OK\r\n+QUEUED\r\n");
  EXPECT_THAT(send({"EXEC"}), StartsWith("-EXECABORT")) << "nothing is expected";
  EXPECT_EQ(node_.proposals() + second_.proposals(), 0U);

  EXPECT_EQ(feed("LEASEHOLD EXPECT foo 0\r\nMULTI\r\nEXEC\r\n"), "+OK\r\n+OK\r\n");
  EXPECT_EQ(second_.proposals(), 1U) << "also if nothing is queued";
}

TEST(IsOfTransaction, IsWhatHasThatCategory) {
  for (const CommandSpec* spec = commands_begin(); spec != commands_end(); ++spec) {
    EXPECT_EQ(is_of_transaction(*spec), (categories_of_command(*spec) & category::transaction) != 0)
        << spec->name;
  }
}

TEST_F(SessionGroups, WhatHasNoKeysIsOfTheSelectedGroupInATransactionToo) {
  for (const bool keys_first : {true, false}) {
    EXPECT_EQ(send({"MULTI"}), "+OK\r\n");
    std::vector<std::string> replies;
    replies.push_back(send(keys_first ? std::vector<std::string>{"SET", "foo", "v"}
                                      : std::vector<std::string>{"LEASE.REVOKE", "5"}));
    replies.push_back(send(keys_first ? std::vector<std::string>{"LEASE.REVOKE", "5"}
                                      : std::vector<std::string>{"SET", "foo", "v"}));
    EXPECT_EQ(replies[0], "+QUEUED\r\n");
    EXPECT_THAT(replies[1], AllOf(StartsWith("-CROSSSLOT"), HasSubstr("LEASEHOLD GROUP KEY")));
    EXPECT_THAT(send({"EXEC"}), StartsWith("-EXECABORT"));
  }
  EXPECT_EQ(node_.proposals() + second_.proposals(), 0U);
  EXPECT_EQ(feed("MULTI\r\nPING\r\nSET foo v\r\nEXEC\r\n"), "+OK\r\n+QUEUED\r\n+QUEUED\r\n");
  EXPECT_EQ(second_.proposals(), 1U) << "PING is of no group";
  second_.commit_all();
  pump();
  EXPECT_EQ(feed("LEASEHOLD GROUP KEY foo\r\nMULTI\r\nLEASE.GRANT 10000\r\nSET foo v\r\nEXEC\r\n"),
            "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n");
  EXPECT_EQ(second_.proposals(), 1U);
  EXPECT_EQ(node_.proposals(), 0U);
}

const auto kNamesRemedy = AllOf(StartsWith("-CROSSSLOT"), HasSubstr("LEASEHOLD GROUP KEY"));

TEST_F(SessionGroups, TheIdOfALeaseIsOfTheSelectedGroup) {
  const std::vector<std::vector<std::string>> by_id = {{"SET", "foo", "v", "LEASE", "1"},
                                                       {"SETSEQ", "{foo}", "v", "LEASE", "1"},
                                                       {"LEASE.ATTACH", "1", "foo"}};
  for (const auto& words : by_id) EXPECT_THAT(send_and_see(words), kNamesRemedy) << words[0];
  EXPECT_THAT(send_and_see({"LEASEHOLD", "ONCE", "1", "1", "SET", "foo", "v", "LEASE", "1"}),
              kNamesRemedy);
  EXPECT_EQ(send({"MULTI"}), "+OK\r\n");
  EXPECT_THAT(send_and_see(by_id[0]), kNamesRemedy);
  EXPECT_EQ(send({"DISCARD"}), "+OK\r\n");
  EXPECT_EQ(node_.proposals() + second_.proposals(), 0U);

  // A name says which lease it is in each group; LEASE.DETACH names none.
  EXPECT_EQ(send({"SET", "foo", "v", "LEASE", "printer"}), "");
  EXPECT_EQ(send({"LEASE.DETACH", "foo"}), "");
  EXPECT_EQ(second_.proposals(), 2U);
  second_.commit_all();
  pump();
  EXPECT_EQ(send({"LEASEHOLD", "GROUP", "KEY", "foo"}), "+OK\r\n");
  for (const auto& words : by_id) EXPECT_EQ(send(words), "");
  EXPECT_EQ(second_.proposals(), by_id.size());
}

TEST_F(SessionGroups, APrefixIsOfOneSlotByItsTag) {
  EXPECT_EQ(send({"SETSEQ", "foo", "v"}),
            "-CROSSSLOT the keys with this prefix are of many slots; a prefix with a {tag} is of "
            "one\r\n");
  EXPECT_EQ(send({"SETSEQ", "{foo}", "v"}), "");
  EXPECT_EQ(second_.proposals(), 1U);
}

/// Both have a lease; "bar" is in the first group, "foo" and "foo5" in the second.
class KeysOfGroups : public SessionGroups {
 protected:
  KeysOfGroups() {
    for (FakeNode* node : {&node_, &second_}) node->grant_lease(std::chrono::hours(1));
    for (const char* key : {"bar", "foo", "foo5"}) send({"SET", key, "v"});
    node_.commit_all();
    second_.commit_all();
    EXPECT_EQ(pump(), "+OK\r\n+OK\r\n+OK\r\n");
  }
  /// What the client hears of a change.
  std::string changed(FakeNode& node, std::size_t group, const char* key) {
    node.propose(kv::encode_command(kv::Set{key, "w"}).value(),
                 node::CallOptions(std::chrono::seconds(1)), [](const replica::ProposeResult&) {});
    node.commit_all();
    while (both_hubs_.of(group).look()) {
    }
    return pump();
  }
};

TEST_F(KeysOfGroups, AreReadInTheirGroupHoweverTheReadsEnd) {
  second_.commit_ahead(1);
  EXPECT_EQ(feed("GET foo\r\nGET bar\r\n"), "") << "the second group has not applied everything";
  second_.end_wait(second_.granted(raft::ReadBasis::lease));
  EXPECT_EQ(pump(), "$1\r\nv\r\n$1\r\nv\r\n");
}

TEST_F(KeysOfGroups, AreCountedTogether) {
  EXPECT_EQ(send({"DBSIZE"}), ":3\r\n");
  EXPECT_EQ(feed("DBSIZE\r\nPING\r\nDBSIZE\r\n"), ":3\r\n+PONG\r\n:3\r\n");
}

TEST_F(KeysOfGroups, AreListedTogether) {
  EXPECT_EQ(send({"KEYS", "*"}), "*3\r\n$3\r\nbar\r\n$3\r\nfoo\r\n$4\r\nfoo5\r\n");
  EXPECT_EQ(send({"KEYS", "foo*"}), "*2\r\n$3\r\nfoo\r\n$4\r\nfoo5\r\n");
  EXPECT_EQ(send({"KEYS", "none"}), "*0\r\n");
  EXPECT_EQ(send({"RANDOMKEY"}), "$3\r\nbar\r\n");
}

TEST_F(SessionGroups, WhatTheGroupsBeforeHaveListedIsCountedOnce) {
  FakeNode third;
  const ServedGroups all({ServedGroup{node_, node_.store(), node_.health()},
                          ServedGroup{second_, second_.store(), second_.health()},
                          ServedGroup{third, third.store(), third.health()}});
  EventHubs hubs(all);
  session_ = std::make_shared<Session>(
      Session::Context{all, state_, &state_.counters[0], &executor_, &executor_, &hubs}, 7,
      "127.0.0.1:5", [] {});
  for (FakeNode* node : {&node_, &second_, &third}) node->grant_lease(std::chrono::hours(1));
  const std::string long_name(60000, 'n');
  EXPECT_EQ(send({"SET", "{bar}" + long_name, "v"}), "");
  node_.commit_all();
  EXPECT_EQ(pump(), "+OK\r\n");
  third.commit_ahead(1);
  const std::size_t before = session_->held_bytes();
  EXPECT_EQ(send({"KEYS", "*"}), "") << "the third group has not applied everything";
  EXPECT_EQ(third.waits(), 1U);
  const std::size_t held = session_->held_bytes() - before;
  EXPECT_GT(held, long_name.size());
  EXPECT_LT(held, 3 * long_name.size() / 2);
  third.end_wait(third.granted(raft::ReadBasis::lease));
  EXPECT_EQ(pump().size(), std::string("*1\r\n$60005\r\n\r\n").size() + 60005);
  session_.reset();
}

TEST(JoinedReply, IsTheSumTheListOrTheFirstValue) {
  const auto joined = [](const std::vector<std::string>& parts) {
    JoinedReply reply;
    EXPECT_TRUE(reply.empty());
    for (const std::string& part : parts) reply.add(part);
    EXPECT_FALSE(reply.empty());
    return reply.take();
  };
  EXPECT_EQ(joined({":1\r\n", ":0\r\n", ":20\r\n"}), ":21\r\n");
  EXPECT_EQ(joined({"*0\r\n", "*1\r\n$1\r\na\r\n", "*1\r\n$1\r\nb\r\n"}),
            "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
  EXPECT_EQ(joined({"$-1\r\n", "$1\r\na\r\n", "$-1\r\n", "$1\r\nb\r\n"}), "$1\r\na\r\n");
  EXPECT_EQ(joined({"_\r\n", "$1\r\na\r\n"}), "$1\r\na\r\n");
  EXPECT_EQ(joined({"_\r\n", "_\r\n"}), "_\r\n");
  EXPECT_EQ(joined({":1\r\n", "-ERR no\r\n", ":1\r\n"}), "-ERR no\r\n");
  const std::string half = "*1\r\n" + std::string(40U << 20U, 'x');
  EXPECT_THAT(joined({half, half, half}), StartsWith("-ERR the names"));
}

TEST_F(KeysOfGroups, TheRefusalOfOneGroupIsTheAnswer) {
  second_.commit_ahead(1);
  EXPECT_EQ(send({"DBSIZE"}), "") << "the second group has not applied everything";
  EXPECT_EQ(second_.waits(), 1U);
  replica::ReadResult none;
  second_.end_wait(none);
  EXPECT_THAT(pump(), StartsWith("-"));
}

TEST_F(KeysOfGroups, AScanGoesFromGroupToGroup) {
  std::vector<std::string> found;
  std::string cursor = "0";
  for (int i = 0; i < 10; ++i) {
    const std::string reply = send({"SCAN", cursor, "COUNT", "1"});
    const std::size_t begin = reply.find("\r\n", 4) + 2;
    cursor = reply.substr(begin, reply.find('\r', begin) - begin);
    for (const char* key : {"bar", "foo", "foo5"}) {
      if (reply.find("\r\n" + std::string(key) + "\r\n") != std::string::npos) {
        found.emplace_back(key);
      }
    }
    if (cursor == "0") break;
  }
  EXPECT_EQ(cursor, "0");
  EXPECT_THAT(found, ElementsAre("bar", "foo", "foo5"));
}

TEST_F(KeysOfGroups, ASlotIsCountedInItsGroup) {
  EXPECT_EQ(send({"CLUSTER", "COUNTKEYSINSLOT", "12182"}), ":1\r\n");
  EXPECT_EQ(send({"CLUSTER", "COUNTKEYSINSLOT", "5061"}), ":1\r\n");
  EXPECT_EQ(send({"CLUSTER", "COUNTKEYSINSLOT", "5062"}), ":0\r\n");
}

TEST_F(KeysOfGroups, ATransactionCountsNoKeys) {
  EXPECT_EQ(send({"MULTI"}), "+OK\r\n");
  EXPECT_THAT(send({"DBSIZE"}), StartsWith("-CROSSSLOT"));
  EXPECT_THAT(send({"EXEC"}), StartsWith("-EXECABORT"));
}

TEST_F(SessionGroups, AConnectionSelectsTheGroupOfCommandsWithoutKeys) {
  EXPECT_EQ(send({"LEASEHOLD", "GROUP"}),
            "*10\r\n$5\r\ngroup\r\n:1\r\n$6\r\ngroups\r\n:2\r\n$5\r\nslots\r\n:8192\r\n"
            "$10\r\nfirst-slot\r\n:0\r\n"
            "$9\r\nlast-slot\r\n:8191\r\n");
  EXPECT_EQ(send({"LEASE.GRANT", "10000"}), "");
  EXPECT_EQ(node_.proposals(), 1U);
  node_.commit_all();
  pump();
  EXPECT_EQ(send({"LEASEHOLD", "GROUP", "KEY", "foo"}), "+OK\r\n");
  EXPECT_EQ(send({"LEASE.GRANT", "10000"}), "");
  EXPECT_EQ(second_.proposals(), 1U);
  second_.commit_all();
  pump();
  EXPECT_EQ(send({"SET", "bar", "v"}), "");
  EXPECT_EQ(node_.proposals(), 1U) << "a key is where it is";
  node_.commit_all();
  pump();
  EXPECT_EQ(send({"LEASEHOLD", "GROUP", "1"}), "+OK\r\n");
  for (const char* wrong : {"0", "3", "x"}) {
    EXPECT_THAT(send({"LEASEHOLD", "GROUP", wrong}), StartsWith("-ERR"));
  }
}

TEST_F(SessionGroups, ACarriedCommandGoesToTheGroupOfItsKeys) {
  EXPECT_EQ(send({"LEASEHOLD", "READ", "quorum", "GET", "foo"}), "");
  EXPECT_EQ(second_.reads(), 1U);
  second_.end_read(second_.granted(raft::ReadBasis::quorum));
  pump();
  EXPECT_EQ(send({"LEASEHOLD", "GROUP", "KEY", "foo"}), "+OK\r\n");
  EXPECT_EQ(send_and_see({"LEASEHOLD", "ONCE", "1", "1", "SET", "foo", "v"}), "");
  EXPECT_EQ(second_.proposals(), 1U);
  second_.commit_all();
  pump();
  EXPECT_EQ(send_and_see({"LEASEHOLD", "ONCE", "1", "1", "MSET", "foo", "v", "bar", "v"}),
            kCrossSlot);
}

TEST_F(KeysOfGroups, AreWatchedInTheirGroup) {
  EXPECT_EQ(send({"LEASEHOLD", "WATCH", "KEY", "foo"}), "*2\r\n$8\r\nwatching\r\n:3\r\n");
  EXPECT_EQ(send({"LEASEHOLD", "UNWATCH"}), "+OK\r\n");
  EXPECT_EQ(send({"LEASEHOLD", "WATCH", "KEY", "foo", "KEY", "bar"}), kCrossSlot);
  EXPECT_THAT(send({"LEASEHOLD", "WATCH", "PREFIX", "fo"}), StartsWith("-CROSSSLOT"));
  EXPECT_EQ(send({"LEASEHOLD", "WATCH", "PREFIX", "{foo}"}), "*2\r\n$8\r\nwatching\r\n:3\r\n");
  EXPECT_THAT(changed(second_, 1, "{foo}x"), HasSubstr("{foo}x"));
  EXPECT_EQ(changed(node_, 0, "{foo}x"), "") << "it listens to one group";
}

TEST_F(KeysOfGroups, AreSubscribedToInAllGroups) {
  EXPECT_THAT(send({"PSUBSCRIBE", "__keyspace@0__:*"}), HasSubstr("psubscribe"));
  EXPECT_THAT(changed(second_, 1, "foo"), HasSubstr("__keyspace@0__:foo"));
  EXPECT_THAT(changed(node_, 0, "bar"), HasSubstr("__keyspace@0__:bar"));
  EXPECT_THAT(send({"PUNSUBSCRIBE"}), HasSubstr("punsubscribe"));
  EXPECT_EQ(changed(second_, 1, "foo"), "");
}

TEST_F(KeysOfGroups, AChannelOfAKeyIsHeardInTheGroupOfTheKey) {
  const std::size_t before = session_->held_bytes();
  const auto costs = [&](const std::string& channel) {
    send({"SUBSCRIBE", channel});
    const std::size_t held = session_->held_bytes() - before;
    send({"UNSUBSCRIBE"});
    return held;
  };
  const std::string tail(100000, 'k');
  const std::size_t of_key = costs("__keyspace@0__:" + tail);
  const std::size_t of_all = costs("__keyevent@0__:" + tail);
  EXPECT_GT(of_key, 3 * tail.size());
  EXPECT_GT(of_all, of_key + 3 * tail.size() / 2) << "each group has a list of its own";
  EXPECT_THAT(send({"SUBSCRIBE", "__keyspace@0__:foo"}), HasSubstr("subscribe"));
  EXPECT_THAT(send({"SUBSCRIBE", "__keyspace@0__:bar"}), HasSubstr("subscribe"));
  EXPECT_THAT(changed(second_, 1, "foo"), HasSubstr("__keyspace@0__:foo"));
  EXPECT_THAT(changed(node_, 0, "bar"), HasSubstr("__keyspace@0__:bar"));
}

/// Led by `leader`, of nodes 1 and 2.
node::NodeStatus status_of_group(std::uint64_t leader) {
  node::NodeStatus status;
  status.id = raft::NodeId(1);
  status.leader = raft::NodeId(leader);
  status.term = raft::Term(leader + 1);
  if (leader == 1) {
    status.role = raft::Role::leader;
    status.lease_left = std::chrono::seconds(1);
  }
  status.members = {{raft::NodeId(1), "a:1", true, true, {}},
                    {raft::NodeId(2), "b:1", true, true, {}}};
  return status;
}

class ClusterOfGroups : public SessionGroups {
 protected:
  ClusterOfGroups() {
    state_.options.client_addresses = {{raft::NodeId(1), "a:7201"}, {raft::NodeId(2), "b:7202"}};
  }
  std::string ask(const std::string& what, std::uint64_t first, std::uint64_t second) {
    EXPECT_EQ(send({"CLUSTER", what}), "");
    second_.end_status(status_of_group(second));
    EXPECT_EQ(pump(), "") << "both are asked";
    node_.end_status(status_of_group(first));
    return pump();
  }
};

TEST_F(ClusterOfGroups, TheLayoutHasTheRangeOfEachGroup) {
  const std::string slots = ask("SLOTS", 1, 2);
  EXPECT_THAT(slots, StartsWith("*2\r\n*4\r\n:0\r\n:8191\r\n*4\r\n$1\r\na\r\n"));
  EXPECT_THAT(slots, HasSubstr("*4\r\n:8192\r\n:16383\r\n*4\r\n$1\r\nb\r\n"));
  EXPECT_THAT(ask("SHARDS", 1, 2), AllOf(HasSubstr(":0\r\n:8191"), HasSubstr(":8192\r\n:16383")));
}

TEST_F(ClusterOfGroups, ANodeIsTheMasterOfWhatItLeads) {
  EXPECT_THAT(ask("NODES", 1, 2),
              AllOf(ContainsRegex("a:7201@0 myself,master - .*connected 0-8191\n"),
                    ContainsRegex("b:7202@0 master - .*connected 8192-16383\n")));
  EXPECT_THAT(ask("NODES", 1, 1),
              AllOf(ContainsRegex("a:7201@0 myself,master - .*connected 0-8191 8192-16383\n"),
                    ContainsRegex("b:7202@0 slave [0-9a-f]+ .*connected\n")));
}

TEST_F(ClusterOfGroups, TheStatusCountsWhatThisNodeLeads) {
  EXPECT_EQ(send({"LEASEHOLD", "STATUS"}), "");
  second_.end_status(status_of_group(0));
  EXPECT_EQ(pump(), "") << "both are asked";
  node_.end_status(status_of_group(1));
  EXPECT_THAT(
      pump(),
      HasSubstr(
          R"("groups":{"number":1,"count":2,"node":1,"led":1,"leased":1,"without_leader":1})"));
}

// A node that was added to a group again has another number there, and is the same node.
TEST_F(ClusterOfGroups, ALaterReplicaIsThatOfItsNode) {
  state_.options.many_groups = true;
  node::NodeStatus status = status_of_group(2);
  status.leader = status.last_leader = status.members[1].id = raft::NodeId(10'002);
  const auto ask_again = [&](const std::string& what) {
    EXPECT_EQ(send({"CLUSTER", what}), "");
    second_.end_status(status);
    node_.end_status(status_of_group(1));
    return pump();
  };
  EXPECT_EQ(ask_again("NODES"), ask("NODES", 1, 2));
  EXPECT_THAT(ask_again("SLOTS"), HasSubstr("*4\r\n:8192\r\n:16383\r\n*4\r\n$1\r\nb\r\n"));
  EXPECT_EQ(send({"LEASEHOLD", "STATUS"}), "");
  status.id = raft::NodeId(10'001);
  node_.end_status(status);
  second_.end_status(status);
  EXPECT_THAT(pump(), AllOf(HasSubstr(R"("id":10001,)"), HasSubstr(R"("count":2,"node":1,)")));
}

TEST_F(ClusterOfGroups, AConnectionAsksAllGroupsOnceAtATime) {
  const std::vector<std::string> commands = {"CLUSTER SLOTS", "CLUSTER SHARDS", "CLUSTER NODES",
                                             "CLUSTER INFO", "LEASEHOLD STATUS"};
  std::string pipeline;
  for (const std::string& command : commands) pipeline += command + "\r\n";
  EXPECT_EQ(feed(pipeline), "");
  for (std::size_t i = 0; i < commands.size(); ++i) {
    ASSERT_EQ(node_.statuses(), 1U) << commands[i];
    ASSERT_EQ(second_.statuses(), 1U) << commands[i];
    node_.end_status(status_of_group(1));
    second_.end_status(status_of_group(2));
    EXPECT_NE(pump(), "") << commands[i];
  }
  EXPECT_EQ(node_.statuses(), 0U);
}

TEST_F(ClusterOfGroups, TheStateIsThatOfAllGroups) {
  EXPECT_THAT(ask("INFO", 1, 2), AllOf(HasSubstr("cluster_state:ok"), HasSubstr("cluster_size:2")));
  EXPECT_THAT(ask("INFO", 1, 0),
              AllOf(HasSubstr("cluster_state:fail"), HasSubstr("cluster_slots_ok:8192")));
}

}  // namespace
}  // namespace leasehold::server
