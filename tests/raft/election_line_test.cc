#include <leasehold/raft/election_line.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <vector>

namespace leasehold::raft {
namespace {

using State = ElectionLine::State;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr PromiseInstant at(Duration time) {
  return PromiseInstant(time);
}
constexpr GroupId kOne(1), kTwo(2), kThree(3), kFour(4);

/// Eight places, of which the groups 101 to 106 have six.
class Line : public ::testing::Test {
 protected:
  void SetUp() override {
    admit();
    for (std::uint64_t other = 101; other <= 106; ++other) campaign(GroupId(other));
  }
  /// Asks for votes, as a core does: or waits.
  bool campaign(GroupId group) {
    const bool may = line_.take_place(group, now_);
    line_.note(group, may ? State::elects : State::waits);
    return may;
  }
  std::vector<GroupId> admit() { return line_.admit(now_); }

  PromiseInstant now_ = at(seconds(10));
  ElectionLine line_{8, seconds(2)};
};

TEST_F(Line, NoMoreElectThanThereArePlaces) {
  EXPECT_TRUE(campaign(kOne));
  EXPECT_TRUE(campaign(kTwo));
  EXPECT_FALSE(campaign(kThree));
  EXPECT_TRUE(campaign(kTwo)) << "again, in its own place";
  EXPECT_THAT(admit(), IsEmpty());
  line_.note(kOne, State::elects);
  EXPECT_THAT(admit(), IsEmpty()) << "it has been elected, and commits nothing yet";
  line_.note(kOne, State::quiet);
  EXPECT_EQ(line_.next_deadline(), PromiseInstant::earliest());
  EXPECT_THAT(admit(), ElementsAre(kThree));
  EXPECT_FALSE(campaign(kFour)) << "the place is kept for the third";
  EXPECT_TRUE(campaign(kThree));
  EXPECT_THAT(admit(), IsEmpty()) << "once";
}

TEST_F(Line, TheFirstThatWaitsIsTheFirst) {
  campaign(kOne);
  campaign(kTwo);
  campaign(kFour);
  campaign(kThree);
  campaign(kFour);
  line_.note(kOne, State::quiet);
  line_.remove(kTwo);
  EXPECT_THAT(admit(), ElementsAre(kFour, kThree));
}

TEST_F(Line, OneThatHearsALeaderLeavesIt) {
  campaign(kOne);
  campaign(kTwo);
  campaign(kThree);
  campaign(kFour);
  line_.note(kThree, State::quiet);
  line_.note(kOne, State::quiet);
  EXPECT_THAT(admit(), ElementsAre(kFour));
}

TEST_F(Line, OneWithoutAnswersHoldsUpTheOthersForAWhile) {
  now_ = now_ + seconds(1);
  admit();
  campaign(kOne);
  campaign(kTwo);
  EXPECT_EQ(line_.next_deadline(), PromiseInstant::never()) << "nobody waits";
  campaign(kThree);
  EXPECT_EQ(line_.next_deadline(), at(seconds(12)));
  now_ = at(seconds(12)) - milliseconds(1);
  EXPECT_THAT(admit(), IsEmpty());
  now_ = at(seconds(12));
  EXPECT_THAT(admit(), ElementsAre(kThree));
}

// Thousands may have lost their quorum. One that has not elects at once.
TEST_F(Line, ThoseWithoutAnswersGetAQuarterOfThePlaces) {
  now_ = at(seconds(12));
  admit();  // the six have had theirs
  for (std::uint64_t other = 101; other <= 106; ++other) {
    EXPECT_EQ(campaign(GroupId(other)), other <= 102) << other;
  }
  for (std::uint64_t fresh = 1; fresh <= 6; ++fresh) EXPECT_TRUE(campaign(GroupId(fresh))) << fresh;
  EXPECT_FALSE(campaign(GroupId(7)));
  now_ = at(seconds(14));
  EXPECT_THAT(admit(), ElementsAre(GroupId(7), GroupId(103), GroupId(104)));
}

// A leader that goes has asked it to.
TEST_F(Line, ACampaignWithoutAPlaceTakesNone) {
  line_.note(kOne, State::elects);
  line_.note(kOne, State::quiet);
  EXPECT_TRUE(campaign(kTwo));
  EXPECT_TRUE(campaign(kThree));
  EXPECT_FALSE(campaign(kFour));
  line_.note(kFour, State::elects);
  line_.note(kTwo, State::quiet);
  EXPECT_THAT(admit(), IsEmpty()) << "it has left the line";
}

}  // namespace
}  // namespace leasehold::raft
