// Answers to a snapshot count while it is sent, and only for it.
#include <leasehold/tests/replica/snapshot_fixture.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>

namespace leasehold::replica {
namespace {

using testing::Rig;

/// A snapshot is being sent, and the answers of the follower do not arrive.
class SnapshotAnswer : public testing::SnapshotTest {
 protected:
  SnapshotAnswer() : follower(strand_one()), leads(leader()) {
    cluster.lose = [this](raft::NodeId, const Rig::Sent& sent) {
      const raft::SnapshotReply* reply = testing::reply_in(sent);
      if (reply != nullptr && !held) held = *reply;
      return reply != nullptr;
    };
    cluster.heal();
    cluster.advance_until([this] { return held.has_value(); });
  }

  void deliver(const raft::SnapshotReply& reply) {
    leads.handle(cluster.now(),
                 PeerMessageReceived{follower.peer(),
                                     {raft::GroupId(1), wire::Payload(raft::Message(reply))}});
  }
  SnapshotTransfer sending() const { return leads.driver().transfers().at(0); }
  void expect_nothing_of(const raft::SnapshotReply& reply) {
    const SnapshotTransfer before = sending();
    deliver(reply);
    ASSERT_EQ(leads.driver().transfers().size(), 1U);
    EXPECT_EQ(sending(), before);
    EXPECT_EQ(leads.driver().counters().snapshots_sent, 0U);
    EXPECT_TRUE(leads.leads());
  }

  Rig& follower;
  Rig& leads;
  std::optional<raft::SnapshotReply> held;
};

TEST_F(SnapshotAnswer, ToOneThatIsNoLongerSentIsNotCounted) {
  ASSERT_TRUE(held.has_value());
  raft::SnapshotReply other = *held;
  ++other.id.tag;  // of the same entries, and of other bytes
  other.offset = sending().size;
  expect_nothing_of(other);
  other.refused = true;
  expect_nothing_of(other);
  other = *held;
  other.id.last.index = other.id.last.index.prev();
  other.offset = sending().size;
  expect_nothing_of(other);
}

TEST_F(SnapshotAnswer, OfAnotherTermIsNotCounted) {
  ASSERT_TRUE(held.has_value());
  raft::SnapshotReply old = *held;
  old.offset = sending().size;
  old.request_term = old.request_term.prev();
  expect_nothing_of(old);
  old.term = old.request_term;
  expect_nothing_of(old);
  old.request_term = held->request_term;
  expect_nothing_of(old);
  old.refused = true;
  expect_nothing_of(old);
}

TEST_F(SnapshotAnswer, OfMoreThanTheWholeIsNotCounted) {
  ASSERT_TRUE(held.has_value());
  raft::SnapshotReply lie = *held;
  for (const std::uint64_t more : {1U, 1000U}) {
    lie.offset = sending().size + more;
    expect_nothing_of(lie);
  }
}

TEST_F(SnapshotAnswer, ToTheOneThatIsSentMovesItOn) {
  ASSERT_TRUE(held.has_value());
  const SnapshotTransfer before = sending();
  deliver(*held);
  EXPECT_GT(sending().bytes, before.bytes);
  cluster.lose = nullptr;
  EXPECT_TRUE(catches_up(follower));
  EXPECT_EQ(leads.driver().counters().snapshots_sent, 1U);
}

}  // namespace
}  // namespace leasehold::replica
