#include <leasehold/node/node_status.h>

#include <gtest/gtest.h>

#include <chrono>

namespace leasehold::node {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr raft::PromiseInstant at(lease::Duration age) {
  return raft::PromiseInstant(seconds(1000) + age);
}

net::Rejection refused(std::uint64_t peer) {
  net::Rejection rejection;
  rejection.reason = net::RejectReason::wrong_cluster;
  rejection.peer = raft::NodeId(peer);
  rejection.address = "127.0.0.1:7103";
  rejection.error = {ErrorCode::wrong_cluster, "another cluster"};
  return rejection;
}

const std::string kText = "refused node 3 at 127.0.0.1:7103 (wrong_cluster): another cluster";

TEST(LastRefusalTest, IsShownWhileItIsRepeated) {
  LastRefusal last;
  EXPECT_EQ(last.text(at(seconds(0))), "");
  last.note(refused(3), at(seconds(0)));
  EXPECT_EQ(last.text(at(seconds(0))), kText);
  EXPECT_EQ(last.text(at(LastRefusal::kShown - milliseconds(1))), kText);
  EXPECT_EQ(last.text(at(LastRefusal::kShown)), "");
  last.note(refused(3), at(seconds(9)));
  EXPECT_EQ(last.text(at(LastRefusal::kShown)), kText) << "it was refused again";
}

TEST(LastRefusalTest, IsOverWhenThePeerIsConnected) {
  LastRefusal last;
  last.note(refused(3), at(seconds(0)));
  last.connected(raft::NodeId(2));
  EXPECT_EQ(last.text(at(seconds(1))), kText) << "that was another peer";
  last.connected(raft::NodeId(3));
  EXPECT_EQ(last.text(at(seconds(1))), "");
}

TEST(RefusalLinesTest, StrangersDoNotFillTheLog) {
  RefusalLines lines;
  for (std::size_t i = 0; i < RefusalLines::kLinesMax; ++i) {
    EXPECT_EQ(lines.line(refused(3), at(seconds(1))), kText);
  }
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(lines.line(refused(3), at(seconds(2))), std::nullopt);
  EXPECT_EQ(lines.line(refused(3), at(seconds(1) + RefusalLines::kWindow)),
            kText + "; 1000 more were refused before it, without a line");
  EXPECT_EQ(lines.line(refused(3), at(seconds(1) + RefusalLines::kWindow)), kText);
}

TEST(RefusalLinesTest, WhatAPeerRefusesHasItsLine) {
  RefusalLines lines;
  for (int i = 0; i < 1000; ++i) lines.line(refused(3), at(seconds(1)));
  net::Rejection rejection = refused(3);
  rejection.by_peer = true;
  EXPECT_EQ(lines.line(rejection, at(seconds(1))),
            "refused by node 3 at 127.0.0.1:7103 (wrong_cluster): another cluster");
}

}  // namespace
}  // namespace leasehold::node
