// Reads of followers: what justifies the index that their leader gives them.

#include "group.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::raft::test {
namespace {

/// A group with a leader that holds a lease, and one of its followers. Nothing is on its way.
class RemoteRead : public ::testing::Test {
 protected:
  RemoteRead() : group(3), leader(group.elect()) {
    group.run(ms(200));
    follower = leader % 3 + 1;
  }

  template <class What>
  std::size_t in_flight() const {
    std::size_t count = 0;
    for (const Envelope& e : group.in_flight()) {
      if (std::holds_alternative<What>(e.message)) ++count;
    }
    return count;
  }
  /// Delivers what is on its way now, and nothing that follows from it.
  void deliver_once() {
    std::deque<Envelope> now;
    now.swap(group.in_flight());
    for (const Envelope& e : now) {
      group.step(static_cast<int>(e.from.value()), static_cast<int>(e.to.value()), e.message);
    }
  }
  /// A request of the follower's, as it arrives at the leader.
  void request(std::uint64_t id, bool quorum) {
    group.step(follower, leader, ReadIndexRequest{Incarnation(1), id, quorum});
  }
  /// Takes the answers to the follower that are on their way.
  std::vector<ReadIndexReply> take_replies() {
    std::vector<ReadIndexReply> found;
    std::deque<Envelope> others;
    for (Envelope& e : group.in_flight()) {
      if (const auto* reply = std::get_if<ReadIndexReply>(&e.message)) {
        found.push_back(*reply);
      } else {
        others.push_back(std::move(e));
      }
    }
    group.in_flight().swap(others);
    return found;
  }
  const std::vector<ReadAnswer>& answers() { return group.replica(follower).reads; }

  Group group;
  int leader = 0;
  int follower = 0;
};

// ---- Which round confirms it (H5) ----

TEST_F(RemoteRead, TheNewestRoundWasAcknowledgedBeforeItAndDoesNotConfirmIt) {
  group.settle();
  group.ask(follower, 1, ReadMode::quorum);
  deliver_once();  // the request
  EXPECT_EQ(in_flight<ReadIndexReply>(), 0U);
  EXPECT_EQ(in_flight<AppendRequest>(), 2U) << "a round begins for it";
  deliver_once();
  EXPECT_EQ(in_flight<AppendReply>(), 2U);
  deliver_once();
  EXPECT_EQ(in_flight<ReadIndexReply>(), 1U);
  group.settle();
  ASSERT_EQ(answers().size(), 1U);
  EXPECT_EQ(answers().back().basis, ReadBasis::leader);
  EXPECT_EQ(answers().back().index, group.core(leader).commit_index());
}

TEST_F(RemoteRead, ARoundThatIsOutWhenItArrivesDoesNotConfirmIt) {
  group.jump(group.core(leader).next_deadline() - group.now().promise);
  group.tick(leader);
  ASSERT_EQ(in_flight<AppendRequest>(), 2U);
  request(7, true);
  deliver_once();
  ASSERT_EQ(in_flight<AppendReply>(), 2U);
  deliver_once();
  EXPECT_EQ(in_flight<ReadIndexReply>(), 0U);
  group.settle();
  EXPECT_EQ(group.core(leader).pending_reads(), 0U);
}

// The two kinds of read stand in one queue, and each keeps its own round.
TEST_F(RemoteRead, ItsRoundIsItsOwnBesideAReadOfTheLeader) {
  group.ask(leader, 5, ReadMode::quorum);
  ASSERT_EQ(in_flight<AppendRequest>(), 2U);
  request(7, true);
  deliver_once();
  deliver_once();
  EXPECT_EQ(group.replica(leader).reads.size(), 1U);
  EXPECT_EQ(in_flight<ReadIndexReply>(), 0U) << "the round of the read before it";
  group.settle();
  EXPECT_EQ(group.core(leader).pending_reads(), 0U);
}

// What that rule prevents: the leader was deposed, and does not know it.
TEST_F(RemoteRead, ADeposedLeaderGivesNoIndex) {
  group.settle();
  const Index before = group.core(leader).commit_index();
  group.isolate(leader);
  // Its own clock stands still, as that of a process that sleeps: it takes nothing in.
  const int other = 6 - leader - follower;
  Core& sleeper = group.core(leader);
  group.replica(leader).up = false;
  group.run(ms(5000));
  group.replica(leader).up = true;
  const int next = group.core(other).role() == Role::leader ? other : follower;
  ASSERT_EQ(group.core(next).role(), Role::leader);
  group.propose(next, "new");
  group.settle();
  ASSERT_GT(group.core(next).commit_index(), before);
  Now slow = group.now();
  slow.holder = slow.holder - ms(5000);
  slow.promise = slow.promise - ms(5000);
  Core asleep = sleeper;
  asleep.step(slow, peer(NodeId(static_cast<std::uint64_t>(follower))),
              ReadIndexRequest{Incarnation(1), 7, true});
  Ready ready;
  while (asleep.take_ready(ready)) {
    for (const OutgoingMessage& m : ready.messages) {
      const auto* reply = std::get_if<ReadIndexReply>(&m.message);
      EXPECT_TRUE(reply == nullptr || !reply->index) << "an index from before the write";
    }
  }
}

// ---- Which request justifies it ----

// What is committed after a request has left, its answer need not show.
TEST_F(RemoteRead, OneThatComesWhileARequestIsOutIsAskedForByTheNext) {
  for (const ReadMode mode : {ReadMode::lease, ReadMode::quorum}) {
    group.replica(follower).reads.clear();
    group.ask(follower, 5, mode);
    std::vector<ReadIndexReply> replies;
    while (replies.empty()) {
      ASSERT_FALSE(group.in_flight().empty());
      deliver_once();
      replies = take_replies();
    }
    group.propose(leader, "x");
    group.settle();
    const Index commit = group.core(leader).commit_index();
    group.ask(follower, 6, mode);
    EXPECT_TRUE(group.in_flight().empty()) << "one request at a time";
    ASSERT_EQ(replies.size(), 1U);
    ASSERT_LT(*replies.front().index, commit);
    group.step(leader, follower, replies.front());
    ASSERT_EQ(answers().size(), 1U);
    EXPECT_EQ(answers().back().read, 5U);
    EXPECT_EQ(in_flight<ReadIndexRequest>(), 1U) << "the next one leaves at once";
    group.settle();
    ASSERT_EQ(answers().size(), 2U);
    EXPECT_EQ(answers().back().read, 6U);
    EXPECT_EQ(answers().back().index, commit);
  }
}

TEST_F(RemoteRead, TheAnswerToARequestThatWasSentAgainIsTooOldForTheReadsOfTheNewOne) {
  for (const ReadMode mode : {ReadMode::lease, ReadMode::quorum}) {
    group.replica(follower).reads.clear();
    std::optional<ReadIndexReply> late;
    group.filter = [&late](const Envelope& e) {
      const auto* reply = std::get_if<ReadIndexReply>(&e.message);
      if (reply == nullptr) return true;
      if (!late) late = *reply;
      return false;
    };
    group.ask(follower, 5, mode);
    group.settle();
    ASSERT_TRUE(late.has_value());
    group.propose(leader, "x");
    group.run(ms(100));
    group.ask(follower, 6, mode);
    group.run(ms(300));  // the request is sent again, for both
    const Index commit = group.core(leader).commit_index();
    ASSERT_LT(*late->index, commit);
    group.step(leader, follower, *late);
    EXPECT_TRUE(answers().empty());
    group.filter = [](const Envelope&) { return true; };
    group.run(ms(700));
    ASSERT_EQ(answers().size(), 2U);
    EXPECT_EQ(answers().back().index, commit);
  }
}

// ---- How many may wait ----

constexpr std::uint64_t kRemoteReadsMax = 1024;

// The bound is on those that wait at one time, not on those of a term.
TEST_F(RemoteRead, ATermServesAnyNumberOfThem) {
  const Term term = group.core(leader).term();
  std::uint64_t id = 0;
  for (const bool quorum : {false, true}) {
    for (std::uint64_t i = 0; i < 2 * kRemoteReadsMax; ++i) {
      request(++id, quorum);
      std::vector<ReadIndexReply> replies = take_replies();
      while (replies.empty() && !group.in_flight().empty()) {
        deliver_once();
        replies = take_replies();
      }
      ASSERT_EQ(replies.size(), 1U);
      ASSERT_TRUE(replies.front().index.has_value()) << "number " << id;
    }
  }
  EXPECT_EQ(group.core(leader).term(), term);
  EXPECT_EQ(group.core(leader).pending_reads(), 0U);
}

TEST_F(RemoteRead, MoreThanTheBoundAreRefusedUntilThoseBeforeAreAnswered) {
  std::uint64_t id = 0;
  for (int again = 0; again < 3; ++again) {
    for (std::uint64_t i = 0; i < kRemoteReadsMax; ++i) request(++id, true);
    EXPECT_TRUE(take_replies().empty());
    request(++id, true);
    const std::vector<ReadIndexReply> refused = take_replies();
    ASSERT_EQ(refused.size(), 1U);
    EXPECT_EQ(refused.front().id, id);
    EXPECT_FALSE(refused.front().index.has_value());
    // Its own callers are not those of peers.
    group.ask(leader, id, ReadMode::quorum);
    EXPECT_EQ(group.core(leader).pending_reads(), kRemoteReadsMax + 1);
    std::size_t served = 0;
    while (!group.in_flight().empty()) {
      deliver_once();
      for (const ReadIndexReply& reply : take_replies()) {
        EXPECT_TRUE(reply.index.has_value());
        ++served;
      }
    }
    EXPECT_EQ(served, kRemoteReadsMax);
    EXPECT_EQ(group.core(leader).pending_reads(), 0U);
  }
}

// Those that wait at a leader which is deposed are no burden of its next leadership.
TEST_F(RemoteRead, ANewLeadershipBeginsWithNone) {
  group.isolate(leader);
  for (std::uint64_t id = 1; id <= kRemoteReadsMax; ++id) request(id, true);
  group.in_flight().clear();
  const int first = leader;
  group.run(ms(3000));
  ASSERT_NE(group.core(first).role(), Role::leader);
  group.heal();
  group.run(ms(2000));
  for (int i = 0; i < 5 && group.elect() != first; ++i) {
    const int other = group.elect();
    group.core(other).transfer(group.now(), NodeId(static_cast<std::uint64_t>(first)));
    group.drain(other);
    group.run(ms(1000));
  }
  ASSERT_EQ(group.elect(), first);
  group.step(follower, first, ReadIndexRequest{Incarnation(1), 5000, false});
  const std::vector<ReadIndexReply> replies = take_replies();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_TRUE(replies.front().index.has_value());
}

}  // namespace
}  // namespace leasehold::raft::test
