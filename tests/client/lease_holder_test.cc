// A lease that is held for as long as its holder lives: renewed, lost, drained and released.
#include <leasehold/tests/client/lease_holder_rig.h>

#include <atomic>
#include <thread>
#include <utility>

namespace leasehold::client {
namespace {

TEST_F(LeaseHolderTest, RenewsForAsLongAsItIsHeld) {
  const auto holder = acquire();
  EXPECT_EQ(holder->token(), grant::FencingToken(42));
  for (int i = 0; i < 20; ++i) {
    const int before = leases.renewals();
    clock.advance(seconds(2));
    ASSERT_TRUE(eventually([&] { return leases.renewals() > before; }));
    ASSERT_TRUE(eventually([&] { return holder->deadline() > clock.holder_now() + seconds(6); }));
    EXPECT_TRUE(holder->may_act());
  }
  EXPECT_EQ(holder->state(), State::held);
}

TEST_F(LeaseHolderTest, TheTimeCountsFromWhenTheQuestionWasSent) {
  const HolderInstant asked = clock.holder_now();
  leases.act_during_grant([&] { clock.advance(seconds(1)); });
  const auto holder = acquire();
  EXPECT_EQ(holder->deadline(), asked + seconds(9));

  const HolderInstant renewed = clock.holder_now() + seconds(2);
  std::atomic<bool> slept{false};
  leases.act_during_renewal([&] {
    if (!slept.exchange(true)) clock.advance(seconds(1));
  });
  clock.advance(seconds(2));
  ASSERT_TRUE(eventually([&] { return holder->deadline() > asked + seconds(9); }));
  // The next renewal is not due yet: that is 1.5 s after this one was sent.
  EXPECT_EQ(holder->deadline(), renewed + seconds(9));
}

TEST_F(LeaseHolderTest, IsOverAtTheDeadlineIfTheGroupDoesNotAnswer) {
  const auto holder = acquire();
  leases.set_down(true);
  clock.advance(seconds(9) - Duration(1));
  EXPECT_TRUE(holder->may_act());
  clock.advance(Duration(1));
  EXPECT_FALSE(holder->may_act());
  EXPECT_EQ(holder->wait_end(seconds(5)), State::expired);
  EXPECT_FALSE(holder->begin().has_value());
  // Others see it until its time is over there.
  EXPECT_EQ(holder->end(), clock.holder_now() + seconds(1));
  leases.set_down(false);
  clock.advance(milliseconds(1));
  EXPECT_EQ(holder->state(), State::expired);
}

TEST_F(LeaseHolderTest, IsLostWhenTheGroupSaysSo) {
  const auto holder = acquire();
  leases.end();
  clock.advance(seconds(2));
  ASSERT_TRUE(eventually([&] { return holder->state() == State::lost; }));
  EXPECT_TRUE(eventually([&] { return !holder->may_act(); }));
}

TEST_F(LeaseHolderTest, ARenewalThatWasAnsweredTooLateExtendsNothing) {
  const auto holder = acquire();
  leases.act_during_renewal([&] { clock.advance(seconds(8)); });
  clock.advance(seconds(2));
  ASSERT_TRUE(eventually([&] { return leases.renewals() > 0; }));
  EXPECT_EQ(holder->wait_end(seconds(5)), State::expired);
  EXPECT_FALSE(holder->may_act());
}

TEST_F(LeaseHolderTest, ANameThatIsHeldIsWaitedForAndThenRefused) {
  const auto first = acquire();
  auto other = options();
  other.holder = "other";
  const auto refused = LeaseHolder::acquire(leases, clock, other);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::in_use);
  EXPECT_EQ(refused.error().message, "held by me");

  int asked = 0;
  other.wait = seconds(60);
  other.give_up = [&] { return ++asked == 3; };
  const auto stopped = LeaseHolder::acquire(leases, clock, other);
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, ErrorCode::stopped);

  other.give_up = [&] { return !first->release().ok(); };
  const auto second = LeaseHolder::acquire(leases, clock, other);
  ASSERT_TRUE(second.ok());
  EXPECT_GT(second.value()->token(), first->token());
}

TEST_F(LeaseHolderTest, AGrantWhoseAnswerWasLostIsRecognised) {
  leases.lose_next_answer();
  auto patient = options();
  patient.wait = seconds(60);
  const auto held = LeaseHolder::acquire(leases, clock, patient);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(held.value()->token(), grant::FencingToken(42));
  // The time counts from the renewal: it is not known when the grant was made.
  EXPECT_EQ(leases.renewals(), 1);
  EXPECT_EQ(held.value()->deadline(), clock.holder_now() + seconds(9));
}

// Who slept between the question and the answer does not know how much is left: it asks again.
TEST_F(LeaseHolderTest, AGrantThatWasAnsweredTooLateIsNotYetALease) {
  leases.act_during_grant([&] { clock.advance(seconds(9)); });
  const auto impatient = options();
  const auto refused = LeaseHolder::acquire(leases, clock, impatient);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::timed_out);
  leases.end();

  leases.act_during_grant([&] { clock.advance(seconds(9)); });
  auto patient = options();
  patient.wait = seconds(60);
  const auto held = LeaseHolder::acquire(leases, clock, patient);
  ASSERT_TRUE(held.ok());
  EXPECT_EQ(held.value()->state(), State::held);
  EXPECT_EQ(held.value()->token(), grant::FencingToken(43));
  EXPECT_EQ(held.value()->deadline(), clock.holder_now() + seconds(9));
}

TEST_F(LeaseHolderTest, AGrantOfAnotherHolderIsNotTakenForItsOwn) {
  const auto first = acquire();
  leases.lose_next_answer();
  auto other = options();
  other.holder = "other";
  other.wait = seconds(60);
  int asked = 0;
  other.give_up = [&] { return ++asked == 3; };
  EXPECT_FALSE(LeaseHolder::acquire(leases, clock, other).ok());
  // Once more when it gave up, and it has ended nothing.
  EXPECT_EQ(leases.finds(), 3);
  EXPECT_EQ(first->state(), State::held);
  EXPECT_TRUE(leases.is_held());
}

TEST_F(LeaseHolderTest, GivingUpRevokesAGrantWhoseAnswerWasLost) {
  leases.lose_next_answer();
  const auto refused = LeaseHolder::acquire(leases, clock, options());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::timed_out);
  EXPECT_FALSE(leases.is_held());
}

TEST_F(LeaseHolderTest, DrainsInOrder) {
  const auto holder = acquire();
  auto work = holder->begin();
  ASSERT_TRUE(work.has_value());
  std::atomic<bool> drained{false};
  std::thread drainer([&] {
    EXPECT_TRUE(holder->drain());
    drained = true;
  });
  // Nothing new begins; work under way goes on, and the lease is held meanwhile.
  ASSERT_TRUE(eventually([&] { return !holder->begin().has_value(); }));
  EXPECT_FALSE(drained);
  EXPECT_TRUE(holder->may_act());
  EXPECT_TRUE(leases.is_held());
  work.reset();
  drainer.join();
  EXPECT_FALSE(leases.is_held());
  EXPECT_EQ(holder->state(), State::released);
  EXPECT_FALSE(holder->may_act());
}

TEST_F(LeaseHolderTest, NothingNewBeginsWhileARenewalIsTriedAgain) {
  const auto holder = acquire();
  leases.set_down(true);
  clock.advance(seconds(2));
  ASSERT_TRUE(eventually([&] { return leases.renewals() > 0; }));
  std::atomic<bool> begun{false};
  std::thread worker([&] {
    const auto work = holder->begin();
    EXPECT_TRUE(work.has_value());
    begun = true;
  });
  const int before = leases.renewals();
  clock.advance(milliseconds(500));
  ASSERT_TRUE(eventually([&] { return leases.renewals() > before; }));
  EXPECT_FALSE(begun);
  EXPECT_TRUE(holder->may_act());
  leases.set_down(false);
  ASSERT_TRUE(passes_until([&] { return begun.load(); }));
  worker.join();
}

// Work that is under way then has the margin to stop, and during the margin no other client has the
// lease.
TEST_F(LeaseHolderTest, ADrainEndsWithTheLeaseAndLeavesItToTheTime) {
  auto holder = acquire();
  auto work = holder->begin();
  leases.set_down(true);
  clock.advance(seconds(9));
  EXPECT_FALSE(holder->drain());
  EXPECT_TRUE(leases.is_held());
  EXPECT_FALSE(holder->may_act());
  EXPECT_EQ(holder->state(), State::expired);
  work.reset();
  holder.reset();
  EXPECT_TRUE(leases.is_held());
}

TEST_F(LeaseHolderTest, IsReleasedOnce) {
  auto holder = acquire();
  leases.set_down(true);
  clock.advance(seconds(9));
  EXPECT_EQ(holder->wait_end(seconds(5)), State::expired);
  EXPECT_TRUE(holder->release().ok());
  EXPECT_TRUE(holder->release().ok());
  holder.reset();
  EXPECT_EQ(leases.revocations(), 1);
}

TEST_F(LeaseHolderTest, ItsEndReleases) {
  acquire().reset();
  EXPECT_FALSE(leases.is_held());
}

// Work under the lease has to stop, and has the margin for that.
TEST_F(LeaseHolderTest, ItsEndLeavesTheMarginToWorkUnderWay) {
  for (const bool stopped : {false, true}) {
    auto holder = acquire();
    leases.set_down(true);
    clock.advance(seconds(9));
    EXPECT_EQ(holder->wait_end(seconds(5)), State::expired);
    leases.set_down(false);
    if (stopped) clock.advance(seconds(1));
    holder.reset();
    EXPECT_EQ(leases.is_held(), !stopped);
    leases.end();
  }
}

TEST_F(LeaseHolderTest, ItsEndKeepsTheLockDelay) {
  auto wanted = options();
  wanted.terms.delay = seconds(60);
  for (const bool told : {false, true}) {
    auto holder = std::move(LeaseHolder::acquire(leases, clock, wanted)).value();
    leases.set_down(true);
    clock.advance(seconds(30));
    EXPECT_EQ(holder->wait_end(seconds(5)), State::expired);
    leases.set_down(false);
    // Its host knows that everything has stopped.
    if (told) {
      EXPECT_TRUE(holder->release().ok());
    }
    holder.reset();
    EXPECT_EQ(leases.is_held(), !told);
    leases.end();
  }
}

TEST_F(LeaseHolderTest, RefusesTimingsThatAreUnsafeAndHoldersWithoutAName) {
  auto unsafe = options();
  unsafe.timing.margin = seconds(10);
  EXPECT_EQ(LeaseHolder::acquire(leases, clock, unsafe).error().code, ErrorCode::invalid_argument);
  auto nameless = options();
  nameless.name.clear();
  EXPECT_EQ(LeaseHolder::acquire(leases, clock, nameless).error().code,
            ErrorCode::invalid_argument);
  EXPECT_FALSE(leases.is_held());
}

}  // namespace
}  // namespace leasehold::client
