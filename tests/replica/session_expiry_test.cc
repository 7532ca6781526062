// When a leader may say that a session has been idle for too long.
#include <gtest/gtest.h>
#include <leasehold/base/random.h>
#include <leasehold/replica/session_expiry.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <vector>

namespace leasehold::replica {
namespace {

using std::chrono::seconds;

raft::PromiseInstant at(std::int64_t second) {
  return raft::PromiseInstant() + seconds(second);
}

/// A table, and whoever watches it.
struct Watch {
  SessionTable table;
  SessionExpiry expiry{seconds(10)};
  std::optional<raft::Term> term = raft::Term(1);

  /// The ids that are due.
  std::vector<std::uint64_t> look(std::int64_t second) {
    std::vector<std::uint64_t> ids;
    for (const SessionExpiry::Idle& idle : expiry.look(at(second), term, table.list())) {
      ids.push_back(idle.id.value());
    }
    return ids;
  }
};
using Ids = std::vector<std::uint64_t>;

TEST(SessionExpiry, ASessionIsDueWhenItWasIdleForItsWholeTime) {
  Watch watch;
  watch.table.open();
  EXPECT_EQ(watch.look(100), Ids{}) << "just seen";
  EXPECT_EQ(watch.look(109), Ids{});
  EXPECT_EQ(watch.look(110), Ids{1});
  EXPECT_EQ(watch.look(111), Ids{1}) << "at each look until it is gone";
  EXPECT_TRUE(watch.table.expire(SessionId(1), 0));
  EXPECT_EQ(watch.look(112), Ids{});
}

TEST(SessionExpiry, WhateverHappensBeginsTheTimeAnew) {
  Watch watch;
  watch.table.open();
  watch.table.open();
  EXPECT_EQ(watch.look(0), Ids{});
  watch.table.touch(SessionId(2));
  EXPECT_EQ(watch.look(9), Ids{});
  EXPECT_EQ(watch.look(10), Ids{1});
  EXPECT_EQ(watch.look(18), Ids{1});
  EXPECT_EQ(watch.look(19), (Ids{1, 2}));
  watch.table.begin(SessionId(1), 1, 1);
  EXPECT_EQ(watch.look(20), Ids{2}) << "also of one that was due";
}

TEST(SessionExpiry, ItNamesTheActivityThatItSaw) {
  Watch watch;
  watch.table.open();
  watch.table.touch(SessionId(1));
  watch.look(0);
  const auto due = watch.expiry.look(at(10), watch.term, watch.table.list());
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0].activity, 1U);
  watch.table.touch(SessionId(1));
  EXPECT_FALSE(watch.table.expire(due[0].id, due[0].activity)) << "a command came first";
}

TEST(SessionExpiry, ALeaderThatHasJustBegunGivesEverySessionItsWholeTime) {
  Watch watch;
  watch.table.open();
  watch.look(0);
  watch.term = raft::Term(3);
  EXPECT_EQ(watch.look(11), Ids{}) << "in a later term it may have led, and lost, another between";
  EXPECT_EQ(watch.look(20), Ids{});
  EXPECT_EQ(watch.look(21), Ids{1});
}

TEST(SessionExpiry, NobodyButTheLeaderSaysAnything) {
  Watch watch;
  watch.table.open();
  watch.look(0);
  watch.term = std::nullopt;
  EXPECT_EQ(watch.look(30), Ids{});
  watch.term = raft::Term(1);
  EXPECT_EQ(watch.look(31), Ids{}) << "what it had seen before it did not lead is forgotten";
  EXPECT_EQ(watch.look(41), Ids{1});
}

TEST(SessionExpiry, AnIdThatWasGoneIsNotKnownAnyMore) {
  Watch watch;
  watch.table.open();
  watch.look(0);
  const std::vector<SessionTable::Session> nobody;
  EXPECT_TRUE(watch.expiry.look(at(5), watch.term, nobody).empty());
  EXPECT_EQ(watch.look(12), Ids{});
}

// Whatever the order of looks, commands and elections: never before the whole idle time has passed
// since the newest activity or the beginning of the leadership, and never later than that time and
// two looks.
TEST(SessionExpiry, NeverTooEarlyAndNotLate) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    Watch watch;
    std::map<std::uint64_t, std::int64_t> active;
    std::int64_t leads_since = 0;
    int due_count = 0;
    for (std::int64_t now = 0; now < 600; ++now) {
      const std::uint64_t what = random.below(100);
      if (what < 5) active[watch.table.open()->value()] = now;
      if (what >= 5 && what < 40 && !active.empty()) {
        const std::uint64_t id = 1 + random.below(watch.table.newest().value());
        if (watch.table.touch(SessionId(id))) active[id] = now;
      }
      if (what == 99) {
        watch.term = raft::Term(watch.term->value() + 1);
        leads_since = now;
      }
      const Ids due = watch.look(now);
      for (const auto& [id, since] : active) {
        const bool named = std::find(due.begin(), due.end(), id) != due.end();
        const std::int64_t idle = now - std::max(since, leads_since);
        if (named) ++due_count;
        ASSERT_TRUE(!named || idle >= 10) << seed << " " << now;
        ASSERT_TRUE(named || idle <= 10) << seed << " " << now;
      }
      if (due.empty() || random.chance(1, 2)) continue;
      for (const auto& idle : watch.expiry.look(at(now), watch.term, watch.table.list())) {
        ASSERT_TRUE(watch.table.expire(idle.id, idle.activity));
        active.erase(idle.id.value());
      }
    }
    ASSERT_GT(due_count, 0);
  }
}

}  // namespace
}  // namespace leasehold::replica
