// The small parts of the driver by themselves.
#include <leasehold/base/random.h>
#include <leasehold/replica/driver_context.h>
#include <leasehold/replica/entry_cache.h>
#include <leasehold/replica/forward_window.h>
#include <leasehold/replica/limits.h>

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::replica {
namespace {

using raft::Incarnation;
using raft::Index;
using raft::NodeId;
using raft::Term;

raft::Entry entry(std::uint64_t index, std::size_t bytes) {
  return {{Term(1), Index(index)}, raft::EntryKind::command, Bytes(std::string(bytes, 'x'))};
}

TEST(Limits, NameTheOneThatCannotWork) {
  EXPECT_TRUE(Limits().validate());
  Limits impatient;
  impatient.apply_patience = lease::Duration(0);
  EXPECT_FALSE(impatient.validate().ok());
  const auto problem = [](std::size_t Limits::*limit, std::size_t value) {
    Limits limits;
    limits.*limit = value;
    const auto valid = limits.validate();
    return valid ? std::string() : valid.error().message;
  };
  EXPECT_EQ(problem(&Limits::applies_max, 0), "limits.applies_max: 0; give at least 1");
  EXPECT_EQ(problem(&Limits::snapshot_chunk_bytes, 0),
            "limits.snapshot_chunk_bytes: 0; give 1 to 25165824");
  EXPECT_EQ(problem(&Limits::command_bytes_max, 25'165'825),
            "limits.command_bytes_max: 25165825; give 1 to 25165824");
  EXPECT_EQ(problem(&Limits::uncommitted_bytes_max, 1U << 29U),
            "limits.uncommitted_bytes_max: 536870912; give 1 to 100663296");
  EXPECT_EQ(problem(&Limits::snapshot_window_bytes, 1000),
            "limits.snapshot_window_bytes: 1000; it has to hold a chunk of 262144 bytes");
}

TEST(EntryCache, GivesAsMuchAsFitsButAtLeastOne) {
  EntryCache cache(1 << 20);
  for (std::uint64_t i = 5; i < 10; ++i) cache.append(entry(i, 100));
  EXPECT_FALSE(cache.contains(Index(4)));
  EXPECT_TRUE(cache.contains(Index(5)));
  EXPECT_FALSE(cache.contains(Index(10)));
  std::vector<raft::Entry> out;
  EXPECT_EQ(cache.copy(Index(6), Index(9), 250, out), 200U);
  ASSERT_EQ(out.size(), 2U);
  EXPECT_EQ(out[0].id.index, Index(6));
  out.clear();
  EXPECT_EQ(cache.copy(Index(6), Index(9), 1, out), 100U);
  out.clear();
  EXPECT_EQ(cache.copy(Index(8), Index(100), 10'000, out), 200U) << "up to the last it has";
}

TEST(EntryCache, KeepsWhatIsNotDurableWhateverTheLimit) {
  EntryCache cache(1);
  for (std::uint64_t i = 1; i <= 10; ++i) cache.append(entry(i, 10));
  cache.trim(Index(4), Index(10));
  EXPECT_EQ(cache.first(), Index(5));
  cache.trim(Index(10), Index(10));
  EXPECT_TRUE(cache.empty());
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST(EntryCache, WhatTheApplierHasNotSeenStaysUpToTwiceTheLimit) {
  EntryCache cache(10 * (EntryCache::kEntryBytes + 10));
  for (std::uint64_t i = 1; i <= 15; ++i) cache.append(entry(i, 10));
  cache.trim(Index(15), Index(0));
  EXPECT_EQ(cache.first(), Index(1));
  for (std::uint64_t i = 16; i <= 40; ++i) cache.append(entry(i, 10));
  cache.trim(Index(40), Index(0));
  EXPECT_EQ(cache.first(), Index(21));
  cache.trim(Index(40), Index(40));
  EXPECT_EQ(cache.first(), Index(31));
}

TEST(EntryCache, TruncationRemovesTheTail) {
  EntryCache cache(1 << 20);
  for (std::uint64_t i = 1; i <= 10; ++i) cache.append(entry(i, 10));
  cache.truncate(Index(4));
  EXPECT_FALSE(cache.contains(Index(4)));
  cache.append(entry(4, 20));
  EXPECT_EQ(cache.bytes(), 4 * EntryCache::kEntryBytes + 50);
  cache.truncate(Index(1));
  EXPECT_TRUE(cache.empty());
  cache.append(entry(1, 1));
}

raft::Peer directory(std::uint64_t id, std::uint64_t uuid) {
  return {NodeId(id), raft::Uuid{uuid, uuid}};
}

// The window against a set that forgets nothing: it takes nothing twice, and everything that is
// new and not too old.
TEST(ForwardWindow, TakesEachSequenceOnce) {
  Random random(7);
  ForwardWindow window;
  std::set<std::uint64_t> taken;
  std::uint64_t newest = 0;
  for (int i = 0; i < 200'000; ++i) {
    std::uint64_t sequence = newest + 1;
    const std::uint64_t kind = random.below(10);
    if (kind == 0) sequence = newest + random.below(3 * ForwardWindow::kWindow / 2);
    if (kind > 5) sequence = newest - random.below(std::min(newest + 1, std::uint64_t{200}));
    if (kind == 5) sequence = random.below(newest + 1);
    const bool too_old = sequence + ForwardWindow::kWindow <= newest;
    const bool expected = taken.count(sequence) == 0 && !too_old;
    ASSERT_EQ(window.take(directory(1, 1), Incarnation(1), sequence), expected)
        << sequence << " newest " << newest;
    if (expected) {
      taken.insert(sequence);
      newest = std::max(newest, sequence);
    }
  }
}

// Only a faulty peer sends it. Without the bound by steps this test does not end.
TEST(ForwardWindow, TheLargestSequenceEndsTheCounting) {
  constexpr std::uint64_t kLargest = std::numeric_limits<std::uint64_t>::max();
  ForwardWindow window;
  EXPECT_TRUE(window.take(directory(1, 1), Incarnation(1), kLargest - 2));
  EXPECT_TRUE(window.take(directory(1, 1), Incarnation(1), kLargest));
  EXPECT_FALSE(window.take(directory(1, 1), Incarnation(1), kLargest));
  EXPECT_TRUE(window.take(directory(1, 1), Incarnation(1), kLargest - 1));
  EXPECT_FALSE(window.take(directory(1, 1), Incarnation(1), 0)) << "too old";
}

TEST(ForwardWindow, OriginsAndIncarnationsAreApart) {
  ForwardWindow window;
  EXPECT_TRUE(window.take(directory(1, 1), Incarnation(2), 5));
  EXPECT_TRUE(window.take(directory(2, 2), Incarnation(2), 5));
  EXPECT_FALSE(window.take(directory(1, 1), Incarnation(2), 5));
  EXPECT_TRUE(window.take(directory(1, 1), Incarnation(3), 5)) << "a new process counts anew";
  EXPECT_FALSE(window.take(directory(1, 1), Incarnation(2), 6)) << "the old one is gone";
  // A directory that has taken the place of a lost one counts incarnations from the beginning.
  EXPECT_TRUE(window.take(directory(1, 7), Incarnation(1), 5));
  EXPECT_FALSE(window.take(directory(1, 7), Incarnation(1), 5));
  EXPECT_FALSE(window.take(directory(1, 1), Incarnation(3), 5)) << "and forgets nothing";
  window.clear();
  EXPECT_TRUE(window.take(directory(1, 1), Incarnation(2), 5));
}

TEST(Deadlines, ComeOutEarliestFirstAndAreSweptWhenNobodyWaits) {
  Deadlines deadlines;
  Random random(3);
  for (std::uint64_t n = 0; n < 100; ++n) {
    deadlines.add(raft::PromiseInstant(raft::Duration(random.between(0, 20))), WaiterKind::read, n);
  }
  deadlines.sweep([](const Deadlines::Entry& e) { return e.number % 2 == 0; });
  EXPECT_EQ(deadlines.size(), 50U);
  std::pair<raft::PromiseInstant, std::uint64_t> last(raft::PromiseInstant::earliest(), 0);
  while (!deadlines.empty()) {
    const auto entry_now = deadlines.earliest();
    EXPECT_EQ(entry_now.number % 2, 0U);
    const std::pair<raft::PromiseInstant, std::uint64_t> now(entry_now.at, entry_now.number);
    EXPECT_TRUE(last <= now);
    last = now;
    deadlines.pop();
  }
}

}  // namespace
}  // namespace leasehold::replica
