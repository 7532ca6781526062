// The file HOSTS: what is written is read, and what is damaged is refused with what to do.
#include <leasehold/server/host_cluster.h>
#include <leasehold/server/host_file.h>
#include <leasehold/server/removals.h>
#include <leasehold/tests/base/temporary_folder.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace leasehold::server {
namespace {

using ::testing::HasSubstr;

class HostFile : public ::testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(folder_.path("HOSTS")) << text; }
  std::string refusal() const {
    const auto hosts = load_hosts(folder_.path());
    return hosts ? "accepted" : hosts.error().message;
  }

  TemporaryFolder folder_;
};

TEST_F(HostFile, IsReadAsItWasWritten) {
  ASSERT_TRUE(load_hosts(folder_.path()).ok());
  EXPECT_TRUE(load_hosts(folder_.path()).value().empty());
  ASSERT_TRUE(save_hosts(folder_.path(), {{raft::NodeId(4), "d:7101"}, {raft::NodeId(5), "e:1"}}));
  const auto hosts = load_hosts(folder_.path());
  ASSERT_TRUE(hosts.ok());
  ASSERT_EQ(hosts.value().size(), 2U);
  EXPECT_EQ(hosts.value()[1].id, raft::NodeId(5));
  EXPECT_EQ(hosts.value()[0].address, "d:7101");
  ASSERT_TRUE(save_hosts(folder_.path(), {}));
  EXPECT_TRUE(load_hosts(folder_.path()).value().empty());
}

TEST_F(HostFile, IsRefusedIfItIsDamaged) {
  write("");
  EXPECT_THAT(refusal(), HasSubstr("is damaged: remove it"));
  write("leasehold-hosts 2\n4=d:7101\n");
  EXPECT_THAT(refusal(), HasSubstr("has format 2, this build knows 1"));
  write("leasehold-hosts 1\n4=d\n");
  EXPECT_THAT(refusal(), HasSubstr("mend the line"));
}

TEST(NameOfGroup, FitsIntoAManifestAndNamesTheGroup) {
  EXPECT_EQ(name_of_group("production", 3), "production group 3");
  EXPECT_TRUE(is_of_group(name_of_group("production", 3), 3));
  EXPECT_FALSE(is_of_group(name_of_group("production", 13), 3));
  EXPECT_FALSE(is_of_group("production", 3));
  const std::string longest(kClusterNameBytesMax, 'c');
  EXPECT_EQ(name_of_group(longest, 1024).size(), kClusterNameBytesMax);
  EXPECT_TRUE(is_of_group(name_of_group(longest, 1024), 1024));
}

TEST(Removals, ANodeThatHasLeftTheGroupOfTheUsersServesNoOtherOne) {
  const Error removed{ErrorCode::removed, "node 3 was removed"};
  Removals first_to_go(3);
  const auto end = first_to_go.note(1, removed);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, ErrorCode::removed);
  EXPECT_THAT(end->message, HasSubstr("group 1 has the users"));
  EXPECT_FALSE(first_to_go.of_all());

  Removals last_to_go(3);
  EXPECT_FALSE(last_to_go.note(3, removed));
  EXPECT_FALSE(last_to_go.note(2, removed));
  const auto all = last_to_go.note(1, removed);
  EXPECT_TRUE(last_to_go.of_all());
  ASSERT_TRUE(all) << "a node is removed when it has been removed from all its groups";
  EXPECT_EQ(all->message, removed.message);
}

TEST(Removals, ANodeThatWasAddedAgainHasAGroupMore) {
  const Error removed{ErrorCode::removed, "node 3 was removed"};
  Removals removals(2);
  EXPECT_FALSE(removals.note(2, removed));
  removals.added(2);
  const auto end = removals.note(1, removed);
  ASSERT_TRUE(end);
  EXPECT_FALSE(removals.of_all());
  EXPECT_THAT(end->message, HasSubstr("group 1 has the users"));
}

}  // namespace
}  // namespace leasehold::server
