// What a group's level has to be for a command.
#include <leasehold/kv/command.h>
#include <leasehold/kv/command_level.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace leasehold::kv {
namespace {

using ::testing::HasSubstr;

Bytes bytes_of(const Command& command) {
  auto made = encode_command(command);
  EXPECT_TRUE(made.ok());
  return std::move(made).value();
}
raft::FeatureLevel needed(const Command& command) {
  return level_needed(bytes_of(command).view());
}
Once once_with(const Bytes& command) {
  return {replica::SessionId(1), 1, 1, command.view()};
}

TEST(CommandLevel, WhatRelease01KnewNeedsItsLevel) {
  const Bytes set = bytes_of(Set{"k", "v"});
  EXPECT_EQ(level_needed(set.view()), raft::kOldestLevel);
  EXPECT_EQ(needed(Get{"k"}), raft::kOldestLevel);
  EXPECT_EQ(needed(GrantLease{grant::LeaseId(7), std::chrono::seconds(10), "name", "me"}),
            raft::kOldestLevel);
  EXPECT_EQ(needed(ExpireLeases{raft::Term(1), {{grant::LeaseId(7), 1}}}), raft::kOldestLevel);
  EXPECT_EQ(needed(OpenSession{}), raft::kOldestLevel);
  EXPECT_EQ(needed(once_with(set)), raft::kOldestLevel);
  EXPECT_EQ(needed(Transaction{{}, {Set{"k", "v"}, Del{{"l"}}}}), raft::kOldestLevel);
}

TEST(CommandLevel, WhatCameLaterNeedsTheLevelOfSettings) {
  RenewNamed named;
  named.leases.push_back({grant::LeaseId(0), "name"});
  EXPECT_EQ(needed(named), raft::kSettingsLevel);
  EXPECT_EQ(needed(SetUser{"ann", 0, "on"}), raft::kSettingsLevel);
  EXPECT_EQ(needed(DelUsers{{"ann"}}), raft::kSettingsLevel);
  EXPECT_EQ(needed(CompareState{}), raft::kSettingsLevel);
  EXPECT_EQ(needed(ReportState{}), raft::kSettingsLevel);
  EXPECT_EQ(needed(IncrByFloat{"k", "1"}), raft::kSettingsLevel);
  Set timed{"k", "v"};
  timed.ttl = grant::kLeaseTtlMin;
  EXPECT_EQ(needed(timed), raft::kOldestLevel);
  timed.end_ms = 5;
  EXPECT_EQ(needed(timed), raft::kSettingsLevel);
  EXPECT_EQ(needed(Copy{false, "a", "b"}), raft::kSettingsLevel);
  EXPECT_EQ(needed(SetBit{1, true, "k"}), raft::kSettingsLevel);
  EXPECT_EQ(needed(Transaction{{}, {GetBit{1, "k"}}}), raft::kSettingsLevel);
  EXPECT_EQ(needed(BitCount{0, -1, false, "k"}), raft::kSettingsLevel);
  EXPECT_EQ(needed(Transaction{{}, {Lcs{LcsWanted::text, false, 0, "a", "b"}}}),
            raft::kSettingsLevel);
  const Bytes set = bytes_of(Set{"k", "v"});
  EXPECT_EQ(needed(ActAs{"ann", false, set.view()}), raft::kSettingsLevel);
  EXPECT_EQ(needed(LoadAtMost{1, set.view()}), raft::kSettingsLevel);
  // Inside another command, too.
  const Bytes renewal = bytes_of(named);
  EXPECT_EQ(needed(once_with(renewal)), raft::kSettingsLevel);
  EXPECT_EQ(needed(Transaction{{}, {Set{"k", "v"}, named}}), raft::kSettingsLevel);
}

TEST(CommandLevel, ARefusalSaysWhatToDo) {
  const Bytes compare = bytes_of(CompareState{});
  EXPECT_EQ(refusal_below(compare.view(), raft::kSettingsLevel), "");
  const std::string refusal = refusal_below(compare.view(), raft::kOldestLevel);
  EXPECT_THAT(refusal, HasSubstr("needs the group's level 2, and the group has level 1"));
  EXPECT_THAT(refusal, HasSubstr("leasehold settings set"));
  EXPECT_EQ(refusal_below(bytes_of(Set{"k", "v"}).view(), raft::kOldestLevel), "");
  EXPECT_NE(refusal_below("what no build writes", raft::kOldestLevel), "");
}

}  // namespace
}  // namespace leasehold::kv
