#include <leasehold/client/lease_holder.h>
#include <leasehold/tests/client/manual_clock.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace leasehold::client {
namespace {

using lease::Duration;
using lease::HolderInstant;
using std::chrono::milliseconds;
using std::chrono::seconds;
using State = LeaseHolder::State;

/// One name in memory. A test may make it fail, or act in the middle of a call.
class FakeLeases final : public LeaseService {
 public:
  Result<Granted> grant(const Request& request, Duration /*timeout*/) override {
    const std::lock_guard lock(mutex_);
    terms_ = request.terms;
    if (const auto act = std::exchange(act_during_grant_, nullptr)) act();
    if (down_) return Error{ErrorCode::unavailable, "no leader"};
    const bool taken = held_.has_value();
    if (!taken) {
      ++revision_;
      held_ = Found{{grant::LeaseId(revision_), grant::FencingToken(revision_), request.ttl},
                    request.holder};
      name_ = request.name;
    }
    if (std::exchange(lose_answer_, false)) return Error{ErrorCode::timed_out, "no answer"};
    if (taken) return Error{ErrorCode::in_use, "held by " + held_->holder};
    return *held_;
  }
  Result<Found> find(const std::string& name, Duration /*timeout*/) override {
    const std::lock_guard lock(mutex_);
    ++finds_;
    if (!held_ || name != name_) return Error{ErrorCode::not_found, "no such lease"};
    return *held_;
  }
  Result<Duration> renew(grant::LeaseId id, Duration /*timeout*/) override {
    if (const auto act = during_renewal()) act();
    const std::lock_guard lock(mutex_);
    ++renewals_;
    if (down_) return Error{ErrorCode::unavailable, "no leader"};
    if (!held_ || held_->id != id) return Error{ErrorCode::not_found, "no such lease"};
    return held_->ttl;
  }
  Result<void> revoke(grant::LeaseId id, Duration /*timeout*/) override {
    const std::lock_guard lock(mutex_);
    ++revocations_;
    if (!held_ || held_->id != id) return Error{ErrorCode::not_found, "no such lease"};
    held_.reset();
    return {};
  }

  void set_down(bool down) {
    const std::lock_guard lock(mutex_);
    down_ = down;
  }
  void lose_next_answer() {
    const std::lock_guard lock(mutex_);
    lose_answer_ = true;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    held_.reset();
  }
  void act_during_renewal(std::function<void()> act) {
    const std::lock_guard lock(mutex_);
    act_ = std::move(act);
  }
  /// Of the next grant only.
  void act_during_grant(std::function<void()> act) {
    const std::lock_guard lock(mutex_);
    act_during_grant_ = std::move(act);
  }
  /// Of the last request.
  grant::LeaseTerms terms() const {
    const std::lock_guard lock(mutex_);
    return terms_;
  }
  bool is_held() const {
    const std::lock_guard lock(mutex_);
    return held_.has_value();
  }
  int renewals() const {
    const std::lock_guard lock(mutex_);
    return renewals_;
  }
  int finds() const {
    const std::lock_guard lock(mutex_);
    return finds_;
  }
  int revocations() const {
    const std::lock_guard lock(mutex_);
    return revocations_;
  }

 private:
  std::function<void()> during_renewal() const {
    const std::lock_guard lock(mutex_);
    return act_;
  }

  mutable std::mutex mutex_;
  std::optional<Found> held_;
  std::string name_;
  grant::LeaseTerms terms_;
  std::function<void()> act_;
  std::function<void()> act_during_grant_;
  std::uint64_t revision_ = 41;
  int renewals_ = 0;
  int revocations_ = 0;
  int finds_ = 0;
  bool down_ = false;
  bool lose_answer_ = false;
};

bool within(milliseconds time, const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}
bool eventually(const std::function<bool()>& holds) {
  return within(seconds(20), holds);
}

class LeaseHolderTest : public ::testing::Test {
 protected:
  static LeaseHolder::Options options() {
    LeaseHolder::Options options;
    options.name = "printer";
    options.holder = "me";
    // U is 9 s.
    options.timing.max_clock_drift_ppm = 0;
    return options;
  }
  std::unique_ptr<LeaseHolder> acquire() {
    auto held = LeaseHolder::acquire(leases, clock, options());
    EXPECT_TRUE(held.ok());
    return held ? std::move(held).value() : nullptr;
  }

  /// Half a second at a time. The holder reads the clock for an answer when it comes to that, and
  /// waits from then on.
  bool passes_until(const std::function<bool()>& holds) {
    for (int steps = 0; steps < 8; ++steps) {
      clock.advance(milliseconds(500));
      if (within(milliseconds(100), holds)) return true;
    }
    return false;
  }

  ManualClock clock;
  FakeLeases leases;
};

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

TEST_F(LeaseHolderTest, ARenewalThatWasAnsweredTooLateGivesNothingBack) {
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
  // Not since the grant, of which nobody knows when it was: since the renewal.
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

TEST_F(LeaseHolderTest, AnothersGrantIsNotTakenForOnesOwn) {
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

TEST_F(LeaseHolderTest, WhoGivesUpGivesAGrantBackOfWhichItHasNotHeard) {
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
  // Nothing new; what was begun goes on, and the lease is held meanwhile.
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

// What is under way then has the margin to stop in, and for so long nobody else has the lease.
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

// What was done under it is told to stop, and has the margin for that.
TEST_F(LeaseHolderTest, ItsEndTakesNobodysMarginAway) {
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

TEST_F(LeaseHolderTest, ItsEndTakesNoLockDelayAway) {
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

// No renewal has failed, so there is no doubt: its thread, which slept, waits for the answer.
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

TEST_F(LeaseHolderGraceTest, IsNoEndForWhoWaitsForThat) {
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

TEST_F(LeaseHolderGraceTest, BehindItTheLeaseIsOver) {
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

// Somebody else wanted it, and it has a soft limit; or somebody has ended it by hand.
TEST_F(LeaseHolderGraceTest, WhatTheGroupHasEndedInItIsLost) {
  const auto holder = acquire_and_be_late();
  leases.end();
  leases.set_down(false);
  ASSERT_TRUE(passes_until([&] { return holder->state() == State::lost; }));
  EXPECT_FALSE(holder->may_act());
}

// Nobody wants it back, so nobody waits for it: what was begun had to stop at the deadline.
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
