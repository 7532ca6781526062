#include <leasehold/wire/check.h>

#include <leasehold/base/random.h>
#include <leasehold/tests/wire/random_message.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>

namespace leasehold::wire {
namespace {

using raft::Index;
using raft::LogId;
using raft::Term;
using ::testing::HasSubstr;

raft::Entry entry(std::uint64_t term, std::uint64_t index) {
  return raft::Entry{LogId{Term(term), Index(index)}, raft::EntryKind::command,
                     Bytes(std::string("x"))};
}

raft::AppendRequest good_append() {
  raft::AppendRequest m;
  m.term = Term(7);
  m.prev = LogId{Term(3), Index(9)};
  m.entries = {entry(3, 10), entry(5, 11), entry(7, 12)};
  m.commit = Index(8);
  m.round = raft::Round(1);
  m.lease = std::chrono::seconds(1);
  return m;
}

std::string verdict(wire::Payload payload) {
  const Result<void> checked =
      check_message(wire::PeerMessage{raft::GroupId(), std::move(payload)});
  if (checked.ok()) return "holds";
  EXPECT_EQ(checked.error().code, ErrorCode::malformed);
  return checked.error().message;
}

std::string append_verdict(const std::function<void(raft::AppendRequest&)>& change) {
  raft::AppendRequest m = good_append();
  change(m);
  return verdict(raft::Message(m));
}

TEST(Check, RandomMessagesOfEveryKindHold) {
  Random random(1);
  for (int i = 0; i < 5000; ++i) {
    const wire::PeerMessage message = random_message(random);
    ASSERT_EQ(verdict(message.payload), "holds");
  }
}

TEST(Check, Appends) {
  using Append = raft::AppendRequest;
  EXPECT_EQ(append_verdict([](Append&) {}), "holds");
  EXPECT_EQ(append_verdict([](Append& m) { m.entries.clear(); }), "holds");
  EXPECT_THAT(append_verdict([](Append& m) { m.term = Term(); }), HasSubstr("I2"));
  EXPECT_THAT(append_verdict([](Append& m) { m.term = Term(kPositionMax + 1); }), HasSubstr("I1"));
  EXPECT_THAT(append_verdict([](Append& m) { m.commit = Index(kPositionMax + 1); }),
              HasSubstr("I1"));
  EXPECT_THAT(append_verdict([](Append& m) { m.prev.term = Term(); }), HasSubstr("I3"));
  EXPECT_THAT(append_verdict([](Append& m) { m.prev.index = Index(); }), HasSubstr("I3"));
  EXPECT_THAT(append_verdict([](Append& m) { m.prev.term = Term(4); }), HasSubstr("I5"));
  EXPECT_THAT(append_verdict([](Append& m) { m.entries[1].id.term = Term(2); }), HasSubstr("I5"));
  EXPECT_THAT(append_verdict([](Append& m) { m.entries[2].id.term = Term(8); }), HasSubstr("I5"));
  EXPECT_THAT(append_verdict([](Append& m) {
                m.prev = LogId{};
                m.entries = {entry(0, 1)};
              }),
              HasSubstr("I5"));
  EXPECT_THAT(append_verdict([](Append& m) {
                m.entries.clear();
                m.prev.term = Term(8);
              }),
              HasSubstr("I5"));
  EXPECT_THAT(append_verdict([](Append& m) { m.entries.erase(m.entries.begin()); }),
              HasSubstr("I6"));
  EXPECT_THAT(append_verdict([](Append& m) { m.entries[2].id.index = Index(11); }),
              HasSubstr("I6"));
  EXPECT_THAT(append_verdict([](Append& m) {
                m.prev.index = Index(kPositionMax);
                m.entries = {entry(3, kPositionMax + 1)};
              }),
              HasSubstr("I1"));
  EXPECT_THAT(append_verdict([](Append& m) { m.round = raft::Round(); }), HasSubstr("I7"));
  EXPECT_THAT(append_verdict([](Append& m) { m.lease = lease::Duration(0); }), HasSubstr("I7"));
  EXPECT_THAT(append_verdict([](Append& m) { m.lease = lease::Duration(-1); }), HasSubstr("I7"));
  EXPECT_THAT(
      append_verdict([](Append& m) { m.lease = std::chrono::hours(1) + lease::Duration(1); }),
      HasSubstr("I7"));
  EXPECT_EQ(append_verdict([](Append& m) { m.lease = std::chrono::hours(1); }), "holds");
  EXPECT_THAT(append_verdict([](Append& m) { m.drift_ppm = 500'001; }), HasSubstr("I7"));
  EXPECT_THAT(append_verdict([](Append& m) { m.drift_ppm = -1; }), HasSubstr("I7"));
  EXPECT_EQ(append_verdict([](Append& m) { m.drift_ppm = 500'000; }), "holds");
  EXPECT_THAT(append_verdict([](Append& m) { m.entries[0].kind = raft::EntryKind::empty; }),
              HasSubstr("I8"));
  EXPECT_THAT(append_verdict([](Append& m) { m.entries[0].kind = raft::EntryKind::membership; }),
              HasSubstr("I8"));
  EXPECT_THAT(
      append_verdict([](Append& m) { m.entries[0].kind = static_cast<raft::EntryKind>(3); }),
      HasSubstr("I8"));
}

TEST(Check, Votes) {
  EXPECT_EQ(verdict(raft::Message(raft::VoteRequest{Term(1), LogId{}})), "holds");
  EXPECT_THAT(verdict(raft::Message(raft::VoteRequest{Term(0), LogId{}})), HasSubstr("I2"));
  EXPECT_THAT(verdict(raft::Message(raft::VoteRequest{Term(5), LogId{Term(5), Index(1)}})),
              HasSubstr("I4"));
  EXPECT_THAT(verdict(raft::Message(raft::PreVoteRequest{Term(5), LogId{Term(0), Index(1)}})),
              HasSubstr("I3"));
  EXPECT_THAT(verdict(raft::Message(raft::PreVoteReply{})), HasSubstr("I2"));
  EXPECT_THAT(verdict(raft::Message(raft::VoteReply{})), HasSubstr("I2"));
  EXPECT_THAT(verdict(raft::Message(raft::AppendReply{})), HasSubstr("I2"));
}

TEST(Check, Tokens) {
  const LogId last{Term(4), Index(9)};
  const raft::TransferToken token{Term(4), raft::NodeId(2), Index(9)};
  const auto of_vote = [&](raft::TransferToken t) {
    return verdict(raft::Message(raft::VoteRequest{Term(5), last, t}));
  };
  EXPECT_EQ(of_vote(token), "holds");
  EXPECT_EQ(verdict(raft::Message(raft::TimeoutNow{token})), "holds");
  raft::TransferToken other = token;
  other.term = Term(3);
  EXPECT_THAT(of_vote(other), HasSubstr("I12"));
  other = token;
  other.last = Index(8);
  EXPECT_THAT(of_vote(other), HasSubstr("I12"));
  EXPECT_EQ(verdict(raft::Message(raft::TimeoutNow{other})), "holds");
  other.last = Index(0);
  EXPECT_THAT(verdict(raft::Message(raft::TimeoutNow{other})), HasSubstr("I12"));
  other = token;
  other.target = raft::kNobody;
  EXPECT_THAT(verdict(raft::Message(raft::TimeoutNow{other})), HasSubstr("I12"));
  other = token;
  other.term = Term(0);
  EXPECT_THAT(verdict(raft::Message(raft::TimeoutNow{other})), HasSubstr("I2"));
  other.term = Term(kPositionMax + 1);
  EXPECT_THAT(verdict(raft::Message(raft::TimeoutNow{other})), HasSubstr("I1"));
}

TEST(Check, SnapshotChunks) {
  using Chunk = raft::SnapshotChunk;
  const auto of = [](const std::function<void(Chunk&)>& change) {
    Chunk m;
    m.term = Term(7);
    m.round = raft::Round(1);
    m.lease = std::chrono::seconds(1);
    m.id = {LogId{Term(7), Index(9)}, 3};
    m.membership.members = {raft::Member{raft::NodeId(1), raft::Uuid{0, 1}, "a:1"}};
    m.membership.voters = {raft::NodeId(1)};
    m.size = 10;
    m.offset = 4;
    m.data = Bytes(std::string(6, 'x'));
    change(m);
    return verdict(raft::Message(m));
  };
  EXPECT_EQ(of([](Chunk&) {}), "holds");
  EXPECT_THAT(of([](Chunk& m) { m.term = Term(); }), HasSubstr("I2"));
  EXPECT_THAT(of([](Chunk& m) { m.id.last.index = Index(kPositionMax + 1); }), HasSubstr("I1"));
  EXPECT_THAT(of([](Chunk& m) { m.round = raft::Round(); }), HasSubstr("I7"));
  EXPECT_THAT(of([](Chunk& m) { m.lease = lease::Duration(0); }), HasSubstr("I7"));
  EXPECT_THAT(of([](Chunk& m) { m.id.last = LogId{}; }), HasSubstr("I11"));
  EXPECT_THAT(of([](Chunk& m) { m.id.last.term = Term(); }), HasSubstr("I11"));
  EXPECT_THAT(of([](Chunk& m) { m.id.last.term = Term(8); }), HasSubstr("I11"));
  EXPECT_THAT(of([](Chunk& m) { m.data = Bytes(); }), HasSubstr("I11"));
  EXPECT_THAT(of([](Chunk& m) { m.size = 9; }), HasSubstr("I11"));
  EXPECT_THAT(of([](Chunk& m) { m.size = 0; }), HasSubstr("I11"));
  EXPECT_THAT(of([](Chunk& m) { m.offset = ~std::uint64_t{0}; }), HasSubstr("I11"));
  EXPECT_THAT(of([](Chunk& m) { m.membership.voters = {raft::NodeId(2)}; }), HasSubstr("I11"));
  EXPECT_THAT(verdict(raft::Message(raft::SnapshotReply{})), HasSubstr("I2"));
}

TEST(Check, BindsAndEpochs) {
  const auto bind = [](std::uint64_t beat, std::uint64_t incarnation, std::uint64_t counter) {
    raft::AppendRequest m;
    m.term = Term(7);
    m.round = raft::Round(1);
    m.lease = std::chrono::seconds(1);
    m.bind = raft::BindRequest{lease::Beat(beat), {raft::Incarnation(incarnation), counter}};
    return verdict(raft::Message(m));
  };
  EXPECT_EQ(bind(1, 1, 0), "holds");
  EXPECT_THAT(bind(0, 1, 0), HasSubstr("I13"));
  EXPECT_THAT(bind(1, 0, 0), HasSubstr("I13"));
  EXPECT_THAT(bind(kPositionMax + 1, 1, 0), HasSubstr("I1"));
  EXPECT_THAT(bind(1, 1, kPositionMax + 1), HasSubstr("I1"));
  raft::AppendReply reply;
  reply.request_term = Term(7);
  reply.bound = lease::Epoch{raft::Incarnation(1), 0};
  EXPECT_EQ(verdict(raft::Message(reply)), "holds");
  reply.bound = lease::Epoch{};
  EXPECT_THAT(verdict(raft::Message(reply)), HasSubstr("I13"));
}

TEST(Check, Beats) {
  using Beat = raft::ProcessBeat;
  const auto of = [](const std::function<void(Beat&)>& change) {
    Beat m{lease::Beat(5), std::chrono::seconds(1), 100'000, {}};
    m.released = {{raft::GroupId(1), Term(3), lease::Beat(5)}};
    change(m);
    return verdict(m);
  };
  EXPECT_EQ(of([](Beat&) {}), "holds");
  EXPECT_THAT(of([](Beat& m) { m.beat = lease::Beat(); }), HasSubstr("I14"));
  EXPECT_THAT(of([](Beat& m) { m.beat = lease::Beat(kPositionMax + 1); }), HasSubstr("I1"));
  EXPECT_THAT(of([](Beat& m) { m.lease = lease::Duration(0); }), HasSubstr("I7"));
  EXPECT_THAT(of([](Beat& m) { m.lease = std::chrono::hours(2); }), HasSubstr("I7"));
  EXPECT_THAT(of([](Beat& m) { m.drift_ppm = 500'001; }), HasSubstr("I7"));
  EXPECT_THAT(of([](Beat& m) { m.released[0].term = Term(); }), HasSubstr("I2"));
  EXPECT_THAT(of([](Beat& m) { m.released[0].since = lease::Beat(); }), HasSubstr("I14"));
  EXPECT_THAT(of([](Beat& m) { m.released[0].since = lease::Beat(6); }), HasSubstr("I14"));
  EXPECT_THAT(of([](Beat& m) { m.released.resize(5000, m.released[0]); }), HasSubstr("I14"));
  EXPECT_THAT(of([](Beat& m) { m.released.resize(2, m.released[0]); }), HasSubstr("I14"));
  const Beat beat{lease::Beat(5), std::chrono::seconds(1), 100'000, {}};
  EXPECT_FALSE(check_message({raft::GroupId(1), beat}).ok()) << "it is of no group";
  const lease::Epoch epoch{raft::Incarnation(1), 0};
  EXPECT_EQ(verdict(raft::ProcessBeatReply{raft::Incarnation(1), lease::Beat(1), epoch}), "holds");
  EXPECT_THAT(verdict(raft::ProcessBeatReply{{}, lease::Beat(1), epoch}), HasSubstr("I2"));
  EXPECT_THAT(verdict(raft::ProcessBeatReply{raft::Incarnation(1), {}, epoch}), HasSubstr("I14"));
  EXPECT_THAT(verdict(raft::ProcessBeatReply{raft::Incarnation(1), lease::Beat(1), {}}),
              HasSubstr("I13"));
}

TEST(Check, NumbersOfReplicas) {
  const auto of = [](wire::Payload payload, std::uint64_t from, std::uint64_t to) {
    return check_message(
               {raft::GroupId(), std::move(payload), raft::NodeId(from), raft::NodeId(to)})
        .ok();
  };
  const raft::Message append = good_append();
  EXPECT_TRUE(of(append, 3, 4));
  EXPECT_FALSE(of(append, 3, 0));
  EXPECT_FALSE(of(append, 0, 4));
  EXPECT_FALSE(of(raft::ProcessBeat{lease::Beat(5), std::chrono::seconds(1), 100'000, {}}, 3, 4));
}

TEST(Check, IncarnationsAreNeverZero) {
  EXPECT_THAT(verdict(raft::Message(raft::ReadIndexRequest{})), HasSubstr("I2"));
  EXPECT_THAT(verdict(raft::Message(raft::ReadIndexReply{})), HasSubstr("I2"));
  EXPECT_THAT(verdict(wire::ForwardRequest{Term(1), {}, 1, {}}), HasSubstr("I2"));
  EXPECT_THAT(verdict(wire::ForwardReply{}), HasSubstr("I2"));
}

TEST(Check, ForwardReply) {
  wire::ForwardReply m;
  m.incarnation = raft::Incarnation(1);
  EXPECT_EQ(verdict(m), "holds");
  m.reason = static_cast<wire::ForwardRefusal>(3);
  EXPECT_THAT(verdict(m), HasSubstr("I9"));
}

TEST(Check, FormationConfirm) {
  const raft::Member one{raft::NodeId(1), raft::Uuid{0, 1}, "a:1"};
  const raft::Member two{raft::NodeId(2), raft::Uuid{2, 0}, "b:2"};
  const auto of = [](std::vector<raft::Member> members) {
    return verdict(wire::FormationConfirm{std::move(members), false});
  };
  EXPECT_EQ(of({one, two}), "holds");
  EXPECT_THAT(of({}), HasSubstr("I10"));
  wire::PeerMessage asks{raft::GroupId(1), wire::FormationConfirm{}, raft::NodeId(2),
                         raft::NodeId(3)};
  EXPECT_TRUE(check_message(asks).ok()) << "a replica of a host may ask";
  EXPECT_THAT(of({two, one}), HasSubstr("I10"));
  EXPECT_THAT(of({one, one}), HasSubstr("I10"));
  EXPECT_THAT(of({raft::Member{raft::NodeId(), raft::Uuid{0, 1}, "a:1"}}), HasSubstr("I10"));
  EXPECT_THAT(of({raft::Member{raft::NodeId(1), raft::Uuid{}, "a:1"}}), HasSubstr("I10"));
  EXPECT_THAT(of({raft::Member{raft::NodeId(1), raft::Uuid{0, 1}, ""}}), HasSubstr("I10"));
  EXPECT_THAT(of({raft::Member{raft::NodeId(1), raft::Uuid{0, 1}, "a b:1"}}), HasSubstr("I10"));
  EXPECT_THAT(of({raft::Member{raft::NodeId(1), raft::Uuid{0, 1}, std::string(301, 'a')}}),
              HasSubstr("I10"));
}

}  // namespace
}  // namespace leasehold::wire
