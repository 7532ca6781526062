// Which replicas a node has: what is noted is read, no number comes twice, and group 1 goes last.
#include <leasehold/server/front/replica_number.h>
#include <leasehold/server/own_replicas.h>
#include <leasehold/tests/base/temporary_folder.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class OwnReplicasTest : public ::testing::Test {
 protected:
  static constexpr raft::NodeId kSelf{3};
  static constexpr std::size_t kGroups = 4;

  OwnReplicas loaded() const {
    auto own = OwnReplicas::load(folder_.path(), kSelf, kGroups);
    EXPECT_TRUE(own.ok()) << own.error().message;
    return std::move(own).value();
  }
  std::string refusal(const std::string& text) {
    std::ofstream(folder_.path("REPLICAS")) << text;
    const auto own = OwnReplicas::load(folder_.path(), kSelf, kGroups);
    return own.ok() ? "accepted" : own.error().message;
  }

  TemporaryFolder folder_;
};

TEST(NumbersOfReplicas, EachSaysAtWhichNodeItIs) {
  raft::NodeId replica(3);
  for (int generation = 0; generation < 5; ++generation) {
    EXPECT_EQ(node_of(replica), raft::NodeId(3));
    const raft::NodeId next = replica_after(replica);
    EXPECT_GT(next, replica);
    replica = next;
  }
  EXPECT_EQ(node_of(raft::NodeId(kNodeNumbersEnd - 1)), raft::NodeId(kNodeNumbersEnd - 1));
}

TEST_F(OwnReplicasTest, TheFirstOnesHaveTheNumberOfTheNode) {
  const OwnReplicas own = loaded();
  EXPECT_EQ(own.of(1), kSelf);
  EXPECT_EQ(own.of(kGroups), kSelf);
  EXPECT_THAT(own.replaceable(), IsEmpty());
  EXPECT_THAT(own.waiting(), IsEmpty());
}

TEST_F(OwnReplicasTest, OneThatWasRemovedIsReplacedByOneWithAHigherNumber) {
  ASSERT_TRUE(loaded().note_removed({4, 2}).ok());
  OwnReplicas own = loaded();
  EXPECT_EQ(own.of(2), kSelf) << "it is there until it has been deleted";
  EXPECT_THAT(own.replaceable(), ElementsAre(2, 4));
  ASSERT_TRUE(own.replace(2).ok());
  own = loaded();
  EXPECT_EQ(own.of(2), raft::NodeId(10'003));
  EXPECT_THAT(own.replaceable(), ElementsAre(4));
  EXPECT_THAT(own.waiting(), ElementsAre(2));
  ASSERT_TRUE(own.note_added({2}).ok());
  EXPECT_THAT(loaded().waiting(), IsEmpty());
  ASSERT_TRUE(own.note_removed({2}).ok());
  ASSERT_TRUE(own.replace(2).ok());
  EXPECT_EQ(loaded().of(2), raft::NodeId(20'003));
}

// Its removal may be heard of first.
TEST(FilesOfReplicas, TheBackupsStay) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  for (const char* name : {"g/state", "g/backups/monday"}) {
    fs::create_directories(folder.path(name));
  }
  std::ofstream(folder.path("g/RESTORED")) << "x";
  EXPECT_TRUE(remove_replica_files(folder.path("g")));
  EXPECT_TRUE(fs::exists(folder.path("g/backups/monday")));
  EXPECT_FALSE(fs::exists(folder.path("g/state")));
  EXPECT_FALSE(fs::exists(folder.path("g/RESTORED")));
  EXPECT_TRUE(remove_replica_files(folder.path("none")));
}

TEST_F(OwnReplicasTest, OnlyTheOneThatWaitsIsAdded) {
  OwnReplicas own = loaded();
  ASSERT_TRUE(own.note_removed({2}).ok());
  EXPECT_THAT(own.just_added({{2, kSelf}}), IsEmpty()) << "it is removed";
  ASSERT_TRUE(own.replace(2).ok());
  EXPECT_THAT(own.just_added({{2, kSelf}, {3, kSelf}}), IsEmpty());
  EXPECT_THAT(own.just_added({{2, raft::NodeId(10'003)}}), ElementsAre(2));
  ASSERT_TRUE(own.note_removed({2}).ok());
  EXPECT_THAT(own.just_added({{2, raft::NodeId(10'003)}}), IsEmpty());
}

// With an empty group 1 anybody would be the default user, of the other groups too.
TEST_F(OwnReplicasTest, GroupOneIsReplacedOnceTheNodeHasLeftAllGroups) {
  OwnReplicas own = loaded();
  ASSERT_TRUE(own.note_removed({1, 2, 3}).ok());
  EXPECT_THAT(own.replaceable(), ElementsAre(2, 3));
  ASSERT_TRUE(own.replace(2).ok());
  EXPECT_THAT(own.replaceable(), ElementsAre(3));
  ASSERT_TRUE(own.note_removed({4}).ok());
  EXPECT_THAT(own.replaceable(), ElementsAre(1, 3, 4)) << "2 waits, so it is of no group either";
  ASSERT_TRUE(own.note_added({2}).ok());
  EXPECT_THAT(own.replaceable(), ElementsAre(3, 4));
}

// Else the node would delete a voter at a later start, when it has left the other groups.
TEST_F(OwnReplicasTest, AReplicaThatIsAMemberAgainIsNotRemoved) {
  OwnReplicas own = loaded();
  EXPECT_FALSE(own.returned(1, kSelf)) << "it never went";
  ASSERT_TRUE(own.note_removed({1}).ok());
  EXPECT_FALSE(own.returned(1, raft::NodeId(10'003)));
  ASSERT_TRUE(own.returned(1, kSelf));
  ASSERT_TRUE(own.note_added({1}).ok());
  EXPECT_FALSE(own.returned(1, kSelf));
  ASSERT_TRUE(own.note_removed({2, 3, 4}).ok());
  EXPECT_THAT(loaded().replaceable(), ElementsAre(2, 3, 4)) << "the first is a member";
}

TEST_F(OwnReplicasTest, ADamagedFileIsRefused) {
  EXPECT_THAT(refusal("x"), HasSubstr("is damaged: remove this node from all groups"));
  EXPECT_THAT(refusal("leasehold-replicas 2\n"), HasSubstr("has format 2, this build knows 1"));
  const std::string heading = "leasehold-replicas 1\n";
  EXPECT_EQ(refusal(heading + "2 10003 waits\n4 3 removed\n1 20003\n"), "accepted");
  for (const char* const line :
       {"5 3", "0 3", "2 4", "2 10004", "2", "2 3 gone", "2 3 removed x", "x 3", "2 x", "2 0"}) {
    EXPECT_THAT(refusal(heading + line + "\n"), HasSubstr("is of no replica of node 3")) << line;
  }
  EXPECT_THAT(refusal(heading + "2 3\n2 10003\n"), HasSubstr("'2 10003'")) << "two of one group";
}

}  // namespace
}  // namespace leasehold::server
