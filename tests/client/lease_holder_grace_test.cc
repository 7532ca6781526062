// The time behind the deadline in which the group keeps a lease that its holder may not use.
#include <leasehold/tests/client/lease_holder_rig.h>

#include <atomic>
#include <thread>
#include <utility>

namespace leasehold::client {
namespace {

/// The lease stays at the group for 5 s behind its time to live: the hope ends at 15 s.
class LeaseHolderGraceTest : public LeaseHolderTest {
 protected:
  std::unique_ptr<LeaseHolder> acquire_with_grace() {
    auto wanted = options();
    wanted.terms.grace = seconds(5);
    auto held = LeaseHolder::acquire(leases, clock, wanted);
    EXPECT_TRUE(held.ok());
    EXPECT_EQ(leases.terms(), wanted.terms);
    return held ? std::move(held).value() : nullptr;
  }
  /// At its deadline, and the group does not answer.
  std::unique_ptr<LeaseHolder> acquire_and_be_late() {
    auto holder = acquire_with_grace();
    leases.set_down(true);
    clock.advance(seconds(9));
    return holder;
  }
};

TEST_F(LeaseHolderGraceTest, NothingIsDoneInItAndThenItIsHeldAgain) {
  const auto holder = acquire_and_be_late();
  EXPECT_FALSE(holder->may_act());
  EXPECT_EQ(holder->state(), State::in_grace);
  EXPECT_EQ(holder->deadline(), clock.holder_now());
  EXPECT_EQ(holder->wait_end(Duration(0)), State::in_grace);
  std::atomic<bool> begun{false};
  std::thread worker([&] {
    EXPECT_TRUE(holder->begin().has_value());
    begun = true;
  });
  for (int i = 0; i < 3; ++i) {
    const int before = leases.renewals();
    ASSERT_TRUE(passes_until([&] { return leases.renewals() > before; }));
    EXPECT_FALSE(begun);
    EXPECT_FALSE(holder->may_act());
  }
  leases.set_down(false);
  ASSERT_TRUE(passes_until([&] { return begun.load(); }));
  worker.join();
  EXPECT_EQ(holder->state(), State::held);
  EXPECT_TRUE(holder->may_act());
  EXPECT_EQ(holder->token(), grant::FencingToken(42));
  EXPECT_LE(holder->deadline(), clock.holder_now() + seconds(9));
}

// No renewal has failed: the thread of the holder slept, and waits for the answer.
TEST_F(LeaseHolderGraceTest, NothingBeginsInItThoughNothingHasFailed) {
  const auto holder = acquire_with_grace();
  std::atomic<bool> asked{false};
  std::atomic<bool> looked{false};
  leases.act_during_renewal([&] {
    asked = true;
    EXPECT_TRUE(eventually([&] { return looked.load(); }));
  });
  clock.advance(seconds(9));
  ASSERT_TRUE(eventually([&] { return asked.load(); }));
  // It finds the grace period, waits, and then finds that over.
  clock.advance_behind_next_read(seconds(6));
  EXPECT_FALSE(holder->begin().has_value());
  EXPECT_EQ(holder->state(), State::expired);
  looked = true;
}

TEST_F(LeaseHolderGraceTest, DoesNotEndAWaitForTheEnd) {
  const auto holder = acquire_with_grace();
  std::atomic<bool> ended{false};
  std::thread waiter([&] {
    EXPECT_EQ(holder->wait_end(std::chrono::hours(1)), State::lost);
    ended = true;
  });
  leases.set_down(true);
  clock.advance(seconds(10));
  ASSERT_TRUE(eventually([&] { return leases.renewals() > 0; }));
  EXPECT_EQ(holder->state(), State::in_grace);
  leases.set_down(false);
  ASSERT_TRUE(passes_until([&] { return holder->may_act(); }));
  EXPECT_FALSE(ended);
  leases.end();
  ASSERT_TRUE(passes_until([&] { return ended.load(); }));
  waiter.join();
}

TEST_F(LeaseHolderGraceTest, AfterItTheLeaseIsOver) {
  const auto holder = acquire_and_be_late();
  clock.advance(seconds(6) - Duration(1));
  EXPECT_EQ(holder->state(), State::in_grace);
  clock.advance(Duration(1));
  EXPECT_EQ(holder->wait_end(std::chrono::hours(1)), State::expired);
  leases.set_down(false);
  clock.advance(seconds(1));
  EXPECT_FALSE(holder->begin().has_value());
  EXPECT_EQ(holder->state(), State::expired);
  EXPECT_FALSE(holder->may_act());
}

// Another client wanted it, and it has a soft limit; or a person ended it by hand.
TEST_F(LeaseHolderGraceTest, ALeaseThatTheGroupEndedInItIsLost) {
  const auto holder = acquire_and_be_late();
  leases.end();
  leases.set_down(false);
  ASSERT_TRUE(passes_until([&] { return holder->state() == State::lost; }));
  EXPECT_FALSE(holder->may_act());
}

// The lease is given up, so the drain does not wait for it: work under way had to stop at the
// deadline.
TEST_F(LeaseHolderGraceTest, ADrainDoesNotWaitForIt) {
  const auto idle = acquire_and_be_late();
  EXPECT_TRUE(idle->drain());
  EXPECT_FALSE(leases.is_held());
  EXPECT_EQ(idle->state(), State::expired);

  leases.set_down(false);
  const auto busy = acquire_with_grace();
  const auto work = busy->begin();
  ASSERT_TRUE(work.has_value());
  leases.set_down(true);
  clock.advance(seconds(9));
  ASSERT_EQ(busy->state(), State::in_grace);
  EXPECT_FALSE(busy->drain());
  EXPECT_EQ(busy->state(), State::expired);
  leases.set_down(false);
  clock.advance(seconds(1));
  EXPECT_FALSE(busy->may_act());
  // It is left to the time.
  EXPECT_TRUE(leases.is_held());
}

TEST_F(LeaseHolderGraceTest, ADrainThatTheDeadlineOvertakesEndsThere) {
  const auto holder = acquire_with_grace();
  auto work = holder->begin();
  ASSERT_TRUE(work.has_value());
  std::atomic<bool> drained{false};
  std::thread drainer([&] {
    EXPECT_FALSE(holder->drain());
    drained = true;
  });
  ASSERT_TRUE(eventually([&] { return !holder->begin().has_value(); }));
  EXPECT_FALSE(drained);
  leases.set_down(true);
  clock.advance(seconds(9));
  drainer.join();
  EXPECT_EQ(holder->state(), State::expired);
  EXPECT_TRUE(leases.is_held());
}

TEST_F(LeaseHolderGraceTest, InItTheLeaseCanBeReleased) {
  const auto holder = acquire_and_be_late();
  EXPECT_TRUE(holder->release().ok());
  EXPECT_FALSE(leases.is_held());
  EXPECT_EQ(holder->state(), State::released);
  EXPECT_FALSE(holder->begin().has_value());
}

}  // namespace
}  // namespace leasehold::client
