// Reads that take the state as it is, when it is young enough.
#include <leasehold/tests/replica/driver_cluster.h>

#include <gtest/gtest.h>

#include <string>

namespace leasehold::replica {
namespace {

using testing::Answer;
using testing::Cluster;
using testing::kLong;
using testing::milliseconds;
using testing::Rig;

DriverOptions trusting() {
  DriverOptions options;
  options.core.timing.max_clock_drift_ppm = 0;
  return options;
}

class FreshRead : public ::testing::Test {
 protected:
  FreshRead() : leader_(&cluster_.await_leader()) {
    follower_ = &cluster_.node(leader_->id().value() % 3 + 1);
    cluster_.advance(milliseconds(200));
  }
  void read(Rig& at, lease::Duration max_age, raft::ReadMode mode = raft::ReadMode::lease) {
    answer_ = {};
    at.handle(cluster_.now(),
              Read{mode, cluster_.in(kLong), answer_.completion(), CallGroup(), max_age});
  }
  bool answered() {
    return cluster_.advance_until([this] { return answer_.calls > 0; }) && answer_.value.index;
  }
  /// Answered at once, by what is applied.
  void expect_stale(Rig& at) {
    ASSERT_EQ(answer_.calls, 1);
    EXPECT_TRUE(answer_.value.stale);
    EXPECT_EQ(answer_.value.index, at.driver().applied());
    EXPECT_TRUE(at.sent().empty());
  }

  Cluster cluster_{3, trusting()};
  Rig* leader_;
  Rig* follower_;
  Answer<ReadResult> answer_;
};

TEST_F(FreshRead, NothingIsKnownBeforeTheFirstLinearizableRead) {
  read(*follower_, std::chrono::hours(1));
  EXPECT_EQ(answer_.calls, 0);
  ASSERT_TRUE(answered());
  EXPECT_FALSE(answer_.value.stale);
  EXPECT_EQ(answer_.value.basis, raft::ReadBasis::leader);
}

TEST_F(FreshRead, TheAgeCountsFromTheBeginningOfThatRead) {
  read(*follower_, milliseconds(0));
  const lease::HolderInstant began = cluster_.now().holder;
  cluster_.advance(milliseconds(20));
  ASSERT_TRUE(answered());
  while (cluster_.now().holder < began + milliseconds(100)) cluster_.advance(milliseconds(5));
  read(*follower_, milliseconds(100));
  expect_stale(*follower_);
  EXPECT_EQ(follower_->driver().counters().reads_stale, 1U);
  read(*follower_, milliseconds(99));
  EXPECT_EQ(answer_.calls, 0) << "older than it may be: the leader is asked";
  ASSERT_TRUE(answered());
  EXPECT_FALSE(answer_.value.stale);
  read(*follower_, milliseconds(0));
  EXPECT_EQ(answer_.calls, 0) << "no bound: linearizable";
}

// Without a leader: that is what such a read is for.
TEST_F(FreshRead, IsAnsweredWithoutALeaderUntilItIsTooOld) {
  read(*follower_, milliseconds(0));
  ASSERT_TRUE(answered());
  cluster_.cut(follower_->id().value());
  cluster_.advance(milliseconds(900));
  follower_->take_sent();
  read(*follower_, milliseconds(1000));
  expect_stale(*follower_);
  cluster_.advance(milliseconds(200));
  read(*follower_, milliseconds(1000));
  cluster_.advance(milliseconds(500));
  EXPECT_EQ(answer_.calls, 0);
}

TEST_F(FreshRead, ARefusedReadMakesNothingFresh) {
  cluster_.cut(follower_->id().value());
  answer_ = {};
  follower_->handle(cluster_.now(), Read{raft::ReadMode::quorum, cluster_.in(milliseconds(50)),
                                         answer_.completion()});
  cluster_.advance(milliseconds(100));
  ASSERT_EQ(answer_.calls, 1);
  ASSERT_FALSE(answer_.value.index);
  read(*follower_, std::chrono::hours(1));
  EXPECT_EQ(answer_.calls, 0);
}

TEST_F(FreshRead, AReadThroughTheLogCountsToo) {
  read(*follower_, milliseconds(0), raft::ReadMode::log);
  ASSERT_TRUE(answered());
  follower_->take_sent();
  read(*follower_, milliseconds(1000));
  expect_stale(*follower_);
  read(*follower_, milliseconds(1000), raft::ReadMode::log);
  expect_stale(*follower_);
}

// This node was started with a clock that cannot be wrong. The group says a tenth: 500 ms of true
// time may be 450 of it.
TEST_F(FreshRead, TheBoundIsShortenedByTheGroupsDrift) {
  raft::SettingsEdit edit;
  edit.max_clock_drift_ppm = 100'000;
  leader_->handle(cluster_.now(), ChangeSettings{edit, cluster_.in(kLong), {}, CallGroup()});
  cluster_.advance(milliseconds(500));
  ASSERT_EQ(follower_->driver().core().timing().max_clock_drift_ppm, 100'000);
  read(*follower_, milliseconds(0));
  const lease::HolderInstant began = cluster_.now().holder;
  ASSERT_TRUE(answered());
  while (cluster_.now().holder < began + milliseconds(445)) cluster_.advance(milliseconds(5));
  follower_->take_sent();
  read(*follower_, milliseconds(500));
  expect_stale(*follower_);
  cluster_.advance(milliseconds(10));
  read(*follower_, milliseconds(500));
  EXPECT_EQ(answer_.calls, 0);
}

TEST(FreshSince, NothingIsFreshUntilTheDriftIsKnown) {
  FreshSince fresh;
  const lease::HolderInstant now(std::chrono::seconds(5));
  fresh.raise(now);
  EXPECT_FALSE(fresh.covers(now, std::chrono::hours(1)));
  fresh.set_drift_ppm(0);
  EXPECT_TRUE(fresh.covers(now, lease::Duration(1)));
  fresh.raise(lease::HolderInstant::earliest());
  EXPECT_TRUE(fresh.covers(now, lease::Duration(1))) << "it never falls";
  EXPECT_FALSE(fresh.covers(now, lease::Duration(0)));
  EXPECT_FALSE(fresh.covers(lease::HolderInstant::never(), std::chrono::hours(1)))
      << "the clock of a machine that was stopped";
}

}  // namespace
}  // namespace leasehold::replica
