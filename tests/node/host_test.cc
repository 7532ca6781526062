// Hosts of many groups: real sockets on loopback, real logs in a temporary folder.
#include <leasehold/node/node_host.h>
#include <leasehold/tests/node/host_fixture.h>

#include <gmock/gmock.h>

#include <filesystem>
#include <future>
#include <map>
#include <thread>

namespace leasehold::node {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ReplicaNumbers, AMessageForAnEarlierReplicaIsNotTaken) {
  TemporaryFolder folder;
  storage::SegmentLogOptions log_options;
  log_options.dir = folder.path("log");
  log_options.cluster_id = 7;
  log_options.id = raft::NodeId(1);
  const auto log = storage::SharedLog::open(log_options);
  ASSERT_TRUE(log.ok());
  const auto group_log = log.value()->open_group(raft::GroupId(1));
  ASSERT_TRUE(group_log.value()->join().ok());
  StoppableClock clock;
  RecordingObserver observer;
  ListMachine machine;
  Loop loop({}, clock, observer);
  replica::Places places([](const raft::Uuid&) { return raft::kNobody; });
  ReplicaLinks links(raft::NodeId(5), loop, places,
                     [](const net::PeerAddress&) { return std::optional<raft::Uuid>(); });
  ReplicaOptions options;
  options.group = raft::GroupId(1);
  options.id = raft::NodeId(5);
  options.data_dir = folder.path("group");
  GroupShell replica(options, loop, observer);
  GroupGround ground;
  ground.self = log.value()->identity();
  ground.log = group_log.value().get();
  ground.machine = &machine;
  ground.links = &links;
  ground.transport = &links;
  ground.places = &places;
  ASSERT_TRUE(replica.prepare(std::move(ground)).ok());

  const auto taken = [&replica](std::uint64_t from, std::uint64_t to) {
    const wire::PeerMessage message{raft::GroupId(1), raft::Message(raft::PreVoteRequest{}),
                                    raft::NodeId(from), raft::NodeId(to)};
    raft::Peer sender{raft::NodeId(2), raft::Uuid{2, 2}, {}};
    const bool addressed = replica.addressed(message, sender);
    EXPECT_EQ(sender.id, raft::NodeId(addressed ? from : 2));
    return addressed;
  };
  EXPECT_TRUE(taken(3, 5));
  EXPECT_FALSE(taken(3, 4)) << "that was here before";
  EXPECT_FALSE(taken(0, 0)) << "of a node with one group";
}

TEST_F(HostTest, ManyGroupsFormElectAndReplicate) {
  constexpr std::uint64_t kGroups = 20;
  for (std::uint64_t id = 1; id <= 3; ++id) start_with(id, kGroups);
  for (std::uint64_t group = 1; group <= kGroups; ++group) {
    const std::string command = "for " + std::to_string(group);
    const auto result = propose(part(group % 3 + 1, group), command);
    ASSERT_EQ(result.status, replica::ProposeStatus::committed) << group;
    EXPECT_EQ(result.result.view(), "done:" + command);
  }
  for (std::uint64_t group = 1; group <= kGroups; ++group) {
    for (std::uint64_t id = 1; id <= 3; ++id) {
      const std::vector<std::string> expected{"for " + std::to_string(group)};
      EXPECT_TRUE(eventually([&] { return part(id, group).machine.list() == expected; }));
    }
  }
  EXPECT_EQ(status(2).groups.size(), kGroups);
}

/// Keeps the loop's thread of a host until it ends.
class HeldLoop {
 public:
  explicit HeldLoop(Host& host) {
    host.status([held = &held_, go = go_.get_future().share()](const HostStatus&) {
      held->set_value();
      go.wait();
    });
    held_.get_future().wait();
  }
  ~HeldLoop() { go_.set_value(); }

 private:
  std::promise<void> held_;
  std::promise<void> go_;
};

// The loop takes up both in one turn.
TEST_F(HostTest, CallsComeBehindTheOpeningOfTheirGroup) {
  start(1);
  GroupOptions alone = group_options(1, 1);
  alone.members.resize(1);
  std::promise<replica::ProposeResult> proposed;
  std::promise<NodeStatus> told;
  {
    const HeldLoop held(host(1));
    open(1, alone);
    Group& group = *part(1, 1).group;
    group.propose(Bytes("x"), kLong, [&proposed](replica::ProposeResult result) {
      proposed.set_value(std::move(result));
    });
    group.status([&told](NodeStatus status) { told.set_value(std::move(status)); });
  }
  EXPECT_EQ(proposed.get_future().get().status, replica::ProposeStatus::committed);
  EXPECT_EQ(told.get_future().get().id, raft::NodeId(11));
}

TEST_F(HostTest, AGroupThatHasJustBeenOpenedIsClosed) {
  start(1);
  std::thread closes;
  {
    const HeldLoop held(host(1));
    for (const std::uint64_t group : {1U, 2U}) open(1, group_options(group, 1));
    closes = std::thread([this] { EXPECT_TRUE(host(1).close_group(raft::GroupId(1)).ok()); });
  }
  closes.join();
  EXPECT_THAT(status(1).groups, ElementsAre(raft::GroupId(2)));
}

TEST_F(HostTest, AHostStopsWithGroupsThatHaveJustBeenOpened) {
  start(1);
  start_with(2, 1);
  std::size_t answers = 0;  // of the loop's thread
  for (std::uint64_t group = 1; group <= 20; ++group) {
    open(1, group_options(group, 1));
    part(1, group).group->propose(Bytes("x"), kLong, [&answers](const auto&) { ++answers; });
  }
  hosts_[0].reset();
  EXPECT_EQ(answers, 20U);
}

// Groups at rest hold their leases by the beats of three processes.
TEST_F(HostTest, GroupsAtRestSendNothingAndServeLeaseReads) {
  constexpr std::uint64_t kGroups = 30;
  for (std::uint64_t id = 1; id <= 3; ++id) start_with(id, kGroups);
  std::map<std::uint64_t, std::uint64_t> leaders;
  for (std::uint64_t group = 1; group <= kGroups; ++group) {
    ASSERT_EQ(propose(part(1, group), "x").status, replica::ProposeStatus::committed);
    leaders[group] = leader_of(group);
  }
  const auto all_rest = [this] {
    std::uint64_t rest = 0;
    for (std::uint64_t id = 1; id <= 3; ++id) rest += status(id).at_rest;
    return rest == kGroups;
  };
  ASSERT_TRUE(eventually(all_rest));
  const std::uint64_t before = status(1).messages_sent;
  const auto begin = clock_.now().promise;
  // Three times D.
  while (clock_.now().promise - begin < 1200ms) {
    for (std::uint64_t group = 1; group <= kGroups; ++group) {
      const auto read = part(leaders[group], group).group->read_point(raft::ReadMode::lease, kLong);
      ASSERT_TRUE(read.index.has_value()) << group;
      ASSERT_EQ(read.basis, raft::ReadBasis::lease) << group;
    }
  }
  // A beat to each of two hosts, and the answers to theirs, in each heartbeat, and some more for a
  // machine that was slow: but for 30 groups it would be a thousand.
  EXPECT_LT(status(1).messages_sent - before, 250U);
  EXPECT_TRUE(eventually(all_rest));
}

TEST_F(HostTest, AHostThatStopsIsReplacedAndComesBack) {
  constexpr std::uint64_t kGroups = 10;
  for (std::uint64_t id = 1; id <= 3; ++id) start_with(id, kGroups);
  for (std::uint64_t group = 1; group <= kGroups; ++group) {
    ASSERT_EQ(propose(part(1, group), "a").status, replica::ProposeStatus::committed);
  }
  stop(3);
  for (std::uint64_t group = 1; group <= kGroups; ++group) {
    ASSERT_EQ(propose(part(1, group), "b").status, replica::ProposeStatus::committed) << group;
  }
  start(3);
  EXPECT_EQ(host(3).stored_groups().size(), kGroups);
  GroupOptions other = group_options(kGroups, 3);
  other.replica = raft::NodeId(9);
  other.members.clear();
  EXPECT_THAT(try_open(3, other).error().message, HasSubstr("that of replica 13, not of 9"));
  EXPECT_THAT(host(3).remove_group(raft::GroupId(kGroups), raft::NodeId(9)).error().message,
              HasSubstr("is 13, not replica 9"));
  for (std::uint64_t group = 1; group <= kGroups; ++group) open(3, group_options(group, 3));
  EXPECT_THAT(host(3).stored_groups(), IsEmpty());
  const std::vector<std::string> expected{"a", "b"};
  for (std::uint64_t group = 1; group <= kGroups; ++group) {
    EXPECT_TRUE(eventually([&] { return part(3, group).machine.list() == expected; })) << group;
  }
}

// Their leases would last for longer than the test.
TEST_F(HostTest, AHostThatStopsReleasesItsGroups) {
  constexpr std::uint64_t kGroups = 10;
  lease_ = 10 * kPatience;
  for (std::uint64_t id = 1; id <= 3; ++id) start_with(id, kGroups);
  std::uint64_t leader = 0;
  for (std::uint64_t group = 1; group <= kGroups; ++group) leader = leader_of(group);
  stop(leader);
  for (std::uint64_t group = 1; group <= kGroups; ++group) EXPECT_NE(leader_of(group), leader);
}

TEST_F(HostTest, AReplicaMovesAndAnotherOneComesBack) {
  for (std::uint64_t id = 1; id <= 3; ++id) start_with(id, 2);
  start(4);
  ASSERT_EQ(propose(part(1, 1), "a").status, replica::ProposeStatus::committed);
  GroupOptions joins = group_options(1, 4);
  joins.replica = raft::NodeId(14);
  joins.members.clear();
  open(4, joins);
  using What = MemberEdit::What;
  change(1, {What::add, raft::NodeId(14), all_[3].address});
  change(1, {What::promote, raft::NodeId(14)});
  change(1, {What::remove, raft::NodeId(13)});
  EXPECT_TRUE(
      eventually([&] { return part(4, 1).machine.list() == std::vector<std::string>{"a"}; }));
  EXPECT_TRUE(eventually([&] { return !status(part(3, 1)).problem.empty(); }));
  EXPECT_THAT(status(part(3, 1)).problem, HasSubstr("removed"));
  EXPECT_THAT(status(part(3, 2)).problem, IsEmpty()) << "the other group goes on";
  EXPECT_THAT(host(3).remove_group(raft::GroupId(1), raft::NodeId(14)).error().message,
              HasSubstr("is 13, not replica 14"));
  ASSERT_TRUE(host(3).remove_group(raft::GroupId(1), raft::NodeId(13)).ok());
  EXPECT_THAT(status(3).groups, ElementsAre(raft::GroupId(2)));
  // Who comes to it late meets one that is stopped.
  EXPECT_EQ(propose(part(3, 1), "late").status, replica::ProposeStatus::dropped);
  EXPECT_EQ(status(part(3, 1)).id, raft::NodeId(13));
  EXPECT_THAT(status(part(3, 1)).members, IsEmpty()) << "nobody takes it for a member";
  EXPECT_FALSE(part(3, 1).group->lease_view().look(part(3, 1).group->clock()).readable_index());
  // The same host again, as another replica.
  joins.replica = raft::NodeId(13);
  EXPECT_THAT(try_open(3, joins).error().message, HasSubstr("needs a number above 13"));
  joins.replica = raft::NodeId(15);
  // As if the process had ended before the files went.
  const std::string leftover = folder_.path("host3/groups/1/snapshot");
  std::filesystem::create_directories(leftover);
  ASSERT_TRUE(host(3).remove_group(raft::GroupId(1), raft::NodeId(13)).ok());
  EXPECT_FALSE(std::filesystem::exists(leftover));
  open(3, joins);
  std::filesystem::create_directories(leftover);
  ASSERT_TRUE(host(3).remove_group(raft::GroupId(1), raft::NodeId(13)).ok());
  EXPECT_TRUE(std::filesystem::exists(leftover)) << "the next replica may have files there";
  change(1, {What::add, raft::NodeId(15), all_[2].address});
  change(1, {What::promote, raft::NodeId(15)});
  // The machine may stall, and the leader change meanwhile.
  EXPECT_TRUE(eventually([&] {
    const auto status = propose(part(3, 1), "b").status;
    return status != replica::ProposeStatus::dropped;
  }));
  EXPECT_EQ(part(3, 1).machine.list(), (std::vector<std::string>{"a", "b"}));
}

// Its log names neither the leader's number nor its host.
TEST_F(HostTest, AReplicaThatMissedAChangeAnswersTheNextLeader) {
  for (std::uint64_t id = 1; id <= 3; ++id) start_with(id, 1);
  start(4);
  ASSERT_EQ(propose(part(1, 1), "a").status, replica::ProposeStatus::committed);
  stop(3);
  GroupOptions joins = group_options(1, 4);
  joins.replica = raft::NodeId(14);
  joins.members.clear();
  open(4, joins);
  change(1, {MemberEdit::What::add, raft::NodeId(14), all_[3].address});
  change(1, {MemberEdit::What::promote, raft::NodeId(14)});
  ASSERT_TRUE(eventually([&] {
    part(leader_of(1), 1).group->transfer_leadership(raft::NodeId(14), kLong, [](const auto&) {});
    return leader_of(1) == 4;
  }));
  start(3);
  open(3, group_options(1, 3));
  EXPECT_TRUE(
      eventually([&] { return part(3, 1).machine.list() == std::vector<std::string>{"a"}; }));
}

TEST_F(HostTest, AFailedOpenLeavesTheGroup) {
  start(1);
  GroupOptions joins = group_options(1, 1);
  joins.members.clear();
  class Ahead : public ListMachine {
    raft::Index durable_index() const override { return raft::Index(7); }
  };
  Ahead of_another_group;
  EXPECT_THAT(host(1).open_group(joins, of_another_group, observer_).error().message,
              HasSubstr("do not belong together"));
  EXPECT_THAT(host(1).stored_groups(), ElementsAre(raft::GroupId(1)));
  open(1, joins);
}

TEST_F(HostTest, AClosedGroupAnswersItsCallers) {
  for (std::uint64_t id = 1; id <= 3; ++id) start_with(id, 1);
  ASSERT_EQ(propose(part(2, 1), "a").status, replica::ProposeStatus::committed);
  const std::uint64_t leader = leader_of(1);
  const std::uint64_t other = leader == 1 ? 2 : 1;
  stop(other);
  stop(6 - leader - other);
  std::promise<replica::ProposeStatus> ended;
  part(leader, 1).group->propose(Bytes("b"), kLong, [&ended](const replica::ProposeResult& result) {
    ended.set_value(result.status);
  });
  ASSERT_TRUE(host(leader).close_group(raft::GroupId(1)).ok());
  EXPECT_NE(ended.get_future().get(), replica::ProposeStatus::committed);
  EXPECT_TRUE(host(leader).close_group(raft::GroupId(1)).ok()) << "again";
}

/// Its apply() takes as long as the test likes.
class SlowMachine final : public ListMachine {
 public:
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands,
                           raft::Index last) override {
    if (commands.empty()) return {};
    begun_.set_value();
    ends_.get_future().wait();
    return ListMachine::apply(commands, last);
  }
  void wait_begun() { begun_.get_future().wait(); }
  void end() { ends_.set_value(); }

 private:
  std::promise<void> begun_;
  std::promise<void> ends_;
};

TEST_F(HostTest, AStateMachineThatIsAtWorkHoldsUpItsOwnGroupOnly) {
  start(1);
  const auto alone = [this](std::uint64_t group) {
    GroupOptions options = group_options(group, 1);
    options.members.resize(1);
    return options;
  };
  SlowMachine machine;
  RecordingObserver observer;
  const auto slow = host(1).open_group(alone(1), machine, observer);
  ASSERT_TRUE(slow.ok());
  ASSERT_TRUE(
      eventually([&] { return slow.value()->lease_view().readable_index(clock_).has_value(); }));
  slow.value()->propose(Bytes("a"), kLong, [](const replica::ProposeResult&) {});
  machine.wait_begun();
  std::thread closes([this] { EXPECT_TRUE(host(1).close_group(raft::GroupId(1)).ok()); });
  std::thread removes(
      [this] { EXPECT_TRUE(host(1).remove_group(raft::GroupId(1), raft::NodeId(11)).ok()); });
  ASSERT_TRUE(eventually([this] { return status(1).groups.empty(); })) << "it is being closed";
  open(1, alone(2));
  EXPECT_EQ(propose(part(1, 2), "b").status, replica::ProposeStatus::committed);
  EXPECT_TRUE(host(1).remove_group(raft::GroupId(2), raft::NodeId(11)).ok());
  machine.end();
  closes.join();
  removes.join();
  EXPECT_THAT(host(1).stored_groups(), IsEmpty());
}

TEST_F(HostTest, ACompletionMayAddHosts) {
  for (std::uint64_t id = 1; id <= 3; ++id) start_with(id, 1);
  std::promise<bool> added;
  host(1).status([this, &added](const HostStatus&) {
    added.set_value(host(1).set_hosts({{raft::NodeId(4), all_[3].address}}).ok());
  });
  EXPECT_TRUE(added.get_future().get());
  EXPECT_THAT(status(1).groups, ElementsAre(raft::GroupId(1)));
}

// Its connection may look alive for a while, and its directory would be the new member's.
TEST_F(HostTest, AMemberIsOfTheHostThatWasNamedLastAtItsAddress) {
  for (std::uint64_t id = 1; id <= 3; ++id) start(id);
  for (std::uint64_t id = 1; id <= 2; ++id) {
    GroupOptions of_two = group_options(1, id);
    of_two.members.resize(2);
    open(id, of_two);
  }
  ASSERT_EQ(propose(part(1, 1), "x").status, replica::ProposeStatus::committed);
  ASSERT_TRUE(eventually(
      [this] { return status(1).connected.size() == 2U && status(2).connected.size() == 2U; }));
  const std::string address = all_[2].address;
  const auto name = [&](std::uint64_t host_there) {
    for (std::uint64_t id = 1; id <= 2; ++id) {
      ASSERT_TRUE(host(id).set_hosts({{raft::NodeId(host_there), address}}).ok());
    }
  };
  const auto add = [&] {
    const MembersResult first = part(1, 1).group->change_members_and_wait(
        {{MemberEdit::What::add, raft::NodeId(13), address}}, kLong);
    const bool elsewhere = first.status == replica::GroupCallStatus::refused &&
                           first.refused.obstacle == raft::ChangeObstacle::not_leader;
    if (!elsewhere) return first;
    return part(2, 1).group->change_members_and_wait(
        {{MemberEdit::What::add, raft::NodeId(13), address}}, kLong);
  };
  name(4);
  const MembersResult unmet = add();
  ASSERT_EQ(unmet.status, replica::GroupCallStatus::refused);
  EXPECT_EQ(unmet.refused.obstacle, raft::ChangeObstacle::no_answer) << unmet.reason;
  open(1, group_options(2, 1));  // host 3 is one of its members still
  name(3);
  const MembersResult met = add();
  EXPECT_EQ(met.status, replica::GroupCallStatus::done) << met.reason;
}

TEST_F(HostTest, WhatIsWrongIsSaid) {
  HostOptions lonely = options(1);
  lonely.hosts.clear();
  EXPECT_THAT(Host::open(lonely, clock_, observer_).error().message, HasSubstr("hosts"));
  start(1);
  EXPECT_THAT(Host::open(options(1), clock_, observer_).error().message, HasSubstr("host1/log"));
  GroupOptions elsewhere = group_options(1, 1);
  elsewhere.replica = raft::NodeId(2);
  EXPECT_THAT(try_open(1, elsewhere).error().message, HasSubstr("not among them"));
  GroupOptions twice = group_options(1, 1);
  twice.members.push_back(twice.members.front());
  EXPECT_THAT(try_open(1, twice).error().message, HasSubstr("twice"));
  GroupOptions unknown = group_options(1, 1);
  unknown.members.push_back({raft::NodeId(9), raft::NodeId(9)});
  GroupOptions careless = group_options(1, 1);
  careless.timing.max_clock_drift_ppm = 1;
  GroupOptions endless = group_options(1, 1);
  endless.limits.uncommitted_bytes_max = std::size_t{1} << 30U;
  EXPECT_THAT(try_open(1, endless).error().message, HasSubstr("limits.uncommitted_bytes_max"));
  EXPECT_THAT(try_open(1, careless).error().message, HasSubstr("max_clock_drift_ppm"));
  EXPECT_THAT(try_open(1, unknown).error().message, HasSubstr("host 9 is not among the hosts"));
  open(1, group_options(1, 1));
  Part again;
  EXPECT_THAT(
      host(1).open_group(group_options(1, 1), again.machine, again.observer).error().message,
      HasSubstr("open in this process before"));
}

}  // namespace
}  // namespace leasehold::node
