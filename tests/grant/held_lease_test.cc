#include <leasehold/grant/held_lease.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace leasehold::grant {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = HeldLease::State;

lease::HolderInstant at(lease::Duration since_origin) {
  return lease::HolderInstant(since_origin);
}

/// U is 10 s - 1 s, without drift.
HolderTiming exact() {
  HolderTiming timing;
  timing.max_clock_drift_ppm = 0;
  return timing;
}

TEST(HeldLease, CountsFromTheSend) {
  HeldLease lease(exact(), seconds(10), at(seconds(100)), 1);
  EXPECT_EQ(lease.deadline(), at(seconds(109)));
  EXPECT_EQ(lease.end(), at(seconds(110)));
  lease.renewed(at(seconds(102)), seconds(10), at(seconds(105)));
  EXPECT_EQ(lease.deadline(), at(seconds(111)));
}

TEST(HeldLease, IsOverAtItsDeadlineAndNotBefore) {
  HeldLease lease(exact(), seconds(10), at(seconds(0)), 1);
  EXPECT_EQ(lease.look(at(seconds(9)) - lease::Duration(1)), State::held);
  EXPECT_EQ(lease.look(at(seconds(9))), State::expired);
}

TEST(HeldLease, ALateAnswerDoesNotGiveItBack) {
  HeldLease lease(exact(), seconds(10), at(seconds(0)), 1);
  lease.renewed(at(seconds(8)), seconds(10), at(seconds(9)));
  EXPECT_EQ(lease.look(at(seconds(9))), State::expired);
  lease.renewed(at(seconds(10)), seconds(10), at(seconds(10)));
  EXPECT_EQ(lease.look(at(seconds(10))), State::expired);
}

TEST(HeldLease, AnswersInAnotherOrderTakeNothingBack) {
  HeldLease lease(exact(), seconds(10), at(seconds(0)), 1);
  lease.renewed(at(seconds(4)), seconds(10), at(seconds(5)));
  lease.renewed(at(seconds(2)), seconds(10), at(seconds(6)));
  EXPECT_EQ(lease.deadline(), at(seconds(13)));
}

TEST(HeldLease, LostAndExpiredAreTwoStates) {
  HeldLease lost(exact(), seconds(10), at(seconds(0)), 1);
  lost.lost();
  EXPECT_EQ(lost.look(at(seconds(1))), State::lost);
  EXPECT_EQ(lost.look(at(seconds(20))), State::lost);

  HeldLease expired(exact(), seconds(10), at(seconds(0)), 1);
  EXPECT_EQ(expired.look(at(seconds(20))), State::expired);
  expired.lost();
  EXPECT_EQ(expired.look(at(seconds(21))), State::expired);

  HeldLease released(exact(), seconds(10), at(seconds(0)), 1);
  released.released();
  released.renewed(at(seconds(1)), seconds(10), at(seconds(1)));
  EXPECT_EQ(released.look(at(seconds(1))), State::released);
}

TEST(HeldLease, TheTimeToLiveThatTheStoreAnswersCounts) {
  HeldLease lease(exact(), seconds(4), at(seconds(0)), 1);
  EXPECT_EQ(lease.deadline(), at(seconds(3)));
}

// Never later than R, or the availability inequality would not hold; spread over a quarter of it.
TEST(HeldLease, RenewalsAreSpread) {
  lease::Duration least = lease::Duration::max();
  lease::Duration most{0};
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    HeldLease lease(exact(), seconds(10), at(seconds(50)), seed);
    const lease::Duration pause = lease.next_renewal() - at(seconds(50));
    least = std::min(least, pause);
    most = std::max(most, pause);
  }
  EXPECT_GE(least, milliseconds(1500));
  EXPECT_LT(least, milliseconds(1510));
  EXPECT_LE(most, milliseconds(2000));
  EXPECT_GT(most, milliseconds(1990));
}

TEST(HeldLease, ARenewalThatFailedIsTriedAgainWithinTheBudget) {
  const HolderTiming timing = exact();
  HeldLease lease(timing, seconds(10), at(seconds(0)), 7);
  lease::HolderInstant now = lease.next_renewal();
  int tries = 0;
  for (; lease.look(now) == State::held; now = lease.next_renewal()) {
    lease.failed(now + timing.max_round_trip);
    EXPECT_GT(lease.next_renewal(), now);
    ++tries;
  }
  // About 7 s are left, and a try with the pause behind it takes at most a second.
  EXPECT_GE(tries, 7);
}

TEST(HeldLease, IsInDoubtFromAFailedRenewalToTheNextGoodOne) {
  HeldLease lease(exact(), seconds(10), at(seconds(0)), 1);
  EXPECT_FALSE(lease.in_doubt());
  lease.failed(at(seconds(2)));
  EXPECT_TRUE(lease.in_doubt());
  EXPECT_EQ(lease.look(at(seconds(3))), State::held);
  lease.renewed(at(seconds(3)), seconds(10), at(seconds(3)));
  EXPECT_FALSE(lease.in_doubt());
}

/// The same, and the store keeps it for 5 s behind its time to live: 15 s in all.
HeldLease with_grace() {
  return {exact(), seconds(10), at(seconds(0)), 1, seconds(5)};
}

TEST(HeldLease, AnAnswerInTheGracePeriodGivesItBack) {
  HeldLease lease = with_grace();
  EXPECT_EQ(lease.look(at(seconds(9)) - lease::Duration(1)), State::held);
  EXPECT_EQ(lease.look(at(seconds(9))), State::in_grace);
  lease.failed(at(seconds(9)));
  EXPECT_EQ(lease.look(at(seconds(11))), State::in_grace);
  lease.renewed(at(seconds(11)), seconds(10), at(seconds(12)));
  EXPECT_EQ(lease.look(at(seconds(12))), State::held);
  EXPECT_FALSE(lease.in_doubt());
  EXPECT_EQ(lease.deadline(), at(seconds(20)));
  // And once more.
  EXPECT_EQ(lease.look(at(seconds(20))), State::in_grace);
  lease.renewed(at(seconds(20)), seconds(10), at(seconds(20)));
  EXPECT_EQ(lease.look(at(seconds(20))), State::held);
}

TEST(HeldLease, ARenewalThatWasSentBeforeTheGracePeriodGivesItBackTillItsOwnDeadline) {
  HeldLease lease = with_grace();
  lease.renewed(at(seconds(4)), seconds(10), at(seconds(10)));
  EXPECT_EQ(lease.look(at(seconds(10))), State::held);
  EXPECT_EQ(lease.deadline(), at(seconds(13)));
}

// The answer took so long that its own time is over. The store has the lease still, and for longer
// than was known.
TEST(HeldLease, AnAnswerAfterItsOwnDeadlineOnlyExtendsTheTries) {
  HeldLease lease = with_grace();
  lease.renewed(at(seconds(4)), seconds(10), at(seconds(13)));
  EXPECT_EQ(lease.look(at(seconds(13))), State::in_grace);
  EXPECT_LE(lease.next_renewal(), at(seconds(13)));
  EXPECT_EQ(lease.look(at(seconds(19)) - lease::Duration(1)), State::in_grace);
  lease.renewed(at(seconds(18)), seconds(10), at(seconds(19)) - lease::Duration(1));
  EXPECT_EQ(lease.look(at(seconds(19))), State::held);
}

TEST(HeldLease, BehindTheGracePeriodNothingGivesItBack) {
  HeldLease lease = with_grace();
  EXPECT_EQ(lease.look(at(seconds(15)) - lease::Duration(1)), State::in_grace);
  EXPECT_EQ(lease.look(at(seconds(15))), State::expired);
  lease.renewed(at(seconds(15)), seconds(10), at(seconds(15)));
  EXPECT_EQ(lease.look(at(seconds(15))), State::expired);

  // No call came since it was held: the next caller learns that it is over.
  HeldLease slept = with_grace();
  slept.renewed(at(seconds(14)), seconds(10), at(seconds(15)));
  EXPECT_EQ(slept.look(at(seconds(15))), State::expired);
}

// It tries until a slow store has ended it, by a holder's clock that is fast.
TEST(HeldLease, TriesWhileTheStoreMayHaveIt) {
  HolderTiming timing;
  timing.max_clock_drift_ppm = 200'000;
  timing.margin = lease::Duration(0);
  HeldLease lease(timing, seconds(6), at(seconds(0)), 1, seconds(4));
  EXPECT_EQ(lease.deadline(), at(seconds(4)));
  EXPECT_EQ(lease.look(at(seconds(15)) - lease::Duration(1)), State::in_grace);
  EXPECT_EQ(lease.stays_until(), at(seconds(15)));
  EXPECT_EQ(lease.look(at(seconds(15))), State::expired);
}

TEST(HeldLease, WithoutAGracePeriodThereIsNone) {
  HeldLease lease(exact(), seconds(10), at(seconds(0)), 1);
  EXPECT_EQ(lease.stays_until(), at(seconds(9)));
  lease.renewed(at(seconds(8)), seconds(10), at(seconds(9)));
  EXPECT_EQ(lease.look(at(seconds(9))), State::expired);
  EXPECT_TRUE(HeldLease::is_over(State::expired));
}

TEST(HeldLease, WhatEndsItEndsItInTheGracePeriodToo) {
  HeldLease lost = with_grace();
  EXPECT_EQ(lost.look(at(seconds(10))), State::in_grace);
  lost.lost();
  lost.renewed(at(seconds(10)), seconds(10), at(seconds(11)));
  EXPECT_EQ(lost.look(at(seconds(11))), State::lost);

  HeldLease released = with_grace();
  EXPECT_EQ(released.look(at(seconds(10))), State::in_grace);
  released.released();
  released.renewed(at(seconds(10)), seconds(10), at(seconds(11)));
  EXPECT_EQ(released.look(at(seconds(11))), State::released);
}

TEST(HeldLease, AGracePeriodThatNoCallerWaitsForIsIgnored) {
  HeldLease early = with_grace();
  early.forgo_grace();
  EXPECT_EQ(early.look(at(seconds(9)) - lease::Duration(1)), State::held);
  EXPECT_EQ(early.look(at(seconds(9))), State::expired);

  HeldLease late = with_grace();
  EXPECT_EQ(late.look(at(seconds(9))), State::in_grace);
  late.forgo_grace();
  late.renewed(at(seconds(9)), seconds(10), at(seconds(9)));
  EXPECT_EQ(late.look(at(seconds(9))), State::expired);
}

TEST(HeldLease, RenewalsGoOnInTheGracePeriod) {
  const HolderTiming timing = exact();
  HeldLease lease(timing, seconds(10), at(seconds(0)), 7, seconds(5));
  lease::HolderInstant now = at(seconds(9));
  int tries = 0;
  while (lease.look(now) == State::in_grace) {
    lease.failed(now + timing.max_round_trip);
    EXPECT_GT(lease.next_renewal(), now);
    now = lease.next_renewal();
    ++tries;
  }
  // 6 s, and a try with the pause behind it takes at most a second.
  EXPECT_GE(tries, 6);
}

/// From then on every renewal is lost.
constexpr lease::Duration kLastAnswer = seconds(60);

/// A store that ends the lease by its own clock, a holder that renews by its own, and messages that
/// take their time, some of them lost. All in true time. With a grace period the lease has a soft
/// limit too, and others who want it: the store ends it at any moment behind its time to live.
class Story {
 public:
  /// The clocks drift by `drift_ppm`; the holder goes by `timing`.
  Story(const HolderTiming& timing, std::int64_t drift_ppm, std::uint64_t seed,
        lease::Duration grace)
      : timing_(timing),
        grace_(grace),
        random_(seed),
        store_ppm_(1'000'000 + (random_.chance(1, 2) ? drift_ppm : -drift_ppm)),
        holder_ppm_(1'000'000 + (random_.chance(1, 2) ? drift_ppm : -drift_ppm)),
        lease_(timing, timing.ttl, on_holder(lease::Duration(0)), seed, grace) {
    ends_ = way() + true_life();
  }

  struct Ending {
    /// From the last act of the holder to the end at the store; negative: it acted too late.
    lease::Duration left{0};
    /// The same of a holder that acts in the grace period too.
    lease::Duration left_of_a_bold_one{0};
    int given_back = 0;
    State state = State::held;
  };
  Ending run() {
    Ending ending;
    lease::Duration acted{0};
    for (lease::Duration now = lease::Duration(0);; now += milliseconds(5)) {
      const State before = ending.state;
      ending.state = lease_.look(on_holder(now));
      if (HeldLease::is_over(ending.state)) return ending;
      if (ending.state == State::held) acted = now;
      if (before == State::in_grace && ending.state == State::held) ++ending.given_back;
      step(now);
      ending.left = ends_ - acted;
      ending.left_of_a_bold_one = ends_ - now;
    }
  }

 private:
  struct Question {
    lease::Duration sent{0};
    lease::Duration answered{0};
    bool gone = false;
  };

  void step(lease::Duration now) {
    if (asked_ && now >= asked_->answered) {
      if (asked_->gone) {
        lease_.lost();
      } else {
        lease_.renewed(on_holder(asked_->sent), timing_.ttl, on_holder(now));
      }
      asked_.reset();
    } else if (!asked_ && on_holder(now) >= lease_.next_renewal()) {
      const bool rough = grace_ > lease::Duration(0);
      if (now >= kLastAnswer || random_.chance(rough ? 4 : 1, rough ? 5 : 3)) {
        lease_.failed(on_holder(now));
        return;
      }
      const lease::Duration arrives = now + way();
      // What the store has ended it does not renew.
      asked_ = Question{now, arrives + way(), arrives >= ends_};
      if (!asked_->gone) ends_ = arrives + true_life();
    }
  }

  lease::Duration way() { return milliseconds(random_.between(0, 1500)); }
  /// The holder's clock after `now` of true time.
  lease::HolderInstant on_holder(lease::Duration now) const {
    return at(lease::Duration(now.count() / 1'000'000 * holder_ppm_));
  }
  /// From a renewal to the end at the store.
  lease::Duration true_life() {
    lease::Duration life = timing_.ttl;
    if (grace_ > lease::Duration(0)) {
      const bool wanted = random_.chance(2, 3);
      life += wanted ? lease::Duration(random_.between(0, grace_.count())) : grace_;
    }
    return lease::Duration(life.count() / store_ppm_ * 1'000'000);
  }

  const HolderTiming timing_;
  const lease::Duration grace_;
  Random random_;
  const std::int64_t store_ppm_;
  const std::int64_t holder_ppm_;
  HeldLease lease_;
  lease::Duration ends_{0};
  std::optional<Question> asked_;
};

constexpr std::int64_t kDriftPpm = 100'000;

/// Over many stories.
struct Endings {
  lease::Duration least_left = lease::Duration::max();
  lease::Duration least_left_of_bold_ones = lease::Duration::max();
  int given_back = 0;
  int lost = 0;
  int expired = 0;
};
Endings endings(const HolderTiming& timing, lease::Duration grace = lease::Duration(0)) {
  Endings all;
  for (std::uint64_t seed = 1; seed <= 800; ++seed) {
    const Story::Ending one = Story(timing, kDriftPpm, seed, grace).run();
    all.least_left = std::min(all.least_left, one.left);
    all.least_left_of_bold_ones = std::min(all.least_left_of_bold_ones, one.left_of_a_bold_one);
    all.given_back += one.given_back;
    all.lost += one.state == State::lost ? 1 : 0;
    all.expired += one.state == State::expired ? 1 : 0;
  }
  return all;
}

HolderTiming at_its_worst() {
  HolderTiming timing;
  timing.max_clock_drift_ppm = kDriftPpm;
  timing.margin = lease::Duration(0);
  return timing;
}

TEST(HeldLease, TheHolderStopsBeforeTheStoreEndsTheLease) {
  const Endings seen = endings(at_its_worst());
  EXPECT_GE(seen.least_left, lease::Duration(0));
  // The bound is tight: with clocks at their worst nothing is wasted.
  EXPECT_LT(seen.least_left, milliseconds(100));
  EXPECT_EQ(seen.given_back, 0);
}

// The control: a holder that ignores drift acts on a lease that the store has ended.
TEST(HeldLease, WithoutAllowanceForDriftTheHolderIsLate) {
  HolderTiming timing = at_its_worst();
  timing.max_clock_drift_ppm = 0;
  EXPECT_LT(endings(timing).least_left, lease::Duration(0));
}

// Leases come back, others are ended in the grace period; and no holder acts after the end.
TEST(HeldLease, WithAGracePeriodTheHolderStopsBeforeAnotherMayHaveIt) {
  const Endings seen = endings(at_its_worst(), seconds(6));
  EXPECT_GE(seen.least_left, lease::Duration(0));
  EXPECT_GT(seen.given_back, 30);
  EXPECT_GT(seen.lost, 30);
  EXPECT_GT(seen.expired, 30);
  // The control: a holder that acts in the grace period acts at the same time as another.
  EXPECT_LT(seen.least_left_of_bold_ones, lease::Duration(0));
}

}  // namespace
}  // namespace leasehold::grant
