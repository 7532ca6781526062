// Commands with the id of a lease at a node that was away: its replicas have not applied the move
// of the key's slot.
#include <leasehold/tests/server/slots_fixture.h>

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::StartsWith;

const std::vector<std::vector<std::string>> kByLease = {{"SET", "{bar}n", "v", "LEASE", "1"},
                                                        {"SETSEQ", "{bar}", "v", "LEASE", "1"},
                                                        {"LEASE.ATTACH", "1", "bar"}};

class LeaseOfSlots : public SessionSlots {
 protected:
  /// The client has its lease in the group to which the slot has moved.
  LeaseOfSlots() { EXPECT_EQ(send({"LEASEHOLD", "GROUP", "KEY", "foo"}), "+OK\r\n"); }
};

TEST_F(LeaseOfSlots, IsOfAGroupWhoseMovesThisNodeHasYetToSee) {
  EXPECT_EQ(send(kByLease[0]), "");
  EXPECT_EQ(second_.reads(), 1U);
  EXPECT_EQ(node_.proposals() + second_.proposals(), 0U);
  begin();
  freeze();
  take();
  second_.end_read(second_.granted(raft::ReadBasis::lease));
  EXPECT_EQ(pump(), "");
  EXPECT_EQ(node_.proposals(), 0U);
  EXPECT_EQ(second_.proposals(), 1U);
  second_.commit_all();
  EXPECT_THAT(pump(), StartsWith("-NOLEASE")) << "the second group was asked, which has none";
  // It is known now.
  EXPECT_EQ(send(kByLease[2]), "");
  EXPECT_EQ(second_.proposals(), 1U);
}

TEST_F(LeaseOfSlots, OfAGroupThatCannotBeAskedIsTriedAgain) {
  for (const auto& words : kByLease) {
    EXPECT_EQ(send(words), "") << words[0];
    second_.end_read({});
    EXPECT_THAT(pump(), StartsWith("-TRYAGAIN this node could not learn")) << words[0];
  }
  EXPECT_EQ(node_.proposals() + second_.proposals(), 0U);
}

TEST_F(LeaseOfSlots, WithoutAnIdNothingIsAsked) {
  EXPECT_EQ(send({"SET", "{bar}n", "v", "LEASE", "printer"}), "");
  EXPECT_EQ(send({"SET", "{bar}n", "v", "PX", "1000"}), "");
  EXPECT_EQ(second_.reads(), 0U);
  EXPECT_EQ(node_.proposals(), 2U);
}

}  // namespace
}  // namespace leasehold::server
