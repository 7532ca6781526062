// Logs that are cut, and followers that are brought up to date by a snapshot.
#include <leasehold/tests/replica/snapshot_fixture.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::replica {
namespace {

using std::chrono::seconds;
using testing::Answer;
using testing::chunk_in;
using testing::Cluster;
using testing::milliseconds;
using testing::reply_in;
using testing::Rig;
using testing::small_limits;
using testing::SnapshotTest;

TEST_F(SnapshotTest, TheLogIsCutDownToItsTailOnEveryNode) {
  Rig& leads = leader();
  write(leads, 300);
  cluster.advance(seconds(3));
  for (std::uint64_t id = 1; id <= 3; ++id) {
    Rig& rig = cluster.node(id);
    EXPECT_GT(base_of(rig).value(), 200U) << id;
    EXPECT_GE(rig.driver().log_bytes(), 4000U) << "the tail stays";
    EXPECT_LE(rig.driver().log_bytes(), 9000U);
    EXPECT_EQ(rig.disk().base_index(), base_of(rig));
    EXPECT_GE(rig.snapshots().durable().last, base_of(rig));
  }
}

TEST_F(SnapshotTest, ANodeStartsAgainOnALogThatWasCut) {
  Rig& leads = leader();
  write(leads, 200);
  const std::uint64_t id = leads.id().value();
  cluster.restart(id);
  EXPECT_GT(base_of(cluster.node(id)).value(), 0U);
  EXPECT_TRUE(catches_up(cluster.node(id)));
  write(leader(), 10);
  EXPECT_TRUE(catches_up(cluster.node(id)));
  EXPECT_EQ(cluster.node(id).machine().commands().size(), 210U);
}

TEST_F(SnapshotTest, AFollowerThatNeedsWhatWasCutComesBackByASnapshot) {
  Rig& follower = strand_one();
  Rig& leads = leader();
  std::uint64_t answered = 0;
  std::uint64_t most = 0;
  cluster.lose = [&](raft::NodeId, const Rig::Sent& sent) {
    if (const auto* reply = reply_in(sent)) answered = std::max(answered, reply->offset);
    if (const auto* chunk = chunk_in(sent)) {
      most = std::max(most, chunk->offset + chunk->data.size() - answered);
    }
    return false;
  };
  cluster.heal();
  ASSERT_TRUE(catches_up(follower));
  EXPECT_EQ(follower.machine().commands(), leads.machine().commands());
  EXPECT_EQ(leads.driver().counters().snapshots_sent, 1U);
  EXPECT_EQ(follower.driver().counters().snapshots_installed, 1U);
  EXPECT_LE(most, 2000U) << "the window";
  EXPECT_GT(most, 500U) << "used";
  write(leads, 20);
  EXPECT_TRUE(catches_up(follower));
  EXPECT_EQ(leads.driver().counters().snapshots_sent, 1U);
  cluster.advance(seconds(15));
  EXPECT_EQ(leads.snapshots().held(), 0U) << "nobody needs it any more";
}

TEST_F(SnapshotTest, ADeadPeerCostsNoSnapshotAndHoldsNoLog) {
  Rig& follower = strand_one();
  Rig& leads = leader();
  const raft::Index base = base_of(leads);
  cluster.advance(seconds(60));
  write(leads, 200);
  EXPECT_EQ(leads.driver().counters().snapshots_taken, 0U);
  EXPECT_GT(base_of(leads), base);
  EXPECT_FALSE(follower.driver().applied() > raft::Index(10));
}

TEST_F(SnapshotTest, LostChunksAndAnswersAreMadeUpFor) {
  Rig& follower = strand_one();
  int count = 0;
  cluster.lose = [&count](raft::NodeId, const Rig::Sent& sent) {
    return (chunk_in(sent) != nullptr || reply_in(sent) != nullptr) && ++count % 4 == 0;
  };
  cluster.heal();
  ASSERT_TRUE(catches_up(follower));
  EXPECT_EQ(follower.machine().commands(), leader().machine().commands());
  EXPECT_GT(count, 8);
}

TEST_F(SnapshotTest, ATransferGoesOnWhereItWasInterrupted) {
  Rig& follower = strand_one();
  Rig& leads = leader();
  std::uint64_t size = 0;
  std::uint64_t delivered = 0;
  bool stuck = false;
  cluster.lose = [&](raft::NodeId, const Rig::Sent& sent) {
    const auto* chunk = chunk_in(sent);
    if (chunk == nullptr) return false;
    size = chunk->size;
    if (!stuck && chunk->offset > chunk->size / 2) stuck = true;
    if (!stuck) delivered += chunk->data.size();
    return stuck;
  };
  cluster.heal();
  ASSERT_TRUE(cluster.advance_until([&] { return stuck; }));
  cluster.cut(follower.id().value());
  cluster.advance(seconds(10));
  cluster.heal();
  std::uint64_t again = 0;
  cluster.lose = [&](raft::NodeId, const Rig::Sent& sent) {
    if (const auto* chunk = chunk_in(sent)) again += chunk->data.size();
    return false;
  };
  ASSERT_TRUE(catches_up(follower));
  EXPECT_LE(delivered + again, size + 2500U) << "a window and a probe at most are sent twice";
  EXPECT_EQ(leads.driver().counters().snapshots_taken, 1U);
}

TEST_F(SnapshotTest, APeerThatLostItsPartGetsAllOfIt) {
  Rig& follower = strand_one();
  bool forgot = false;
  cluster.lose = [&](raft::NodeId, const Rig::Sent& sent) {
    const auto* chunk = chunk_in(sent);
    if (chunk == nullptr || forgot || chunk->offset < chunk->size / 2) return false;
    forgot = true;
    follower.snapshots().forget_arrived();
    return false;
  };
  cluster.heal();
  ASSERT_TRUE(catches_up(follower));
  EXPECT_TRUE(forgot);
  EXPECT_EQ(follower.machine().commands(), leader().machine().commands());
}

TEST_F(SnapshotTest, ARefusalIsNotAnsweredByAFlood) {
  Rig& follower = strand_one();
  Rig& leads = leader();
  follower.snapshots().refuses = true;
  cluster.heal();
  cluster.advance(seconds(10));
  EXPECT_GE(leads.driver().counters().chunks_sent, 5U);
  EXPECT_LE(leads.driver().counters().chunks_sent, 12U);
  EXPECT_TRUE(leads.leads());
  follower.snapshots().refuses = false;
  EXPECT_TRUE(catches_up(follower));
}

TEST_F(SnapshotTest, TheGroupsHeartbeatSaysHowLongTheLeaderWaits) {
  Rig& leads = leader();
  raft::SettingsEdit edit;
  edit.heartbeat = leads.driver().core().options().timing.heartbeat / 4;
  change_settings(edit);
  Rig& follower = strand_one();
  follower.snapshots().refuses = true;
  cluster.heal();
  cluster.advance(seconds(10));
  EXPECT_GE(leads.driver().counters().chunks_sent, 20U) << "four times as many as by its own";
  EXPECT_LE(leads.driver().counters().chunks_sent, 48U);
}

TEST_F(SnapshotTest, SlowHeartbeatsDoNotSlowASnapshotDown) {
  raft::SettingsEdit edit;
  edit.lease = seconds(10);
  edit.heartbeat = seconds(2);
  change_settings(edit);
  Rig& follower = strand_one();
  follower.snapshots().refuses = true;
  cluster.heal();
  cluster.advance(seconds(40));
  // One is sent when a heartbeat was answered: 10 heartbeats of rest would be 20 s.
  EXPECT_GE(leader().driver().counters().chunks_sent, 8U);
  EXPECT_LE(leader().driver().counters().chunks_sent, 20U);
}

TEST_F(SnapshotTest, AFullFollowerTakesNoSnapshotUntilItHasSpace) {
  Rig& follower = strand_one();
  follower.handle(cluster.now(), StorageSpace{true});
  cluster.heal();
  cluster.advance(seconds(5));
  EXPECT_EQ(follower.driver().counters().chunks_received, 0U);
  EXPECT_TRUE(leader().leads());
  follower.handle(cluster.now(), StorageSpace{false});
  EXPECT_TRUE(catches_up(follower));
}

TEST_F(SnapshotTest, AnotherLeaderBeginsWithItsOwn) {
  Rig& follower = strand_one();
  Rig& first = leader();
  bool half = false;
  cluster.lose = [&](raft::NodeId, const Rig::Sent& sent) {
    const auto* chunk = chunk_in(sent);
    if (chunk != nullptr && chunk->offset > chunk->size / 2) half = true;
    return half && chunk != nullptr;
  };
  cluster.heal();
  ASSERT_TRUE(cluster.advance_until([&] { return half; }));
  cluster.lose = nullptr;
  cluster.cut(first.id().value());
  ASSERT_TRUE(cluster.advance_until([&] {
    Rig& next = cluster.await_leader();
    return next.id() != first.id() && follower.driver().applied() >= base_of(next);
  }));
  EXPECT_EQ(follower.driver().counters().snapshots_installed, 1U);
  cluster.heal();
  EXPECT_TRUE(catches_up(follower));
  cluster.advance(seconds(15));
  EXPECT_EQ(first.snapshots().held(), 0U);
}

TEST_F(SnapshotTest, TheRateLimitIsKept) {
  DriverOptions options = small_limits();
  options.snapshot_bytes_per_second = 10'000;
  cluster = Cluster(3, options);
  Rig& follower = strand_one();
  Rig& leads = leader();
  cluster.heal();
  cluster.advance(seconds(1));
  EXPECT_GT(leads.driver().counters().chunk_bytes_sent, 5000U);
  EXPECT_LT(leads.driver().counters().chunk_bytes_sent, 12'000U);
  EXPECT_TRUE(catches_up(follower));
}

// A pause that the limit asks for is not a peer that says nothing: or the sending would begin anew
// each time, for ever.
TEST_F(SnapshotTest, ALimitBelowAChunkInThePatienceIsSlowAndNoMore) {
  DriverOptions options = small_limits();
  options.snapshot_bytes_per_second = 400;
  options.snapshot_patience = milliseconds(600);
  cluster = Cluster(3, options);
  Rig& follower = strand_one();
  Rig& leads = leader();
  cluster.heal();
  EXPECT_TRUE(
      cluster.advance_until([&] { return follower.driver().counters().snapshots_installed > 0; }));
  EXPECT_EQ(leads.driver().counters().snapshots_taken, 1U);
  EXPECT_LE(leads.driver().counters().chunk_bytes_sent, 30'000U);
}

// A disk that takes longer for a chunk than the patience is slow, and no more: the peer waits for
// this node, and not the other way round.
TEST_F(SnapshotTest, AChunkThatIsReadForLongerThanThePatienceIsSlowAndNoMore) {
  DriverOptions options = small_limits();
  options.snapshot_patience = milliseconds(600);
  cluster = Cluster(3, options);
  Rig& follower = strand_one();
  Rig& leads = leader();
  std::uint64_t reading = 0;
  raft::PromiseInstant since;
  cluster.hold_snapshots = [&](Rig& rig) {
    if (rig.id() != leads.id() || rig.snapshots().reads().empty()) return false;
    const std::uint64_t token = rig.snapshots().reads().front().token;
    if (std::exchange(reading, token) != token) since = cluster.now().promise;
    return cluster.now().promise < since + milliseconds(700);
  };
  cluster.heal();
  // Some forty chunks, in as many pauses.
  EXPECT_TRUE(
      cluster.advance_until([&] { return follower.driver().counters().snapshots_installed > 0; }));
  EXPECT_LE(leads.driver().counters().chunk_bytes_sent, 30'000U);
}

TEST_F(SnapshotTest, OfACommandThatASnapshotHidesNobodyKnows) {
  Rig& first = leader();
  cluster.advance(milliseconds(300));
  Rig& origin = cluster.node(first.id() == raft::NodeId(1) ? 2 : 1);
  // The leader takes the command; its origin hears of nothing after that.
  Answer<ProposeResult> hidden;
  origin.handle(cluster.now(),
                Propose{Bytes("hidden"), cluster.in(std::chrono::hours(1)), hidden.completion()});
  cluster.lose = [&](raft::NodeId from, const Rig::Sent& sent) {
    return from != origin.id() && sent.to == origin.id();
  };
  cluster.settle();
  write(first, 200);
  cluster.lose = nullptr;
  ASSERT_TRUE(catches_up(origin));
  ASSERT_EQ(origin.driver().counters().snapshots_installed, 1U);
  // Of the same term as the snapshot: it might still come. A later term settles it.
  cluster.cut(first.id().value());
  ASSERT_TRUE(cluster.advance_until([&] { return hidden.calls > 0; }));
  EXPECT_EQ(hidden.value.status, ProposeStatus::unknown);
  cluster.heal();
  cluster.advance(seconds(3));
  const std::vector<std::string>& commands = origin.machine().commands();
  EXPECT_EQ(std::count(commands.begin(), commands.end(), "hidden"), 1) << "never sent again";
}

TEST_F(SnapshotTest, AStateMachineThatIsNeverDurableIsAskedOnce) {
  for (std::uint64_t id = 1; id <= 3; ++id) cluster.node(id).snapshots().unsupported = true;
  Rig& leads = leader();
  write(leads, 300);
  EXPECT_TRUE(leads.driver().log_never_cut());
  EXPECT_EQ(base_of(leads), raft::Index(0));
  EXPECT_EQ(leads.driver().counters().log_cuts, 0U);
}

TEST_F(SnapshotTest, OnDemandALogThatIsLessThanACutBeyondItsTailIsCutToo) {
  Rig& leads = leader();
  write(leads, 45);
  cluster.advance(seconds(3));
  ASSERT_EQ(base_of(leads), raft::Index(0));
  demand(leads);
  demand(leads);
  EXPECT_TRUE(cuts.empty()) << "the state machine has to be durable first";
  cluster.advance(milliseconds(50));
  ASSERT_EQ(cuts.size(), 2U);
  const LogCut first = cuts[0].value();
  EXPECT_EQ(first.durable, leads.driver().applied());
  EXPECT_EQ(first.durable, leads.driver().machine_durable());
  EXPECT_EQ(first.first_before, raft::Index(1));
  EXPECT_EQ(first.first, base_of(leads).next());
  EXPECT_GT(first.first, raft::Index(10));
  EXPECT_GT(first.bytes_before, 5000U);
  EXPECT_LE(first.bytes, 4200U);
  EXPECT_GE(first.bytes, 3800U) << "the tail stays";
  const LogCut second = cuts[1].value();
  EXPECT_EQ(second.first_before, first.first);
  EXPECT_EQ(second.first, first.first) << "there was nothing left to cut";
  EXPECT_EQ(leads.driver().counters().log_cuts, 1U);
  EXPECT_EQ(leads.disk().base_index(), base_of(leads));
  for (std::uint64_t id = 1; id <= 3; ++id) {
    if (cluster.node(id).id() != leads.id()) {
      EXPECT_EQ(base_of(cluster.node(id)), raft::Index(0));
    }
  }
}

TEST_F(SnapshotTest, ACutOnDemandLeavesWhatAPeerNeedsBehindItsSnapshot) {
  Rig& follower = strand_one();
  Rig& leads = leader();
  cluster.lose = [](raft::NodeId, const Rig::Sent& sent) { return reply_in(sent) != nullptr; };
  cluster.heal();
  ASSERT_TRUE(cluster.advance_until([&] { return leads.driver().counters().chunks_sent > 0; }));
  const raft::Index held = leads.driver().transfers().front().last;
  write(leads, 50);
  demand(leads);
  cluster.advance(milliseconds(50));
  ASSERT_EQ(cuts.size(), 1U);
  EXPECT_LE(base_of(leads), held);
  cluster.lose = nullptr;
  EXPECT_TRUE(catches_up(follower));
}

TEST_F(SnapshotTest, OnAFullDiskACutOnDemandTakesWhatIsDurableAlready) {
  Rig& leads = leader();
  write(leads, 45);
  demand(leads);
  cluster.advance(milliseconds(50));
  const raft::Index base = base_of(leads);
  write(leads, 20);
  ASSERT_EQ(base_of(leads), base);
  leads.handle(cluster.now(), StorageSpace{true});
  demand(leads);
  ASSERT_EQ(cuts.size(), 2U) << "nothing is waited for";
  EXPECT_EQ(cuts[1].value().durable, cuts[0].value().durable);
  EXPECT_GT(base_of(leads), base);
  EXPECT_LE(base_of(leads), cuts[0].value().durable);
  EXPECT_FALSE(leads.snapshots().waiting());
}

// What is applied after the state machine was asked is in no state that survives a crash.
TEST_F(SnapshotTest, ACutOnDemandEndsWhereTheStateMachineIsDurable) {
  DriverOptions options = small_limits();
  options.log_tail_bytes = 0;
  cluster = Cluster(3, options);
  Rig& leads = leader();
  write(leads, 10);
  demand(leads);
  cluster.advance(milliseconds(50));
  ASSERT_EQ(cuts.size(), 1U);
  const raft::Index durable = cuts[0].value().durable;
  ASSERT_EQ(base_of(leads), durable) << "no tail stays";
  leads.snapshots().lags = true;
  for (int i = 0; i < 3; ++i) {
    write(leads, 3);
    demand(leads);
    cluster.advance(milliseconds(50));
    EXPECT_EQ(base_of(leads), durable);
    EXPECT_LT(durable, leads.driver().applied());
  }
  ASSERT_EQ(cuts.size(), 4U);
  EXPECT_EQ(cuts[3].value().durable, durable);
  // On a full disk it is not even asked.
  leads.handle(cluster.now(), StorageSpace{true});
  demand(leads);
  ASSERT_EQ(cuts.size(), 5U);
  EXPECT_EQ(base_of(leads), durable);
  leads.handle(cluster.now(), StorageSpace{false});
  leads.snapshots().lags = false;
  demand(leads);
  cluster.advance(milliseconds(50));
  EXPECT_EQ(base_of(leads), leads.driver().applied());
}

// Who demands a cut while the state machine makes itself durable wants what was applied since, too.
TEST_F(SnapshotTest, ADemandIsMetByTheAnswerToAQuestionAfterIt) {
  Rig& leads = leader();
  write(leads, 5);
  demand(leads);
  const auto asked = [&leads] { return leads.snapshots().waiting(); };
  ASSERT_TRUE(asked());
  demand(leads);
  demand(leads);
  // Each question is answered once: what an answer leads to waits.
  const auto answer = [&] {
    std::vector<Event> answers;
    leads.snapshots().finish([&answers](Event event) { answers.push_back(std::move(event)); });
    for (Event& event : answers) leads.handle(cluster.now(), std::move(event));
  };
  answer();
  EXPECT_EQ(cuts.size(), 1U) << "two came after the question";
  EXPECT_TRUE(asked()) << "so there is another one";
  answer();
  ASSERT_EQ(cuts.size(), 3U);
  EXPECT_GE(cuts[2].value().durable, cuts[0].value().durable);
  EXPECT_FALSE(asked());
}

TEST_F(SnapshotTest, WhoWantsACutIsAlwaysAnswered) {
  DriverOptions options = small_limits();
  options.cuts_waiting_max = 2;
  cluster = Cluster(3, options);
  Rig& leads = leader();
  write(leads, 5);
  for (int i = 0; i < 3; ++i) demand(leads);
  ASSERT_EQ(cuts.size(), 1U);
  EXPECT_EQ(cuts[0].error().code, ErrorCode::overloaded);
  leads.handle(cluster.now(), Stop{});
  demand(leads);
  ASSERT_EQ(cuts.size(), 4U);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(cuts[i].error().code, ErrorCode::stopped);
  cuts.clear();
  Rig& another = cluster.node(leads.id() == raft::NodeId(1) ? 2 : 1);
  another.snapshots().unsupported = true;
  demand(another);
  cluster.advance(milliseconds(50));
  demand(another);
  ASSERT_EQ(cuts.size(), 2U);
  for (const auto& cut : cuts) EXPECT_EQ(cut.error().code, ErrorCode::unsupported);
}

TEST_F(SnapshotTest, OldEntriesGoThoughTheLogIsSmall) {
  DriverOptions options = small_limits();
  options.log_age_max = std::chrono::minutes(2);
  cluster = Cluster(3, options);
  Rig& leads = leader();
  write(leads, 10);
  cluster.advance(seconds(60));
  EXPECT_EQ(base_of(leads), raft::Index(0));
  cluster.advance(seconds(70));
  EXPECT_EQ(base_of(leads), leads.driver().core().log().last_index());
}

}  // namespace
}  // namespace leasehold::replica
