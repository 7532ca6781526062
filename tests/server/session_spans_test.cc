// The spans of a session's commands.
#include <leasehold/node/tracer.h>
#include <leasehold/tests/replica/kept_spans.h>
#include <leasehold/tests/server/session_fixture.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

using replica::testing::stations;
using replica::testing::value_of;
using std::chrono::milliseconds;

class SessionTracer final : public node::Tracer, public replica::testing::KeptSpans {
 public:
  using Tracer::Tracer;
  void ended(replica::SpanRecord span) override { keep(std::move(span)); }
};

class SessionSpansTest : public SessionTest {
 protected:
  SessionSpansTest() { state_.tracer = &tracer_; }
  replica::SpanRecord only() {
    const auto spans = tracer_.take();
    EXPECT_EQ(spans.size(), 1U);
    return spans.empty() ? replica::SpanRecord() : spans[0];
  }

  SessionTracer tracer_{1};
};

TEST_F(SessionSpansTest, ACommandThatIsAnsweredAtOnceHasOne) {
  feed("PING\r\n");
  const replica::SpanRecord span = only();
  EXPECT_EQ(span.name, "ping");
  EXPECT_TRUE(span.serves);
  EXPECT_EQ(value_of(span.attributes, "db.operation.name"), "ping");
  EXPECT_EQ(span.problem, "");
}

TEST_F(SessionSpansTest, ARefusalShowsTheFirstWordOfItsError) {
  feed("SECRET word\r\nSET only\r\n");
  const auto spans = tracer_.take();
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].name, "unknown");
  EXPECT_EQ(spans[0].problem, "ERR");
  EXPECT_EQ(spans[1].name, "set");
  EXPECT_EQ(value_of(spans[1].attributes, "db.response.status_code"), "ERR");
}

TEST_F(SessionSpansTest, AWriteIsTheParentOfItsProposalAndEndsWithItsReply) {
  send({"SET", "k", "v"});
  EXPECT_TRUE(tracer_.all().empty());
  const auto named = node_.take_traces();
  ASSERT_EQ(named.size(), 1U);
  node_.manual_clock().advance(milliseconds(3));
  node_.commit_all();
  pump();
  const replica::SpanRecord span = only();
  EXPECT_EQ(named[0], span.self);
  EXPECT_EQ(span.ended - span.began, milliseconds(3));
}

TEST_F(SessionSpansTest, AReplyThatWaitsForAnEarlierOneEndsLater) {
  feed("SET k v\r\nPING\r\n");
  EXPECT_TRUE(tracer_.all().empty());
  node_.manual_clock().advance(milliseconds(3));
  node_.commit_all();
  pump();
  const auto spans = tracer_.take();
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[1].name, "ping");
  EXPECT_EQ(spans[1].ended - spans[1].began, milliseconds(3));
}

TEST_F(SessionSpansTest, AReadUnderTheLeaseSaysSo) {
  node_.grant_lease(milliseconds(500));
  feed("GET k\r\n");
  const replica::SpanRecord span = only();
  ASSERT_EQ(stations(span), (std::vector<std::string>{"justified"}));
  EXPECT_EQ(value_of(span.stations[0].attributes, "leasehold.read.basis"),
            read_end_name(ReadEnd::lease));
}

TEST_F(SessionSpansTest, AReadThatTheNodeJustifiesSaysWhy) {
  feed("GET a\r\nGET b\r\n");
  const auto named = node_.take_traces();
  ASSERT_EQ(named.size(), 1U);  // one read for both
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  pump();
  const auto spans = tracer_.take();
  ASSERT_EQ(spans.size(), 2U);
  for (const replica::SpanRecord& span : spans) {
    ASSERT_EQ(stations(span), (std::vector<std::string>{"asks the node", "justified"}));
    EXPECT_EQ(value_of(span.stations[0].attributes, "leasehold.reason"),
              read_fallback_text(ReadFallback::no_lease));
    EXPECT_EQ(value_of(span.stations[1].attributes, "leasehold.read.basis"),
              read_end_name(ReadEnd::quorum));
  }
  EXPECT_TRUE(named[0] == spans[0].self || named[0] == spans[1].self);
}

TEST_F(SessionSpansTest, AClientsTraceIsThatOfItsNextCommand) {
  tracer_.set_ratio(0);
  const std::string text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  EXPECT_EQ(feed("LEASEHOLD TRACEPARENT " + text + "\r\n"), "+OK\r\n");
  feed("PING\r\nPING\r\n");
  const replica::SpanRecord span = only();
  EXPECT_EQ(span.parent, 0xb7ad6b7169203331U);
  EXPECT_EQ(replica::trace_id_text(span.self), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(feed("LEASEHOLD TRACEPARENT 00-0-0-0\r\n").substr(0, 5), "-ERR ");
}

TEST_F(SessionSpansTest, ACommandWithoutASpanAsksForNone) {
  tracer_.set_ratio(0);
  write({"SET", "k", "v"});
  EXPECT_EQ(node_.take_traces(), (std::vector<replica::TraceContext>{replica::kUntraced}));
  EXPECT_TRUE(tracer_.all().empty());
}

}  // namespace
}  // namespace leasehold::server
