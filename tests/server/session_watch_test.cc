// Sessions end when they are idle for too long, by the clock of the node that leads.
#include <leasehold/server/session_watch.h>
#include <leasehold/tests/server/fake_node.h>

#include <gtest/gtest.h>

#include <cstddef>

namespace leasehold::server {
namespace {

using namespace std::chrono_literals;

class SessionWatchTest : public ::testing::Test {
 protected:
  void propose(const kv::Command& command) {
    node_.propose(kv::encode_command(command).value(), 1s, [](const replica::ProposeResult&) {});
    node_.commit_all();
  }
  std::size_t open() const { return node_.store().sessions().value().size(); }
  /// Time passes, and the watch looks as often as the program would.
  void pass(lease::Duration time) {
    for (lease::Duration passed{0}; passed < time; passed += 200ms) {
      node_.manual_clock().advance(200ms);
      watch_.look();
    }
  }

  mutable FakeNode node_;
  SessionWatch watch_{node_, node_.store(), 10s, 5s};
};

TEST_F(SessionWatchTest, AnIdleSessionEndsAtTheLeader) {
  propose(kv::OpenSession{});
  node_.grant_lease(1h);
  pass(9s);
  EXPECT_EQ(node_.proposals(), 0U);
  pass(3s);
  EXPECT_EQ(node_.proposals(), 1U);
  pass(30s);
  EXPECT_EQ(node_.proposals(), 1U) << "proposed again while the first is under way";
  node_.commit_all();
  EXPECT_EQ(open(), 0U);
  pass(30s);
  EXPECT_EQ(node_.proposals(), 0U);
}

TEST_F(SessionWatchTest, WhatIsUsedStays) {
  propose(kv::OpenSession{});
  propose(kv::OpenSession{});
  node_.grant_lease(1h);
  for (int i = 0; i < 10; ++i) {
    pass(4s);
    propose(kv::TouchSession{replica::SessionId(2)});
  }
  ASSERT_EQ(open(), 1U);
  EXPECT_EQ(node_.store().sessions().value().at(0).id, replica::SessionId(2));
}

TEST_F(SessionWatchTest, ACommandThatComesFirstWins) {
  propose(kv::OpenSession{});
  node_.grant_lease(1h);
  pass(12s);
  ASSERT_EQ(node_.proposals(), 1U);
  // Committed before the proposal is.
  const Bytes touch = kv::encode_command(kv::TouchSession{replica::SessionId(1)}).value();
  node_.commit_ahead(1);
  const raft::Index index = node_.store().applied_index() + 1;
  node_.store().apply({{{raft::Term(1), index}, touch.view()}}, index);
  node_.commit_all();
  EXPECT_EQ(open(), 1U);
}

TEST_F(SessionWatchTest, WithoutALeaseNothingEnds) {
  propose(kv::OpenSession{});
  pass(30s);
  EXPECT_EQ(node_.proposals(), 0U);
  node_.grant_lease(5s);
  pass(30s);
  EXPECT_EQ(node_.proposals(), 0U) << "the lease ended before the session did";
  node_.grant_lease(1h);
  pass(9s);
  EXPECT_EQ(node_.proposals(), 0U) << "a new lease gives every session its whole time";
  pass(3s);
  EXPECT_EQ(node_.proposals(), 1U);
}

TEST_F(SessionWatchTest, AProposalThatFailsIsMadeAgain) {
  propose(kv::OpenSession{});
  node_.grant_lease(1h);
  pass(12s);
  node_.end_proposal({});
  pass(2s);
  EXPECT_EQ(node_.proposals(), 1U);
}

}  // namespace
}  // namespace leasehold::server
