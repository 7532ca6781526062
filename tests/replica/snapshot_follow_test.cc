// What a peer lacks behind its snapshot.
#include <leasehold/tests/replica/snapshot_fixture.h>

#include <gtest/gtest.h>

#include <variant>

namespace leasehold::replica::testing {
namespace {

using std::chrono::seconds;

/// What a peer is sent behind its snapshot.
auto entries_to(const Rig& peer) {
  return [&peer](raft::NodeId, const Rig::Sent& sent) {
    const auto* message = std::get_if<raft::Message>(&sent.message.payload);
    const auto* append = message != nullptr ? std::get_if<raft::AppendRequest>(message) : nullptr;
    return append != nullptr && !append->entries.empty() && sent.to == peer.id();
  };
}

// They were cut off when it had arrived, and the peer needed another one, again and again.
TEST_F(SnapshotTest, TheLogKeepsWhatAPeerLacksBehindItsSnapshot) {
  Rig& follower = strand_slowly();
  Rig& leads = leader();
  cluster.lose = entries_to(follower);
  write_until_one_arrives(follower);
  write(leads, 200);
  cluster.advance(seconds(2));
  write(leads, 1);
  EXPECT_LE(base_of(leads), base_of(follower));
  cluster.lose = nullptr;
  ASSERT_TRUE(catches_up(follower));
  EXPECT_EQ(follower.driver().counters().snapshots_installed, 1U);
  // Then it is cut again.
  cluster.advance(seconds(2));
  write(leads, 100);
  cluster.advance(seconds(2));
  write(leads, 1);
  EXPECT_LT(leads.driver().log_bytes(), 10'000U);
}

TEST_F(SnapshotTest, APeerThatIsSilentBehindItsSnapshotHoldsNoLog) {
  Rig& follower = strand_slowly();
  Rig& leads = leader();
  cluster.lose = entries_to(follower);
  write_until_one_arrives(follower);
  write(leads, 200);
  cluster.cut(follower.id().value());
  cluster.advance(small_limits().snapshot_patience);
  write(leads, 1);
  cluster.advance(seconds(2));
  write(leads, 1);
  EXPECT_GT(base_of(leads), follower.driver().core().log().last_index());
  EXPECT_LT(leads.driver().log_bytes(), 10'000U);
}

}  // namespace
}  // namespace leasehold::replica::testing
