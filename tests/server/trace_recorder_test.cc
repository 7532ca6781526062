// What a recording of the protocol has in it, how it is bounded, and when it ends.
#include <leasehold/server/group_trace.h>
#include <leasehold/server/trace_recorder.h>
#include <leasehold/story/trace_file.h>
#include <leasehold/tests/replica/driver_cluster.h>

#include "fake_node.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

namespace leasehold::server {
namespace {

using replica::testing::Cluster;
using replica::testing::Rig;
using std::chrono::milliseconds;
using std::chrono::seconds;
using story::Kind;
using testing::HasSubstr;
using testing::Not;

constexpr std::size_t kAll = 1'000'000;
const std::string kPlanted = "planted-9d1c";

std::shared_ptr<TraceRecorder> recorder_of(Rig& rig, const Cluster& cluster, lease::Duration span) {
  auto recorder =
      std::make_shared<TraceRecorder>(rig.id(), raft::Incarnation(1), cluster.now().holder, span);
  rig.driver().tap(recorder);
  return recorder;
}

TEST(TraceRecorder, TellsTheProtocolAndNothingOfClients) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  Rig& follower = cluster.node(leader.id() == raft::NodeId(1) ? 2 : 1);
  const auto of_leader = recorder_of(leader, cluster, seconds(60));
  const auto of_follower = recorder_of(follower, cluster, seconds(60));
  for (Rig* rig : {&leader, &follower}) {
    rig->handle(cluster.now(), replica::Propose{Bytes(kPlanted), cluster.in(seconds(9)), {}});
    cluster.advance(milliseconds(300));
  }
  std::set<std::string> seen;
  lease::Duration last{0};
  for (const auto& recorder : {of_leader, of_follower}) {
    last = lease::Duration(0);
    for (const story::Record& record : recorder->take(kAll, cluster.now().holder).records) {
      const std::string line = story::encode_record(record);
      EXPECT_THAT(line, Not(HasSubstr(kPlanted)));
      EXPECT_TRUE(story::decode_record(line).ok()) << line;
      EXPECT_GE(record.at, last) << line;
      last = record.at;
      seen.insert(std::string(story::kind_name(record.kind)) +
                  (record.kind == Kind::mark ? " " + record.what : ""));
      if (record.what == "forward") seen.insert("forward");
    }
  }
  for (const char* kind :
       {"role", "leader", "settings", "members", "promise", "lease", "sent", "delivered", "round",
        "commit", "mark durable", "mark applied", "forward"}) {
    EXPECT_EQ(seen.count(kind), 1U) << kind;
  }
}

TEST(TraceRecorder, EndsWithItsTime) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  auto recorder = recorder_of(leader, cluster, milliseconds(500));
  cluster.advance(milliseconds(400));
  EXPECT_EQ(recorder->take(kAll, cluster.now().holder).ended, "");
  cluster.advance(milliseconds(400));
  const std::weak_ptr<TraceRecorder> left = recorder;
  const auto taken = recorder->take(kAll, cluster.now().holder);
  EXPECT_EQ(taken.ended, "whole");
  for (const story::Record& record : taken.records) {
    EXPECT_LT(record.at, recorder->until().since_origin());
  }
  recorder.reset();
  EXPECT_TRUE(left.expired()) << "the driver keeps it";
}

TEST(TraceRecorder, EndsWhenNobodyAsks) {
  Cluster cluster(3);
  Rig& leader = cluster.await_leader();
  const auto recorder = recorder_of(leader, cluster, seconds(60));
  cluster.advance(TraceRecorder::kUnaskedMax - milliseconds(100));
  EXPECT_FALSE(recorder->take(kAll, cluster.now().holder).records.empty());
  cluster.advance(TraceRecorder::kUnaskedMax + milliseconds(200));
  EXPECT_TRUE(recorder->over(cluster.now().holder));
  const auto taken = recorder->take(kAll, cluster.now().holder);
  EXPECT_EQ(taken.ended, "stopped");
  EXPECT_TRUE(taken.records.empty()) << "nobody wants them, and they take memory";
}

TEST(TraceRecorder, KeepsABoundAndCountsWhatItDrops) {
  Cluster cluster(1);
  TraceRecorder recorder(raft::NodeId(1), raft::Incarnation(1), cluster.now().holder, seconds(60));
  const raft::Core& core = cluster.await_leader().driver().core();
  const wire::Payload message{raft::Message(raft::AppendReply{})};
  lease::Now now = cluster.now();
  recorder.begin(now, core, raft::Index(1));
  for (std::size_t i = 0; i < TraceRecorder::kWaitingMax + 10; ++i) {
    recorder.sent(raft::NodeId(2), message);
  }
  auto taken = recorder.take(kAll, now.holder);
  EXPECT_EQ(taken.records.size(), TraceRecorder::kWaitingMax);
  EXPECT_GE(taken.dropped, 10U);
  recorder.sent(raft::NodeId(2), message);
  const std::uint64_t dropped = taken.dropped;
  taken = recorder.take(1, now.holder);
  EXPECT_TRUE(taken.more);
  ASSERT_EQ(taken.records.size(), 1U);
  EXPECT_EQ(taken.records[0].what, "gap");
  EXPECT_EQ(taken.records[0].number, dropped);
}

TEST(TraceRecorder, ASleepOfTheMachineIsTold) {
  Cluster cluster(1);
  TraceRecorder recorder(raft::NodeId(1), raft::Incarnation(1), cluster.now().holder, seconds(60));
  const raft::Core& core = cluster.await_leader().driver().core();
  lease::Now now = cluster.now();
  recorder.begin(now, core, raft::Index(1));
  recorder.take(kAll, now.holder);
  now = {now.holder + seconds(3), now.promise + seconds(1)};
  recorder.begin(now, core, raft::Index(1));
  const auto taken = recorder.take(kAll, now.holder);
  ASSERT_EQ(taken.records.size(), 1U);
  EXPECT_EQ(taken.records[0].what, "slept");
  EXPECT_THAT(taken.records[0].text, HasSubstr("2000ms"));
}

node::NodeStatus formed() {
  node::NodeStatus status;
  status.formed = true;
  status.id = raft::NodeId(3);
  status.incarnation = raft::Incarnation(4);
  return status;
}

Result<TraceBegun> start(GroupTrace& trace, FakeNode& node, const node::NodeStatus& status) {
  Result<TraceBegun> out = Error{ErrorCode::stopped, "not called"};
  trace.start(seconds(10), [&out](Result<TraceBegun> begun) { out = std::move(begun); });
  node.end_status(status);
  return out;
}

TEST(GroupTrace, OneRecordingAtATime) {
  FakeNode node;
  GroupTrace trace(node);
  EXPECT_EQ(start(trace, node, {}).error().code, ErrorCode::unavailable);
  const auto begun = start(trace, node, formed());
  ASSERT_TRUE(begun.ok()) << begun.error().message;
  EXPECT_EQ(begun.value().node, raft::NodeId(3));
  EXPECT_NE(node.tapped(), nullptr);
  EXPECT_EQ(start(trace, node, formed()).error().code, ErrorCode::in_use);
  EXPECT_EQ(trace.next(begun.value().id + 1).error().code, ErrorCode::not_found);
  EXPECT_TRUE(trace.next(begun.value().id).ok());
  EXPECT_TRUE(trace.stop(begun.value().id).ok());
  EXPECT_EQ(trace.next(begun.value().id).value().ended, "stopped");
  node.manual_clock().advance(milliseconds(1));
  const auto next = start(trace, node, formed());
  ASSERT_TRUE(next.ok());
  EXPECT_FALSE(trace.next(begun.value().id).ok()) << "the one before has ended";
}

TEST(GroupTrace, LetsGoWhatNobodyAsksFor) {
  FakeNode node;
  GroupTrace trace(node);
  const auto begun = start(trace, node, formed());
  trace.look();
  EXPECT_NE(node.tapped(), nullptr);
  node.manual_clock().advance(seconds(16));
  trace.look();
  EXPECT_EQ(node.tapped(), nullptr);
  EXPECT_EQ(trace.next(begun.value().id).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace leasehold::server
