// The leases of a group behind client ports: what each answer, and each silence, is taken for.
#include <leasehold/client/remote_leases.h>
#include <leasehold/tests/client/replies.h>
#include <leasehold/tests/client/scripted_server.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace leasehold::client {
namespace {

using namespace std::chrono_literals;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Words = ScriptedServer::Words;

constexpr lease::Duration kTimeout = 2s;
constexpr grant::LeaseId kId{4294967296};

/// What a node says that leads, or does not.
std::string status(bool leads) {
  return bulk(leads ? "# Replication\r\nrole:leader\r\nterm:7\r\nleader:1\r\n"
                    : "# Replication\r\nrole:follower\r\nterm:7\r\nleader:0\r\n");
}

/// Asked for its status it follows; any other command it answers with `reply`.
ScriptedServer::Answer always(std::optional<std::string> reply) {
  return [reply](const Words& words) -> std::optional<std::string> {
    return words.front() == "INFO" ? status(false) : reply;
  };
}

ScriptedServer::Answer leads(std::string reply) {
  return [reply](const Words& words) -> std::optional<std::string> {
    return words.front() == "INFO" ? status(true) : reply;
  };
}

/// What a renewal comes to at one server that answers `reply`.
Result<lease::Duration> renewal_by(const std::string& reply) {
  const ScriptedServer server(always(reply));
  return RemoteLeases({server.address()}).renew(kId, kTimeout);
}

ErrorCode grant_by(const std::string& reply) {
  const ScriptedServer server(always(reply));
  const auto granted = RemoteLeases({server.address()}).grant({"printer", "me", 10s}, kTimeout);
  EXPECT_FALSE(granted.ok());
  EXPECT_EQ(server.sent("LEASE.GRANT").size(), 1U);
  return granted ? ErrorCode::in_use : granted.error().code;
}

TEST(RemoteLeases, SpeakTheCommandsOfLeases) {
  const ScriptedServer server([](const Words& words) -> std::optional<std::string> {
    if (words.front() == "LEASE.GRANT") return "*2\r\n:4294967296\r\n:42\r\n";
    if (words.front() == "LEASE.RENEW") return "*1\r\n:10000\r\n";
    if (words.front() == "LEASE.REVOKE") return "+OK\r\n";
    return "*6\r\n:4294967296\r\n:42\r\n:10000\r\n" + bulk("printer") + bulk("me") + "*0\r\n";
  });
  RemoteLeases leases({server.address()});
  const auto granted = leases.grant({"printer", "me", 10s}, kTimeout);
  ASSERT_TRUE(granted.ok());
  EXPECT_EQ(granted.value().id, kId);
  EXPECT_EQ(granted.value().token, grant::FencingToken(42));
  EXPECT_EQ(granted.value().ttl, 10s);
  EXPECT_THAT(server.sent("LEASE.GRANT"),
              ElementsAre(ElementsAre("LEASE.GRANT", "10000", "HOLDER", "me", "NAME", "printer")));
  ASSERT_TRUE(leases.grant({"", "me", 10s, {5s, 0s, false}}, kTimeout).ok());
  ASSERT_TRUE(leases.grant({"a", "me", 10s, {5s, 0s, true}}, kTimeout).ok());
  ASSERT_TRUE(leases.grant({"b", "me", 1h, {1500ms, 15s, false}}, kTimeout).ok());
  EXPECT_THAT(server.sent("LEASE.GRANT"),
              ElementsAre(_, ElementsAre("LEASE.GRANT", "10000", "HOLDER", "me", "GRACE", "5000"),
                          ElementsAre("LEASE.GRANT", "10000", "HOLDER", "me", "NAME", "a", "GRACE",
                                      "5000", "SOFT"),
                          ElementsAre("LEASE.GRANT", "3600000", "HOLDER", "me", "NAME", "b",
                                      "GRACE", "1500", "DELAY", "15000")));
  const auto found = leases.find("printer", kTimeout);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found.value().id, kId);
  EXPECT_EQ(found.value().ttl, 10s);
  EXPECT_EQ(found.value().holder, "me");
  EXPECT_EQ(leases.renew(kId, kTimeout).value(), 10s);
  EXPECT_TRUE(leases.revoke(kId, kTimeout).ok());
}

TEST(RemoteLeases, SortErrors) {
  EXPECT_EQ(grant_by("-LEASETAKEN 'printer' is held by you\r\n"), ErrorCode::in_use);
  EXPECT_EQ(grant_by("-UNKNOWNOUTCOME no majority\r\n"), ErrorCode::timed_out);
  EXPECT_EQ(grant_by("-ERR too many leases\r\n"), ErrorCode::invalid_argument);
  EXPECT_EQ(renewal_by("*1\r\n$-1\r\n").error().code, ErrorCode::not_found);
  const ScriptedServer server(always("-NOLEASE no lease\r\n"));
  EXPECT_EQ(RemoteLeases({server.address()}).revoke(kId, kTimeout).error().code,
            ErrorCode::not_found);
}

TEST(RemoteLeases, GarbageIsNoLease) {
  for (const char* reply : {"+OK\r\n", ":5\r\n", "*0\r\n", "*1\r\n:5\r\n", "*2\r\n$-1\r\n$-1\r\n",
                            "*2\r\n+a\r\n+b\r\n", "*2\r\n:0\r\n:5\r\n", "*2\r\n:5\r\n:-1\r\n"}) {
    EXPECT_EQ(grant_by(reply), ErrorCode::malformed) << reply;
  }
  for (const char* reply :
       {"+OK\r\n", "*0\r\n", "*1\r\n+10000\r\n", "*1\r\n:0\r\n", "*1\r\n:-1\r\n",
        "*1\r\n:9223372036854775807\r\n", "*1\r\n:315360000001\r\n"}) {
    const auto renewed = renewal_by(reply);
    ASSERT_FALSE(renewed.ok()) << reply;
    EXPECT_EQ(renewed.error().code, ErrorCode::malformed) << reply;
  }
  const ScriptedServer server(always("*5\r\n:5\r\n:6\r\n:7\r\n:8\r\n:9\r\n"));
  EXPECT_EQ(RemoteLeases({server.address()}).find("printer", kTimeout).error().code,
            ErrorCode::malformed);
}

// An answer that is not a status must not end the process that holds a lease.
TEST(RemoteLeases, AStatusOfAnotherKindNamesNoLeader) {
  for (const char* text : {"{}", "[]", R"({"role":"leader"})", R"({"role":5,"leader":"x"})",
                           R"({"role":"leader","leader":1,"term":7,"lease_left":"x"})"}) {
    const ScriptedServer odd([text](const Words& words) -> std::optional<std::string> {
      return words.front() == "INFO" ? bulk(text) : "*1\r\n:10000\r\n";
    });
    const ScriptedServer other(always("*1\r\n:10000\r\n"));
    EXPECT_TRUE(RemoteLeases({odd.address(), other.address()}).renew(kId, kTimeout).ok()) << text;
  }
}

TEST(RemoteLeases, ACommandThatWasNotExecutedGoesToAnotherServer) {
  for (const char* refusal : {"-NOLEADER no leader is known\r\n", "-TRYAGAIN it changed\r\n",
                              "-WITNESS this node is a witness\r\n"}) {
    const ScriptedServer first(always(refusal));
    const ScriptedServer second(always("*2\r\n:5\r\n:6\r\n"));
    RemoteLeases leases({first.address(), second.address()});
    EXPECT_TRUE(leases.grant({"printer", "me", 10s}, kTimeout).ok()) << refusal;
    EXPECT_EQ(first.sent("LEASE.GRANT").size(), 1U);
    EXPECT_EQ(RemoteLeases({first.address()}).renew(kId, 1s).error().code, ErrorCode::unavailable);
  }
}

TEST(RemoteLeases, AskTheLeader) {
  const ScriptedServer follower(always("*1\r\n:10000\r\n"));
  const ScriptedServer leader(leads("*1\r\n:10000\r\n"));
  RemoteLeases leases({follower.address(), leader.address()});
  EXPECT_TRUE(leases.renew(kId, kTimeout).ok());
  EXPECT_TRUE(leases.renew(kId, kTimeout).ok());
  EXPECT_EQ(follower.sent("LEASE.RENEW").size(), 0U);
  EXPECT_EQ(leader.sent("LEASE.RENEW").size(), 2U);
  // On one connection, without asking again who leads.
  EXPECT_EQ(leader.sent("INFO").size(), 1U);
}

TEST(RemoteLeases, AGrantIsSentOnceAndARenewalUntilItIsAnswered) {
  const ScriptedServer broken(always(std::nullopt));
  const ScriptedServer whole(always("*1\r\n:10000\r\n"));
  RemoteLeases leases({broken.address(), whole.address()});
  EXPECT_EQ(leases.renew(kId, kTimeout).value(), 10s);

  RemoteLeases fresh({broken.address(), whole.address()});
  EXPECT_EQ(fresh.grant({"printer", "me", 10s}, kTimeout).error().code, ErrorCode::timed_out);
  EXPECT_EQ(broken.sent("LEASE.GRANT").size(), 1U);
  EXPECT_TRUE(whole.sent("LEASE.GRANT").empty());
}

TEST(RemoteLeases, ACommandWithoutAnAnswerMayBeDone) {
  const ScriptedServer broken(always(std::nullopt));
  EXPECT_EQ(RemoteLeases({broken.address()}).revoke(kId, 100ms).error().code, ErrorCode::timed_out);
  const ScriptedServer unsure(always("-UNKNOWNOUTCOME no majority\r\n"));
  EXPECT_EQ(RemoteLeases({unsure.address()}).revoke(kId, 100ms).error().code, ErrorCode::timed_out);
}

// The name of a node that is down may no longer resolve.
TEST(RemoteLeases, OneInvalidAddressDoesNotHideTheOthers) {
  const ScriptedServer server(always("*1\r\n:10000\r\n"));
  EXPECT_TRUE(RemoteLeases({"nowhere", server.address()}).renew(kId, kTimeout).ok());
  const auto renewed = RemoteLeases({"nowhere", "neither"}).renew(kId, kTimeout);
  ASSERT_FALSE(renewed.ok());
  EXPECT_EQ(renewed.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(renewed.error().message, HasSubstr("is not an address"));
}

TEST(RemoteLeases, SilenceTakesNoLongerThanTheTimeout) {
  const ScriptedServer one([](const Words&) { return ""; });
  const ScriptedServer two([](const Words&) { return ""; });
  RemoteLeases leases({one.address(), two.address()});
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(leases.renew(kId, 500ms).ok());
  EXPECT_EQ(leases.grant({"printer", "me", 10s}, 500ms).error().code, ErrorCode::timed_out);
  // The sum, and as much again for a machine that has other work.
  EXPECT_LT(std::chrono::steady_clock::now() - start, 2s);
}

/// What a renewal comes to in the group of a key, at a server that answers so when the client
/// selects that group. `sent`: whether the renewal was sent at all.
Result<lease::Duration> renewal_in_group(const std::string& answer, bool& sent) {
  const ScriptedServer server([answer](const Words& words) -> std::optional<std::string> {
    if (words.front() == "LEASEHOLD") return answer;
    return words.front() == "INFO" ? status(false) : "*1\r\n:10000\r\n";
  });
  auto renewed =
      RemoteLeases({server.address()}, Access().in_group_of("printer")).renew(kId, kTimeout / 4);
  sent = !server.sent("LEASE.RENEW").empty();
  return renewed;
}

TEST(RemoteLeases, WorkInNoOtherGroupThanThatOfTheKey) {
  bool sent = false;
  EXPECT_TRUE(renewal_in_group("+OK\r\n", sent).ok());
  EXPECT_TRUE(
      renewal_in_group("-ERR unknown subcommand 'GROUP'. Try LEASEHOLD HELP.\r\n", sent).ok())
      << "a server of an earlier version has one group";
  for (const char* refusal :
       {"NOPERM User ann has no permissions", "NOAUTH Authentication required.",
        "NOLEADER try again", "TRYAGAIN a queue is full", "ERR wrong"}) {
    const auto renewed = renewal_in_group("-" + std::string(refusal) + "\r\n", sent);
    ASSERT_FALSE(renewed.ok()) << refusal;
    EXPECT_THAT(renewed.error().message, HasSubstr(refusal));
    EXPECT_FALSE(sent) << refusal;
  }
}

}  // namespace
}  // namespace leasehold::client
