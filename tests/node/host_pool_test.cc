// The planner of placement/ over real hosts: a host is emptied while clients write.
#include <leasehold/placement/planner.h>
#include <leasehold/tests/node/host_fixture.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <set>

namespace leasehold::node {
namespace {

using ::testing::IsEmpty;

/// The group's members, its leader and its learners are what the leader says; what else the planner
/// has to know is remembered here.
class HostPoolTest : public HostTest {
 protected:
  static constexpr std::uint64_t kGroups = 20;

  void SetUp() override {
    HostTest::SetUp();
    for (std::uint64_t id = 1; id <= 3; ++id) start_with(id, kGroups);
    start(4);
    for (std::uint64_t id = 1; id <= kHosts; ++id) {
      placement::Host host;
      host.id = raft::NodeId(id);
      pool_.hosts.push_back(host);
    }
    for (std::uint64_t id = 1; id <= kGroups; ++id) {
      placement::Group group;
      group.id = raft::GroupId(id);
      group.last_replica = raft::NodeId(13);
      pool_.groups.push_back(group);
    }
  }

  raft::NodeId host_at(const std::string& address) const {
    for (const Peer& peer : all_) {
      if (peer.address == address) return peer.id;
    }
    ADD_FAILURE() << address << " is of no host";
    return raft::kNobody;
  }

  /// As the leader sees the group now.
  void look_at(placement::Group& group) {
    const std::uint64_t id = group.id.value();
    const NodeStatus seen = HostTest::status(part(leader_of(id), id));
    group.leader = raft::kNobody;
    group.changing = seen.membership_joint || !seen.membership_committed;
    group.voters.clear();
    group.learners.clear();
    for (const MemberStatus& member : seen.members) {
      const raft::NodeId host = host_at(member.address);
      if (member.voter) {
        group.voters.push_back({member.id, host});
        if (member.id == seen.leader) group.leader = member.id;
      } else {
        const bool caught_up = member.match + 100 >= seen.commit;
        group.learners.push_back({member.id, host, caught_up});
      }
    }
  }

  placement::Plan plan() {
    for (placement::Group& group : pool_.groups) look_at(group);
    const auto planned = placement::next_steps(pool_, {});
    EXPECT_TRUE(planned.ok()) << planned.error().message;
    return planned.ok() ? planned.value() : placement::Plan{};
  }
  bool learners_wait() const {
    return std::any_of(pool_.groups.begin(), pool_.groups.end(), [](const placement::Group& group) {
      return group.changing || !group.learners.empty();
    });
  }

  void carry_out(const placement::Step& step) {
    using What = placement::Step::What;
    const std::uint64_t group = step.group.value();
    const std::uint64_t at = step.host.value();
    switch (step.what) {
      case What::add_learner: {
        placement::Group& of = pool_.groups[group - 1];
        of.last_replica = step.replica;
        of.leaving = step.instead_of;
        GroupOptions joins = group_options(group, at);
        joins.replica = step.replica;
        joins.members.clear();
        open(at, joins);
        return change(group, {MemberEdit::What::add, step.replica, all_[at - 1].address});
      }
      case What::promote: return change(group, {MemberEdit::What::promote, step.replica});
      case What::remove:
        change(group, {MemberEdit::What::remove, step.replica});
        EXPECT_TRUE(host(at).remove_group(step.group, step.replica).ok());
        parts_[at - 1].erase(group);
        return;
      case What::transfer:
        std::promise<void> ended;
        part(leader_of(group), group)
            .group->transfer_leadership(step.replica, kLong,
                                        [&ended](const auto&) { ended.set_value(); });
        return ended.get_future().wait();
    }
  }

  /// Until the planner has no step, and no learner is on its way.
  void run_plans() {
    constexpr int kTurnsMax = 500;
    for (int turn = 0; turn < kTurnsMax; ++turn) {
      placement::Plan next;
      ASSERT_TRUE(eventually([this, &next] {
        next = plan();
        // A group may have no leader for a moment.
        return next.reasons.empty() && (!next.steps.empty() || !learners_wait());
      }));
      if (next.steps.empty()) return;
      for (const placement::Step& step : next.steps) {
        SCOPED_TRACE(placement::describe(step));
        carry_out(step);
      }
    }
    FAIL() << "the plans do not end";
  }

  placement::Pool pool_;
};

/// Writes to all groups in turn at one host, and remembers what was committed.
class Writer {
 public:
  explicit Writer(std::vector<Group*> groups)
      : groups_(std::move(groups)), committed_(groups_.size()), thread_([this] { write(); }) {}

  /// What was committed, by group.
  std::vector<std::vector<std::string>> end() {
    ends_ = true;
    thread_.join();
    return committed_;
  }

 private:
  void write() {
    for (std::uint64_t turn = 0; !ends_; ++turn) {
      const std::size_t at = turn % groups_.size();
      const std::string command = std::to_string(turn);
      const auto result = groups_[at]->propose_and_wait(Bytes(command), kLong);
      if (result.status == replica::ProposeStatus::committed) committed_[at].push_back(command);
    }
  }

  std::vector<Group*> groups_;
  std::vector<std::vector<std::string>> committed_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

TEST_F(HostPoolTest, AHostIsEmptiedWhileClientsWrite) {
  std::vector<Group*> at_second_host;
  for (std::uint64_t group = 1; group <= kGroups; ++group) {
    leader_of(group);
    at_second_host.push_back(part(2, group).group);
  }
  Writer writer(at_second_host);
  pool_.hosts[0].draining = true;
  run_plans();
  const auto committed = writer.end();
  ASSERT_FALSE(HasFailure());

  EXPECT_THAT(HostTest::status(1).groups, IsEmpty());
  EXPECT_THAT(host(1).stored_groups(), IsEmpty());
  std::uint64_t led = 0;
  for (std::uint64_t id = 2; id <= kHosts; ++id) {
    EXPECT_EQ(HostTest::status(id).groups.size(), kGroups);
    const std::uint64_t leads = HostTest::status(id).led;
    EXPECT_NEAR(static_cast<double>(leads), kGroups / 3.0, 2) << "host " << id;
    led += leads;
  }
  EXPECT_EQ(led, kGroups);
  for (std::uint64_t group = 1; group <= kGroups; ++group) {
    EXPECT_FALSE(committed[group - 1].empty());
    EXPECT_TRUE(eventually([&] {
      const auto list = part(4, group).machine.list();
      const std::set<std::string> has(list.begin(), list.end());
      return std::all_of(committed[group - 1].begin(), committed[group - 1].end(),
                         [&has](const std::string& command) { return has.count(command) > 0; });
    })) << group;
  }
}

// A host that comes back empty gets its share, as replicas with new numbers.
TEST_F(HostPoolTest, AnEmptiedHostGetsItsShareAgain) {
  pool_.hosts[0].draining = true;
  run_plans();
  pool_.hosts[0].draining = false;
  run_plans();
  for (std::uint64_t id = 1; id <= kHosts; ++id) {
    EXPECT_EQ(HostTest::status(id).groups.size(), kGroups * 3 / kHosts) << "host " << id;
  }
  for (const placement::Group& group : pool_.groups) {
    for (const placement::Replica& voter : group.voters) {
      EXPECT_TRUE(voter.host != raft::NodeId(1) || voter.id > raft::NodeId(14));
    }
  }
}

}  // namespace
}  // namespace leasehold::node
