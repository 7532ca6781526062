#include <leasehold/node/member_edit.h>

#include <gtest/gtest.h>

#include <algorithm>

namespace leasehold::node {
namespace {

using raft::ChangeObstacle;
using What = MemberEdit::What;

raft::Membership three_voters_and_a_learner() {
  raft::Membership membership;
  for (std::uint64_t id = 1; id <= 4; ++id) {
    membership.members.push_back(
        {raft::NodeId(id), raft::Uuid{id, id}, "host" + std::to_string(id) + ":1"});
    if (id < 4) membership.voters.push_back(raft::NodeId(id));
  }
  return membership;
}

MemberEdit edit(What what, std::uint64_t id, std::string address = "", std::uint64_t uuid = 0) {
  return {what, raft::NodeId(id), std::move(address), raft::Uuid{uuid, uuid}};
}

raft::WantedMembers wanted(const MemberEdits& edits) {
  auto answer = apply_edits(three_voters_and_a_learner(), edits);
  if (const auto* refused = std::get_if<raft::ChangeRefused>(&answer)) {
    ADD_FAILURE() << raft::text_of(*refused);
    return {};
  }
  return std::get<raft::WantedMembers>(answer);
}

ChangeObstacle obstacle(const MemberEdits& edits) {
  const auto answer = apply_edits(three_voters_and_a_learner(), edits);
  const auto* refused = std::get_if<raft::ChangeRefused>(&answer);
  return refused != nullptr ? refused->obstacle : ChangeObstacle::already_so;
}

/// "1v 2v 4l".
std::string seats(const raft::WantedMembers& members) {
  std::string text;
  for (const raft::WantedMember& member : members) {
    if (!text.empty()) text += ' ';
    text += std::to_string(member.id.value());
    text += member.suffrage == raft::Suffrage::voter ? 'v' : 'l';
  }
  return text;
}

TEST(MemberEdits, AWitnessIsAddedAsOneAndStaysOne) {
  MemberEdit witness = edit(What::add, 5, "host5:1", 5);
  witness.witness = true;
  EXPECT_TRUE(wanted({witness, edit(What::promote, 5)})[4].witness);
  EXPECT_FALSE(wanted({witness})[0].witness);
  // Added again as something else.
  EXPECT_EQ(obstacle({witness, edit(What::add, 5, "host5:1", 5)}), ChangeObstacle::other_kind);
}

TEST(MemberEdits, AreStepsFromWhatTheGroupIs) {
  EXPECT_EQ(seats(wanted({})), "1v 2v 3v 4l");
  EXPECT_EQ(seats(wanted({edit(What::add, 5, "host5:1", 5)})), "1v 2v 3v 4l 5l");
  EXPECT_EQ(seats(wanted({edit(What::promote, 4)})), "1v 2v 3v 4v");
  EXPECT_EQ(seats(wanted({edit(What::demote, 2)})), "1v 2l 3v 4l");
  EXPECT_EQ(seats(wanted({edit(What::promote, 4), edit(What::remove, 1)})), "2v 3v 4v");
  EXPECT_EQ(wanted({edit(What::move, 3, "elsewhere:2")})[2].address, "elsewhere:2");
}

// A call whose answer was lost is made again.
TEST(MemberEdits, WhatIsSoAlreadyStays) {
  EXPECT_EQ(seats(wanted({edit(What::add, 4, "host4:1", 4)})), "1v 2v 3v 4l");
  EXPECT_EQ(seats(wanted({edit(What::add, 3, "host3:1", 3)})), "1v 2v 3v 4l");
  EXPECT_EQ(seats(wanted({edit(What::promote, 1)})), "1v 2v 3v 4l");
}

TEST(MemberEdits, WhatDoesNotFitIsRefused) {
  EXPECT_EQ(obstacle({edit(What::remove, 9)}), ChangeObstacle::not_a_member);
  EXPECT_EQ(obstacle({edit(What::promote, 9)}), ChangeObstacle::not_a_member);
  EXPECT_EQ(obstacle({edit(What::add, 4, "host4:1", 44)}), ChangeObstacle::other_uuid);
  EXPECT_EQ(obstacle({edit(What::add, 4, "elsewhere:1", 4)}), ChangeObstacle::already_member);
}

TEST(MemberEdits, ThatContradictEachOtherAreRefused) {
  const MemberEdits contradictions[] = {
      {edit(What::promote, 2), edit(What::remove, 2)},  // MEMBER REPLACE 2 2
      {edit(What::remove, 4), edit(What::promote, 4)},
      {edit(What::remove, 2), edit(What::add, 2, "host2:1", 2)},
      {edit(What::promote, 4), edit(What::demote, 4)},
      {edit(What::demote, 2), edit(What::remove, 2)},
      {edit(What::move, 2, "here:1"), edit(What::move, 2, "there:1")},
      {edit(What::move, 2, "here:1"), edit(What::remove, 2)},
      {edit(What::add, 5, "here:1", 5), edit(What::add, 5, "there:1", 5)},
      {edit(What::add, 5, "here:1", 5), edit(What::move, 5, "there:1")},
      {edit(What::promote, 4), edit(What::remove, 1), edit(What::demote, 4)}};
  for (const MemberEdits& edits : contradictions) {
    EXPECT_EQ(obstacle(edits), ChangeObstacle::contradiction);
    EXPECT_EQ(contradiction(edits), edits.back().id);
  }
  const MembersResult told =
      members_refused({ChangeObstacle::contradiction, raft::NodeId(2)}, raft::NodeId(1));
  EXPECT_FALSE(told.retryable);
  EXPECT_NE(told.reason.find("node 2 is named more than once"), std::string::npos);
  EXPECT_NE(told.reason.find("remove it first and then add it"), std::string::npos);
}

TEST(MemberEdits, TheSameTwiceIsTheSameOnce) {
  EXPECT_EQ(seats(wanted({edit(What::remove, 2), edit(What::remove, 2)})), "1v 3v 4l");
  EXPECT_EQ(seats(wanted({edit(What::promote, 4), edit(What::promote, 4)})), "1v 2v 3v 4v");
  EXPECT_EQ(seats(wanted({edit(What::add, 5, "here:1", 5), edit(What::promote, 5),
                          edit(What::add, 5, "here:1", 5)})),
            "1v 2v 3v 4l 5v");
}

TEST(MemberEdits, ARefusalSaysWhetherItPasses) {
  const auto behind =
      members_refused({ChangeObstacle::learner_behind, raft::NodeId(4), 12000}, raft::NodeId(1));
  EXPECT_EQ(behind.status, replica::GroupCallStatus::refused);
  EXPECT_TRUE(behind.retryable);
  EXPECT_NE(behind.reason.find("12000 entries"), std::string::npos);
  EXPECT_FALSE(members_refused({ChangeObstacle::no_voter}, raft::NodeId(1)).retryable);
  replica::ChangeResult unknown;
  EXPECT_EQ(members_result(unknown).status, replica::GroupCallStatus::unknown);
  EXPECT_FALSE(members_result(unknown).reason.empty());
}

}  // namespace
}  // namespace leasehold::node
