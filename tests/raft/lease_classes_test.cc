// Leases that rest on the same promises end together.
#include <leasehold/raft/lease_classes.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <set>
#include <vector>

namespace leasehold::raft::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A process, the two others, and the classes of its leaders.
class LeaseClassesTest : public ::testing::Test {
 protected:
  static constexpr Duration kD = std::chrono::milliseconds(1000);
  static constexpr Duration kHeartbeat = std::chrono::milliseconds(100);
  static constexpr lease::Epoch kEpoch{Incarnation(1), 0};
  static constexpr lease::Epoch kNext{Incarnation(1), 1};

  static Uuid directory(std::uint64_t id) { return {id, id}; }
  static lease::Timing exact() {
    lease::Timing timing;
    timing.lease = kD;
    timing.heartbeat = kHeartbeat;
    timing.max_clock_drift_ppm = 0;
    timing.margin = Duration(0);
    return timing;
  }
  static LeaseBasis basis(const lease::Epoch& epoch = kEpoch, bool own = true) {
    LeaseBasis basis(exact());
    basis.voters = 3;
    basis.own = own;
    basis.bound = {{directory(2), epoch}, {directory(3), epoch}};
    return basis;
  }
  HolderInstant at(Duration since) const { return HolderInstant(since); }
  std::set<LeaseClassId> begin(Duration when) {
    beats.begin(at(when), exact());
    return derive(nullptr);
  }
  std::set<LeaseClassId> acknowledge(std::uint64_t id, const lease::Epoch& epoch = kEpoch) {
    supporters[directory(id)].acknowledge(beats, beats.newest(), epoch);
    const Uuid by = directory(id);
    return derive(&by);
  }
  std::set<LeaseClassId> derive(const Uuid* by) {
    std::set<LeaseClassId> moved;
    classes.derive(beats, supporters, by, moved);
    return moved;
  }
  std::vector<LeaseClassId> look(Duration when) {
    std::vector<LeaseClassId> lapsed;
    classes.look(at(when), lapsed);
    return lapsed;
  }
  LeaseClassId join(const LeaseBasis& basis, Duration when = Duration(0)) {
    return classes.join(basis, beats, supporters, at(when));
  }
  HolderInstant end(LeaseClassId id) const { return classes.find(id)->end; }

  lease::Beats beats;
  LeaseClasses::Supporters supporters;
  LeaseClasses classes{kHeartbeat};
};

TEST_F(LeaseClassesTest, EqualBasesShareAClass) {
  begin(Duration(0));
  acknowledge(2);
  const LeaseClassId first = join(basis());
  ASSERT_NE(first, kNoClass);
  EXPECT_EQ(join(basis()), first);
  LeaseBasis other = basis();
  other.margin = Duration(1);
  EXPECT_NE(join(other), first);
  other = basis();
  other.voters = 5;
  EXPECT_EQ(join(other), kNoClass) << "of five, two are no quorum";
}

TEST_F(LeaseClassesTest, EndsAsTheBeatsOfAQuorumDo) {
  begin(Duration(0));
  acknowledge(2);
  const LeaseClassId id = join(basis());
  EXPECT_EQ(end(id), at(kD));
  EXPECT_EQ(classes.find(id)->began, at(Duration(0)));
  EXPECT_THAT(begin(kHeartbeat), IsEmpty()) << "nobody else has acknowledged it";
  EXPECT_THAT(acknowledge(3), ElementsAre(id));
  EXPECT_EQ(end(id), at(kHeartbeat + kD));
  EXPECT_EQ(classes.find(id)->began, at(kHeartbeat));
  EXPECT_THAT(acknowledge(2), IsEmpty()) << "it is a quorum already";
}

TEST_F(LeaseClassesTest, WithoutAnOwnVoteTwoOthersAreNeeded) {
  begin(Duration(0));
  acknowledge(2);
  EXPECT_EQ(join(basis(kEpoch, false)), kNoClass);
  acknowledge(3);
  EXPECT_NE(join(basis(kEpoch, false)), kNoClass);
}

// A reader that still has the old class would serve from it beside another leader.
TEST_F(LeaseClassesTest, AVoterThatHasLetGoAddsNothing) {
  begin(Duration(0));
  acknowledge(2);
  const LeaseClassId id = join(basis());
  begin(kHeartbeat);
  EXPECT_THAT(acknowledge(2, kNext), IsEmpty());
  EXPECT_EQ(end(id), at(kD));
  LeaseBasis next = basis();
  next.bound = {{directory(2), kNext}};
  EXPECT_GT(join(next), id);
  EXPECT_THAT(acknowledge(3), ElementsAre(id)) << "that one still rests on its promise";
}

// The earlier beat began before the election of the leader that joins.
TEST_F(LeaseClassesTest, ALeaderDoesNotJoinOneThatAnEarlierBeatCarries) {
  begin(Duration(0));
  acknowledge(2);
  const LeaseClassId id = join(basis());
  lease::Timing shorter = exact();
  shorter.lease = kD / 2;
  beats.begin(at(kHeartbeat), shorter);
  acknowledge(2);
  EXPECT_EQ(end(id), at(kD));
  EXPECT_EQ(join(basis()), kNoClass);
  beats.begin(at(6 * kHeartbeat), shorter);
  acknowledge(2);
  EXPECT_EQ(join(basis()), id);
}

TEST_F(LeaseClassesTest, OneThatIsAboutToEndLapsesOnce) {
  begin(Duration(0));
  acknowledge(2);
  const LeaseClassId id = join(basis());
  EXPECT_TRUE(classes.any_lives());
  EXPECT_THAT(look(kD - 2 * kHeartbeat - Duration(1)), IsEmpty());
  EXPECT_THAT(look(kD - 2 * kHeartbeat), ElementsAre(id));
  EXPECT_THAT(look(kD - kHeartbeat), IsEmpty());
  EXPECT_FALSE(classes.any_lives());
  EXPECT_EQ(join(basis(), kD - kHeartbeat), kNoClass);
  begin(kD);
  acknowledge(2);
  EXPECT_TRUE(classes.any_lives());
  EXPECT_EQ(join(basis(), kD), id);
  EXPECT_THAT(look(2 * kD), ElementsAre(id));
}

TEST_F(LeaseClassesTest, ANumberIsNeverUsedAgain) {
  begin(Duration(0));
  acknowledge(2);
  const LeaseClassId first = join(basis());
  LeaseBasis other = basis();
  other.margin = Duration(1);
  const LeaseClassId second = join(other);
  classes.retain({second});
  EXPECT_EQ(classes.find(first), nullptr);
  EXPECT_NE(classes.find(second), nullptr);
  EXPECT_EQ(classes.size(), 1U);
  EXPECT_GT(join(basis()), second);
  classes.retain({});
  EXPECT_FALSE(classes.any_lives());
}

TEST_F(LeaseClassesTest, WithoutANumberALeaderLooksByItself) {
  classes = LeaseClasses(kHeartbeat, LeaseClassId(2));
  begin(Duration(0));
  acknowledge(2);
  EXPECT_NE(join(basis()), kNoClass);
  LeaseBasis other = basis();
  other.margin = Duration(1);
  EXPECT_EQ(join(other), LeaseClassId(2));
  other.margin = Duration(2);
  EXPECT_EQ(join(other), kNoClass);
  EXPECT_EQ(classes.size(), 2U);
  EXPECT_NE(join(basis()), kNoClass);
}

}  // namespace
}  // namespace leasehold::raft::test
