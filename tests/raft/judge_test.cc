// What no correct member can have claimed moves nothing: no term, no promise, no entry, no commit.

#include "group.h"

#include <leasehold/raft/fingerprint.h>

#include <gtest/gtest.h>

namespace leasehold::raft::test {
namespace {

constexpr std::uint64_t kJump = std::uint64_t{1} << 40U;

/// Three members, a leader, and three committed entries.
class Judged : public ::testing::Test {
 protected:
  Judged() : group_(3), leader_(group_.elect()) {
    for (int i = 0; i < 3; ++i) group_.propose(leader_, "x");
    group_.run(ms(200));
    follower_ = leader_ % 3 + 1;
    other_ = follower_ % 3 + 1;
  }

  Core& core(int id) { return group_.core(id); }
  std::uint64_t state(int id) {
    Fingerprint print;
    add_core(core(id), group_.now(), print);
    return print.low;
  }
  AppendRequest heartbeat() {
    AppendRequest m;
    m.term = core(leader_).term();
    m.prev = core(leader_).log().last();
    m.commit = core(leader_).commit_index();
    m.round = Round(1000);
    m.lease = core(leader_).options().timing.lease;
    return m;
  }
  Entry entry(Term term, std::uint64_t index) {
    return {{term, Index(index)}, EntryKind::command, Bytes("evil")};
  }
  /// The message moves nothing at `to`, and is reported as `what`.
  void refused(int from, int to, Message message, Violation what) {
    const std::uint64_t before = state(to);
    group_.replica(to).events.clear();
    group_.step(from, to, std::move(message));
    EXPECT_EQ(state(to), before);
    const auto told = events_of<ProtocolViolation>(group_.replica(to));
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told.front().what, what);
    EXPECT_EQ(told.front().peer.value(), static_cast<std::uint64_t>(from));
  }

  Group group_;
  int leader_;
  int follower_ = 0;
  int other_ = 0;
};

TEST_F(Judged, ATermThatNoGroupCanHaveReachedIsRefusedInEveryMessage) {
  const Term huge(std::uint64_t{1} << 61U);
  AppendRequest append = heartbeat();
  append.term = huge;
  refused(other_, follower_, append, Violation::term_too_high);
  group_.run(ms(2000));
  refused(follower_, leader_, VoteReply{Term(1), huge, false, kNobody}, Violation::term_too_high);
  group_.run(ms(2000));
  refused(follower_, leader_, VoteRequest{huge, core(leader_).log().last()},
          Violation::term_too_high);
  group_.run(ms(2000));
  AppendReply reply;
  reply.request_term = Term(1);
  reply.term = huge;
  refused(follower_, leader_, reply, Violation::term_too_high);
}

TEST_F(Judged, ALongAbsenceIsNoViolation) {
  AppendRequest append = heartbeat();
  append.term = Term(kJump);
  group_.step(other_, follower_, append);
  EXPECT_EQ(core(follower_).term(), Term(kJump));
  EXPECT_TRUE(events_of<ProtocolViolation>(group_.replica(follower_)).empty());
}

TEST_F(Judged, TheLargestTermAgainAndAgainGrowsOnlyWithTime) {
  AppendRequest append = heartbeat();
  append.term = Term(kJump);
  group_.step(other_, follower_, append);
  append.term = Term(2 * kJump);
  refused(other_, follower_, append, Violation::term_too_high);
}

TEST_F(Judged, ALeaseOfMoreThanAnHourIsRefused) {
  AppendRequest append = heartbeat();
  append.lease = std::chrono::hours(1) + Duration(1);
  refused(leader_, follower_, append, Violation::lease_too_long);
}

TEST_F(Judged, ALeaseAboveTenTimesTheGroupsIsNotPromised) {
  AppendRequest append = heartbeat();
  append.drift_ppm = lease::Timing().max_clock_drift_ppm;
  const Duration longest = append.lease * 10;
  append.lease = longest + Duration(1);
  group_.step(leader_, follower_, append);
  EXPECT_EQ(core(follower_).promise().remembered(), longest);
  ASSERT_EQ(group_.in_flight().size(), 1U);
  EXPECT_EQ(std::get<AppendReply>(group_.in_flight().front().message).round, Round());
}

TEST_F(Judged, ASecondLeaderOfATermIsRefused) {
  refused(other_, follower_, heartbeat(), Violation::second_leader);
  refused(other_, leader_, heartbeat(), Violation::second_leader);
  group_.restart(follower_);
  refused(other_, follower_, heartbeat(), Violation::second_leader);
}

TEST_F(Judged, CommittedEntriesAreNotReplaced) {
  AppendRequest append = heartbeat();
  append.term = append.term.next();
  append.prev = {Term(0), Index(0)};
  append.entries = {entry(append.term, 1)};
  refused(other_, follower_, append, Violation::committed_replaced);
  group_.run(ms(1000));
  append.entries.clear();
  append.prev = {append.term, Index(2)};
  refused(other_, follower_, append, Violation::committed_replaced);
}

TEST_F(Judged, ASnapshotThatContradictsTheCommittedLogIsRefused) {
  const LogId last = core(follower_).log().last();
  SnapshotChunk chunk;
  chunk.term = core(leader_).term();
  chunk.round = Round(1000);
  chunk.lease = core(leader_).options().timing.lease;
  chunk.membership = group_.membership();
  chunk.size = 1;
  chunk.data = Bytes("x");
  chunk.id = {{last.term.prev(), last.index.next()}, 7};
  refused(leader_, follower_, chunk, Violation::committed_replaced);
  group_.run(ms(1000));
  chunk.id = {{last.term, Index(std::uint64_t{1} << 61U)}, 7};
  refused(leader_, follower_, chunk, Violation::index_too_high);
}

TEST_F(Judged, AMembershipThatCannotFollowIsRefused) {
  Membership joint = group_.membership();
  joint.outgoing_voters = {NodeId(1)};
  AppendRequest append = heartbeat();
  append.entries = {
      {{append.term, append.prev.index.next()}, EntryKind::membership, encode_membership(joint)}};
  refused(leader_, follower_, append, Violation::impossible_membership);
}

TEST_F(Judged, AnAnswerToNothingIsRefused) {
  AppendReply reply;
  reply.request_term = reply.term = core(leader_).term();
  reply.promised = true;
  reply.matched = true;
  reply.round = Round(1);
  reply.index = core(leader_).log().last_index().next();
  refused(follower_, leader_, reply, Violation::answer_to_nothing);
  group_.run(ms(1000));
  reply.index = Index(1);
  reply.round = Round(1) + 1'000'000;
  refused(follower_, leader_, reply, Violation::answer_to_nothing);
  group_.run(ms(1000));
  SnapshotReply snapshot;
  snapshot.request_term = snapshot.term = reply.term;
  snapshot.promised = true;
  snapshot.round = reply.round;
  refused(follower_, leader_, snapshot, Violation::answer_to_nothing);
}

TEST_F(Judged, AnAnswerOfANodeThatIsNoMemberMovesNothing) {
  const std::uint64_t before = state(leader_);
  const Term next = core(leader_).term().next();
  group_.step(Peer{NodeId(9), Uuid{9, 9}}, leader_, VoteReply{next, next, false, kNobody});
  group_.step(Peer{NodeId(9), Uuid{9, 9}}, leader_, PreVoteReply{next, next, false, kNobody});
  EXPECT_EQ(state(leader_), before);
}

TEST_F(Judged, ATokenThatTheLeaderDidNotIssueStartsNoCampaign) {
  const Term term = core(follower_).term();
  group_.step(other_, follower_,
              TimeoutNow{{term, NodeId(static_cast<std::uint64_t>(follower_)),
                          core(follower_).log().last_index()}});
  EXPECT_EQ(core(follower_).term(), term);
  EXPECT_EQ(core(follower_).role(), Role::follower);
}

TEST_F(Judged, ViolationsAreReportedOnceInASecondAndAllCounted) {
  AppendRequest append = heartbeat();
  for (int i = 0; i < 100; ++i) group_.step(other_, follower_, append);
  EXPECT_EQ(events_of<ProtocolViolation>(group_.replica(follower_)).size(), 1U);
  group_.run(ms(1000));
  group_.step(other_, follower_, append);
  EXPECT_EQ(events_of<ProtocolViolation>(group_.replica(follower_)).back().count, 101U);
}

}  // namespace
}  // namespace leasehold::raft::test
