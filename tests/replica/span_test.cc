// Spans: their form, and the stations that a driver notes.
#include <leasehold/tests/replica/driver_cluster.h>
#include <leasehold/tests/replica/kept_spans.h>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::replica {
namespace {

using testing::Answer;
using testing::Cluster;
using testing::in_order;
using testing::KeepingSink;
using testing::milliseconds;
using testing::Rig;
using testing::stations;
using testing::value_of;
using Names = std::vector<std::string>;

lease::HolderInstant at(int ns) {
  return lease::HolderInstant(lease::Duration(ns));
}

TEST(TraceContext, IsReadAsTheStandardWritesIt) {
  const std::string text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const auto context = parse_traceparent(text);
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace_high, 0x0af7651916cd43ddU);
  EXPECT_EQ(context->trace_low, 0x8448eb211c80319cU);
  EXPECT_EQ(context->span, 0xb7ad6b7169203331U);
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(traceparent(*context), text);
  std::string other = text;
  other.back() = '2';  // another flag
  EXPECT_FALSE(parse_traceparent(other)->sampled);
  EXPECT_EQ(traceparent(*parse_traceparent(other)), text.substr(0, 53) + "00");
  // A later version may say more.
  EXPECT_EQ(parse_traceparent("01" + text.substr(2) + "-more"), context);
}

TEST(TraceContext, IsRefusedInAnyOtherForm) {
  const std::string text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  EXPECT_FALSE(parse_traceparent(""));
  EXPECT_FALSE(parse_traceparent(text.substr(0, 54)));
  EXPECT_FALSE(parse_traceparent(text + "-more"));  // version 00 has no more
  EXPECT_FALSE(parse_traceparent("ff" + text.substr(2)));
  EXPECT_FALSE(parse_traceparent("01" + text.substr(2) + "more"));
  for (const std::size_t place : {0U, 2U, 3U, 34U, 35U, 36U, 52U, 53U}) {
    std::string wrong = text;
    wrong[place] = 'A';
    EXPECT_FALSE(parse_traceparent(wrong)) << place;
  }
  EXPECT_FALSE(parse_traceparent("00-" + std::string(32, '0') + text.substr(35)));
  EXPECT_FALSE(parse_traceparent(text.substr(0, 36) + std::string(16, '0') + "-01"));
}

TEST(Span, HasItsStationsInTheOrderOfTime) {
  KeepingSink sink;
  SpanRecord begun;
  begun.began = at(100);
  Span span(begun, sink);
  span.station("one", at(90));  // before its beginning
  span.station("two", at(300));
  span.station("three", at(200));
  span.end(at(250));
  ASSERT_EQ(sink.all().size(), 1U);
  const SpanRecord record = sink.all()[0];
  EXPECT_EQ(stations(record), (Names{"one", "two", "three"}));
  EXPECT_TRUE(in_order(record));
  EXPECT_EQ(record.stations[0].at, at(100));
  EXPECT_EQ(record.ended, at(300));
}

TEST(Span, EndsOnce) {
  KeepingSink sink;
  Span span({}, sink);
  span.end(at(1), "failed");
  span.end(at(2));
  span.station("late", at(3));
  span.add(attribute("late", 1));
  ASSERT_EQ(sink.all().size(), 1U);
  EXPECT_EQ(sink.all()[0].problem, "failed");
  EXPECT_EQ(sink.all()[0].ended, at(1));
  EXPECT_TRUE(sink.all()[0].stations.empty());
}

TEST(Span, CountsTheStationsThatItDoesNotKeep) {
  KeepingSink sink;
  Span span({}, sink);
  for (std::size_t i = 0; i < kSpanStationsMax + 3; ++i) span.station("again", at(1));
  span.end(at(2));
  EXPECT_EQ(sink.all()[0].stations.size(), kSpanStationsMax);
  EXPECT_EQ(sink.all()[0].stations_dropped, 3U);
}

// ---- What a driver notes ----

class DriverSpan : public ::testing::Test {
 protected:
  DriverSpan() { cluster_.await_leader(); }

  Rig& leader() { return cluster_.await_leader(); }
  Rig& follower() { return cluster_.node(leader().id().value() % 3 + 1); }
  SpanPointer begin() {
    SpanRecord begun;
    begun.began = cluster_.now().holder;
    span_ = std::make_shared<Span>(begun, sink_);
    return span_;
  }
  Propose command(const std::string& text, lease::Duration timeout = testing::kLong) {
    Propose event = testing::propose(cluster_, text, proposed_, timeout);
    event.span = begin();
    return event;
  }
  Read read(raft::ReadMode mode) {
    Read event = testing::read(cluster_, mode, answered_);
    event.span = begin();
    return event;
  }
  /// Behind the answer.
  SpanRecord ended() {
    EXPECT_TRUE(cluster_.advance_until([this] { return proposed_.calls + answered_.calls > 0; }));
    cluster_.settle();
    span_->end(cluster_.now().holder);
    SpanRecord record = sink_.all().at(0);
    EXPECT_TRUE(in_order(record));
    return record;
  }

  Cluster cluster_{3};
  KeepingSink sink_;
  SpanPointer span_;
  Answer<ProposeResult> proposed_;
  Answer<ReadResult> answered_;
};

TEST_F(DriverSpan, OfACommandAtTheLeader) {
  leader().handle(cluster_.now(), command("x"));
  const SpanRecord record = ended();
  EXPECT_EQ(proposed_.value.status, ProposeStatus::committed);
  ASSERT_EQ(stations(record), (Names{"queued", "appended", "durable", "committed"}));
  EXPECT_EQ(value_of(record.stations[1].attributes, "leasehold.index"),
            std::to_string(proposed_.value.id.index.value()));
  EXPECT_EQ(value_of(record.stations[1].attributes, "leasehold.term"),
            std::to_string(proposed_.value.id.term.value()));
}

TEST_F(DriverSpan, OfACommandHasTheTimeOfEachTurn) {
  Rig& node = leader();
  cluster_.cut(node.id().value());
  const lease::HolderInstant first = cluster_.now().holder;
  node.handle(cluster_.now(), command("x"));
  cluster_.advance(milliseconds(10));
  cluster_.heal();
  const SpanRecord record = ended();
  ASSERT_EQ(record.stations.size(), 4U);
  EXPECT_EQ(record.stations[1].at, first);
  EXPECT_GT(record.stations[3].at, first);
}

TEST_F(DriverSpan, OfAForwardedCommandSaysToWhom) {
  follower().handle(cluster_.now(), command("x"));
  const SpanRecord record = ended();
  EXPECT_EQ(proposed_.value.status, ProposeStatus::committed);
  ASSERT_EQ(stations(record), (Names{"forwarded"}));
  EXPECT_EQ(value_of(record.stations[0].attributes, "leasehold.leader"),
            std::to_string(leader().id().value()));
}

TEST_F(DriverSpan, OfACommandThatTheLeaderRefusesSaysWhy) {
  Rig& from = follower();
  from.handle(cluster_.now(), command("x"));
  const auto sent = from.take_sent();
  ASSERT_EQ(sent.size(), 1U);
  const auto& request = std::get<wire::ForwardRequest>(sent[0].message.payload);
  from.handle(
      cluster_.now(),
      PeerMessageReceived{
          leader().peer(),
          {raft::GroupId(1), wire::ForwardReply{request.incarnation, request.sequence,
                                                wire::ForwardRefusal::overloaded, raft::kNobody}}});
  const SpanRecord record = ended();
  EXPECT_EQ(proposed_.value.status, ProposeStatus::dropped);
  ASSERT_EQ(stations(record), (Names{"forwarded", "refused by the leader"}));
  EXPECT_EQ(value_of(record.stations[1].attributes, "leasehold.reason"), "overloaded");
}

TEST_F(DriverSpan, OfACommandThatItsLeaderCannotCommitShowsTheChange) {
  Rig& old = leader();
  cluster_.cut(old.id().value());
  old.handle(cluster_.now(), command("x"));
  Rig& next = cluster_.await_leader();
  ASSERT_NE(next.id(), old.id());
  cluster_.heal();
  const SpanRecord record = ended();
  EXPECT_EQ(proposed_.value.status, ProposeStatus::committed);
  EXPECT_EQ(stations(record), (Names{"queued", "appended", "durable", "leadership lost",
                                     "not committed", "forwarded"}));
  EXPECT_EQ(value_of(record.stations.back().attributes, "leasehold.leader"),
            std::to_string(next.id().value()));
}

TEST_F(DriverSpan, OfACommandThatIsLostOnTheWayShowsThatItWasSentAgain) {
  int lost = 0;
  cluster_.lose = [&lost](raft::NodeId, const Rig::Sent& sent) {
    return std::holds_alternative<wire::ForwardRequest>(sent.message.payload) && ++lost == 1;
  };
  follower().handle(cluster_.now(), command("x"));
  EXPECT_EQ(stations(ended()), (Names{"forwarded", "forwarded again"}));
}

TEST_F(DriverSpan, OfAQuorumReadAtTheLeader) {
  leader().handle(cluster_.now(), read(raft::ReadMode::quorum));
  const SpanRecord record = ended();
  ASSERT_EQ(stations(record), (Names{"asked", "justified"}));
  EXPECT_EQ(value_of(record.stations[1].attributes, "leasehold.index"),
            std::to_string(answered_.value.index->value()));
}

TEST_F(DriverSpan, OfAReadAtAFollowerSaysWhomItAsked) {
  follower().handle(cluster_.now(), read(raft::ReadMode::lease));
  const SpanRecord record = ended();
  ASSERT_GE(record.stations.size(), 2U);
  EXPECT_EQ(record.stations[0].name, "asked the leader");
  EXPECT_EQ(value_of(record.stations[0].attributes, "leasehold.leader"),
            std::to_string(leader().id().value()));
  EXPECT_EQ(record.stations[1].name, "justified");
}

TEST_F(DriverSpan, OfAReadThroughTheLogIsThatOfACommand) {
  leader().handle(cluster_.now(), read(raft::ReadMode::log));
  EXPECT_EQ(stations(ended()), (Names{"queued", "appended", "durable", "committed"}));
}

TEST_F(DriverSpan, OfAReadThatWaitsForApplyShowsIt) {
  Rig& node = leader();
  const raft::Index next = node.driver().applied().next();
  WaitApplied wait{next, cluster_.in(testing::kLong), answered_.completion()};
  wait.span = begin();
  node.handle(cluster_.now(), std::move(wait));
  Answer<ProposeResult> other;
  node.handle(cluster_.now(), testing::propose(cluster_, "x", other));
  const SpanRecord record = ended();
  ASSERT_EQ(stations(record), (Names{"waits for apply"}));
  EXPECT_EQ(value_of(record.stations[0].attributes, "leasehold.applied"),
            std::to_string(next.value() - 1));
}

TEST_F(DriverSpan, OfACommandWithoutALeaderIsHeld) {
  Cluster fresh(3);
  Rig& node = fresh.node(1);
  Propose event = testing::propose(fresh, "x", proposed_);
  event.span = begin();
  node.handle(fresh.now(), std::move(event));
  ASSERT_TRUE(fresh.advance_until([this] { return proposed_.calls > 0; }));
  span_->end(fresh.now().holder);
  EXPECT_EQ(stations(sink_.all().at(0)).front(), "held");
  EXPECT_GE(sink_.all().at(0).stations.size(), 2U);
}

}  // namespace
}  // namespace leasehold::replica
