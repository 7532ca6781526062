// The spans of calls at running nodes.
#include <leasehold/node/tracer.h>
#include <leasehold/tests/node/node_fixture.h>
#include <leasehold/tests/replica/kept_spans.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::node {
namespace {

using namespace std::chrono_literals;
using replica::testing::in_order;
using replica::testing::stations;
using replica::testing::value_of;

class NodeTracer final : public Tracer, public replica::testing::KeptSpans {
 public:
  using Tracer::Tracer;
  void ended(replica::SpanRecord span) override { keep(std::move(span)); }
};

constexpr replica::TraceContext kCaller{.trace_high = 7, .trace_low = 8, .span = 9};

class NodeTracedTest : public NodeTest {
 protected:
  /// Nobody draws a call: only those have a span that name a trace.
  void start_traced(double ratio = 0) {
    tracer_.set_ratio(ratio);
    for (std::uint64_t id = 1; id <= 3; ++id) {
      NodeOptions traced = options(id);
      traced.tracer = &tracer_;
      start(id, std::move(traced));
    }
    leader_ = await_leader();
  }
  static CallOptions in_trace(lease::Duration timeout = kLong) {
    CallOptions options = timeout;
    options.trace = &kCaller;
    return options;
  }
  replica::ProposeResult propose(std::uint64_t at, CallOptions options) {
    return replica(at).node->propose_and_wait(Bytes(std::string("x")), options);
  }
  /// What has come so far; of calls that have been answered it is all.
  std::vector<replica::SpanRecord> spans() {
    std::vector<replica::SpanRecord> taken = tracer_.take();
    for (const auto& span : taken) EXPECT_TRUE(in_order(span)) << span.name;
    return taken;
  }

  NodeTracer tracer_{0};
  std::uint64_t leader_ = 0;
};

TEST_F(NodeTracedTest, ACommandAtTheLeaderHasItsStations) {
  start_traced();
  EXPECT_EQ(propose(leader_, kLong).status, replica::ProposeStatus::committed);
  EXPECT_TRUE(spans().empty());
  const replica::ProposeResult done = propose(leader_, in_trace());
  ASSERT_EQ(done.status, replica::ProposeStatus::committed);
  const auto found = spans();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "leasehold.propose");
  EXPECT_EQ(found[0].parent, kCaller.span);
  EXPECT_EQ(found[0].self.trace_high, kCaller.trace_high);
  EXPECT_EQ(found[0].problem, "");
  EXPECT_EQ(value_of(found[0].attributes, "leasehold.index"),
            std::to_string(done.id.index.value()));
  // Whether its own disk or that of another is the first is open.
  std::vector<std::string> names = stations(found[0]);
  std::erase(names, "durable");
  EXPECT_EQ(names, (std::vector<std::string>{"queued", "appended", "committed", "applied"}));
}

TEST_F(NodeTracedTest, ACommandOfABatchHasASpanOfItsOwn) {
  start_traced();
  std::vector<Proposal> batch(3);
  std::promise<void> answered;
  int left = 3;
  for (Proposal& one : batch) {
    one.command = Bytes(std::string("x"));
    one.done = [&](const replica::ProposeResult&) {
      if (--left == 0) answered.set_value();
    };
  }
  batch[1].trace = &replica::kUntraced;
  replica(leader_).node->propose_batch(std::move(batch), in_trace());
  answered.get_future().get();
  EXPECT_EQ(spans().size(), 2U);
}

TEST_F(NodeTracedTest, ACommandAtAFollowerIsForwarded) {
  start_traced();
  const std::uint64_t follower = follower_of(leader_);
  // It may hear of the leader later than this test: then it would hold the command first.
  ASSERT_EQ(propose(follower, kLong).status, replica::ProposeStatus::committed);
  ASSERT_EQ(propose(follower, in_trace()).status, replica::ProposeStatus::committed);
  const auto found = spans();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(stations(found[0]), (std::vector<std::string>{"forwarded", "applied"}));
  EXPECT_EQ(value_of(found[0].stations[0].attributes, "leasehold.leader"), std::to_string(leader_));
}

TEST_F(NodeTracedTest, ACommandThatIsRefusedSaysWhy) {
  start_traced();
  CallOptions elsewhere = in_trace();
  elsewhere.expected = {raft::Term(1'000'000), {}};
  EXPECT_EQ(propose(leader_, elsewhere).status, replica::ProposeStatus::dropped);
  EXPECT_EQ(propose(leader_, in_trace(0ms)).status, replica::ProposeStatus::dropped);
  replica(leader_).node->stop();
  EXPECT_EQ(propose(leader_, in_trace()).status, replica::ProposeStatus::dropped);
  const auto found = spans();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].problem, "dropped: not the expected leadership");
  EXPECT_EQ(found[1].problem, "dropped: no leader took it in time");
  EXPECT_EQ(found[2].problem, "dropped: no leader took it in time");
}

TEST_F(NodeTracedTest, AReadSaysWhatJustifiedIt) {
  start_traced();
  Node& leader = *replica(leader_).node;
  std::vector<replica::SpanRecord> found;
  // One that finds no lease just now asks the node, and has two spans.
  ASSERT_TRUE(eventually([&] {
    EXPECT_TRUE(leader.read_point(raft::ReadMode::lease, in_trace()).index);
    found = spans();
    return found.size() == 1;
  }));
  EXPECT_EQ(found[0].name, "leasehold.read_point");
  EXPECT_EQ(value_of(found[0].attributes, "leasehold.read.basis"), "lease");

  ASSERT_TRUE(leader.read_point(raft::ReadMode::quorum, in_trace()).index);
  found = spans();
  ASSERT_EQ(found.size(), 2U);  // the node's part ends first
  EXPECT_EQ(found[0].name, "leasehold.read");
  EXPECT_EQ(found[0].parent, found[1].self.span);
  EXPECT_EQ(value_of(found[0].attributes, "leasehold.read.basis"), "quorum");
  EXPECT_EQ(stations(found[0]).front(), "asked");

  ASSERT_TRUE(
      replica(follower_of(leader_)).node->read_point(raft::ReadMode::lease, in_trace()).index);
  found = spans();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(value_of(found[1].attributes, "leasehold.read.basis"), "leader");
  EXPECT_EQ(stations(found[0]).front(), "asked the leader");

  ASSERT_TRUE(leader.read_point(raft::ReadMode::log, in_trace()).index);
  found = spans();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(value_of(found[1].attributes, "leasehold.read.basis"), "log");
}

TEST_F(NodeTracedTest, ACallIsDrawnOnce) {
  start_traced(1);
  Node& leader = *replica(leader_).node;
  ASSERT_TRUE(leader.read_point(raft::ReadMode::quorum, kLong).index);
  EXPECT_EQ(spans().size(), 2U);
  CallOptions not_mine = kLong;
  not_mine.trace = &replica::kUntraced;
  ASSERT_TRUE(leader.read_point(raft::ReadMode::quorum, not_mine).index);
  ASSERT_EQ(propose(leader_, not_mine).status, replica::ProposeStatus::committed);
  EXPECT_TRUE(spans().empty());
}

}  // namespace
}  // namespace leasehold::node
