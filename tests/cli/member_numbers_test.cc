// Which member of a group a node is.
#include <leasehold/cli/member_numbers.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace leasehold::cli {
namespace {

using Object = nlohmann::ordered_json;

Object leader_of_many() {
  return {{"groups", {{"count", 8}}},
          {"members", {{{"id", 1}}, {{"id", 10'002}}, {{"id", 20'004}}}}};
}

TEST(MemberNumbers, ANodeIsTheMemberThatIsAtIt) {
  const Object leader = leader_of_many();
  EXPECT_EQ(in_group("1", leader, {}), "1");
  EXPECT_EQ(in_group("2", leader, {}), "10002");
  EXPECT_EQ(in_group("10002", leader, {}), "10002") << "as member list shows it";
  EXPECT_EQ(in_group("4=d:7101", leader, {}), "20004=d:7101");
  EXPECT_EQ(in_group("3", leader, {}), "3") << "it is none";
  EXPECT_EQ(node_number(20'004, leader), 4U);
}

TEST(MemberNumbers, ANodeThatWaitsSaysItsNumber) {
  const Object leader = leader_of_many();
  const Object waits = {{"id", 10'003}, {"joining", true}, {"peer_address", "c:7101"}};
  EXPECT_EQ(in_group("3=c:7101", leader, {Object{{"error", "x"}}, waits}), "10003=c:7101");
  EXPECT_EQ(in_group("3=e:7101", leader, {waits}), "3=e:7101") << "another address";
  EXPECT_EQ(in_group("5=c:7101", leader, {waits}), "5=c:7101") << "another node";
  EXPECT_EQ(in_group("3", leader, {waits}), "3") << "no address: it is not to be added";
}

TEST(MemberNumbers, AReplicaThatHasNotHeardOfItsRemovalIsAddedAsItIs) {
  const Object leader = leader_of_many();
  Object was = {{"id", 10'003}, {"joining", false}, {"peer_address", "c:7101"}};
  was["members"] = {{{"id", 1}}, {{"id", 10'003}}};
  EXPECT_EQ(in_group("3=c:7101", leader, {was}), "10003=c:7101");
  was["members"] = {{{"id", 1}}};
  EXPECT_EQ(in_group("3=c:7101", leader, {was}), "3=c:7101")
      << "it has left, and is not used again";
  EXPECT_FALSE(has_left("3=c:7101", {was})) << "it has not formed";
  was["formed"] = true;
  EXPECT_TRUE(has_left("3=c:7101", {Object{{"error", "x"}}, was}));
  std::vector<std::string> words = {"2", "3=c:7101"};
  EXPECT_NE(put_in_group(words, leader, {was}).find("node 3 was removed"), std::string::npos);
  EXPECT_EQ(words.front(), "10002");
  words = {"1=c:7101"};
  EXPECT_EQ(put_in_group(words, leader, {was}), "") << "a member that moves there";
  EXPECT_FALSE(has_left("3=d:7101", {was}));
  was["members"].push_back({{"id", 10'003}});
  EXPECT_FALSE(has_left("3=c:7101", {was}));
}

TEST(MemberNumbers, InOneGroupANumberIsThatOfTheNode) {
  Object leader = leader_of_many();
  leader.erase("groups");
  EXPECT_EQ(in_group("2", leader, {}), "2");
  EXPECT_EQ(node_number(20'004, leader), 20'004U);
  EXPECT_EQ(node_number_of({{"id", nullptr}, {"error", "x"}}), 0U) << "it did not answer";
}

}  // namespace
}  // namespace leasehold::cli
