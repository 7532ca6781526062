// The promise between two processes, and what groups rest on it: each rule, and then both sides
// under random schedules.
#include <leasehold/base/random.h>
#include <leasehold/lease/support.h>
#include <leasehold/lease/supporter.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::lease {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kD{1000};

PromiseInstant at(std::int64_t ms) {
  return PromiseInstant(milliseconds(ms));
}
HolderInstant held_at(std::int64_t ms) {
  return HolderInstant(milliseconds(ms));
}
Process process(std::uint64_t incarnation, std::uint64_t place = 7) {
  return {Incarnation(incarnation), place};
}
Support supported() {
  Support support{Incarnation(9)};
  EXPECT_TRUE(support.renew(process(4), kD, at(0)));
  return support;
}
Bind bind(std::uint64_t beat, const Epoch& epoch) {
  return {process(4), Beat(beat), epoch};
}

// ---- The member ----

TEST(Support, CoversWhatIsBoundAtThePresentEpochUntilItsEnd) {
  const Support support = supported();
  EXPECT_TRUE(support.covers(support.epoch(), at(999)));
  EXPECT_FALSE(support.covers(support.epoch(), at(1000)));
  EXPECT_FALSE(support.covers(Epoch{Incarnation(8), 0}, at(0)));
}

TEST(Support, IsRenewedAtTheSameEpochAlsoAfterItsEnd) {
  Support support = supported();
  const Epoch before = support.epoch();
  EXPECT_TRUE(support.renew(process(4), kD, at(5000)));
  EXPECT_EQ(support.epoch(), before);
  EXPECT_TRUE(support.covers(before, at(5500)));
}

TEST(Support, NeverMovesItsEndBack) {
  Support support = supported();
  EXPECT_TRUE(support.renew(process(4), milliseconds(10), at(100)));
  EXPECT_EQ(support.until(), at(1000));
  EXPECT_EQ(support.remembered(), kD);
}

TEST(Support, WhatIsReliedUponIsANewEpoch) {
  Support support = supported();
  const Epoch before = support.epoch();
  support.rely(at(1000));
  EXPECT_GT(support.epoch(), before);
  EXPECT_TRUE(support.renew(process(4), kD, at(1001)));
  EXPECT_FALSE(support.covers(before, at(1001)));
}

TEST(Support, OfALaterProcessIsANewEpoch) {
  Support support = supported();
  const Epoch before = support.epoch();
  EXPECT_TRUE(support.renew(process(5), kD, at(1)));
  EXPECT_GT(support.epoch(), before);
  EXPECT_FALSE(support.covers(before, at(2)));
}

TEST(Support, IgnoresProcessesThatHaveEnded) {
  Support support = supported();
  const PromiseInstant until = support.until();
  EXPECT_FALSE(support.renew(process(3), kD, at(500)));
  EXPECT_FALSE(support.renew(process(0), kD, at(500)));
  EXPECT_EQ(support.until(), until);
  EXPECT_EQ(support.process(), process(4));
}

TEST(Support, AProcessAtAnotherPlaceWaitsForTheEndOfTheSupport) {
  Support support = supported();
  const Epoch before = support.epoch();
  EXPECT_FALSE(support.renew(process(5, 8), kD, at(999)));
  EXPECT_EQ(support.epoch(), before);
  EXPECT_TRUE(support.renew(process(5, 8), kD, at(1000)));
  EXPECT_GT(support.epoch(), before);
}

TEST(Support, WhatIsReliedOnWasOverWhenItEnded) {
  Support support = supported();
  const PromiseInstant until = support.until();
  support.rely(until + std::chrono::seconds(5));
  EXPECT_EQ(support.let_go_at(), until);
}

TEST(Support, EndsWithItsProcess) {
  Support support = supported();
  const Epoch before = support.epoch();
  support.end(process(3), at(1));
  support.end(process(4, 8), at(1));
  EXPECT_EQ(support.epoch(), before);
  EXPECT_EQ(support.let_go_at(), PromiseInstant::earliest());
  support.end(process(4), at(1));
  EXPECT_EQ(support.let_go_at(), at(1));
  EXPECT_FALSE(support.covers(before, at(1)));
  // What it has sent is ignored; the next process is heard.
  EXPECT_FALSE(support.renew(process(4), kD, at(1)));
  EXPECT_TRUE(support.renew(process(5), kD, at(1)));
}

TEST(Support, AcceptsABindOfItsProcessAtItsEpochOnly) {
  const Support support = supported();
  const Epoch epoch = support.epoch();
  EXPECT_TRUE(support.accepts(bind(1, epoch)));
  EXPECT_FALSE(support.accepts(bind(1, Epoch{epoch.incarnation, epoch.counter + 1})));
  EXPECT_FALSE(support.accepts({process(5), Beat(1), epoch}));
  EXPECT_FALSE(Support{Incarnation(9)}.accepts({Process{}, Beat(1), Epoch{Incarnation(9), 0}}));
}

TEST(Support, ABindFromBeforeTheReleaseComesTooLate) {
  Support support = supported();
  support.release(process(4), Beat(6));
  support.release(process(4), Beat(3));
  support.release(process(3), Beat(9));
  EXPECT_FALSE(support.accepts(bind(5, support.epoch())));
  EXPECT_TRUE(support.accepts(bind(6, support.epoch())));
  // The beats of the next process begin at 1.
  EXPECT_TRUE(support.renew(process(5), kD, at(1)));
  EXPECT_TRUE(support.accepts({process(5), Beat(1), support.epoch()}));
}

TEST(Support, ARestartIsANewEpoch) {
  const Support before = supported();
  const Support after = Support::restarted(Incarnation(10), kD, kD, at(5));
  EXPECT_GT(after.epoch(), before.epoch());
  EXPECT_FALSE(after.covers(before.epoch(), at(6)));
}

// The groups' promises bind for the longer D from the first restart on. A second restart has to
// find it.
TEST(Support, AfterARestartAShorterDIsRememberedOnlyWhenItReachesAsFar) {
  Support support = Support::restarted(Incarnation(10), 10 * kD, 10 * kD, at(0));
  EXPECT_TRUE(support.renew(process(4), kD, at(100)));
  EXPECT_EQ(support.remembered(), 10 * kD);
  EXPECT_TRUE(support.renew(process(4), kD, at(9000)));
  EXPECT_EQ(support.remembered(), kD);
}

// ---- The holder ----

struct Holder {
  Beats beats;
  Supporter supporter;
  Epoch epoch{Incarnation(9), 2};

  Beat begin(std::int64_t ms) { return beats.begin(held_at(ms), Timing{}); }
  std::optional<HolderInstant> began() const {
    const auto acknowledged = supporter.acknowledged(epoch);
    if (!acknowledged) return std::nullopt;
    return acknowledged->began;
  }
};

TEST(Supporter, CountsTheNewestBeatAtTheEpochOfTheBinding) {
  Holder holder;
  EXPECT_EQ(holder.began(), std::nullopt);
  const Beat first = holder.begin(10);
  const Beat second = holder.begin(20);
  holder.supporter.acknowledge(holder.beats, second, holder.epoch);
  holder.supporter.acknowledge(holder.beats, first, holder.epoch);
  EXPECT_EQ(holder.began(), held_at(20));
  EXPECT_EQ(holder.supporter.acknowledged(Epoch{Incarnation(9), 1}), std::nullopt);
}

TEST(Supporter, AHigherEpochEndsWhatWasAcknowledged) {
  Holder holder;
  const Beat first = holder.begin(10);
  const Beat second = holder.begin(20);
  holder.supporter.acknowledge(holder.beats, first, holder.epoch);
  const Epoch higher{Incarnation(9), 3};
  holder.supporter.acknowledge(holder.beats, first, higher);
  EXPECT_EQ(holder.began(), std::nullopt);
  // A late answer from before.
  holder.supporter.acknowledge(holder.beats, second, holder.epoch);
  EXPECT_EQ(holder.began(), std::nullopt);
  EXPECT_EQ(holder.supporter.acknowledged(higher)->began, held_at(10));
}

TEST(Supporter, AForgottenBeatShowsItsEpochAndNoMore) {
  Holder holder;
  const Beat first = holder.begin(10);
  for (std::size_t i = 0; i < RoundRing::kCapacity; ++i) holder.begin(20);
  holder.supporter.acknowledge(holder.beats, first, holder.epoch);
  EXPECT_EQ(holder.supporter.epoch(), holder.epoch);
  EXPECT_EQ(holder.began(), std::nullopt);
  holder.supporter.acknowledge(holder.beats, Beat(1'000'000), holder.epoch);
  EXPECT_EQ(holder.began(), std::nullopt);
}

// ---- Both, under random schedules ----

constexpr std::size_t kGroups = 2;
constexpr std::size_t kOnTheWire = 24;
constexpr std::int64_t kDriftPpm = 100'000;

/// One holder, one member, two groups that the holder leads now and then. Messages are late, come
/// twice or not at all; either process ends and starts again; the clocks drift as far as allowed.
/// The promises of the groups' own appends are left out: a lease stands on beats alone.
class Schedule {
 public:
  explicit Schedule(std::uint64_t seed)
      : random_(seed), holder_rate_(rate()), member_rate_(rate()) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      for (std::size_t g = 0; g < kGroups; ++g) ASSERT_TRUE(safe(g)) << "step " << i;
    }
  }
  /// Everything arrives, and nobody leads, acts or ends any more.
  void settle() {
    for (std::size_t g = 0; g < kGroups; ++g) {
      if (led_[g]) leave(g);
    }
    for (int i = 0; i < 3; ++i) {
      beat();
      while (!wire_.empty()) deliver(take(0));
    }
  }
  bool bound(std::size_t g) const {
    return member_[g].bound && *member_[g].bound == support_.epoch();
  }
  std::uint64_t checks() const { return checks_; }
  std::uint64_t reliances() const { return reliances_; }

 private:
  struct Release {
    std::size_t group = 0;
    std::uint64_t term = 0;
    Beat beat;
  };
  struct BeatMessage {
    Process from;
    Beat beat;
    Duration duration{0};
    std::vector<Release> releases;
  };
  struct BeatAnswer {
    Process to;
    Beat beat;
    Epoch epoch;
  };
  struct Append {
    std::size_t group = 0;
    std::uint64_t term = 0;
    Bind bind;
  };
  struct Bound {
    Process to;
    std::size_t group = 0;
    std::uint64_t term = 0;
    Epoch epoch;
  };
  using Message = std::variant<BeatMessage, BeatAnswer, Append, Bound>;

  /// A group at the leader.
  struct Led {
    std::uint64_t term = 0;
    std::optional<Epoch> bound;
  };
  /// A group at the member.
  struct Promised {
    std::uint64_t term = 0;  ///< below it, it hears nobody
    bool promised = false;   ///< in that term
    std::optional<Epoch> bound;
    PromiseInstant until = PromiseInstant::earliest();  ///< since a restart
  };

  std::int64_t rate() { return 1'000'000 + (random_.chance(1, 2) ? kDriftPpm : -kDriftPpm); }
  HolderInstant holder_now() const {
    return HolderInstant(Duration(time_ * holder_rate_ / 1'000'000));
  }
  PromiseInstant member_now() const {
    return PromiseInstant(Duration(time_ * member_rate_ / 1'000'000));
  }

  void step() {
    const std::size_t g = random_.below(kGroups);
    if (wire_.size() > kOnTheWire) take(0);
    if (random_.chance(1, 2)) return some_message();
    switch (random_.below(16)) {
      case 0:
      case 1: return pass(milliseconds(60));
      case 2: pass(milliseconds(random_.chance(1, 3) ? 4000 : 300)); return act(g);
      case 3:
      case 4:
      case 5: return beat();
      case 6:
      case 7: return append(g);
      case 8: return act(g);
      case 9: return lead(g);
      case 10: return random_.chance(1, 2) && led_[g] ? leave(g) : beat();
      case 11: return random_.chance(1, 6) ? restart_holder() : append(g);
      case 12: return random_.chance(1, 6) ? restart_member() : beat();
      default: return some_message();
    }
  }

  void pass(milliseconds longest) {
    const auto count = static_cast<std::uint64_t>(Duration(longest).count());
    time_ += static_cast<std::int64_t>(random_.below(count));
  }

  void some_message() {
    if (wire_.empty()) return;
    // Most are on time.
    const std::size_t late = random_.below(random_.chance(3, 4) ? 3 : wire_.size());
    const std::size_t i = wire_.size() - 1 - std::min(late, wire_.size() - 1);
    if (random_.chance(1, 8)) return deliver(wire_[i]);  // and again later
    const Message message = take(i);
    if (!random_.chance(1, 8)) deliver(message);
  }
  Message take(std::size_t i) {
    Message message = std::move(wire_[i]);
    wire_.erase(wire_.begin() + static_cast<std::ptrdiff_t>(i));
    return message;
  }
  void deliver(const Message& message) {
    std::visit([this](const auto& content) { receive(content); }, message);
  }

  // ---- The holder ----

  void beat() {
    Timing timing;
    timing.max_clock_drift_ppm = kDriftPpm;
    timing.margin = Duration(0);
    timing.lease = milliseconds(random_.chance(1, 8) ? 3000 : 500);
    const Beat beat = beats_.begin(holder_now(), timing);
    wire_.emplace_back(BeatMessage{holder_, beat, timing.lease, releases_});
  }
  void append(std::size_t g) {
    if (!led_[g] || !supporter_.epoch()) return;
    wire_.emplace_back(
        Append{g, led_[g]->term, Bind{holder_, beats_.newest(), *supporter_.epoch()}});
  }
  void lead(std::size_t g) {
    if (!led_[g]) led_[g] = Led{++newest_term_[g], std::nullopt};
  }
  void leave(std::size_t g) {
    releases_.push_back({g, led_[g]->term, beats_.newest().next()});
    led_[g].reset();
  }
  void restart_holder() {
    holder_.incarnation = holder_.incarnation.next();
    beats_ = Beats();
    supporter_ = Supporter();
    releases_.clear();
    led_ = {};
    if (random_.chance(1, 2)) support_.end(process(holder_.incarnation.value() - 1), member_now());
  }
  void receive(const BeatAnswer& answer) {
    if (answer.to != holder_) return;
    const std::optional<Epoch> before = supporter_.epoch();
    supporter_.acknowledge(beats_, answer.beat, answer.epoch);
    if (before && *supporter_.epoch() > *before) releases_.clear();
    std::erase_if(releases_,
                  [&answer](const Release& release) { return release.beat <= answer.beat; });
  }
  void receive(const Bound& bound) {
    if (bound.to != holder_ || !led_[bound.group] || led_[bound.group]->term != bound.term) return;
    std::optional<Epoch>& known = led_[bound.group]->bound;
    if (!known || *known < bound.epoch) known = bound.epoch;
  }

  // ---- The member ----

  void receive(const BeatMessage& beat) {
    constexpr Duration kOwn = milliseconds(200);
    if (!support_.renew(beat.from, std::max(beat.duration, kOwn), member_now())) return;
    for (const Release& release : beat.releases) {
      support_.release(beat.from, release.beat);
      Promised& group = member_[release.group];
      if (group.promised && group.term <= release.term) {
        group.promised = false;
        group.bound.reset();
        group.until = PromiseInstant::earliest();
      }
    }
    remembered_ = support_.remembered();  // durable before the answer leaves
    wire_.emplace_back(BeatAnswer{beat.from, beat.beat, support_.epoch()});
  }
  void receive(const Append& append) {
    Promised& group = member_[append.group];
    if (append.term < group.term) return;
    if (append.term > group.term) group = Promised{append.term, true, std::nullopt, {}};
    group.promised = true;
    if (!support_.accepts(append.bind)) return;
    group.bound = support_.epoch();
    wire_.emplace_back(Bound{append.bind.process, append.group, append.term, *group.bound});
  }
  /// What a live promise forbids: the group has another leader from then on.
  void act(std::size_t g) {
    Promised& group = member_[g];
    const PromiseInstant now = member_now();
    if (!group.promised || now < group.until) return;
    if (group.bound && support_.covers(*group.bound, now)) return;
    if (bound(g)) {
      support_.rely(now);
      ++reliances_;
    }
    over_[g] = std::max(over_[g], group.term);
    newest_term_[g] = std::max(newest_term_[g], group.term + 1);
    group = Promised{newest_term_[g], false, std::nullopt, {}};
  }
  void restart_member() {
    self_ = self_.next();
    support_ = Support::restarted(self_, remembered_, remembered_, member_now());
    for (Promised& group : member_) {
      group.bound.reset();
      if (group.promised) group.until = member_now() + remembered_;
    }
  }

  // ---- The judge ----

  /// No lease that counts on this member is valid once the member has acted against it.
  bool safe(std::size_t g) {
    if (!led_[g] || !led_[g]->bound) return true;
    const auto acknowledged = supporter_.acknowledged(*led_[g]->bound);
    if (!acknowledged || holder_now() >= acknowledged->end()) return true;
    ++checks_;
    return over_[g] < led_[g]->term;
  }

  Random random_;
  std::int64_t holder_rate_;
  std::int64_t member_rate_;
  std::int64_t time_ = 1'000'000'000;
  std::vector<Message> wire_;

  Process holder_ = process(1);
  Beats beats_;
  Supporter supporter_;
  std::vector<Release> releases_;
  std::array<std::optional<Led>, kGroups> led_;

  Incarnation self_{1};
  Support support_{Incarnation(1)};
  Duration remembered_{0};
  std::array<Promised, kGroups> member_;

  std::array<std::uint64_t, kGroups> newest_term_{};
  /// The newest term against whose promise the member has acted.
  std::array<std::uint64_t, kGroups> over_{};
  std::uint64_t checks_ = 0;
  std::uint64_t reliances_ = 0;
};

TEST(SupportSchedules, NoLeaseOutlivesThePromisesThatItCountsOn) {
  std::uint64_t checks = 0;
  std::uint64_t reliances = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    Schedule schedule(seed);
    schedule.run(300);
    if (HasFatalFailure()) return;
    checks += schedule.checks();
    reliances += schedule.reliances();
  }
  EXPECT_GT(checks, 100'000U);
  EXPECT_GT(reliances, 1'000U);
}

TEST(SupportSchedules, NoGroupStaysBoundToALeaderThatIsNone) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(seed);
    Schedule schedule(seed);
    schedule.run(150);
    schedule.settle();
    for (std::size_t g = 0; g < kGroups; ++g) ASSERT_FALSE(schedule.bound(g));
  }
}

}  // namespace
}  // namespace leasehold::lease
