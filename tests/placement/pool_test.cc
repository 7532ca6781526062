// What a pool may contain.
#include <leasehold/tests/placement/model.h>

#include <gmock/gmock.h>

#include <limits>

namespace leasehold::placement {
namespace {

using ::testing::HasSubstr;

class PoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (std::uint64_t id = 1; id <= 4; ++id) pool.hosts.push_back(a_host(id));
    pool.groups.push_back(a_group(7, {1, 2, 3}));
    EXPECT_TRUE(validate(pool).ok());
  }
  Group& group() { return pool.groups[0]; }
  std::string problem() const {
    const auto valid = validate(pool);
    if (valid.ok()) return {};
    EXPECT_EQ(valid.error().code, ErrorCode::invalid_argument);
    EXPECT_FALSE(next_steps(pool, {}).ok());
    return valid.error().message;
  }
  Pool pool;
};

TEST_F(PoolTest, HostsAreNumberedOnce) {
  pool.hosts.push_back(a_host(2));
  EXPECT_EQ(problem(), "host 2 is listed twice");
  pool.hosts.back().id = raft::kNobody;
  EXPECT_EQ(problem(), "host 0: number hosts from 1 on");
  pool.hosts.back() = a_host(5, "", kWeightMax + 1);
  EXPECT_EQ(problem(), "host 5: its weight is at most 10000");
}

TEST_F(PoolTest, GroupsAreNumberedOnce) {
  pool.groups.push_back(pool.groups[0]);
  EXPECT_EQ(problem(), "group 7 is listed twice");
  pool.groups.back().id = raft::GroupId(0);
  EXPECT_EQ(problem(), "group 0: number groups from 1 on");
}

TEST_F(PoolTest, NumbersAreInTheirRanges) {
  group().replicas = 0;
  EXPECT_EQ(problem(), "group 7: it wants at least 1 replica and at most 15");
  group().replicas = kReplicasMax + 1;
  EXPECT_THAT(problem(), HasSubstr("at most 15"));
  group().replicas = 3;
  group().load = 0;
  EXPECT_EQ(problem(), "group 7: its load is at least 1 and at most 1000000");
  group().load = kLoadMax + 1;
  EXPECT_THAT(problem(), HasSubstr("at most 1000000"));
  group().load = kLoadMax;
  group().last_replica = raft::NodeId(std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(problem(), "group 7: there is no number above last_replica");
}

TEST_F(PoolTest, EachReplicaHasANumberAndAHost) {
  group().voters[2].id = raft::kNobody;
  EXPECT_EQ(problem(), "group 7: number replicas from 1 on");
  group().voters[2].id = raft::NodeId(4);
  EXPECT_EQ(problem(), "group 7: replica 4 has a number above last_replica");
  group().voters[2].id = raft::NodeId(2);
  EXPECT_EQ(problem(), "group 7: replica 2 is listed twice");
  group().voters[2] = {raft::NodeId(3), raft::NodeId(9)};
  EXPECT_EQ(problem(), "group 7: replica 3 is at host 9, which is not listed");
  group().voters[2].host = raft::NodeId(1);
  EXPECT_EQ(problem(), "group 7: host 1 has two replicas");
  group().voters.pop_back();
  group().learners.push_back({raft::NodeId(3), raft::NodeId(2)});
  EXPECT_EQ(problem(), "group 7: host 2 has two replicas");
  group().learners[0] = {raft::NodeId(2), raft::NodeId(3)};
  EXPECT_EQ(problem(), "group 7: replica 2 is listed twice");
}

TEST_F(PoolTest, TheLeaderIsAVoter) {
  group().leader = raft::NodeId(4);
  EXPECT_EQ(problem(), "group 7: its leader 4 is no voter");
  group().leader = raft::kNobody;
  EXPECT_EQ(problem(), "");
  group().learners.push_back({raft::NodeId(3), raft::NodeId(3)});
  group().voters.pop_back();
  group().leader = raft::NodeId(3);
  EXPECT_EQ(problem(), "group 7: its leader 3 is no voter");
  group().leader = raft::kNobody;
  group().voters.clear();
  EXPECT_EQ(problem(), "group 7: it has no voter");
}

}  // namespace
}  // namespace leasehold::placement
