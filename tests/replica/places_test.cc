#include <leasehold/replica/places.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::replica {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

raft::NodeId number(std::uint64_t value) {
  return raft::NodeId(value);
}
raft::Uuid directory(std::uint64_t host) {
  return {host, 100};
}

/// Replica numbers, and the hosts of their directories.
raft::Membership members(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& at) {
  raft::Membership membership;
  for (const auto& [replica, host] : at) {
    membership.members.push_back(
        {number(replica), directory(host), "host:" + std::to_string(host)});
    membership.voters.push_back(number(replica));
  }
  return membership;
}

class PlacesTest : public ::testing::Test {
 protected:
  std::map<raft::Uuid, raft::NodeId> met_;
  Places places_{[this](const raft::Uuid& of) {
    const auto found = met_.find(of);
    return found != met_.end() ? found->second : raft::kNobody;
  }};
};

TEST_F(PlacesTest, AReplicaIsFoundOnceItsHostIsMet) {
  places_.learn(members({{7, 1}, {9, 2}}));
  EXPECT_EQ(places_.host_of(number(7)), raft::kNobody);
  met_[directory(1)] = number(1);
  EXPECT_EQ(places_.host_of(number(7)), number(1));
  EXPECT_EQ(places_.host_of(number(9)), raft::kNobody);
  EXPECT_EQ(places_.host_of(number(8)), raft::kNobody) << "no such replica";
}

TEST_F(PlacesTest, AnInitialMemberIsWhereItWasPutUntilItsDirectoryIsKnown) {
  places_.assign(number(7), number(3));
  EXPECT_EQ(places_.host_of(number(7)), number(3));
  met_[directory(1)] = number(1);
  places_.learn(members({{7, 1}}));
  EXPECT_EQ(places_.host_of(number(7)), number(1));
}

TEST_F(PlacesTest, OneThatHasLeftIsStillFound) {
  met_[directory(1)] = number(1);
  places_.learn(members({{7, 1}}));
  places_.learn(members({{8, 1}}));
  EXPECT_EQ(places_.host_of(number(7)), number(1));
  EXPECT_THAT(places_.replicas_of(directory(1)), ElementsAre(number(7), number(8)));
  EXPECT_THAT(places_.replicas_of(directory(2)), IsEmpty());
}

TEST_F(PlacesTest, AClaimIsBelievedOnlyWhereNothingIsKnown) {
  met_[directory(1)] = number(1);
  met_[directory(2)] = number(2);
  places_.learn(members({{7, 1}}));
  places_.heard(number(7), directory(2));
  EXPECT_EQ(places_.host_of(number(7)), number(1));
  places_.heard(number(8), directory(2));
  EXPECT_EQ(places_.host_of(number(8)), number(2));
  places_.heard(number(8), directory(1));
  EXPECT_EQ(places_.host_of(number(8)), number(1)) << "the first claim may have been false";
  EXPECT_EQ(places_.directory_of(number(8)), raft::Uuid{});
  EXPECT_EQ(places_.directory_of(number(7)), directory(1));
}

TEST_F(PlacesTest, ClaimsAreBounded) {
  met_[directory(1)] = number(1);
  for (std::uint64_t replica = 1; replica <= 100'000; ++replica) {
    places_.heard(number(replica), directory(1));
  }
  EXPECT_LE(places_.replicas_of(directory(1)).size(), 4 * raft::kMembersMax);
  EXPECT_EQ(places_.host_of(number(100'000)), number(1)) << "the latest is believed";
}

// A group that had 256 numbers in its life, or heard as many, could not add a replica any more.
TEST_F(PlacesTest, MembersStayAndTheOldestOthersGo) {
  met_[directory(1)] = number(1);
  places_.learn(members({{1, 1}, {2, 1}}));
  for (std::uint64_t replica = 3; replica <= 1000; ++replica) {
    places_.learn(members({{1, 1}, {2, 1}, {replica, 1}}));
  }
  EXPECT_EQ(places_.host_of(number(999)), number(1)) << "it has left just now";
  EXPECT_EQ(places_.host_of(number(3)), raft::kNobody);
  places_.heard(number(2000), directory(1));
  EXPECT_EQ(places_.host_of(number(2000)), number(1));
  for (std::uint64_t replica = 3000; replica <= 9000; ++replica) {
    places_.heard(number(replica), directory(1));
  }
  for (const std::uint64_t member : {1, 2, 1000}) {
    EXPECT_EQ(places_.host_of(number(member)), number(1)) << member;
  }
}

}  // namespace
}  // namespace leasehold::replica
