// Which groups of hosts that are left go on, from where, and what is said to be lost of each.
#include <leasehold/node/host_recovery.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace leasehold::node {
namespace {

raft::Uuid directory_of(std::uint64_t host) {
  return {host, 2000 + host};
}

/// A group with a voter at each of these hosts, under the host's number.
raft::Membership placed_at(const std::vector<std::uint64_t>& hosts) {
  raft::Membership out;
  for (const std::uint64_t id : hosts) {
    out.members.push_back({raft::NodeId(id), directory_of(id), "h" + std::to_string(id) + ":1"});
    out.voters.emplace_back(id);
  }
  return out;
}

GroupSurvivor replica(std::uint64_t group, std::uint64_t host, std::uint64_t last,
                      const std::vector<std::uint64_t>& hosts) {
  Survivor out;
  out.cluster_id = 77;
  out.id = raft::NodeId(host);
  out.uuid = directory_of(host);
  out.last = {raft::Term(3), raft::Index(last)};
  out.membership = placed_at(hosts);
  out.applied = raft::Index(last);
  return {raft::GroupId(group), out};
}

HostSurvivor host_of(std::uint64_t id, std::vector<GroupSurvivor> groups) {
  return {77, raft::NodeId(id), directory_of(id), std::move(groups)};
}

std::vector<raft::GroupId> groups_to(std::uint64_t last) {
  std::vector<raft::GroupId> out;
  for (std::uint64_t group = 1; group <= last; ++group) out.emplace_back(group);
  return out;
}

/// Hosts 1 and 2 of five. Group 1 is everywhere, group 2 at 1, 2 and 3, group 3 at 1, 4 and 5, and
/// group 4 at 3, 4 and 5.
std::vector<HostSurvivor> two_of_five() {
  const std::vector<std::uint64_t> all{1, 2, 3, 4, 5};
  return {
      host_of(
          1, {replica(1, 1, 100, all), replica(2, 1, 50, {1, 2, 3}), replica(3, 1, 70, {1, 4, 5})}),
      host_of(2, {replica(1, 2, 110, all), replica(2, 2, 40, {1, 2, 3})}),
  };
}

TEST(HostRecovery, SaysOfEachGroupWhatIsLost) {
  const auto hosts = two_of_five();
  const auto plan = plan_host_recovery(hosts, {groups_to(4), {}}).value();
  ASSERT_EQ(plan.groups.size(), 4U);
  EXPECT_EQ(plan.groups[0].fate, GroupFate::lost_majority);
  EXPECT_EQ(plan.groups[0].source(), 1U) << "host 2 has the longest log";
  EXPECT_TRUE(plan.groups[0].plan.may_lose);
  EXPECT_EQ(plan.groups[0].plan.base, raft::Index(110 + kRecoveryGap));
  EXPECT_EQ(plan.groups[1].fate, GroupFate::kept_majority);
  EXPECT_EQ(plan.groups[1].source(), 0U);
  EXPECT_FALSE(plan.groups[1].plan.may_lose);
  EXPECT_EQ(plan.groups[2].fate, GroupFate::lost_majority);
  EXPECT_EQ(plan.groups[2].hosts, std::vector<std::size_t>{0});
  EXPECT_EQ(survivors_of(hosts, plan.groups[2]), std::vector{hosts[0].groups[2].survivor});
  EXPECT_EQ(plan.groups[3].fate, GroupFate::no_survivor);
  EXPECT_FALSE(plan.groups[3].goes_on());
  EXPECT_GT(plan.wait.count(), 0);
  EXPECT_NE(plan.number, 0U);
}

TEST(HostRecovery, GoesOnWithTheGroupsThatWereAskedFor) {
  const auto plan = plan_host_recovery(two_of_five(), {groups_to(4), {raft::GroupId(3)}}).value();
  EXPECT_EQ(plan.groups[0].fate, GroupFate::left_out);
  EXPECT_EQ(plan.groups[1].fate, GroupFate::left_out);
  EXPECT_EQ(plan.groups[2].fate, GroupFate::lost_majority);
  EXPECT_NE(plan.number, plan_host_recovery(two_of_five(), {groups_to(4), {}}).value().number);
}

TEST(HostRecovery, IsOnlyForALostMajority) {
  const std::vector<std::uint64_t> three{1, 2, 3};
  const std::vector<HostSurvivor> hosts{
      host_of(1, {replica(1, 1, 9, three), replica(2, 1, 9, three)}),
      host_of(2, {replica(1, 2, 9, three), replica(2, 2, 9, three)})};
  const auto plan = plan_host_recovery(hosts, {groups_to(2), {}});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, ErrorCode::in_use);
  EXPECT_NE(plan.error().message.find("nothing is lost"), std::string::npos);
  // A third group that none of them has is lost all the same.
  EXPECT_EQ(plan_host_recovery(hosts, {groups_to(3), {}}).value().groups[2].fate,
            GroupFate::no_survivor);
}

TEST(HostRecovery, AGroupWithoutAStateIsLostAndTheOthersGoOn) {
  auto hosts = two_of_five();
  hosts[0].groups[2].survivor.applied.reset();
  hosts[0].groups[2].survivor.no_state = "it is not served";
  const auto plan = plan_host_recovery(hosts, {groups_to(4), {}}).value();
  EXPECT_EQ(plan.groups[2].fate, GroupFate::no_state);
  EXPECT_NE(plan.groups[2].why.find("it is not served"), std::string::npos);
  EXPECT_EQ(plan.groups[0].fate, GroupFate::lost_majority);
}

TEST(HostRecovery, AReplicaThatWasRemovedDoesNotCount) {
  auto hosts = two_of_five();
  // Host 1 was away when group 2 left it for host 4: what it has is older.
  hosts[1].groups[1] = replica(2, 2, 60, {2, 3, 4});
  const auto plan = plan_host_recovery(hosts, {groups_to(4), {}}).value();
  EXPECT_EQ(plan.groups[1].hosts, std::vector<std::size_t>{1});
  EXPECT_EQ(plan.groups[1].fate, GroupFate::lost_majority);
}

TEST(HostRecovery, WhatDoesNotFitTogetherIsRefused) {
  const auto refused = [](const std::vector<HostSurvivor>& hosts, const RecoveryScope& scope) {
    const auto plan = plan_host_recovery(hosts, scope);
    return plan.ok() ? std::string("it is accepted") : plan.error().message;
  };
  const RecoveryScope scope{groups_to(4), {}};
  EXPECT_NE(refused({}, scope).find("no survivor"), std::string::npos);
  auto hosts = two_of_five();
  hosts.push_back(hosts[0]);
  EXPECT_NE(refused(hosts, scope).find("is there twice"), std::string::npos);
  hosts[2].uuid.low += 1;
  EXPECT_NE(refused(hosts, scope).find("two directories"), std::string::npos);
  hosts[2].cluster_id = 78;
  EXPECT_NE(refused(hosts, scope).find("two clusters"), std::string::npos);
  EXPECT_NE(refused(two_of_five(), {groups_to(2), {}}).find("has group 3"), std::string::npos);
  EXPECT_NE(refused(two_of_five(), {groups_to(4), {raft::GroupId(5)}}).find("no group 5"),
            std::string::npos);
}

}  // namespace
}  // namespace leasehold::node
