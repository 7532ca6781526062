// Which survivor a new group goes on from, and what is said to be lost.
#include <leasehold/node/recovery_plan.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::node {
namespace {

raft::Uuid uuid_of(std::uint64_t id) {
  return {id, 1000 + id};
}

raft::Membership of_voters(const std::vector<std::uint64_t>& ids) {
  raft::Membership out;
  for (const std::uint64_t id : ids) {
    out.members.push_back({raft::NodeId(id), uuid_of(id), "h" + std::to_string(id) + ":1"});
    out.voters.emplace_back(id);
  }
  return out;
}

/// A survivor of a group of five, which has applied all but the last two entries.
Survivor survivor(std::uint64_t id, std::uint64_t term, std::uint64_t last) {
  Survivor out;
  out.cluster_id = 77;
  out.id = raft::NodeId(id);
  out.uuid = uuid_of(id);
  out.last = {raft::Term(term), raft::Index(last)};
  out.membership = of_voters({1, 2, 3, 4, 5});
  out.applied = raft::Index(last - 2);
  return out;
}

std::string refusal(const std::vector<Survivor>& survivors, ErrorCode code) {
  const auto plan = plan_recovery(survivors);
  if (plan.ok()) return "it is accepted";
  EXPECT_EQ(plan.error().code, code);
  return plan.error().message;
}

std::vector<std::uint64_t> lost_ids(const RecoveryPlan& plan) {
  std::vector<std::uint64_t> out;
  for (const raft::Member& member : plan.lost) out.push_back(member.id.value());
  return out;
}

TEST(RecoveryPlan, GoesOnFromTheLongestLog) {
  const auto plan = plan_recovery({survivor(2, 3, 90), survivor(4, 3, 100)}).value();
  EXPECT_EQ(plan.source, 1U);
  EXPECT_EQ(lost_ids(plan), (std::vector<std::uint64_t>{1, 3, 5}));
  EXPECT_TRUE(plan.may_lose);
  EXPECT_FALSE(plan.longer);
  EXPECT_EQ(plan.committed, raft::Index(98));
  EXPECT_EQ(plan.base, raft::Index(100 + kRecoveryGap));
}

TEST(RecoveryPlan, ALaterTermCountsMoreThanALongerLog) {
  // What is behind entry 90 at node 2 was never committed: a later leader did not have it.
  const auto plan = plan_recovery({survivor(2, 3, 500), survivor(4, 4, 90)}).value();
  EXPECT_EQ(plan.source, 1U);
}

TEST(RecoveryPlan, WhatASurvivorHasAppliedWasCommitted) {
  Survivor ahead = survivor(2, 3, 95);
  ahead.applied = raft::Index(95);
  Survivor source = survivor(4, 3, 100);
  source.applied = raft::Index(40);
  EXPECT_EQ(plan_recovery({ahead, source}).value().committed, raft::Index(95));
  // A log is cut only behind what was committed.
  ahead.applied = raft::Index(90);
  ahead.base = {raft::Term(3), raft::Index(90)};
  source.applied = raft::Index(40);
  EXPECT_EQ(plan_recovery({ahead, source}).value().committed, raft::Index(90));
}

TEST(RecoveryPlan, AMajorityIsRefused) {
  EXPECT_NE(refusal({survivor(1, 3, 9), survivor(2, 3, 9), survivor(4, 3, 9)}, ErrorCode::in_use)
                .find("nodes 1, 2, 4 are a majority: nothing is lost"),
            std::string::npos);
}

TEST(RecoveryPlan, HalfOfAnEvenGroupLosesNothing) {
  Survivor one = survivor(1, 3, 9);
  Survivor two = survivor(2, 3, 7);
  one.membership = two.membership = of_voters({1, 2, 3, 4});
  const auto plan = plan_recovery({one, two}).value();
  EXPECT_FALSE(plan.may_lose);
  // A single one of them may miss what the other has acknowledged.
  EXPECT_TRUE(plan_recovery({one}).value().may_lose);
}

TEST(RecoveryPlan, InAJointMembershipBothHalvesCount) {
  // From {1,2,3} to {3,4,5}: 3 and 4 are a majority of the second half, and not of the first.
  Survivor three = survivor(3, 3, 9);
  Survivor four = survivor(4, 3, 9);
  raft::Membership joint = of_voters({1, 2, 3, 4, 5});
  joint.voters = {raft::NodeId(3), raft::NodeId(4), raft::NodeId(5)};
  joint.outgoing_voters = {raft::NodeId(1), raft::NodeId(2), raft::NodeId(3)};
  joint.leaving = {raft::NodeId(1), raft::NodeId(2)};
  three.membership = four.membership = joint;
  const auto plan = plan_recovery({three, four}).value();
  // Nor are 1, 2 and 5: one of the second half is missing to them.
  EXPECT_FALSE(plan.may_lose);
  EXPECT_EQ(lost_ids(plan), (std::vector<std::uint64_t>{1, 2, 5}));
  Survivor one = survivor(1, 3, 9);
  one.membership = joint;
  EXPECT_NE(refusal({one, three, four}, ErrorCode::in_use).find("majority"), std::string::npos);
}

TEST(RecoveryPlan, OneWithoutAStateIsNoSource) {
  Survivor witness = survivor(1, 3, 100);
  witness.applied.reset();
  witness.no_state = "there is no store";
  const auto plan = plan_recovery({witness, survivor(2, 3, 80)}).value();
  EXPECT_EQ(plan.source, 1U);
  EXPECT_EQ(plan.longer, std::optional<std::size_t>(0));
  EXPECT_TRUE(plan.may_lose);
  // What the state has to have in front of the log is gone.
  Survivor behind = survivor(2, 3, 80);
  behind.base = {raft::Term(3), raft::Index(79)};
  EXPECT_NE(refusal({witness, behind}, ErrorCode::unavailable)
                .find("node 1: there is no store; node 2: its state does not fit to its log"),
            std::string::npos);
}

TEST(RecoveryPlan, ALongerLogWithoutAStateMayHoldWhatHalfOfTheGroupAcknowledged) {
  Survivor witness = survivor(1, 3, 100);
  Survivor two = survivor(2, 3, 80);
  witness.membership = two.membership = of_voters({1, 2, 3, 4});
  witness.applied.reset();
  EXPECT_TRUE(plan_recovery({witness, two}).value().may_lose);
}

TEST(RecoveryPlan, ReportsThatDoNotFitTogetherAreRefused) {
  EXPECT_NE(refusal({}, ErrorCode::invalid_argument).find("no survivor is given"),
            std::string::npos);
  Survivor other = survivor(4, 3, 9);
  other.cluster_id = 78;
  EXPECT_NE(refusal({survivor(2, 3, 9), other}, ErrorCode::invalid_argument).find("two clusters"),
            std::string::npos);
  EXPECT_NE(refusal({survivor(2, 3, 9), survivor(2, 3, 9)}, ErrorCode::invalid_argument)
                .find("node 2 is there twice"),
            std::string::npos);
  Survivor copy = survivor(2, 3, 9);
  copy.uuid = uuid_of(9);
  EXPECT_NE(refusal({survivor(2, 3, 9), copy}, ErrorCode::invalid_argument)
                .find("two directories are of node 2"),
            std::string::npos);
  // A directory that took the place of the member's, or one that was removed.
  EXPECT_NE(refusal({survivor(4, 3, 10), copy}, ErrorCode::invalid_argument)
                .find("the directory of node 2 is no member's"),
            std::string::npos);
  EXPECT_NE(refusal({survivor(4, 3, 10), survivor(6, 3, 9)}, ErrorCode::invalid_argument)
                .find("the directory of node 6 is no member's"),
            std::string::npos);
}

TEST(RecoveryPlan, TheWaitCoversTheLongestPromiseAndTheDrift) {
  Survivor one = survivor(1, 3, 9);
  EXPECT_GE(plan_recovery({one}).value().wait, std::chrono::milliseconds(1222));
  one.promise = std::chrono::seconds(10);
  EXPECT_GE(plan_recovery({one}).value().wait, std::chrono::milliseconds(12222));
  one.promise = std::chrono::seconds(0);
  one.membership.settings.emplace();
  one.membership.settings->timing.lease = std::chrono::seconds(20);
  one.membership.settings->timing.max_clock_drift_ppm = 0;
  EXPECT_GE(plan_recovery({one}).value().wait, std::chrono::seconds(20));
  EXPECT_LE(plan_recovery({one}).value().wait, std::chrono::seconds(21));
}

TEST(RecoveryPlan, ItsNumberNamesTheReports) {
  const auto number = [](std::vector<Survivor> survivors) {
    return plan_recovery(survivors).value().number;
  };
  EXPECT_EQ(number({survivor(2, 3, 9), survivor(4, 3, 9)}),
            number({survivor(4, 3, 9), survivor(2, 3, 9)}));
  EXPECT_NE(number({survivor(2, 3, 9), survivor(4, 3, 9)}), number({survivor(2, 3, 9)}));
  EXPECT_NE(number({survivor(2, 3, 9)}), number({survivor(2, 3, 10)}));
}

}  // namespace
}  // namespace leasehold::node
