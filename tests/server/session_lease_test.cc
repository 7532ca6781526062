// Sessions over a fake node: LEASE.*, and SET with a lease or a token.
#include <leasehold/server/front/session.h>
#include <leasehold/tests/server/session_fixture.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class SessionLeaseTest : public SessionTest {
 protected:
  SessionLeaseTest() { groups_.home().lease_keeper = &keeper_; }
  /// Sends a line, and commits the command that it proposes.
  std::string line(const std::string& words) {
    std::string out = feed(words + "\r\n");
    node_.commit_all();
    return out + pump();
  }

  kv::LeaseKeeper keeper_{
      node_.clock(), [this](std::uint64_t cursor) { return node_.store().lease_changes(cursor); }};
};

TEST_F(SessionLeaseTest, ALeaseIsGrantedAskedForAndRevoked) {
  node_.grant_lease(1h);
  EXPECT_EQ(line("LEASE.GRANT 10000 NAME lock HOLDER me"), "*2\r\n:4294967296\r\n:1\r\n");
  EXPECT_EQ(line("lease.grant 10000 id 7"), "*2\r\n:7\r\n:2\r\n");
  EXPECT_EQ(line("LEASE.GRANT 10000 NAME lock"),
            "-LEASETAKEN lease 4294967296 has this name, its holder is 'me'\r\n");
  EXPECT_EQ(line("SET k v LEASE 7"), "+OK\r\n");
  EXPECT_THAT(line("LEASE.INFO 7"), StartsWith("*13\r\n:7\r\n:2\r\n:10000\r\n$0\r\n\r\n$0\r\n\r\n"
                                               "*1\r\n$1\r\nk\r\n:0\r\n:0\r\n:0\r\n:0\r\n:"));
  EXPECT_THAT(line("LEASE.INFO NAME lock"), HasSubstr("$4\r\nlock\r\n$2\r\nme\r\n*0"));
  EXPECT_THAT(line("LEASE.LIST AFTER 7"), StartsWith("*1\r\n*10\r\n:4294967296\r\n"));
  EXPECT_EQ(line("LEASE.REVOKE 7"), "+OK\r\n");
  EXPECT_EQ(line("GET k"), "$-1\r\n");
  EXPECT_EQ(line("LEASE.INFO 7"), "$-1\r\n");
  EXPECT_EQ(line("LEASE.REVOKE 7"),
            "-NOLEASE lease 7 was never granted, or has ended; nothing was done\r\n");
}

TEST_F(SessionLeaseTest, ALeaseHasTerms) {
  node_.grant_lease(1h);
  EXPECT_EQ(line("LEASE.GRANT 10000 ID 7 NAME a GRACE 3000 SOFT"), "*2\r\n:7\r\n:1\r\n");
  EXPECT_EQ(line("LEASE.GRANT 10000 DELAY 15000 ID 8 grace 1 NAME b"), "*2\r\n:8\r\n:2\r\n");
  EXPECT_THAT(line("LEASE.INFO 7"), HasSubstr("*0\r\n:3000\r\n:1\r\n:0\r\n:0\r\n:"));
  EXPECT_THAT(line("LEASE.INFO NAME b"), HasSubstr("*0\r\n:1\r\n:0\r\n:15000\r\n:0\r\n:"));
  EXPECT_EQ(
      line("LEASE.GRANT 10000 SOFT NAME c"),
      "-ERR a soft limit needs a name that others may want, and a grace period behind it\r\n");
  EXPECT_EQ(line("LEASE.GRANT 10000 DELAY 5"), "-ERR a lock delay needs a name that it keeps\r\n");
  EXPECT_EQ(line("LEASE.GRANT 10000 GRACE 99999999999999"),
            "-ERR a grace period lasts at most 30 days\r\n");
}

// The fields of Kubernetes' Lease: acquireTime and renewTime.
TEST_F(SessionLeaseTest, WhenItWasAskedForAndRenewedIsShown) {
  node_.grant_lease(1h);
  const auto now = [] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  const auto before = now();
  line("LEASE.GRANT 10000 ID 7");
  /// The last items: asked at, left, renewed at.
  const auto times = [&] {
    std::string reply = line("LEASE.INFO 7");
    std::vector<std::string> out;
    for (int i = 0; i < 3; ++i) {
      reply.resize(reply.size() - 2);
      const std::size_t end = reply.rfind('\n') + 1;
      out.insert(out.begin(), reply.substr(end));
      reply.resize(end);
    }
    return out;
  };
  const auto number = [](const std::string& word) { return std::stoll(word.substr(1)); };
  EXPECT_GE(number(times()[0]), before);
  EXPECT_LE(number(times()[0]), now());
  EXPECT_EQ(times()[1], "$-1") << "this node has timed nothing yet";
  EXPECT_EQ(times()[2], "$-1");
  line("LEASE.RENEW 7");
  EXPECT_EQ(times()[1], ":10000");
  const auto renewed = number(times()[2]);
  EXPECT_GE(renewed, before);
  EXPECT_LE(renewed, now());
}

TEST_F(SessionLeaseTest, DuringALockDelayNobodyHasRenewedIt) {
  node_.grant_lease(1h);
  line("LEASE.GRANT 1000 ID 7 NAME lock DELAY 5000");
  line("LEASE.RENEW 7");
  const kv::Command expire = kv::ExpireLeases{raft::Term(1), {{grant::LeaseId(7), 1}}};
  node_.propose(kv::encode_command(expire).value(), node::CallOptions(1s),
                [](const replica::ProposeResult&) {});
  node_.commit_all();
  EXPECT_THAT(line("LEASE.INFO 7"), ::testing::EndsWith(":5000\r\n$-1\r\n"));
  EXPECT_EQ(line("LEASE.INFO NAME lock"), "$-1\r\n");
}

TEST_F(SessionLeaseTest, ARenewalAtTheLeaderWritesNothing) {
  node_.grant_lease(1h);
  line("LEASE.GRANT 10000 ID 7");
  const raft::Index before = node_.store().applied_index();
  EXPECT_EQ(feed("LEASE.RENEW 7 8\r\n"), "*2\r\n:10000\r\n$-1\r\n");
  EXPECT_EQ(node_.store().applied_index(), before);
}

TEST_F(SessionLeaseTest, ARenewalElsewhereIsACommand) {
  line("LEASE.GRANT 10000 ID 7");
  EXPECT_EQ(feed("LEASE.RENEW 7 8\r\n"), "");
  EXPECT_EQ(node_.proposals(), 1U);
  node_.commit_all();
  EXPECT_EQ(pump(), "*2\r\n:10000\r\n$-1\r\n");
  // The same where leases are not to be trusted, or the state lags behind the commit index.
  node_.grant_lease(1h);
  node_.commit_ahead(1);
  EXPECT_EQ(feed("LEASE.RENEW 7\r\n"), "");
  EXPECT_EQ(node_.proposals(), 1U);
}

TEST_F(SessionLeaseTest, ARenewalWaitsForTheWritesBeforeIt) {
  node_.grant_lease(1h);
  EXPECT_EQ(feed("LEASE.GRANT 10000 ID 7\r\nLEASE.RENEW 7\r\n"), "");
  node_.commit_all();
  EXPECT_EQ(pump(), "*2\r\n:7\r\n:1\r\n*1\r\n:10000\r\n");
}

TEST_F(SessionLeaseTest, AWriteWithAnOlderTokenIsRefused) {
  line("LEASE.GRANT 10000 ID 7");
  line("LEASE.REVOKE 7");
  line("LEASE.GRANT 10000 ID 8");
  EXPECT_EQ(line("SET k new TOKEN 3"), "+OK\r\n");
  EXPECT_THAT(line("SET k late TOKEN 1"), StartsWith("-FENCED the token 1 is older"));
  EXPECT_THAT(line("SET k v TOKEN 99"), StartsWith("-FENCED no lease was granted"));
  EXPECT_EQ(line("SET j v LEASE 8 TOKEN 3"), "+OK\r\n");
  EXPECT_THAT(line("SET j v LEASE 7"), StartsWith("-NOLEASE"));
}

TEST_F(SessionLeaseTest, AKeyIsAttachedAndTakenOff) {
  line("LEASE.GRANT 10000 ID 7");
  line("SET k v");
  EXPECT_EQ(line("LEASE.ATTACH 7 k"), ":1\r\n");
  EXPECT_EQ(line("SET k w KEEPTTL"), "+OK\r\n");
  EXPECT_EQ(node_.store().get("k").value()->lease, grant::LeaseId(7));
  EXPECT_EQ(line("LEASE.DETACH k"), ":1\r\n");
  EXPECT_EQ(line("LEASE.DETACH nothing"), ":0\r\n");
  line("LEASE.REVOKE 7");
  EXPECT_EQ(node_.store().get("k").value()->bytes.view(), "w");
}

TEST_F(SessionLeaseTest, ASequentialKeyIsToldAndGoesWithItsLease) {
  node_.grant_lease(1h);
  EXPECT_EQ(line("SETSEQ q/ first"), "$22\r\nq/00000000000000000001\r\n");
  EXPECT_EQ(line("GET q/00000000000000000001"), "$5\r\nfirst\r\n");
  line("LEASE.GRANT 10000 ID 7");
  EXPECT_EQ(line("setseq q/ second lease 7"), "$22\r\nq/00000000000000000003\r\n");
  EXPECT_THAT(line("LEASE.INFO 7"), HasSubstr("*1\r\n$22\r\nq/00000000000000000003\r\n"));
  EXPECT_EQ(line("SETSEQ q/ v LEASE 8"),
            "-NOLEASE lease 8 was never granted, or has ended; nothing was done\r\n");
  line("LEASE.REVOKE 7");
  EXPECT_EQ(line("KEYS *"), "*1\r\n$22\r\nq/00000000000000000001\r\n");
  line("SET q/00000000000000000006 taken");
  EXPECT_EQ(line("SETSEQ q/ v"),
            "-KEYEXISTS the key of this prefix and the number 6 exists: a client has written it by "
            "its name; nothing was done\r\n");
}

TEST_F(SessionLeaseTest, ASequentialKeyStandsInATransactionAndInASession) {
  node_.grant_lease(1h);
  line("MULTI");
  EXPECT_EQ(line("LEASE.GRANT 10000 ID 7"), "+QUEUED\r\n");
  EXPECT_EQ(line("SETSEQ a/ v LEASE 7"), "+QUEUED\r\n");
  line("SETSEQ b/ v");
  line("SETSEQ a/ v");
  EXPECT_EQ(line("EXEC"),
            "*4\r\n*2\r\n:7\r\n:1\r\n$22\r\na/00000000000000000001\r\n"
            "$22\r\nb/00000000000000000001\r\n-KEYEXISTS one transaction makes one sequential key "
            "of a prefix; nothing was done\r\n");
  line("LEASEHOLD SESSION OPEN");
  EXPECT_EQ(line("LEASEHOLD ONCE 1 1 SETSEQ a/ v"), "$22\r\na/00000000000000000002\r\n");
  EXPECT_EQ(line("LEASEHOLD ONCE 1 1 SETSEQ a/ v"), "$22\r\na/00000000000000000002\r\n");
  EXPECT_EQ(line("DBSIZE"), ":3\r\n");
}

TEST_F(SessionLeaseTest, TheyStandInTransactions) {
  line("MULTI");
  EXPECT_EQ(line("LEASE.GRANT 10000 ID 7"), "+QUEUED\r\n");
  EXPECT_EQ(line("SET k v LEASE 7"), "+QUEUED\r\n");
  EXPECT_EQ(line("LEASE.RENEW 7"), "+QUEUED\r\n");
  EXPECT_EQ(line("EXEC"), "*3\r\n*2\r\n:7\r\n:1\r\n+OK\r\n*1\r\n:10000\r\n");
}

// As on the page of the pattern: a lease is registered, refreshed and attached to by its name.
TEST_F(SessionLeaseTest, ANameStandsWhereverAnIdDoes) {
  node_.grant_lease(1h);
  const std::string nobody = "-NOLEASE no lease has the name 'server1Lease'; nothing was done\r\n";
  EXPECT_EQ(line("SET k v LEASE server1Lease"), nobody);
  EXPECT_EQ(line("GET k"), "$-1\r\n");
  EXPECT_EQ(line("LEASE.RENEW server1Lease"), "*1\r\n$-1\r\n");
  EXPECT_EQ(line("LEASE.GRANT 10000 NAME server1Lease HOLDER server1"),
            "*2\r\n:4294967296\r\n:1\r\n");
  EXPECT_EQ(line("SET /servers/1 {address:192.168.199.10} LEASE server1Lease"), "+OK\r\n");
  EXPECT_EQ(line("SETSEQ q/ v LEASE server1Lease"), "$22\r\nq/00000000000000000003\r\n");
  line("SET other v");
  EXPECT_EQ(line("LEASE.ATTACH server1Lease other"), ":1\r\n");
  EXPECT_EQ(line("SET k v EX 10 LEASE server1Lease").substr(0, 4), "-ERR");
  const raft::Index before = node_.store().applied_index();
  EXPECT_EQ(feed("LEASE.RENEW server1Lease 4294967296 nobody 7\r\n"),
            "*4\r\n:10000\r\n:10000\r\n$-1\r\n$-1\r\n");
  EXPECT_EQ(node_.store().applied_index(), before) << "at the leader a renewal writes nothing";
  EXPECT_THAT(line("LEASE.INFO server1Lease"),
              HasSubstr("*3\r\n$10\r\n/servers/1\r\n$5\r\nother\r\n$22\r\nq/"));
  EXPECT_EQ(line("LEASE.REVOKE server1Lease"), "+OK\r\n");
  EXPECT_EQ(line("DBSIZE"), ":0\r\n");
  EXPECT_EQ(line("LEASE.REVOKE server1Lease"), nobody);
}

TEST_F(SessionLeaseTest, ANameElsewhereThanAtTheLeaderIsRenewedByTheLog) {
  line("LEASE.GRANT 10000 NAME a");
  EXPECT_EQ(feed("LEASE.RENEW a nobody 7\r\n"), "");
  node_.commit_all();
  EXPECT_EQ(pump(), "*3\r\n:10000\r\n$-1\r\n$-1\r\n");
}

// The name is looked up when the command is applied: also in the transaction that grants it.
TEST_F(SessionLeaseTest, ANameStandsInTransactionsAndSessions) {
  line("MULTI");
  EXPECT_EQ(line("LEASE.GRANT 10000 NAME a ID 7"), "+QUEUED\r\n");
  EXPECT_EQ(line("SET k v LEASE a"), "+QUEUED\r\n");
  EXPECT_EQ(line("LEASE.RENEW a 7"), "+QUEUED\r\n");
  EXPECT_EQ(line("EXEC"), "*3\r\n*2\r\n:7\r\n:1\r\n+OK\r\n*2\r\n:10000\r\n:10000\r\n");
  line("LEASEHOLD SESSION OPEN");
  EXPECT_EQ(line("LEASEHOLD ONCE 1 1 SET k w GET LEASE a"), "$1\r\nv\r\n");
  EXPECT_EQ(line("LEASEHOLD ONCE 1 1 SET k w GET LEASE a"), "$1\r\nv\r\n");
}

TEST_F(SessionLeaseTest, ANameIsNoNumberAndNoLongerThanNamesAre) {
  node_.grant_lease(1h);
  line("LEASE.GRANT 10000 NAME 12 ID 7");
  EXPECT_THAT(line("SET k v LEASE 12"), StartsWith("-NOLEASE lease 12 ")) << "a number is an id";
  EXPECT_THAT(line("LEASE.INFO NAME 12"), StartsWith("*13\r\n:7\r\n"));
  const std::string longest(grant::kLeaseNameBytesMax, 'n');
  line("LEASE.GRANT 10000 NAME " + longest);
  EXPECT_EQ(line("SET k v LEASE " + longest), "+OK\r\n");
  EXPECT_THAT(line("SET k v LEASE " + longest + "n"), StartsWith("-ERR a lease is named by"));
  EXPECT_THAT(send({"LEASE.REVOKE", ""}), StartsWith("-ERR a lease is named by"));
}

TEST_F(SessionLeaseTest, AGrantThatIsShortOrLongIsNotedOnceInAWhile) {
  std::vector<std::string> notes;
  state_.options.notice = [&notes](const std::string& text) { notes.push_back(text); };
  line("LEASE.GRANT 3000");
  line("LEASE.GRANT 3600000");
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(line("LEASE.GRANT 2999 ID 7"), "*2\r\n:7\r\n:3\r\n") << "it is granted all the same";
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0], StartsWith("127.0.0.1:5 asks for a lease of 2999ms: below 3 s "));
  line("LEASE.GRANT 3600001");
  EXPECT_EQ(notes.size(), 1U) << "not again within a minute";
  state_.next_ttl_warning = 0;
  line("LEASE.GRANT 3600001");
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_THAT(notes[1], HasSubstr("above an hour "));
}

TEST_F(SessionLeaseTest, WhatIsWrongIsRefused) {
  node_.grant_lease(1h);
  for (const char* words : {"LEASE.GRANT 0",
                            "LEASE.GRANT -1",
                            "LEASE.GRANT x",
                            "LEASE.GRANT 9223372036854775807",
                            "LEASE.GRANT 1 ID",
                            "LEASE.GRANT 1 ID 0",
                            "LEASE.GRANT 1 NONSENSE x",
                            "LEASE.GRANT 1 GRACE",
                            "LEASE.GRANT 1 GRACE -1",
                            "LEASE.GRANT 1 DELAY x",
                            "LEASE.RENEW -1",
                            "LEASE.RENEW 0",
                            "LEASE.REVOKE -1",
                            "LEASE.ATTACH 99999999999999999999 k",
                            "LEASE.LIST COUNT 0",
                            "LEASE.LIST COUNT 5000",
                            "LEASE.LIST AFTER",
                            "SET k v LEASE -1",
                            "SET k v LEASE 0",
                            "SET k v LEASE",
                            "SET k v TOKEN 0",
                            "SET k v KEEPTTL LEASE 7",
                            "SETSEQ q/",
                            "SETSEQ q/ v LEASE",
                            "SETSEQ q/ v LEASE -1",
                            "SETSEQ q/ v LEASE 0",
                            "SETSEQ q/ v OTHER 7",
                            "SETSEQ q/ v LEASE 7 x",
                            "LEASE.GRANT"}) {
    EXPECT_THAT(line(words), StartsWith("-ERR")) << words;
  }
  EXPECT_EQ(node_.proposals(), 0U);
  for (const char* words : {"LEASE.INFO 0", "LEASE.INFO NAME x y", "LEASE.INFO NAME a b"}) {
    EXPECT_THAT(line(words), StartsWith("-ERR")) << words;
  }
}

}  // namespace
}  // namespace leasehold::server
