// Keys and watches behind client ports: what is asked, and what each answer is taken for.
#include <leasehold/client/key_watch.h>
#include <leasehold/client/remote_keys.h>
#include <leasehold/tests/client/replies.h>
#include <leasehold/tests/client/scripted_server.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::client {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Interest = client::KeyService::Interest;
using Words = ScriptedServer::Words;

constexpr lease::Duration kTimeout = 2s;
const std::string kOk = "+OK\r\n";
const std::string kNull = "$-1\r\n";

std::string message(const std::string& word, std::uint64_t revision) {
  return array({bulk(word), integer(revision)});
}

TEST(RemoteKeys, ListInParts) {
  const ScriptedServer server([](const Words& words) -> std::optional<std::string> {
    if (words.back() == "q/1") {
      return array({integer(9), kNull, array({row("q/2", 7, 5, 0, "two")})});
    }
    return array({integer(8), bulk("q/1"), array({row("q/1", 3, 3, 4, "one")})});
  });
  RemoteKeys keys({server.address()});
  const auto listing = keys.list("q/", kTimeout);
  ASSERT_TRUE(listing.ok()) << listing.error().message;
  // The revision of the first part: later changes have larger ones.
  EXPECT_EQ(listing.value().revision, 8U);
  ASSERT_THAT(listing.value().rows, SizeIs(2));
  EXPECT_EQ(listing.value().rows[0].key, "q/1");
  EXPECT_EQ(listing.value().rows[0].value, "one");
  EXPECT_EQ(listing.value().rows[0].lease, grant::LeaseId(4));
  EXPECT_EQ(listing.value().rows[1].create_revision, 5U);
  EXPECT_THAT(server.sent("LEASEHOLD")[1],
              ElementsAre("LEASEHOLD", "RANGE", "q/", "COUNT", "1000", "VALUES", "AFTER", "q/1"));
}

TEST(RemoteKeys, WhatIsNoListingIsRefused) {
  for (const std::string& odd :
       {kOk, array({}), array({integer(1), kNull, array({bulk("no row")})}),
        array({bulk("x"), kNull, array({})})}) {
    const ScriptedServer server([odd](const Words&) { return odd; });
    EXPECT_EQ(RemoteKeys({server.address()}).list("q/", kTimeout).error().code,
              ErrorCode::malformed)
        << odd;
  }
}

TEST(RemoteKeys, PutAKeyOnItsLease) {
  const ScriptedServer server([](const Words& words) -> std::optional<std::string> {
    return words.back() == "7" ? kOk : "-NOLEASE there is no lease 8\r\n";
  });
  RemoteKeys keys({server.address()});
  EXPECT_TRUE(keys.put("k", "v", grant::LeaseId(7), kTimeout).ok());
  EXPECT_EQ(keys.put("k", "v", grant::LeaseId(8), kTimeout).error().code, ErrorCode::not_found);
  EXPECT_THAT(server.sent("SET")[0], ElementsAre("SET", "k", "v", "LEASE", "7"));
}

TEST(RemoteKeys, AreTakenWhereTheirSlotHasMoved) {
  std::atomic<int> selected = 0;
  std::atomic<int> moves = 0;
  const ScriptedServer server([&](const Words& words) -> std::optional<std::string> {
    if (words.front() == "LEASEHOLD") {
      ++selected;
      return kOk;
    }
    if (selected <= moves) return "-CROSSSLOT the key is of another group\r\n";
    return kOk;
  });
  const Access access = Access().in_group_of("k");
  RemoteKeys keys({server.address()}, access);
  EXPECT_TRUE(keys.put("k", "v", grant::LeaseId(7), kTimeout).ok());
  EXPECT_EQ(selected, 1);
  moves = 2;  // the second time while the new connection selects
  EXPECT_TRUE(keys.put("k", "v", grant::LeaseId(7), kTimeout).ok());
  EXPECT_EQ(selected, 3);
  EXPECT_EQ(server.sent("SET").size(), 4U);
  moves = 1000;
  const auto refused = keys.put("k", "v", grant::LeaseId(7), kTimeout);
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(refused.error().message, HasSubstr("CROSSSLOT"));
  // Without a key there is nothing to select.
  moves = 1000;
  const int before = selected;
  EXPECT_FALSE(RemoteKeys({server.address()}).put("k", "v", grant::LeaseId(7), kTimeout).ok());
  EXPECT_EQ(selected, before);
}

TEST(RemoteKeys, WaitWhileTheirSlotIsNobodys) {
  std::atomic<int> refusals = 3;
  const ScriptedServer server([&](const Words& words) -> std::optional<std::string> {
    if (words.front() == "LEASEHOLD") return kOk;
    return refusals-- > 0 ? "-TRYAGAIN slot 7 is not of this group now\r\n" : kOk;
  });
  RemoteKeys keys({server.address()}, Access().in_group_of("k"));
  EXPECT_TRUE(keys.put("k", "v", grant::LeaseId(7), kTimeout).ok());
  EXPECT_EQ(server.sent("SET").size(), 4U);
}

// ---- find() and replace() ----

TEST(RemoteKeys, FindOneKeyAndNoneThatOnlyBeginsSo) {
  const ScriptedServer server([](const Words& words) -> std::optional<std::string> {
    if (words[2] == "none") return array({integer(8), kNull, array({})});
    return array({integer(8), bulk("k1"), array({row("k1", 7, 3, 0, "one")})});
  });
  RemoteKeys keys({server.address()});
  const auto found = keys.find("k1", kTimeout);
  ASSERT_TRUE(found.ok() && found.value());
  EXPECT_EQ(found.value()->value, "one");
  EXPECT_EQ(found.value()->mod_revision, 7U);
  EXPECT_FALSE(keys.find("k", kTimeout).value());
  EXPECT_FALSE(keys.find("none", kTimeout).value());
  EXPECT_THAT(server.sent("LEASEHOLD")[0],
              ElementsAre("LEASEHOLD", "RANGE", "k1", "EXACT", "VALUES"));
}

/// Takes what EXPECT and SET say before, and answers EXEC so; none: it hangs up.
ScriptedServer::Answer executes(std::optional<std::string> answer,
                                std::string queued = "+QUEUED\r\n") {
  return [answer = std::move(answer),
          queued = std::move(queued)](const Words& words) -> std::optional<std::string> {
    if (words[0] == "EXEC") return answer;
    return words[0] == "SET" ? queued : kOk;
  };
}

Result<bool> replaced(const ScriptedServer& server) {
  return RemoteKeys({server.address()}).replace({"k", "v", 7, grant::FencingToken(5)}, kTimeout);
}

TEST(RemoteKeys, ReplaceOnARevisionAndAToken) {
  const ScriptedServer server(executes(array({kOk})));
  EXPECT_TRUE(replaced(server).value());
  EXPECT_THAT(server.sent("LEASEHOLD"), ElementsAre(ElementsAre("LEASEHOLD", "EXPECT", "k", "7")));
  EXPECT_THAT(server.sent("SET"), ElementsAre(ElementsAre("SET", "k", "v", "TOKEN", "5")));
  EXPECT_FALSE(replaced(ScriptedServer(executes("*-1\r\n"))).value());
}

TEST(RemoteKeys, AReplaceThatWasNotDoneIsNeverTakenForOneOfUnknownOutcome) {
  const auto code = [](std::optional<std::string> answer) {
    return replaced(ScriptedServer(executes(std::move(answer)))).error().code;
  };
  EXPECT_EQ(code(array({"-FENCED the token 5 is older\r\n"})), ErrorCode::in_use);
  EXPECT_EQ(code("-NOLEADER no leader\r\n"), ErrorCode::unavailable);
  EXPECT_EQ(code("-TRYAGAIN the leader changed\r\n"), ErrorCode::unavailable);
  EXPECT_EQ(code("-UNKNOWNOUTCOME the time limit passed\r\n"), ErrorCode::timed_out);
  EXPECT_EQ(code(std::nullopt), ErrorCode::timed_out);
  EXPECT_EQ(code(array({integer(1)})), ErrorCode::malformed);
  EXPECT_EQ(code(kOk), ErrorCode::malformed);
  // What was refused, not what follows from it.
  const auto refused = replaced(
      ScriptedServer(executes("-EXECABORT discarded\r\n", "-ERR the key is too long\r\n")));
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(refused.error().message, "ERR the key is too long");
  const auto witness =
      replaced(ScriptedServer(executes("-EXECABORT discarded\r\n", "-WITNESS a witness\r\n")));
  EXPECT_EQ(witness.error().code, ErrorCode::unavailable);
}

/// Asked for a watch it answers `begun`, and is unasked from then on.
ScriptedServer::Answer watched(std::string begun) {
  return [begun = std::move(begun)](const Words& words) -> std::optional<std::string> {
    if (words[0] == "SET") return kOk;
    return words[1] == "WATCH" ? begun : kOk;
  };
}

TEST(RemoteKeys, AChangeEndsTheWaitAndTheConnectionIsOfUseAgain) {
  const ScriptedServer server(watched(message("watching", 6) + message("progress", 8) +
                                      array({bulk("events"), integer(9), array({})}) +
                                      array({bulk("events"), integer(10), array({})})));
  RemoteKeys keys({server.address()});
  keys.wait_change({"k", false}, 5, 1h);
  EXPECT_TRUE(keys.put("k", "v", grant::LeaseId(7), kTimeout).ok());
  EXPECT_THAT(server.sent("LEASEHOLD"),
              ElementsAre(ElementsAre("LEASEHOLD", "WATCH", "KEY", "k", "FROM", "6"),
                          ElementsAre("LEASEHOLD", "UNWATCH")));
}

TEST(RemoteKeys, AForgottenRevisionEndsTheWait) {
  const ScriptedServer at_once(watched(message("resync", 40)));
  RemoteKeys({at_once.address()}).wait_change({"q/", true}, 5, 1h);
  EXPECT_THAT(at_once.sent("LEASEHOLD")[0],
              ElementsAre("LEASEHOLD", "WATCH", "PREFIX", "q/", "FROM", "6"));
  const ScriptedServer later(watched(message("watching", 6) + message("resync", 40)));
  RemoteKeys({later.address()}).wait_change({"q/", true}, 5, 1h);
}

// No event came, so the watch is not begun again, and events between two waits are received, too.
TEST(RemoteKeys, AWaitGoesOnWhereTheOneBeforeWas) {
  const ScriptedServer server(watched(message("watching", 6)));
  RemoteKeys keys({server.address()});
  keys.wait_change({"k", false}, 5, 10ms);
  keys.wait_change({"k", false}, 5, 10ms);
  EXPECT_THAT(server.sent("LEASEHOLD"), SizeIs(1));
  keys.wait_change({"k", false}, 6, 10ms);
  EXPECT_THAT(server.sent("LEASEHOLD"), SizeIs(3));
}

TEST(RemoteKeys, AServerThatCannotAnswerIsLeft) {
  const ScriptedServer behind([](const Words& words) -> std::optional<std::string> {
    if (words[0] == "INFO") return bulk("");
    return "-ERR revision 5 has not been\r\n";
  });
  const ScriptedServer broken([](const Words& words) -> std::optional<std::string> {
    if (words[0] == "INFO") return bulk("");
    return std::nullopt;
  });
  RemoteKeys keys({behind.address(), broken.address()});
  keys.wait_change({"k", false}, 5, 1h);
  keys.wait_change({"k", false}, 5, 1h);
  EXPECT_THAT(behind.sent("LEASEHOLD"), SizeIs(1));
  EXPECT_THAT(broken.sent("LEASEHOLD"), SizeIs(1));
}

// ---- KeyWatch ----

std::string event(std::uint64_t revision, const std::string& key, const std::string& what,
                  const std::string& value = "") {
  const std::string shown = value.empty() ? kNull : bulk(value);
  return array({bulk("events"), integer(revision),
                array({array({bulk(key), bulk(what), integer(0), integer(0), integer(0), shown})})},
               '>');
}

/// The events that come within a while, a text for each: "7 set k v".
std::vector<std::string> told(KeyWatch& watch) {
  std::vector<std::string> out;
  const auto events = watch.next(kTimeout);
  EXPECT_TRUE(events.ok()) << events.error().message;
  if (!events) return out;
  for (const KeyWatch::Event& each : events.value()) {
    out.push_back(std::to_string(each.revision) + " " + event_name(each.kind) + " " + each.key +
                  (each.value ? " " + *each.value : ""));
  }
  return out;
}

ScriptedServer::Answer tells(std::string begun, std::string rows = "") {
  return [begun = std::move(begun),
          rows = std::move(rows)](const Words& words) -> std::optional<std::string> {
    if (words[0] == "HELLO") return array({});
    if (words[0] == "DBSIZE") return integer(0);
    return words[1] == "WATCH" ? begun : rows;
  };
}

KeyWatch::Options watching(std::vector<std::string> servers) {
  KeyWatch::Options options;
  options.servers = std::move(servers);
  options.keys = {"k"};
  options.values = true;
  return options;
}

TEST(KeyWatch, ContinuesElsewhereAfterTheLastEvent) {
  // The first server hangs up after its events.
  int asked = 0;
  const ScriptedServer first([&asked](const Words& words) -> std::optional<std::string> {
    if (words[0] == "HELLO") return ++asked == 1 ? std::optional(array({})) : std::nullopt;
    if (words[0] == "DBSIZE") return std::nullopt;
    return message("watching", 5) + event(7, "k", "set", "v");
  });
  const ScriptedServer second(tells(message("watching", 8) + event(9, "k", "expired")));
  KeyWatch watch(watching({first.address(), second.address()}));
  EXPECT_THAT(told(watch), ElementsAre("7 set k v"));
  EXPECT_EQ(watch.next_revision(), 8U);
  std::vector<std::string> next;
  while (next.empty()) next = told(watch);
  EXPECT_THAT(next, ElementsAre("9 expired k"));
  EXPECT_THAT(second.sent("LEASEHOLD")[0],
              ElementsAre("LEASEHOLD", "WATCH", "KEY", "k", "VALUES", "FROM", "8"));
}

TEST(KeyWatch, AResyncIsReadAgainAndNothingIsToldTwice) {
  // The read is at revision 20 already; it contains the events of 19 and 20.
  const std::string rows = array({integer(20), kNull, array({row("k", 19, 3, 0, "v19")})});
  const ScriptedServer server(tells(message("watching", 5) +
                                        array({bulk("resync"), integer(18)}, '>') +
                                        event(19, "k", "set", "v19") + event(21, "k", "deleted"),
                                    rows));
  KeyWatch watch(watching({server.address()}));
  EXPECT_THAT(told(watch), ElementsAre("20 resync ", "19 is k v19"));
  EXPECT_THAT(told(watch), ElementsAre("21 deleted k"));
  EXPECT_EQ(watch.next_revision(), 22U);
}

TEST(KeyWatch, ExistingKeysComeFirstIfAsked) {
  const std::string rows =
      array({integer(20), kNull, array({row("k", 19, 3, 0, "v"), row("k2", 4, 4, 0, "other")})});
  const ScriptedServer server(tells(message("watching", 21), rows));
  KeyWatch::Options options = watching({server.address()});
  options.existing = true;
  KeyWatch watch(options);
  // Of the keys that begin with a watched key only that key.
  EXPECT_THAT(told(watch), ElementsAre("20 resync ", "19 is k v"));
}

TEST(KeyWatch, AFinalRefusalIsAnError) {
  const ScriptedServer server(tells("-ERR a connection watches at most so many\r\n"));
  KeyWatch watch(watching({server.address()}));
  EXPECT_EQ(watch.next(kTimeout).error().code, ErrorCode::unsupported);
  KeyWatch nowhere(watching({"nowhere", "neither"}));
  EXPECT_EQ(nowhere.next(kTimeout).error().code, ErrorCode::invalid_argument);
}

TEST(KeyWatch, ReportsTroubleAndKeepsTheTimeout) {
  const ScriptedServer witness(tells("-WITNESS this node is a witness\r\n"));
  std::vector<std::string> said;
  KeyWatch::Options options = watching({witness.address()});
  options.trouble = [&said](const std::string& text) { said.push_back(text); };
  KeyWatch watch(options);
  const auto events = watch.next(1ms);
  ASSERT_TRUE(events.ok());
  EXPECT_THAT(events.value(), IsEmpty());
  EXPECT_THAT(said, ElementsAre(witness.address() + ": WITNESS this node is a witness"));
}

}  // namespace
}  // namespace leasehold::client
