// Sessions over a fake node: keys that end by themselves.
#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/session.h>
#include <leasehold/tests/server/session_fixture.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace leasehold::server {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SessionExpiryTest : public SessionTest {
 protected:
  SessionExpiryTest() {
    groups_.home().lease_keeper = &keeper_;
    node_.grant_lease(1h);
  }
  /// Sends a line, and commits the command that it proposes.
  std::string line(const std::string& words) {
    std::string out = feed(words + "\r\n");
    node_.commit_all();
    out += pump();
    // As the program does every now and then.
    EXPECT_TRUE(keeper_.look(raft::Term(1), 0));
    return out;
  }
  std::string wall_second(std::int64_t later) {
    return std::to_string(wall_now() / std::chrono::seconds(1) + later);
  }

  kv::LeaseKeeper keeper_{
      node_.clock(), [this](std::uint64_t cursor) { return node_.store().lease_changes(cursor); }};
};

TEST_F(SessionExpiryTest, TheTimeLeftIsReturned) {
  EXPECT_EQ(line("SET k v PX 1500"), "+OK\r\n");
  EXPECT_EQ(line("PTTL k"), ":1500\r\n");
  EXPECT_EQ(line("TTL k"), ":2\r\n");
  node_.manual_clock().advance(1200ms);
  EXPECT_EQ(line("PTTL k"), ":300\r\n");
  EXPECT_EQ(line("TTL k"), ":0\r\n");
  node_.manual_clock().advance(1min);
  EXPECT_EQ(line("PTTL k"), ":0\r\n") << "until the leader's command ends it, it is there";
  EXPECT_EQ(line("GET k"), "$1\r\nv\r\n");
  line("SET k v");
  EXPECT_EQ(line("PTTL k"), ":-1\r\n");
  EXPECT_EQ(line("EXPIRETIME k"), ":-1\r\n");
  EXPECT_EQ(line("TTL none"), ":-2\r\n");
  EXPECT_EQ(line("PEXPIRETIME none"), ":-2\r\n");
}

TEST_F(SessionExpiryTest, WhatIsLeftIsRoundedAsInRedis) {
  line("SET k v PX 1499");
  EXPECT_EQ(line("TTL k"), ":1\r\n");
  node_.manual_clock().advance(lease::Duration(1));
  EXPECT_EQ(line("PTTL k"), ":1499\r\n") << "a begun millisecond counts";
}

// A member of release 0.1 could not read the instant.
TEST_F(SessionExpiryTest, AnOldGroupKeepsNoInstants) {
  node_.be_of_the_oldest_level();
  const std::string second = wall_second(60);
  EXPECT_EQ(line("SET k v EXAT " + second), "+OK\r\n");
  EXPECT_EQ(line("EXPIREAT k " + second), ":1\r\n");
  const auto lease = node_.store().get("k").value()->lease;
  const auto found = node_.store().leases_after(grant::LeaseId(lease.value() - 1), 1).value();
  EXPECT_EQ(found.at(0).asked_at_ms, 0);
}

TEST_F(SessionExpiryTest, AnInstantBecomesADurationHere) {
  line("SET k v EXAT " + wall_second(100));
  EXPECT_THAT(line("TTL k"), ::testing::AnyOf(":100\r\n", ":99\r\n"));
  line("EXPIREAT k " + wall_second(50));
  EXPECT_THAT(line("TTL k"), ::testing::AnyOf(":50\r\n", ":49\r\n"));
  const std::string second = wall_second(60);
  line("EXPIREAT k " + second);
  EXPECT_EQ(line("EXPIRETIME k"), ":" + second + "\r\n");
  EXPECT_EQ(line("PEXPIRETIME k"), ":" + second + "000\r\n");
  EXPECT_EQ(line("GETEX k PXAT " + second + "789"), "$1\r\nv\r\n");
  node_.manual_clock().advance(1s);
  EXPECT_EQ(line("PEXPIRETIME k"), ":" + second + "789\r\n");
  EXPECT_EQ(line("EXPIRETIME k"), ":" + std::to_string(std::stoll(second) + 1) + "\r\n")
      << "rounded, as in Redis";
  line("COPY k copy");
  line("RENAME k other");
  EXPECT_EQ(line("PEXPIRETIME other"), ":" + second + "789\r\n");
  EXPECT_EQ(line("PEXPIRETIME copy"), ":" + second + "789\r\n");
  line("RENAME other k");
  EXPECT_EQ(line("EXPIREAT k 1"), ":1\r\n") << "long ago";
  EXPECT_EQ(line("EXISTS k"), ":0\r\n");
  EXPECT_EQ(line("SET k v EXAT 1"), "+OK\r\n");
  EXPECT_EQ(line("EXISTS k"), ":0\r\n");
}

TEST_F(SessionExpiryTest, AnInvalidTimeIsRefused) {
  const std::string in_set = "-ERR invalid expire time in 'set' command\r\n";
  EXPECT_EQ(line("SET k v PX 0"), in_set);
  EXPECT_EQ(line("SET k v EXAT -1"), in_set);
  EXPECT_EQ(line("SET k v EX 9223372036854775807"), in_set);
  EXPECT_EQ(line("SET k v PX 9223372036854775807"), in_set);
  EXPECT_EQ(line("SET k v EX x"), "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(line("SET k v EX 400000000"),
            in_set.substr(0, in_set.size() - 2) +
                ": a key that ends by itself lives for ten years at most\r\n");
  EXPECT_EQ(line("PSETEX k -1 v"), "-ERR invalid expire time in 'psetex' command\r\n");
  EXPECT_EQ(line("EXPIRE k 9223372036854775807"),
            "-ERR invalid expire time in 'expire' command\r\n");
  EXPECT_EQ(line("EXPIRE k -9223372036854775808"),
            "-ERR invalid expire time in 'expire' command\r\n");
  EXPECT_EQ(line("PEXPIREAT k -9223372036854775808"), ":0\r\n");
  EXPECT_THAT(line("SET k v EX 1 LEASE 7"), StartsWith("-ERR a key has one lease"));
  EXPECT_THAT(line("SET k v EX 1 PX 1"), StartsWith("-ERR syntax error at 'PX'"));
  EXPECT_THAT(line("SET k v KEEPTTL EX 1"), StartsWith("-ERR syntax error at 'EX'"));
  EXPECT_THAT(line("SET k v EX"), StartsWith("-ERR syntax error at 'EX'"));
  EXPECT_EQ(node_.store().size(), 0U);
}

TEST_F(SessionExpiryTest, AConditionIsJudgedByWhatIsLeft) {
  line("SET k v EX 100");
  node_.manual_clock().advance(60s);
  EXPECT_EQ(line("EXPIRE k 30 GT"), ":0\r\n");
  EXPECT_EQ(line("EXPIRE k 50 GT"), ":1\r\n") << "40 were left";
  EXPECT_EQ(line("EXPIRE k 60 LT"), ":0\r\n");
  EXPECT_EQ(line("EXPIRE k 20 XX LT"), ":1\r\n");
  EXPECT_EQ(line("TTL k"), ":20\r\n");
  // So it is in a transaction, where the time is looked at when the command is queued.
  line("MULTI");
  line("EXPIRE k 10 GT");
  line("TTL k");
  EXPECT_EQ(line("EXEC"), "*2\r\n:0\r\n:20\r\n");
  EXPECT_EQ(line("LEASEHOLD SESSION OPEN"), ":1\r\n");
  EXPECT_EQ(line("LEASEHOLD ONCE 1 1 EXPIRE k 10 GT"), ":0\r\n");
}

TEST_F(SessionExpiryTest, AKeyOfAClientsLeaseHasItsTime) {
  line("LEASE.GRANT 10000 ID 7");
  line("SET k v LEASE 7");
  node_.manual_clock().advance(4s);
  EXPECT_EQ(line("PTTL k"), ":6000\r\n");
  line("LEASE.RENEW 7");
  EXPECT_EQ(line("PTTL k"), ":10000\r\n");
  node_.manual_clock().advance(4s);
  EXPECT_TRUE(keeper_.look(std::nullopt, 0));
  EXPECT_EQ(line("PTTL k"), ":10000\r\n") << "where nobody hears of its renewals";
  EXPECT_EQ(line("PERSIST k"), ":1\r\n");
  EXPECT_EQ(line("PERSIST k"), ":0\r\n");
  EXPECT_THAT(line("LEASE.INFO 7"),
              StartsWith("*13\r\n:7\r\n:1\r\n:10000\r\n$0\r\n\r\n$0\r\n\r\n*0\r\n"));
  line("SET k v PX 100");
  EXPECT_THAT(line("LEASE.LIST"), StartsWith("*1\r\n*10\r\n:7\r\n")) << "and none of keys";
}

TEST_F(SessionExpiryTest, AReadMayChangeTheTime) {
  EXPECT_EQ(line("GETEX k EX 10"), "$-1\r\n");
  line("SET k v");
  EXPECT_EQ(line("GETEX k"), "$1\r\nv\r\n");
  EXPECT_EQ(line("GETEX k EX 10"), "$1\r\nv\r\n");
  EXPECT_EQ(line("TTL k"), ":10\r\n");
  EXPECT_EQ(line("GETEX k PERSIST"), "$1\r\nv\r\n");
  EXPECT_EQ(line("TTL k"), ":-1\r\n");
  EXPECT_EQ(line("GETEX k PXAT 1"), "$1\r\nv\r\n");
  EXPECT_EQ(line("EXISTS k"), ":0\r\n");
  EXPECT_EQ(line("GETEX k EX 1 PERSIST"), "-ERR syntax error\r\n");
  EXPECT_EQ(line("GETEX k EX 0"), "-ERR invalid expire time in 'getex' command\r\n");
}

}  // namespace
}  // namespace leasehold::server
