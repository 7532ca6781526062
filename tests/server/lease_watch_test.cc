// Leases end when they are not renewed, by the clock of the leader.
#include <leasehold/kv/local/lease_watch.h>
#include <leasehold/tests/server/fake_node.h>

#include <gtest/gtest.h>

#include <cstddef>

namespace leasehold::server {
namespace {

using namespace std::chrono_literals;
using grant::LeaseId;

class LeaseWatchTest : public ::testing::Test {
 protected:
  void propose(const kv::Command& command) {
    node_.propose(kv::encode_command(command).value(), 1s, [](const replica::ProposeResult&) {});
    node_.commit_all();
  }
  void grant(std::uint64_t id) { propose(kv::GrantLease{LeaseId(id), 10s, "", "me"}); }
  std::size_t held() const { return node_.store().leases_after(LeaseId(0), 100000).value().size(); }
  /// Time passes, and the watch looks as often as the program would.
  void pass(lease::Duration time) {
    for (lease::Duration passed{0}; passed < time; passed += 200ms) {
      node_.manual_clock().advance(200ms);
      watch_.look();
    }
  }

  mutable FakeNode node_;
  kv::LeaseKeeper keeper_{
      node_.clock(), [this](std::uint64_t cursor) { return node_.store().lease_changes(cursor); }};
  kv::LeaseWatch watch_{node_, keeper_, 5s};
};

TEST_F(LeaseWatchTest, ALeaseEndsAtTheLeader) {
  grant(7);
  node_.grant_lease(1h);
  watch_.look();
  pass(9s);
  EXPECT_EQ(node_.proposals(), 0U);
  pass(2s);
  EXPECT_EQ(node_.proposals(), 1U);
  pass(30s);
  EXPECT_EQ(node_.proposals(), 1U) << "proposed again while the first is under way";
  node_.commit_all();
  EXPECT_EQ(held(), 0U);
  pass(30s);
  EXPECT_EQ(node_.proposals(), 0U);
}

TEST_F(LeaseWatchTest, WithoutTheLeaderLeaseNothingEnds) {
  grant(7);
  pass(30s);
  EXPECT_EQ(node_.proposals(), 0U);
  node_.grant_lease(5s);
  pass(30s);
  EXPECT_EQ(node_.proposals(), 0U) << "the leader lease ended before this one";
  node_.grant_lease(1h);
  pass(9s);
  EXPECT_EQ(node_.proposals(), 0U) << "a new one gives every lease its whole time";
  pass(2s);
  EXPECT_EQ(node_.proposals(), 1U);
}

TEST_F(LeaseWatchTest, ARenewalInTheLogThatComesFirstWins) {
  grant(7);
  node_.grant_lease(1h);
  watch_.look();
  pass(11s);
  ASSERT_EQ(node_.proposals(), 1U);
  // Committed before the proposal is.
  const Bytes renew = kv::encode_command(kv::RenewLeases{{LeaseId(7)}}).value();
  node_.commit_ahead(1);
  const raft::Index index = node_.store().applied_index() + 1;
  node_.store().apply({{{raft::Term(1), index}, renew.view()}}, index);
  node_.commit_all();
  EXPECT_EQ(held(), 1U);
}

TEST_F(LeaseWatchTest, AProposalThatFailsIsMadeAgain) {
  grant(7);
  node_.grant_lease(1h);
  watch_.look();
  pass(11s);
  node_.end_proposal({});
  pass(1s);
  EXPECT_EQ(node_.proposals(), 1U);
}

// A round is bounded, and the next one waits for it.
TEST_F(LeaseWatchTest, ManyAtOnceEndInRounds) {
  constexpr std::size_t kMany = 10'000;
  for (std::size_t from = 0; from < kMany; from += 1000) {
    kv::Transaction grants;
    for (std::size_t i = 0; i < 1000; ++i) {
      grants.operations.emplace_back(kv::GrantLease{LeaseId(0), 10s, "", "me"});
    }
    propose(grants);
  }
  ASSERT_EQ(held(), kMany);
  node_.grant_lease(1h);
  watch_.look();
  node_.manual_clock().advance(10s);
  std::size_t rounds = 0;
  while (held() > 0 && rounds < 10) {
    watch_.look();
    EXPECT_LE(node_.proposals(), 16U);
    node_.commit_all();
    ++rounds;
  }
  EXPECT_EQ(held(), 0U);
  EXPECT_EQ(rounds, 3U);
}

}  // namespace
}  // namespace leasehold::server
