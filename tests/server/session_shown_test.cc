// What a user is shown of the keys and sessions of others.
#include <leasehold/tests/server/users_fixture.h>

#include <gmock/gmock.h>

#include <string>

namespace leasehold::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(SessionUsersTest, KeysInASlotAreCountedIfTheyMayBeRead) {
  EXPECT_EQ(write({"MSET", "{x}a", "1", "{x}b", "1", "{x}c", "1"}), "+OK\r\n");
  const std::string slot = send({"CLUSTER", "KEYSLOT", "x"});
  const std::string number = slot.substr(1, slot.size() - 3);
  EXPECT_EQ(send({"CLUSTER", "COUNTKEYSINSLOT", number}), ":3\r\n");
  be({"+@all", "~{x}a", "%W~{x}b"});
  EXPECT_EQ(send({"CLUSTER", "COUNTKEYSINSLOT", number}), ":1\r\n");
}

TEST_F(SessionUsersTest, TheClocksOfANodeAreThoseOfItsLeases) {
  EXPECT_EQ(send({"LEASEHOLD", "CLOCK"}), "-ERR this server tells no clocks\r\n");
  state_.options.clocks = [] {
    return lease::Now{lease::HolderInstant(lease::Duration(70)),
                      lease::PromiseInstant(lease::Duration(50))};
  };
  state_.options.machine = "m-1";
  EXPECT_EQ(send({"LEASEHOLD", "CLOCK"}),
            "*6\r\n$9\r\nholder_ns\r\n:70\r\n$10\r\npromise_ns\r\n:50\r\n$7\r\nmachine\r\n"
            "$3\r\nm-1\r\n");
  be({"+@all", "-@dangerous"});
  EXPECT_THAT(send({"LEASEHOLD", "CLOCK"}), HasSubstr("-NOPERM"));
}

TEST_F(SessionUsersTest, SessionsOfOthersAreForOperators) {
  be({"+@all", "-@cluster-admin", "~*"});
  EXPECT_EQ(write({"LEASEHOLD", "SESSION", "OPEN"}), ":1\r\n");
  change({"on", "nopass", "+@all", "-@cluster-admin"}, "bob");
  ASSERT_EQ(send({"AUTH", "bob", ""}), "+OK\r\n");
  EXPECT_EQ(write({"LEASEHOLD", "SESSION", "OPEN"}), ":2\r\n");
  EXPECT_THAT(send({"LEASEHOLD", "SESSION", "LIST"}),
              AllOf(HasSubstr(R"("open":1,)"), HasSubstr(R"("user":"bob")"), Not(HasSubstr("ann")),
                    Not(HasSubstr(R"("id":1,)"))));
  change({"+@cluster-admin"}, "bob");
  EXPECT_THAT(
      send({"LEASEHOLD", "SESSION", "LIST"}),
      AllOf(HasSubstr(R"("open":2,)"), HasSubstr(R"("user":"bob")"), HasSubstr(R"("user":"ann")")));
}

}  // namespace
}  // namespace leasehold::server
