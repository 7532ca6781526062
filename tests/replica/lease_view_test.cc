#include <leasehold/replica/lease_view.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <thread>
#include <vector>

namespace leasehold::replica {

/// A publication and a look of which each step can be stopped.
class LeaseViewSteps {
 public:
  template <class Step>
  static void publish(LeaseView& view, const raft::LeaseState& state, const Step& step) {
    view.publish(state, step);
  }
  template <class Step>
  static raft::LeaseState load(const LeaseView& view, const Step& step) {
    return view.load(step);
  }
};

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

HolderInstant at(std::int64_t instant) {
  return HolderInstant(lease::Duration(instant));
}

LeaseState shown(Term term, HolderInstant end, Index commit, Index sent_commit) {
  return {term, end, commit, sent_commit, raft::kNoClass};
}

LeaseState state_of(std::uint64_t n) {
  return shown(Term(n), HolderInstant(lease::Duration(static_cast<std::int64_t>(3 * n))),
               Index(7 * n), Index(5 * n));
}

/// As it was published, but the sent commit may be that of a later publication.
bool is_copy_of(LeaseState seen, const LeaseState& published) {
  if (seen.sent_commit < published.sent_commit) return false;
  seen.sent_commit = published.sent_commit;
  return seen == published;
}

TEST(LeaseView, HasNoLeaseBeforeTheFirstPublish) {
  const LeaseView view;
  EXPECT_EQ(view.load(), LeaseState{});
  EXPECT_EQ(view.readable_index(StillClock(0)), std::nullopt);
  EXPECT_EQ(view.applied(), Index(0));
}

TEST(LeaseView, GivesTheCommitIndexOnlyBeforeTheLeaseEnds) {
  LeaseView view;
  view.publish(shown(Term(2), HolderInstant(lease::Duration(100)), Index(9), Index(7)));
  EXPECT_EQ(view.readable_index(StillClock(99)), Index(9));
  EXPECT_EQ(view.readable_index(StillClock(100)), std::nullopt) << "the end is outside";
  EXPECT_TRUE(view.look(StillClock(99)).valid());
  EXPECT_FALSE(view.look(StillClock(100)).valid());
}

TEST(LeaseView, AReaderInOrderNeedsOnlyWhatWasSent) {
  LeaseView view;
  view.publish(shown(Term(2), at(100), Index(9), Index(7)));
  EXPECT_EQ(view.look(StillClock(99)).index_in_order(), Index(7));
  EXPECT_EQ(view.look(StillClock(100)).index_in_order(), std::nullopt);
}

// The reader may have copied the publication before, whose lease is valid.
TEST(LeaseView, TheSentCommitNeverFalls) {
  LeaseView view;
  view.publish(shown(Term(2), at(100), Index(9), Index(7)));
  view.publish(shown(Term(2), at(100), Index(9), Index(5)));
  EXPECT_EQ(view.load().sent_commit, Index(7));
}

TEST(LeaseView, ShowsALossAtOnce) {
  LeaseView view;
  view.publish(shown(Term(2), HolderInstant(lease::Duration(100)), Index(9), Index(7)));
  view.publish(shown(Term(2), HolderInstant::earliest(), Index(9), Index(7)));
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
  const LeaseState first = shown(Term(2), at(100), Index(9), Index(7));
  view.publish(first);
  const SlowClock clock(view, shown(Term(3), at(200), Index(12), Index(12)));
  EXPECT_EQ(view.look(clock).state, first);
  EXPECT_EQ(view.look(clock).state.term, Term(3));
}

constexpr raft::LeaseClassId kClass{7};

LeaseState in_class(const LeaseState& state, raft::LeaseClassId lease_class = kClass) {
  LeaseState rests = state;
  rests.lease_class = lease_class;
  return rests;
}

TEST(LeaseView, LastsAsLongAsItsClass) {
  LeaseEnds ends;
  LeaseView view;
  view.rest_on(ends);
  view.publish(in_class(shown(Term(2), at(100), Index(9), Index(7))));
  EXPECT_EQ(view.load().end, at(100)) << "nothing is known of the class yet";
  ends.publish(kClass, at(90));
  EXPECT_EQ(view.load().end, at(100));
  ends.publish(kClass, at(300));
  EXPECT_EQ(view.load().end, at(300));
  EXPECT_EQ(view.readable_index(StillClock(299)), Index(9));
  EXPECT_EQ(view.readable_index(StillClock(300)), std::nullopt);
  ends.publish(raft::kLeaseClassMax, at(900));
  EXPECT_EQ(view.load().end, at(300)) << "another class";
  view.publish(in_class(shown(Term(2), at(100), Index(9), Index(7)), raft::kLeaseClassMax));
  EXPECT_EQ(view.load().end, at(900));
}

TEST(LeaseView, ALossTakesTheClassToo) {
  LeaseEnds ends;
  LeaseView view;
  view.rest_on(ends);
  ends.publish(kClass, at(300));
  view.publish(in_class(shown(Term(2), at(100), Index(9), Index(7))));
  view.publish(shown(Term(2), HolderInstant::earliest(), Index(9), Index(7)));
  EXPECT_EQ(view.readable_index(StillClock(0)), std::nullopt);
}

// Between the loads of a reader the writer takes the class away, and gives it back.
TEST(LeaseView, TheEndOfAClassIsThatOfTheCopy) {
  LeaseEnds ends;
  ends.publish(kClass, at(1'000'000));
  for (int moves = 1; moves <= 3; ++moves) {
    for (int when = 1; when <= 4; ++when) {
      LeaseView view;
      view.rest_on(ends);
      view.publish(in_class(state_of(1)));
      std::uint64_t published = 1;
      int steps = 0;
      const LeaseState seen = LeaseViewSteps::load(view, [&] {
        if (++steps != when) return;
        for (int i = 0; i < moves; ++i) {
          ++published;
          view.publish(published % 2 == 1 ? in_class(state_of(published)) : state_of(published));
        }
      });
      EXPECT_EQ(seen.term.value(), published);
      EXPECT_EQ(seen.lease_class, published % 2 == 1 ? kClass : raft::kNoClass);
      EXPECT_EQ(seen.end, published % 2 == 1 ? at(1'000'000) : state_of(published).end);
    }
  }
}

TEST(LeaseView, NoReaderWaitsForAWriterThatIsStopped) {
  constexpr int kStores = 5;
  for (int stopped_at = 0; stopped_at < kStores; ++stopped_at) {
    LeaseView view;
    view.publish(state_of(1));
    std::future<LeaseState> seen;
    bool at_once = false;
    int stores = 0;
    LeaseViewSteps::publish(view, state_of(2), [&] {
      if (stores++ != stopped_at) return;
      seen = std::async(std::launch::async, [&view] { return view.load(); });
      at_once = seen.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
    });
    EXPECT_EQ(stores, kStores);
    ASSERT_TRUE(at_once) << "stopped before store " << stopped_at;
    EXPECT_TRUE(is_copy_of(seen.get(), state_of(1)));
    EXPECT_EQ(view.load(), state_of(2));
  }
}

/// Publishes the states 2, 3 and so on, one store at a time. A publication that is cut off after
/// some stores and repeated leaves the same words as one that was stopped there and went on.
class StoreByStore {
 public:
  explicit StoreByStore(LeaseView& view) : view_(view) { view.publish(state_of(1)); }

  void advance(int stores) {
    for (; stores > 0; --stores) advance();
  }
  std::uint64_t published() const { return published_; }

 private:
  struct CutOff {};

  void advance() {
    int left = ++stores_;
    try {
      LeaseViewSteps::publish(view_, state_of(published_ + 1), [&left] {
        if (left-- == 0) throw CutOff();
      });
      ++published_;
      stores_ = 0;
    } catch (const CutOff&) {
    }
  }

  LeaseView& view_;
  std::uint64_t published_ = 1;
  int stores_ = 0;  ///< of the publication that is under way
};

// A reader of which each step takes so long that the writer meanwhile makes up to 7 stores, which
// is enough to come back to the slot that is being read.
TEST(LeaseView, EveryOrderOfStepsGivesOneStateThatWasPublishedMeanwhile) {
  constexpr int kMost = 7;
  constexpr int kOrders = 5 * (kMost + 1) * (kMost + 1) * (kMost + 1) * (kMost + 1);
  for (int order = 0; order < kOrders; ++order) {
    int rest = order;
    const auto draw = [&rest](int below) {
      const int drawn = rest % below;
      rest /= below;
      return drawn;
    };
    LeaseView view;
    StoreByStore writer(view);
    writer.advance(draw(5));
    const std::uint64_t before = writer.published();
    int steps = 0;
    const LeaseState seen = LeaseViewSteps::load(view, [&] {
      if (++steps <= 4) writer.advance(draw(kMost + 1));
    });
    const std::uint64_t n = seen.term.value();
    ASSERT_TRUE(is_copy_of(seen, state_of(n))) << order;
    ASSERT_GE(n, before) << order;
    ASSERT_LE(n, writer.published()) << order;
    ASSERT_EQ(steps, writer.published() == before ? 4 : 8)
        << order << ": it tries again only if a publication ended, and once";
  }
}

TEST(LeaseView, ReadersNeverSeeTwoStatesMixedNorGoBack) {
  constexpr std::uint64_t kStates = 200'000;
  LeaseView view;
  view.publish(state_of(1));
  constexpr std::size_t kReaders = 8;
  std::array<std::uint64_t, kReaders> seen{};
  std::array<std::uint64_t, kReaders> torn{};
  std::atomic<std::size_t> started{0};
  std::vector<std::thread> readers;
  for (std::size_t r = 0; r < seen.size(); ++r) {
    readers.emplace_back([&view, &started, &last = seen[r], &mixed = torn[r]] {
      started.fetch_add(1);
      while (last < kStates) {
        const LeaseState state = view.load();
        const std::uint64_t n = state.term.value();
        if (!is_copy_of(state, state_of(n)) || n < last) ++mixed;
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
  EXPECT_EQ(torn, (std::array<std::uint64_t, kReaders>{}));
  EXPECT_EQ(view.applied(), Index(kStates));
}

TEST(LeaseView, ReadersSeeTheEndsOfClassesGoOn) {
  // The last ones are the first of another part of the table.
  const std::vector<raft::LeaseClassId> classes = {raft::LeaseClassId(1), raft::LeaseClassId(4095),
                                                   raft::LeaseClassId(4096)};
  constexpr std::int64_t kMoves = 20'000;
  LeaseEnds ends;
  LeaseView view;
  std::atomic<bool> over{false};
  std::atomic<int> backwards{0};
  std::thread reader([&] {
    HolderInstant newest = HolderInstant::earliest();
    while (!over.load()) {
      const HolderInstant end = view.load().end;
      if (end < newest) ++backwards;
      newest = end;
    }
  });
  view.rest_on(ends);
  for (std::int64_t move = 1; move <= kMoves; ++move) {
    const raft::LeaseClassId now = classes[static_cast<std::size_t>(move) * classes.size() /
                                           (static_cast<std::size_t>(kMoves) + 1)];
    ends.publish(now, at(move));
    view.publish(in_class(shown(Term(2), at(move), Index(9), Index(7)), now));
    ends.publish(now, at(move + 1));
  }
  over = true;
  reader.join();
  EXPECT_EQ(backwards.load(), 0);
  EXPECT_EQ(view.load().end, at(kMoves + 1));
}

TEST(LeaseView, PublishesWhatTheWriterDidBefore) {
  constexpr std::uint64_t kStates = 10'000;
  LeaseView view;
  // Not atomic: the thread sanitizer sees whether the view orders it.
  std::vector<std::uint64_t> plain(kStates + 1, 0);
  std::thread reader([&view, &plain] {
    for (std::uint64_t n = 0; n < kStates;) {
      n = view.load().term.value();
      ASSERT_EQ(plain[n], n);
    }
  });
  for (std::uint64_t n = 1; n <= kStates; ++n) {
    plain[n] = n;
    view.publish(state_of(n));
  }
  reader.join();
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
