// When a node proposes a comparison.
#include <leasehold/kv/command.h>
#include <leasehold/server/commands/command_table.h>
#include <leasehold/server/state_watch.h>
#include <leasehold/tests/base/temporary_folder.h>
#include <leasehold/tests/kv/store_support.h>
#include <leasehold/tests/server/fake_node.h>

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

namespace leasehold::server {
namespace {

using std::chrono::seconds;

class StateWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    store_ = kv::testing::open_store(folder_.path("state"));
    ASSERT_NE(store_, nullptr);
    StateWatch::Options options;
    options.id = raft::NodeId(1);
    options.log_dir = folder_.path("log");
    options.compare_interval = seconds(60);
    options.timeout = seconds(5);
    watch_ = std::make_unique<StateWatch>(node_, *store_, node_.health(), state_, options);
  }
  void look_after(lease::Duration time) {
    node_.manual_clock().advance(time);
    watch_->look();
  }

  TemporaryFolder folder_;
  FakeNode node_;
  ServerState state_{ServerOptions(), command_table(), nullptr};
  std::unique_ptr<kv::RocksdbStore> store_;
  std::unique_ptr<StateWatch> watch_;
};

TEST_F(StateWatchTest, TheHolderOfTheLeaseProposesOneInEachInterval) {
  look_after(seconds(61));
  EXPECT_EQ(node_.proposals(), 0U) << "another node leads";
  node_.grant_lease(std::chrono::hours(1));
  look_after(seconds(1));
  EXPECT_EQ(node_.proposals(), 1U);
  look_after(seconds(59));
  EXPECT_EQ(node_.proposals(), 1U);
  look_after(seconds(2));
  EXPECT_EQ(node_.proposals(), 2U);
}

TEST_F(StateWatchTest, NothingIsProposedThatAMemberMayNotBeAbleToRead) {
  node_.grant_lease(std::chrono::hours(1));
  node_.be_of_the_oldest_level();
  look_after(seconds(61));
  look_after(seconds(61));
  EXPECT_EQ(node_.proposals(), 0U);
  EXPECT_TRUE(node_.health().warning().empty());
}

}  // namespace
}  // namespace leasehold::server
