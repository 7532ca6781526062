// What a simulation runs on: actions, the queue that orders them, and the links.
#include <gtest/gtest.h>
#include <leasehold/base/random.h>
#include <leasehold/sim/plan/draw_plan.h>
#include <leasehold/sim/world/sim_network.h>

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace leasehold::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Lets true time pass.
void pass(EventQueue& queue, Duration length) {
  const TrueInstant end = queue.now() + length;
  while (queue.run_next(end)) {
  }
}

// What an action captured, small or large, is moved with it and destroyed once.
template <std::size_t Bytes>
void expect_one_owner() {
  const auto token = std::make_shared<int>(0);
  std::array<unsigned char, Bytes> ballast{};
  ballast[0] = 7;
  {
    Action first = [token, ballast, calls = 0]() mutable { *token += ballast[0] + calls++; };
    EXPECT_EQ(token.use_count(), 2);
    std::vector<Action> actions;
    actions.push_back(std::move(first));
    actions.emplace_back();
    actions[1] = std::move(actions[0]);
    actions[1]();
    actions[1]();
    EXPECT_EQ(*token, 15);
    EXPECT_EQ(token.use_count(), 2);
    actions[1] = [] {};
    EXPECT_EQ(token.use_count(), 1);
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST(Action, HasWhatItCapturedOnce) {
  expect_one_owner<1>();
  expect_one_owner<200>();
}

// Against the dumb twin: all that waits in one ordered list.
TEST(EventQueue, IsOneOrderedListHoweverFarAwayThingsAre) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    EventQueue queue;
    std::map<std::pair<TrueInstant, int>, bool> twin;
    std::vector<int> ran;
    int last = 0;
    const Duration reach[] = {Duration(1), milliseconds(3), milliseconds(300), seconds(20)};
    const auto schedule = [&] {
      const Duration longest = reach[random.below(4)];
      const TrueInstant when = queue.now() + Duration(random.between(0, longest.count() + 1));
      const int id = ++last;
      twin[{when, id}] = true;
      queue.at(when, [&ran, id] { ran.push_back(id); });
    };
    for (int i = 0; i < 300; ++i) schedule();
    for (int i = 0; i < 3000; ++i) {
      if (random.chance(9, 10)) schedule();
      const Duration longest = reach[random.below(3)];
      const TrueInstant limit = queue.now() + Duration(random.between(0, longest.count() + 1));
      const auto first = twin.begin();
      const bool due = first != twin.end() && first->first.first <= limit;
      ASSERT_EQ(queue.run_next(limit), due) << seed;
      ASSERT_EQ(queue.now(), due ? first->first.first : limit);
      if (!due) continue;
      ASSERT_EQ(ran.back(), first->first.second) << seed;
      twin.erase(first);
    }
    pass(queue, seconds(60));
    EXPECT_EQ(ran.size(), static_cast<std::size_t>(last)) << "each ran once";
  }
}

// A leader that is cut off hears a peer's answer from an earlier term, to a round of the same
// number, and nothing else.
TEST(SimNetwork, ALostRoundIsAnsweredByAnOldOne) {
  const raft::Peer leader{raft::NodeId(1), {}, {}};
  const raft::Peer peer{raft::NodeId(2), {}, {}};
  World world(draw_plan(1, {}), {});
  world.plan.link.loss_ppm = 0;
  world.plan.link.echo_percent = 100;
  SimNetwork network(world);
  std::vector<wire::PeerMessage> heard;
  network.set_deliver([&heard](raft::NodeId to, const raft::Peer&, wire::PeerMessage& message) {
    if (to == raft::NodeId(1)) heard.push_back(message);
  });
  raft::AppendReply append;
  append.request_term = append.term = raft::Term(3);
  append.promised = true;
  append.round = raft::Round(7);
  raft::SnapshotReply chunk;
  chunk.request_term = chunk.term = raft::Term(3);
  chunk.promised = true;
  chunk.round = raft::Round(7);
  network.send(peer, leader.id, {raft::GroupId(1), raft::Message(append)});
  network.send(peer, leader.id, {raft::GroupId(1), raft::Message(chunk)});
  pass(world.queue, seconds(10));
  heard.clear();

  const auto lose = [&](std::uint64_t term, std::uint64_t round) {
    raft::AppendRequest request;
    request.term = raft::Term(term);
    request.round = raft::Round(round);
    for (int i = 0; i < 20; ++i) {
      network.send(leader, peer.id, {raft::GroupId(1), raft::Message(request)});
    }
    pass(world.queue, seconds(10));
    return std::exchange(heard, {});
  };
  network.block(leader.id, peer.id, 100);
  network.block(peer.id, leader.id, 100);
  bool append_came = false;
  bool chunk_came = false;
  for (const wire::PeerMessage& message : lose(5, 7)) {
    const auto& what = std::get<raft::Message>(message.payload);
    append_came = append_came || what == raft::Message(append);
    chunk_came = chunk_came || what == raft::Message(chunk);
  }
  EXPECT_TRUE(append_came);
  EXPECT_TRUE(chunk_came);
  EXPECT_TRUE(lose(5, 8).empty()) << "another round";
  EXPECT_TRUE(lose(3, 7).empty()) << "the same term";
  world.healed = true;
  EXPECT_TRUE(lose(5, 7).empty()) << "the faults have ended";
}

}  // namespace
}  // namespace leasehold::sim
