// Where groups are, as a node without a replica knows it: what it knew last is kept, and leads on.
#include <leasehold/server/group_places.h>
#include <leasehold/tests/base/temporary_folder.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace leasehold::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

raft::NodeId node(std::uint64_t number) {
  return raft::NodeId(number);
}

/// Node 3 of four: it has a replica of group 2, and none of group 3.
class GroupPlacesTest : public ::testing::Test {
 protected:
  std::unique_ptr<GroupPlaces> loaded() const {
    auto places =
        GroupPlaces::load(folder_.path(), node(3),
                          {{true, {node(2), node(3), node(4)}}, {false, {node(1), node(2)}}});
    EXPECT_TRUE(places.ok()) << places.error().message;
    return std::move(places).value();
  }
  std::string refusal(const std::string& text) const {
    std::ofstream(folder_.path("PLACES")) << text;
    const auto places = GroupPlaces::load(folder_.path(), node(3), {{true, {node(3)}}});
    return places.ok() ? "accepted" : places.error().message;
  }

  TemporaryFolder folder_;
  const std::map<raft::NodeId, std::string> addresses_ = {
      {node(1), "a:1"}, {node(2), "b:1"}, {node(4), "d:1"}};
};

TEST_F(GroupPlacesTest, TheFirstGroupIsEverywhere) {
  const auto places = loaded();
  EXPECT_EQ(places->of(1), nullptr);
  EXPECT_EQ(places->of(4), nullptr);
  EXPECT_TRUE(places->of(2)->here());
  EXPECT_FALSE(places->of(3)->here());
}

TEST_F(GroupPlacesTest, ANodeIsNotSentToItself) {
  const auto places = loaded();
  EXPECT_THAT(places->of(2)->nodes(), ElementsAre(node(2), node(4)));
}

TEST_F(GroupPlacesTest, WhoHasLeftKnowsWhoWasThere) {
  auto places = loaded();
  places->learn(2, {node(1), node(3), node(4)}, true);
  const std::uint64_t stay = places->of(2)->stay();
  places->leave(2);
  EXPECT_FALSE(places->of(2)->here());
  EXPECT_NE(places->of(2)->stay(), stay);
  ASSERT_TRUE(places->save().ok());
  places = loaded();
  EXPECT_THAT(places->of(2)->nodes(), ElementsAre(node(1), node(4)));
  EXPECT_THAT(places->of(3)->nodes(), ElementsAre(node(1), node(2)));
}

TEST_F(GroupPlacesTest, ItsOwnLogKnowsBetterThanOthers) {
  const auto places = loaded();
  ASSERT_TRUE(places->hear(2, {node(1)}).ok());
  EXPECT_THAT(places->of(2)->nodes(), ElementsAre(node(2), node(4)));
  ASSERT_TRUE(places->hear(3, {node(4), node(3)}).ok());
  EXPECT_THAT(places->of(3)->nodes(), ElementsAre(node(4)));
}

TEST_F(GroupPlacesTest, TheLastMemberThatLeavesForgetsNothing) {
  const auto places = loaded();
  places->learn(2, {node(3)}, true);
  EXPECT_THAT(places->of(2)->nodes(), ElementsAre(node(2), node(4)));
}

TEST_F(GroupPlacesTest, AReplicaWhoseLogHasItsRemovalServesNothing) {
  const auto places = loaded();
  places->learn(2, {node(1), node(4)}, false);
  EXPECT_FALSE(places->of(2)->here());
  places->learn(2, {node(2), node(3), node(4)}, true);
  EXPECT_TRUE(places->of(2)->here()) << "the entry was taken back";
}

TEST_F(GroupPlacesTest, AReplicaThatIsAddedIsHere) {
  const auto places = loaded();
  places->learn(3, {node(1), node(2)}, false);
  EXPECT_FALSE(places->of(3)->here());
  places->learn(3, {node(1), node(2), node(3)}, true);
  EXPECT_TRUE(places->of(3)->here());
}

TEST_F(GroupPlacesTest, WhatIsSaidHasToBePossible) {
  const auto places = loaded();
  EXPECT_THAT(places->hear(4, {node(1)}).error().message, HasSubstr("there is no group 4"));
  EXPECT_THAT(places->hear(0, {node(1)}).error().message, HasSubstr("there is no group 0"));
  EXPECT_FALSE(places->hear(3, {}).ok());
  EXPECT_TRUE(places->hear(1, {node(1)}).ok()) << "it changes nothing";
}

TEST_F(GroupPlacesTest, ClientsAreSentToANodeThatIsConnected) {
  const auto places = loaded();
  GroupPlace& place = *places->of(3);
  EXPECT_EQ(place.target(), raft::kNobody);
  places->aim({}, addresses_);
  EXPECT_EQ(place.target(), node(1)) << "nobody is connected: the first one";
  places->aim({node(2), node(4)}, addresses_);
  EXPECT_EQ(place.target(), node(2));
  places->aim({node(1), node(2)}, {{node(2), "b:1"}});
  EXPECT_EQ(place.target(), node(2)) << "the other one's address is not known";
  places->aim({node(1), node(2)}, {});
  EXPECT_EQ(place.target(), raft::kNobody);
}

// A target from before may have lost its replica, and know that this node was to get one.
TEST_F(GroupPlacesTest, WhoLeavesKnowsAtOnceWhereClientsGo) {
  const auto places = loaded();
  places->aim({node(1), node(2), node(4)}, addresses_);
  EXPECT_EQ(places->of(2)->target(), node(2));
  places->learn(2, {node(1), node(4)}, false);
  EXPECT_EQ(places->of(2)->target(), node(1));
  ASSERT_TRUE(places->hear(2, {node(4)}).ok());
  EXPECT_EQ(places->of(2)->target(), node(4));
}

TEST_F(GroupPlacesTest, TheErrorLeadsThere) {
  const auto places = loaded();
  places->aim({}, addresses_);
  EXPECT_EQ(moved_text(*places->of(3), 3, 12182, addresses_), "MOVED 12182 a:1");
  EXPECT_THAT(moved_text(*places->of(3), 3, 12182, {}),
              HasSubstr("CLUSTERDOWN this node has no replica of group 3"));
}

TEST_F(GroupPlacesTest, ADamagedFileIsRefused) {
  EXPECT_EQ(refusal("leasehold-places 1\n2 1,4\n"), "accepted");
  for (const char* line : {"3 1", "1 1", "2", "2 ", "2 0", "2 1,", "2 1,x", "2 10000", "x 1"}) {
    EXPECT_THAT(refusal(std::string("leasehold-places 1\n") + line + "\n"),
                HasSubstr("does not say which nodes have a group: remove it"))
        << line;
  }
  EXPECT_THAT(refusal("something\n"), HasSubstr("PLACES"));
}

TEST_F(GroupPlacesTest, WhatItWasBornWithIsNotInTheFile) {
  const auto places = loaded();
  ASSERT_TRUE(places->save().ok());
  EXPECT_FALSE(std::ifstream(folder_.path("PLACES")).good());
}

TEST(NodeLists, AreNumbersOfNodes) {
  EXPECT_THAT(parse_nodes("1,20,3").value(), ElementsAre(node(1), node(20), node(3)));
  for (const char* text : {"", ",", "1,", ",1", "0", "-1", "10000", "1 2", "a"}) {
    EXPECT_FALSE(parse_nodes(text)) << text;
  }
}

}  // namespace
}  // namespace leasehold::server
