#include <leasehold/lease/held_lease.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace leasehold::lease {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = HeldLease::State;

HolderInstant at(Duration since_origin) {
  return HolderInstant(since_origin);
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
  EXPECT_EQ(lease.look(at(seconds(9)) - Duration(1)), State::held);
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

TEST(HeldLease, TheWordOfTheStoreAndTheEndOfTheTimeAreTwoThings) {
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
  Duration least = Duration::max();
  Duration most{0};
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    HeldLease lease(exact(), seconds(10), at(seconds(50)), seed);
    const Duration pause = lease.next_renewal() - at(seconds(50));
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
  HolderInstant now = lease.next_renewal();
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

/// From then on every renewal is lost.
constexpr Duration kLastAnswer = seconds(20);

/// A store that ends the lease by its own clock, a holder that renews by its own, and messages that
/// take their time, some of them lost. All in true time.
class Story {
 public:
  /// The clocks drift by `drift_ppm`; the holder goes by `timing`.
  Story(const HolderTiming& timing, std::int64_t drift_ppm, std::uint64_t seed)
      : timing_(timing),
        random_(seed),
        store_ppm_(1'000'000 + (random_.chance(1, 2) ? drift_ppm : -drift_ppm)),
        holder_ppm_(1'000'000 + (random_.chance(1, 2) ? drift_ppm : -drift_ppm)),
        lease_(timing, timing.ttl, on_holder(Duration(0)), seed) {
    ends_ = way() + true_ttl();
  }

  /// From the last act of the holder to the end at the store; negative: it acted too late.
  Duration run() {
    Duration acted{0};
    for (Duration now = Duration(0);; now += milliseconds(5)) {
      if (lease_.look(on_holder(now)) != State::held) return ends_ - acted;
      acted = now;
      if (on_holder(now) < lease_.next_renewal()) continue;
      if (now >= kLastAnswer || random_.chance(1, 3)) {
        lease_.failed(on_holder(now));
        continue;
      }
      const Duration arrives = now + way();
      const Duration answered = arrives + way();
      // What the store has ended it does not renew.
      if (arrives >= ends_) return ends_ - now;
      ends_ = arrives + true_ttl();
      lease_.renewed(on_holder(now), timing_.ttl, on_holder(answered));
      now = answered;
    }
  }

 private:
  Duration way() { return milliseconds(random_.between(0, 1500)); }
  /// The holder's clock after `now` of true time.
  HolderInstant on_holder(Duration now) const {
    return at(Duration(now.count() / 1'000'000 * holder_ppm_));
  }
  Duration true_ttl() const { return Duration(timing_.ttl.count() / store_ppm_ * 1'000'000); }

  const HolderTiming timing_;
  Random random_;
  const std::int64_t store_ppm_;
  const std::int64_t holder_ppm_;
  HeldLease lease_;
  Duration ends_{0};
};

constexpr std::int64_t kDriftPpm = 100'000;

/// Over many stories.
Duration least_left(const HolderTiming& timing) {
  Duration least = Duration::max();
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    least = std::min(least, Story(timing, kDriftPpm, seed).run());
  }
  return least;
}

TEST(HeldLease, TheHolderStopsBeforeTheStoreEndsTheLease) {
  HolderTiming timing;
  timing.max_clock_drift_ppm = kDriftPpm;
  timing.margin = Duration(0);
  EXPECT_GE(least_left(timing), Duration(0));
  // The bound is tight: with clocks at their worst nothing is wasted.
  EXPECT_LT(least_left(timing), milliseconds(100));
}

// The control: who allows for no drift acts on a lease that the store has ended.
TEST(HeldLease, WithoutAllowanceForDriftTheHolderIsLate) {
  HolderTiming timing;
  timing.max_clock_drift_ppm = 0;
  timing.margin = Duration(0);
  EXPECT_LT(least_left(timing), Duration(0));
}

}  // namespace
}  // namespace leasehold::lease
