// Nodes whose log lies on a disk of their program: NodeOptions::log_disk.
#include <leasehold/storage/memory_folder.h>
#include <leasehold/tests/node/node_fixture.h>

#include <filesystem>

namespace leasehold::node {
namespace {

using storage::MemoryFolder;

class NodeLogDiskTest : public NodeTest {
 protected:
  NodeOptions in_memory(std::uint64_t id) {
    NodeOptions made = options(id);
    made.log_disk = [&folder = folders_[id - 1]] { return folder->open(); };
    return made;
  }
  void start_in_memory() {
    for (std::uint64_t id = 1; id <= 3; ++id) {
      folders_[id - 1] = std::make_unique<MemoryFolder>();
      start(id, in_memory(id));
    }
  }
  void write(const std::string& command) {
    ASSERT_TRUE(eventually([&] {
      return replica(await_leader()).propose(command).status == replica::ProposeStatus::committed;
    }));
  }
  void TearDown() override { replicas_.clear(); }

  std::unique_ptr<MemoryFolder> folders_[3];
};

TEST_F(NodeLogDiskTest, AGroupInMemoryFindsItsLogAgain) {
  start_in_memory();
  write("a");
  EXPECT_FALSE(std::filesystem::exists(dir(1) + "/log"));
  EXPECT_GT(folders_[0]->bytes(), 0U);
  for (std::uint64_t id = 1; id <= 3; ++id) stop(id);
  for (std::uint64_t id = 1; id <= 3; ++id) start(id, in_memory(id));
  write("b");
  for (std::uint64_t id = 1; id <= 3; ++id) {
    EXPECT_TRUE(eventually([&] {
      return replica(id).machine.list() == std::vector<std::string>{"a", "b"};
    }));
  }
}

// It has forgotten what it promised, so it must not count: it is no member under its new uuid.
TEST_F(NodeLogDiskTest, ANodeWhoseFolderIsGoneIsAnotherOne) {
  start_in_memory();
  write("a");
  const std::uint64_t leader = await_leader();
  const std::uint64_t wiped = follower_of(leader);
  const std::uint64_t third = 6 - leader - wiped;
  stop(wiped);
  folders_[wiped - 1] = std::make_unique<MemoryFolder>();
  NodeOptions again = in_memory(wiped);
  again.peers.clear();
  again.join = {peers_[leader - 1].address};
  again.listen = peers_[wiped - 1].address;
  Replica other;
  const auto refused = open(other, again);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("wiped or replaced"), std::string::npos)
      << refused.error().message;
  // With it a majority would be there.
  start(wiped, in_memory(wiped));
  stop(third);
  EXPECT_NE(replica(leader).propose("b", std::chrono::milliseconds(1500)).status,
            replica::ProposeStatus::committed);
}

TEST_F(NodeLogDiskTest, OneNodeHasAFolder) {
  start_in_memory();
  NodeOptions second = in_memory(1);
  second.data_dir = dir(4);
  Replica other;
  const auto refused = open(other, second);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::in_use);
}

TEST_F(NodeLogDiskTest, ADiskThatCannotBeOpenedIsTheAnswer) {
  NodeOptions made = options(1);
  made.log_disk = []() -> Result<std::unique_ptr<storage::Disk>> {
    return Error{ErrorCode::io, "the vault is shut"};
  };
  Replica other;
  const auto refused = open(other, made);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message, "the vault is shut");
}

}  // namespace
}  // namespace leasehold::node
