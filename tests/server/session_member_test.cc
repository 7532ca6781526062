// LEASEHOLD MEMBER with the membership that the caller saw.
#include <leasehold/tests/server/session_fixture.h>

#include <gmock/gmock.h>

namespace leasehold::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using SessionMember = SessionTest;

TEST_F(SessionMember, AChangeSaysWhichMembershipItExpects) {
  EXPECT_EQ(feed("LEASEHOLD MEMBER EXPECT 00000000000000ff DEMOTE 2\r\n"), "");
  EXPECT_EQ(node_.next_expected(), raft::MembershipId(0xff));
  ASSERT_EQ(node_.next_edits().size(), 1U);
  EXPECT_EQ(node_.next_edits()[0].what, node::MemberEdit::What::demote);
  raft::Membership newest;
  newest.members = {{raft::NodeId(1), raft::Uuid{1, 1}, "a:1"}};
  newest.voters = {raft::NodeId(1)};
  node_.end_change(node::members_refused(raft::membership_changed(newest), raft::NodeId(1)));
  const std::string reply = pump();
  EXPECT_THAT(reply, StartsWith("-ERR the members or the settings are not those"));
  EXPECT_THAT(reply, HasSubstr(raft::text_of(raft::id_of(newest))));
  EXPECT_EQ(feed("LEASEHOLD MEMBER DEMOTE 2\r\n"), "");
  EXPECT_EQ(node_.next_expected(), std::nullopt);
  node_.end_change({});
  pump();
}

TEST_F(SessionMember, WordsThatAreNoMembershipAreRefused) {
  for (const char* words : {"EXPECT", "EXPECT ff", "EXPECT xyz DEMOTE 2", "EXPECT ff LIST",
                            "EXPECT ff EXPECT ff DEMOTE 2"}) {
    EXPECT_THAT(feed("LEASEHOLD MEMBER " + std::string(words) + "\r\n"),
                StartsWith("-ERR expected LEASEHOLD MEMBER LIST"))
        << words;
  }
}

}  // namespace
}  // namespace leasehold::server
