#include <leasehold/replica/lease_view.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace leasehold::replica {
namespace {

using raft::HolderInstant;
using raft::Index;
using raft::LeaseState;
using raft::Term;

/// A clock that stands where the test puts it.
class StillClock : public lease::Clock {
 public:
  explicit StillClock(std::int64_t at) : at_(at) {}
  lease::Now now() const override { return {holder_now(), lease::PromiseInstant(at_)}; }
  HolderInstant holder_now() const override { return HolderInstant(at_); }

 private:
  lease::Duration at_;
};

LeaseState state_of(std::uint64_t n) {
  return {Term(n), HolderInstant(lease::Duration(static_cast<std::int64_t>(3 * n))), Index(7 * n)};
}

TEST(LeaseView, HasNoLeaseBeforeTheFirstPublish) {
  const LeaseView view;
  EXPECT_EQ(view.load(), LeaseState{});
  EXPECT_EQ(view.readable_index(StillClock(0)), std::nullopt);
  EXPECT_EQ(view.applied(), Index(0));
}

TEST(LeaseView, GivesTheCommitIndexOnlyBeforeTheLeaseEnds) {
  LeaseView view;
  view.publish({Term(2), HolderInstant(lease::Duration(100)), Index(9)});
  EXPECT_EQ(view.readable_index(StillClock(99)), Index(9));
  EXPECT_EQ(view.readable_index(StillClock(100)), std::nullopt) << "the end is outside";
}

TEST(LeaseView, ShowsALossAtOnce) {
  LeaseView view;
  view.publish({Term(2), HolderInstant(lease::Duration(100)), Index(9)});
  view.publish({Term(2), HolderInstant::earliest(), Index(9)});
  EXPECT_EQ(view.readable_index(StillClock(0)), std::nullopt);
}

/// A clock of which each look takes so long that the view moves on meanwhile.
class SlowClock final : public StillClock {
 public:
  SlowClock(LeaseView& view, const LeaseState& next) : StillClock(50), view_(view), next_(next) {}
  HolderInstant holder_now() const override {
    view_.publish(next_);
    return StillClock::holder_now();
  }

 private:
  LeaseView& view_;
  LeaseState next_;
};

// The other way round a pause between the two could make an old view pass by an old clock.
TEST(LeaseView, IsCopiedBeforeTheClockIsRead) {
  LeaseView view;
  const LeaseState first{Term(2), HolderInstant(lease::Duration(100)), Index(9)};
  view.publish(first);
  const SlowClock clock(view, {Term(3), HolderInstant(lease::Duration(200)), Index(12)});
  EXPECT_EQ(view.look(clock).state, first);
  EXPECT_EQ(view.look(clock).state.term, Term(3));
}

TEST(LeaseView, ReadersNeverSeeTwoStatesMixedNorGoBack) {
  constexpr std::uint64_t kStates = 1'000'000;
  LeaseView view;
  view.publish(state_of(1));
  std::array<std::uint64_t, 3> seen{};
  std::array<std::uint64_t, 3> torn{};
  std::atomic<std::size_t> started{0};
  std::vector<std::thread> readers;
  for (std::size_t r = 0; r < seen.size(); ++r) {
    readers.emplace_back([&view, &started, &last = seen[r], &mixed = torn[r]] {
      started.fetch_add(1);
      while (last < kStates) {
        const LeaseState state = view.load();
        const std::uint64_t n = state.term.value();
        if (!(state == state_of(n)) || n < last) ++mixed;
        last = n;
      }
    });
  }
  while (started.load() < seen.size()) std::this_thread::yield();
  for (std::uint64_t n = 2; n <= kStates; ++n) {
    view.publish(state_of(n));
    view.publish_applied(Index(n));
  }
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(torn, (std::array<std::uint64_t, 3>{}));
  EXPECT_EQ(view.applied(), Index(kStates));
}

TEST(LeaseView, AppliedPublishesWhatTheStateMachineWrote) {
  LeaseView view;
  std::uint64_t plain = 0;  // not atomic: the thread sanitizer sees whether `applied` orders it
  std::thread reader([&view, &plain] {
    while (view.applied() < Index(1)) std::this_thread::yield();
    EXPECT_EQ(plain, 42U);
  });
  plain = 42;
  view.publish_applied(Index(1));
  reader.join();
}

}  // namespace
}  // namespace leasehold::replica
