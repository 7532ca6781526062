// What a replicated state machine remembers of its clients.
#include <gtest/gtest.h>
#include <leasehold/base/random.h>
#include <leasehold/replica/session_table.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::replica {
namespace {

using Verdict = SessionTable::Verdict;

SessionId id(std::uint64_t number) {
  return SessionId(number);
}

/// What the caller of a table does: executes once, and answers.
std::string run(SessionTable& table, SessionId session, std::uint64_t sequence,
                std::uint64_t answered_below, const std::string& result) {
  const SessionTable::Begun begun = table.begin(session, sequence, answered_below);
  if (begun.verdict != Verdict::execute) {
    return "not again: " + std::string(begun.result.view());
  }
  table.finish(session, sequence, Bytes(result));
  return result;
}

TEST(SessionTable, IdsRiseAndAreNeverUsedAgain) {
  SessionTable table;
  EXPECT_EQ(table.newest(), id(0));
  EXPECT_EQ(table.open(), id(1));
  EXPECT_EQ(table.open(), id(2));
  EXPECT_TRUE(table.close(id(2)));
  EXPECT_EQ(table.open(), id(3));
  EXPECT_EQ(table.newest(), id(3));
  SessionTable restored = SessionTable::decode_all(table.encode_all().view()).value();
  EXPECT_TRUE(restored.close(id(3)));
  EXPECT_EQ(restored.open(), id(4)) << "also behind a restore";
}

TEST(SessionTable, ACommandIsExecutedOnceAndItsRepetitionsAreToldOfThatTime) {
  SessionTable table;
  const SessionId session = *table.open();
  EXPECT_EQ(run(table, session, 1, 1, "one"), "one");
  EXPECT_EQ(run(table, session, 2, 1, "two"), "two");
  EXPECT_EQ(run(table, session, 1, 1, "again"), "not again: one");
  EXPECT_EQ(table.begin(session, 1, 1).verdict, Verdict::repeated);
  EXPECT_EQ(run(table, session, 2, 1, "again"), "not again: two");
}

TEST(SessionTable, SequencesComeInAnyOrderWithinTheWindow) {
  SessionTable table;
  const SessionId session = *table.open();
  EXPECT_EQ(run(table, session, kSessionWindow, 1, "last"), "last");
  EXPECT_EQ(run(table, session, 1, 1, "first"), "first");
  EXPECT_EQ(run(table, session, kSessionWindow, 1, "x"), "not again: last");
  EXPECT_EQ(table.begin(session, kSessionWindow + 1, 1).verdict, Verdict::too_far_ahead);
  EXPECT_EQ(table.begin(session, ~std::uint64_t{0}, 1).verdict, Verdict::too_far_ahead);
  EXPECT_EQ(table.begin(session, kSessionWindow + 1, 2).verdict, Verdict::execute);
}

TEST(SessionTable, ACommandThatWasTooFarAheadIsExecutedOnceItIsNot) {
  SessionTable table;
  const SessionId session = *table.open();
  EXPECT_EQ(table.begin(session, kSessionWindow + 1, 1).verdict, Verdict::too_far_ahead);
  EXPECT_EQ(run(table, session, kSessionWindow + 1, 2, "now"), "now");
}

TEST(SessionTable, WhatTheClientHasTheAnswerToIsForgotten) {
  SessionTable table;
  const SessionId session = *table.open();
  for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) {
    run(table, session, sequence, 1, "r" + std::to_string(sequence));
  }
  EXPECT_EQ(table.list()[0].results, 3U);
  EXPECT_EQ(run(table, session, 4, 3, "r4"), "r4");
  EXPECT_EQ(table.list()[0].results, 2U);
  EXPECT_EQ(table.begin(session, 1, 1).verdict, Verdict::answered);
  EXPECT_EQ(table.begin(session, 2, 1).verdict, Verdict::answered);
  EXPECT_EQ(run(table, session, 3, 1, "x"), "not again: r3") << "the bound never moves back";
}

TEST(SessionTable, WhatWasGivenUpIsNotExecutedLater) {
  SessionTable table;
  const SessionId session = *table.open();
  EXPECT_EQ(run(table, session, 2, 2, "two"), "two");
  EXPECT_EQ(table.begin(session, 1, 1).verdict, Verdict::answered);
  EXPECT_EQ(table.begin(session, 0, 0).verdict, Verdict::answered) << "sequences begin at 1";
}

TEST(SessionTable, WhatIsAskedForAgainIsNotAnsweredYetWhateverTheClientSays) {
  SessionTable table;
  const SessionId session = *table.open();
  run(table, session, 1, 1, "one");
  EXPECT_EQ(run(table, session, 1, 7, "x"), "not again: one");
  EXPECT_EQ(run(table, session, 2, 7, "two"), "two");
}

TEST(SessionTable, AClientThatSendsOneAfterTheOtherNamesTheSequenceItself) {
  SessionTable table;
  const SessionId session = *table.open();
  for (std::uint64_t sequence = 1; sequence <= 1000; ++sequence) {
    const std::string result = std::to_string(sequence);
    ASSERT_EQ(run(table, session, sequence, sequence, result), result);
    ASSERT_EQ(run(table, session, sequence, sequence, "x"), "not again: " + result);
    ASSERT_EQ(table.list()[0].results, 1U);
  }
}

TEST(SessionTable, OneSessionKnowsNothingOfAnother) {
  SessionTable table;
  const SessionId a = *table.open();
  const SessionId b = *table.open();
  EXPECT_EQ(run(table, a, 1, 1, "a"), "a");
  EXPECT_EQ(run(table, b, 1, 1, "b"), "b");
  EXPECT_EQ(run(table, a, 1, 1, "x"), "not again: a");
  EXPECT_TRUE(table.close(a));
  EXPECT_EQ(run(table, b, 1, 1, "x"), "not again: b");
}

TEST(SessionTable, WithoutASessionNothingIsExecuted) {
  SessionTable table;
  EXPECT_EQ(table.begin(id(1), 1, 1).verdict, Verdict::no_session);
  EXPECT_FALSE(table.close(id(1)));
  EXPECT_FALSE(table.touch(id(1)));
  EXPECT_FALSE(table.expire(id(1), 0));
  EXPECT_FALSE(table.encode(id(1)));
  const SessionId session = *table.open();
  EXPECT_TRUE(table.close(session));
  EXPECT_FALSE(table.close(session));
  EXPECT_EQ(table.begin(session, 1, 1).verdict, Verdict::no_session);
}

TEST(SessionTable, WhateverNamesASessionIsActivity) {
  SessionTable table;
  const SessionId session = *table.open();
  const auto activity = [&] { return table.list()[0].activity; };
  EXPECT_EQ(activity(), 0U);
  run(table, session, 1, 1, "one");
  EXPECT_EQ(activity(), 1U);
  run(table, session, 1, 1, "repeated");
  EXPECT_EQ(activity(), 2U);
  table.begin(session, 5000, 1);
  EXPECT_EQ(activity(), 3U) << "too far ahead";
  EXPECT_TRUE(table.touch(session));
  EXPECT_EQ(activity(), 4U);
  table.begin(session, 2, 2);
  table.finish(session, 2, Bytes("two"));
  EXPECT_EQ(activity(), 5U);
  table.begin(session, 1, 1);
  EXPECT_EQ(activity(), 6U) << "answered";
}

TEST(SessionTable, ACommandThatCameFirstWinsOverAnExpiry) {
  SessionTable table;
  const SessionId session = *table.open();
  const std::uint64_t seen = table.list()[0].activity;
  EXPECT_TRUE(table.touch(session));
  EXPECT_FALSE(table.expire(session, seen));
  EXPECT_EQ(table.size(), 1U);
  EXPECT_FALSE(table.expire(session, seen + 2)) << "an activity that was never seen";
  EXPECT_TRUE(table.expire(session, seen + 1));
  EXPECT_EQ(table.size(), 0U);
  EXPECT_FALSE(table.expire(session, seen + 1)) << "it is gone";
}

TEST(SessionTable, NoMoreAreOpenThanMayBe) {
  SessionTable table;
  for (std::size_t i = 0; i < kSessionsMax; ++i) ASSERT_TRUE(table.open());
  EXPECT_FALSE(table.open());
  EXPECT_EQ(table.size(), kSessionsMax);
  EXPECT_TRUE(table.close(id(1)));
  EXPECT_EQ(table.open(), id(kSessionsMax + 1)) << "a refusal takes no id";
  EXPECT_EQ(SessionTable::decode_all(table.encode_all().view()).value(), table);
}

TEST(SessionTable, OneOwnerLeavesSomeToOthers) {
  SessionTable table;
  for (std::size_t i = 0; i < kSessionsOfOwnerMax; ++i) ASSERT_TRUE(table.open("ann"));
  EXPECT_FALSE(table.open("ann"));
  EXPECT_EQ(table.size_of("ann"), kSessionsOfOwnerMax);
  EXPECT_TRUE(table.open("bob"));
  EXPECT_TRUE(table.open());
  EXPECT_TRUE(table.close(id(1)));
  EXPECT_TRUE(table.expire(id(2), 0));
  EXPECT_TRUE(table.open("ann"));
  EXPECT_TRUE(table.open("ann"));
  EXPECT_FALSE(table.open("ann"));
  EXPECT_FALSE(SessionTable::decode_all(table.encode_all().view()).value().open("ann"));
}

TEST(SessionTable, ResultsThatAreTooManyGoTheOldestFirst) {
  SessionTable table;
  const SessionId session = *table.open();
  const std::string half(kSessionResultBytesMax / 2, 'h');
  run(table, session, 2, 1, half);
  run(table, session, 3, 1, half);
  EXPECT_EQ(table.begin(session, 2, 1).verdict, Verdict::repeated) << "exactly the limit";
  run(table, session, 4, 1, "x");
  EXPECT_EQ(table.begin(session, 2, 1).verdict, Verdict::result_gone);
  EXPECT_TRUE(table.begin(session, 2, 1).result.empty());
  EXPECT_EQ(table.begin(session, 3, 1).verdict, Verdict::repeated);
  run(table, session, 1, 1, half);
  EXPECT_EQ(table.begin(session, 1, 1).verdict, Verdict::result_gone)
      << "the oldest is the one with the lowest number";
  EXPECT_EQ(table.begin(session, 4, 1).result, Bytes("x"));
}

TEST(SessionTable, AResultThatIsLargerThanTheLimitIsNotKept) {
  SessionTable table;
  const SessionId session = *table.open();
  run(table, session, 1, 1, std::string(kSessionResultBytesMax + 1, 'l'));
  EXPECT_EQ(table.begin(session, 1, 1).verdict, Verdict::result_gone);
  run(table, session, 2, 1, "small");
  EXPECT_EQ(table.begin(session, 2, 1).verdict, Verdict::repeated);
  EXPECT_EQ(table.list()[0].results, 2U);
  run(table, session, 3, 1, std::string(kSessionResultBytesMax + 1, 'l'));
  EXPECT_EQ(table.begin(session, 3, 1).verdict, Verdict::result_gone);
  EXPECT_EQ(table.begin(session, 2, 1).result, Bytes("small")) << "it pushed out nothing";
}

TEST(SessionTable, BytesThatWereAnsweredMakeRoom) {
  SessionTable table;
  const SessionId session = *table.open();
  const std::string half(kSessionResultBytesMax / 2, 'h');
  for (std::uint64_t sequence = 1; sequence <= 50; ++sequence) {
    const std::uint64_t answered_below = sequence > 1 ? sequence - 1 : 1;
    ASSERT_EQ(run(table, session, sequence, answered_below, half), half);
    ASSERT_EQ(table.begin(session, sequence, answered_below).verdict, Verdict::repeated);
    ASSERT_EQ(table.begin(session, answered_below, answered_below).verdict, Verdict::repeated);
  }
}

TEST(SessionTableDeathTest, AResultIsNotEmptyAndOfACommandThatBegan) {
  SessionTable table;
  const SessionId session = *table.open();
  table.begin(session, 1, 1);
  EXPECT_DEATH(table.finish(session, 1, Bytes()), "empty");
  EXPECT_DEATH(table.finish(id(9), 1, Bytes("x")), "found");
  table.finish(session, 1, Bytes("one"));
  EXPECT_DEATH(table.finish(session, 1, Bytes("twice")), "added");
}

// ---- Against a dumb twin, which remembers everything ----

struct Twin {
  struct Session {
    std::uint64_t activity = 0;
    std::uint64_t answered_below = 1;
    /// Every result that there ever was.
    std::map<std::uint64_t, std::string> results;
  };
  std::uint64_t newest = 0;
  std::map<std::uint64_t, Session> sessions;

  /// The verdict, and the result of a repetition.
  std::pair<Verdict, std::string> begin(std::uint64_t session, std::uint64_t sequence,
                                        std::uint64_t answered_below) {
    const auto found = sessions.find(session);
    if (found == sessions.end()) return {Verdict::no_session, ""};
    Session& of = found->second;
    ++of.activity;
    if (answered_below > sequence) answered_below = sequence;
    if (answered_below > of.answered_below) of.answered_below = answered_below;
    if (sequence < of.answered_below) return {Verdict::answered, ""};
    if (sequence >= of.answered_below + kSessionWindow) return {Verdict::too_far_ahead, ""};
    const auto result = of.results.find(sequence);
    if (result == of.results.end()) return {Verdict::execute, ""};
    return {Verdict::repeated, result->second};
  }
};

TEST(SessionTable, DoesWhatItsTwinDoes) {
  std::map<Verdict, int> verdicts;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    SessionTable table;
    Twin twin;
    std::set<std::pair<std::uint64_t, std::uint64_t>> executed;
    for (int step = 0; step < 600; ++step) {
      const std::uint64_t what = random.below(100);
      const std::uint64_t session = random.below(twin.newest + 2);
      const auto of = twin.sessions.find(session);
      if (what < 4) {
        ASSERT_EQ(table.open(), id(++twin.newest));
        twin.sessions[twin.newest] = {};
      } else if (what < 6) {
        ASSERT_EQ(table.close(id(session)), twin.sessions.erase(session) == 1);
      } else if (what < 9) {
        ASSERT_EQ(table.touch(id(session)), of != twin.sessions.end());
        if (of != twin.sessions.end()) ++of->second.activity;
      } else if (what < 12) {
        const std::uint64_t activity = random.below(6);
        const bool gone = of != twin.sessions.end() && of->second.activity == activity;
        ASSERT_EQ(table.expire(id(session), activity), gone);
        if (gone) twin.sessions.erase(of);
      } else if (what < 15) {
        table = SessionTable::decode_all(table.encode_all().view()).value();
      } else {
        const std::uint64_t base = of == twin.sessions.end() ? 1 : of->second.answered_below;
        const std::uint64_t reach[] = {3, 10, kSessionWindow + 2};
        const std::uint64_t widest = reach[random.below(3)];
        const std::uint64_t sequence = base + random.below(widest) - random.below(2);
        const std::uint64_t answered_below = base + random.below(4) - random.below(2);
        const auto [verdict, result] = twin.begin(session, sequence, answered_below);
        const SessionTable::Begun begun = table.begin(id(session), sequence, answered_below);
        ++verdicts[begun.verdict];
        if (begun.verdict == Verdict::result_gone) {
          ASSERT_EQ(verdict, Verdict::repeated) << seed;
          continue;
        }
        ASSERT_EQ(begun.verdict, verdict) << seed;
        ASSERT_EQ(begun.result.view(), result) << seed;
        if (begun.verdict != Verdict::execute) continue;
        ASSERT_TRUE(executed.insert({session, sequence}).second) << "executed twice: " << seed;
        const std::size_t sizes[] = {1, 20, 3000, 20'000};
        std::string made = std::to_string(seed) + "/" + std::to_string(step);
        made.resize(made.size() + sizes[random.below(4)], '.');
        table.finish(id(session), sequence, Bytes(made));
        twin.sessions[session].results[sequence] = made;
        const auto again = table.begin(id(session), sequence, answered_below);
        ++twin.sessions[session].activity;
        ASSERT_EQ(again.verdict == Verdict::repeated, again.result == Bytes(made));
      }
      ASSERT_EQ(table.size(), twin.sessions.size());
      ASSERT_EQ(table.newest(), id(twin.newest));
    }
    const std::vector<SessionTable::Session> list = table.list();
    ASSERT_EQ(list.size(), twin.sessions.size());
    auto at = twin.sessions.begin();
    for (const SessionTable::Session& session : list) {
      ASSERT_EQ(session.id, id(at->first)) << "in the order of the ids";
      ASSERT_EQ(session.activity, at->second.activity);
      ++at;
    }
  }
  for (const Verdict verdict : {Verdict::execute, Verdict::repeated, Verdict::result_gone,
                                Verdict::answered, Verdict::too_far_ahead, Verdict::no_session}) {
    EXPECT_GT(verdicts[verdict], 100) << static_cast<int>(verdict);
  }
}

}  // namespace
}  // namespace leasehold::replica
