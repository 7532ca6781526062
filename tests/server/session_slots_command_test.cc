// LEASEHOLD SLOTS at a server of two groups.
#include <leasehold/server/front/slot_words.h>
#include <leasehold/tests/server/groups_fixture.h>

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace leasehold::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class SessionSlotsCommand : public SessionGroups {
 protected:
  /// Applies it at once, as what comes from another node.
  static void apply(FakeNode& node, const kv::Command& command) {
    auto encoded = kv::encode_command(command);
    ASSERT_TRUE(encoded) << encoded.error().message;
    node.propose(encoded.value(), std::chrono::seconds(1), [](const replica::ProposeResult&) {});
    node.commit_all();
  }
  /// As commands that are in the first group's log before those that are proposed.
  void apply_before(const std::vector<kv::Command>& commands) {
    for (const kv::Command& command : commands) {
      auto encoded = kv::encode_command(command);
      ASSERT_TRUE(encoded) << encoded.error().message;
      node_.commit_ahead(1);
      const raft::Index index = node_.store().applied_index() + 1;
      node_.store().apply({{raft::LogId{raft::Term(1), index}, encoded.value().view()}}, index);
    }
  }
  std::string ask(const std::string& words) { return feed("LEASEHOLD SLOTS " + words + "\r\n"); }
  /// This node has all that was committed before.
  std::string catch_up() {
    std::string reply;
    while (node_.reads() + second_.reads() > 0) {
      for (FakeNode* node : {&node_, &second_}) {
        if (node->reads() > 0) node->end_read(node->granted(raft::ReadBasis::quorum));
      }
      reply += pump();
    }
    return reply;
  }
  std::string slots(const std::string& words) {
    std::string reply = ask(words);
    return reply + catch_up();
  }
  /// Whatever it proposes commits.
  std::string done(const std::string& words) {
    std::string reply = slots(words);
    for (int i = 0; reply.empty() && i < 100; ++i) {
      node_.commit_all();
      second_.commit_all();
      reply = pump();
    }
    return reply;
  }
  /// Null: there is none.
  static const kv::SlotRecord* record(FakeNode& node, std::uint32_t slot) {
    const kv::SlotMap& all = node.store().slots().all();
    const auto at = all.find(slot);
    return at == all.end() ? nullptr : &at->second;
  }
  static kv::SlotPhase phase(FakeNode& node, std::uint32_t slot) {
    const kv::SlotRecord* const found = record(node, slot);
    return found == nullptr ? kv::SlotPhase::owned : found->phase;
  }
  /// What SLOTS answers for one run, in RESP2.
  static std::string run(int first, int last, const std::string& phase, int from, int to,
                         std::uint64_t move) {
    std::string out;
    append_array(out, 12);
    append_bulk(out, "first");
    append_integer(out, first);
    append_bulk(out, "last");
    append_integer(out, last);
    append_bulk(out, "phase");
    append_bulk(out, phase);
    append_bulk(out, "from");
    append_integer(out, from);
    append_bulk(out, "to");
    append_integer(out, to);
    append_bulk(out, "move");
    append_integer(out, static_cast<std::int64_t>(move));
    return out;
  }
  void freeze(std::uint32_t slot) { apply(node_, kv::FreezeMove{record(node_, slot)->move}); }
};

TEST_F(SessionSlotsCommand, MovesAreBegunWhereTheSlotsAre) {
  EXPECT_EQ(slots(""), "*0\r\n");
  EXPECT_EQ(slots("MOVE 7 2-4 to 2"), "");
  EXPECT_EQ(second_.proposals(), 0U);
  ASSERT_EQ(node_.proposals(), 1U);
  EXPECT_EQ(slots(""), "") << "it waits for the command before it";
  node_.commit_all();
  EXPECT_EQ(pump(), ":4\r\n*2\r\n" + run(2, 4, "copying", 1, 2, 1) + run(7, 7, "copying", 1, 2, 1));
}

TEST_F(SessionSlotsCommand, WhatWasCommittedBeforeIsSeenFirst) {
  EXPECT_EQ(ask("CANCEL 3"), "");
  apply(node_, kv::BeginMove{1, 2, 2, {3}});
  EXPECT_EQ(pump(), "");
  EXPECT_EQ(catch_up(), "");
  ASSERT_EQ(node_.proposals(), 1U) << "a move that another node had begun before";
  node_.commit_one();
  EXPECT_EQ(pump(), ":1\r\n");
  EXPECT_EQ(done("MOVE 3 TO 2"), ":1\r\n");
  EXPECT_EQ(ask("MOVE 3 TO 2"), "");
  apply(node_, kv::CancelMove{record(node_, 3)->move});
  EXPECT_EQ(catch_up(), "");
  ASSERT_EQ(node_.proposals(), 1U) << "it is not on its way any more";
  node_.commit_one();
  EXPECT_EQ(pump(), ":1\r\n");
}

TEST_F(SessionSlotsCommand, TheGroupThatHasGotASlotMeanwhileIsSeenToo) {
  EXPECT_EQ(done("MOVE 5 TO 2"), ":1\r\n");
  EXPECT_EQ(ask("CANCEL 5"), "");
  EXPECT_EQ(second_.reads(), 0U);
  freeze(5);
  apply(second_, kv::ExpectSlots{2, 2, 1, record(node_, 5)->move, {{5, 1}}});
  apply(second_, kv::TakeSlots{1, record(node_, 5)->move, node_.store().revision()});
  apply(node_, kv::LeaveSlots{record(node_, 5)->move});
  node_.end_read(node_.granted(raft::ReadBasis::quorum));
  EXPECT_EQ(pump(), "");
  EXPECT_EQ(second_.reads(), 1U);
  EXPECT_EQ(catch_up(), ":0\r\n");
}

// The node may not have heard that the other group has it, and moves it on.
TEST_F(SessionSlotsCommand, TheGroupThatMayHaveTakenAFrozenSlotIsSeenToo) {
  EXPECT_EQ(done("MOVE 5 TO 2"), ":1\r\n");
  freeze(5);
  EXPECT_EQ(ask("CANCEL 5"), "");
  EXPECT_EQ(second_.reads(), 1U);
  EXPECT_THAT(catch_up(), StartsWith("-ERR slot 5 is frozen"));
}

TEST_F(SessionSlotsCommand, ANodeThatCannotCatchUpSaysSo) {
  for (const char* words : {"MOVE 1 TO 2", "CANCEL 1"}) {
    EXPECT_EQ(ask(words), "");
    node_.end_read({});
    EXPECT_THAT(pump(), StartsWith("-NOLEADER no leader is known; the command was not executed"));
  }
  EXPECT_EQ(node_.proposals(), 0U);
}

TEST_F(SessionSlotsCommand, SlotsThatAreThereOrOnTheirWayStayAsTheyAre) {
  EXPECT_EQ(done("MOVE 8192-16383 TO 2"), ":0\r\n") << "they are there";
  EXPECT_EQ(done("MOVE 10 TO 2"), ":1\r\n");
  const std::uint64_t move = record(node_, 10)->move;
  freeze(10);
  EXPECT_EQ(slots("MOVE 10 TO 2"), ":1\r\n") << "without a proposal";
  EXPECT_EQ(done("MOVE 9-11 TO 2"), ":3\r\n");
  EXPECT_EQ(record(node_, 10)->move, move);
  EXPECT_EQ(phase(node_, 9), kv::SlotPhase::copying);
}

TEST_F(SessionSlotsCommand, OneCommandHasSoManySlotsAndNoMore) {
  EXPECT_EQ(slots("MOVE 0-16383 TO 2"), "");
  EXPECT_EQ(node_.proposals(), 8192 / kv::kCommandSlotsMax);
  node_.commit_all();
  EXPECT_EQ(pump(), ":8192\r\n");
  EXPECT_EQ(slots("").substr(0, 4), "*8\r\n") << "each is a move of its own";
}

TEST_F(SessionSlotsCommand, EachGroupIsAskedForItsOwn) {
  EXPECT_EQ(done("MOVE 5 TO 2"), ":1\r\n");
  freeze(5);
  apply(second_, kv::ExpectSlots{2, 2, 1, record(node_, 5)->move, {{5, 1}}});
  apply(second_, kv::TakeSlots{1, record(node_, 5)->move, node_.store().revision()});
  apply(node_, kv::LeaveSlots{record(node_, 5)->move});
  EXPECT_THAT(slots(""), HasSubstr("left"));
  EXPECT_EQ(slots("MOVE 0-9 TO 1"), "");
  EXPECT_EQ(node_.proposals(), 0U);
  ASSERT_EQ(second_.proposals(), 1U);
  second_.commit_all();
  EXPECT_EQ(pump(), ":1\r\n");
  const std::string both = slots("");
  EXPECT_THAT(both, StartsWith("*2\r\n"));
  EXPECT_THAT(both, HasSubstr(run(5, 5, "copying", 2, 1, record(second_, 5)->move)));
}

TEST_F(SessionSlotsCommand, OwnersAreListedInRuns) {
  const auto owner = [](int first, int last, int group) {
    return "*6\r\n$5\r\nfirst\r\n:" + std::to_string(first) +
           "\r\n$4\r\nlast\r\n:" + std::to_string(last) +
           "\r\n$5\r\ngroup\r\n:" + std::to_string(group) + "\r\n";
  };
  EXPECT_EQ(slots("LIST"), "*2\r\n" + owner(0, 8191, 1) + owner(8192, 16383, 2));
  EXPECT_EQ(done("MOVE 0-4 TO 2"), ":5\r\n");
  EXPECT_EQ(slots("LIST"), "*2\r\n" + owner(0, 8191, 1) + owner(8192, 16383, 2)) << "still";
  freeze(0);
  apply(node_, kv::LeaveSlots{record(node_, 0)->move});
  EXPECT_EQ(slots("list"), "*3\r\n" + owner(0, 4, 2) + owner(5, 8191, 1) + owner(8192, 16383, 2));
}

TEST_F(SessionSlotsCommand, ArrivingSlotsAreShownIfTheirGroupSaysNothing) {
  apply(second_, kv::ExpectSlots{2, 2, 1, 9, {{3, 1}, {4, 1}}});
  EXPECT_EQ(slots(""), "*1\r\n" + run(3, 4, "arriving", 1, 2, 9));
  EXPECT_EQ(done("MOVE 3-4 TO 2"), ":2\r\n");
  EXPECT_EQ(slots(""), "*1\r\n" + run(3, 4, "copying", 1, 2, 1));
}

TEST_F(SessionSlotsCommand, ThirdVersionOfTheProtocolHasMaps) {
  send({"HELLO", "3"});
  EXPECT_THAT(slots("LIST"), StartsWith("*2\r\n%3\r\n$5\r\nfirst\r\n:0\r\n"));
}

TEST_F(SessionSlotsCommand, WordsThatAreWrongAreRefused) {
  for (const char* words :
       {"MOVE", "MOVE 1", "MOVE 1 TO", "MOVE TO 2", "MOVE 1 2", "CANCEL", "LIST 1", "SHOW"}) {
    EXPECT_THAT(slots(words), StartsWith("-ERR expected LEASEHOLD SLOTS, LIST, MOVE")) << words;
  }
  for (const char* words :
       {"16384", "-1", "x", "0-16384", "1-", "-", "--", "1-2-3", "1,2", "+1", "0x1", "\"\"",
        "99999999999999999999999999", "9223372036854775808", "1 2 x"}) {
    EXPECT_THAT(slots("MOVE " + std::string(words) + " TO 2"), HasSubstr("is no slot")) << words;
    EXPECT_THAT(slots("CANCEL " + std::string(words)), HasSubstr("is no slot")) << words;
  }
  EXPECT_THAT(slots("MOVE 9-3 TO 2"), StartsWith("-ERR '9-3' is no range of slots"));
  for (const char* group : {"0", "3", "-1", "x", "4294967297", "99999999999999999999"}) {
    EXPECT_THAT(slots("MOVE 1 TO " + std::string(group)), StartsWith("-ERR there is no group '"))
        << group;
  }
  EXPECT_EQ(node_.proposals(), 0U);
  EXPECT_THAT(send({"LEASEHOLD", "SLOTS", "MOVE", std::string(100'000, '1'), "TO", "2"}),
              HasSubstr("is no slot"));
}

TEST_F(SessionSlotsCommand, RangesThatOverlapCountOnce) {
  const auto parsed = parse_slots({"5-7", "6", "7-9", "0", "5-7"});
  ASSERT_TRUE(parsed);
  EXPECT_THAT(parsed.value(), ElementsAre(0, 5, 6, 7, 8, 9));
  EXPECT_THAT(parse_slots({}).value(), IsEmpty());
  const auto all = parse_slots(std::vector<std::string_view>(100'000, "0-16383"));
  ASSERT_TRUE(all);
  EXPECT_EQ(all.value().size(), kv::kSlots);
  EXPECT_EQ(done("MOVE 5-7 6 TO 2"), ":3\r\n");
}

TEST_F(SessionSlotsCommand, AGroupThatFailsIsNamedByItsErrorAndTheOthersCount) {
  slots("MOVE 0-1023 2000-2001 TO 2");
  ASSERT_EQ(node_.proposals(), 2U);
  node_.commit_one();
  EXPECT_EQ(pump(), "");
  replica::ProposeResult lost;
  lost.status = replica::ProposeStatus::unknown;
  node_.end_proposal(lost);
  EXPECT_EQ(pump(),
            "-UNKNOWNOUTCOME the command may still be executed; slots that are on their way all "
            "the same: 1024\r\n");
  slots("MOVE 2000 TO 2");
  replica::ProposeResult dropped;
  dropped.status = replica::ProposeStatus::dropped;
  node_.end_proposal(dropped);
  EXPECT_EQ(pump(), "-NOLEADER no leader is known; the command was not executed, try again\r\n");
  slots("MOVE 2000 TO 2");
  dropped.disk_full_at = raft::NodeId(3);
  node_.end_proposal(dropped);
  EXPECT_THAT(pump(), StartsWith("-TRYAGAIN the disk of node 3 is full"));
}

TEST_F(SessionSlotsCommand, AnUnknownOutcomeCountsMoreThanARefusal) {
  slots("MOVE 0-2047 TO 2");
  ASSERT_EQ(node_.proposals(), 2U);
  replica::ProposeResult result;
  result.status = replica::ProposeStatus::dropped;
  node_.end_proposal(result);
  result.status = replica::ProposeStatus::unknown;
  node_.end_proposal(result);
  EXPECT_EQ(pump(), "-UNKNOWNOUTCOME the command may still be executed\r\n");
}

TEST_F(SessionSlotsCommand, WhatTheGroupRefusesIsSaidInItsWords) {
  slots("MOVE 3 TO 2");
  apply_before({kv::BeginMove{1, 2, 2, {3}}, kv::FreezeMove{1}, kv::LeaveSlots{1}});
  node_.commit_one();
  EXPECT_EQ(pump(), "-TRYAGAIN slot 3 is not of this group; nothing was done\r\n");
  slots("MOVE 7 TO 2");
  apply_before({kv::BeginMove{1, 3, 3, {7}}, kv::FreezeMove{4}});
  node_.commit_one();
  EXPECT_EQ(pump(), "-ERR slot 7 is on its way to group 3; nothing was done\r\n");
}

// A member that is new, and has not heard of its group's settings yet.
TEST_F(SessionSlotsCommand, AGroupOfAnEarlierLevelIsNotAskedAndMayBeLater) {
  node_.be_of_the_oldest_level();
  EXPECT_THAT(slots("MOVE 3 TO 2"), StartsWith("-TRYAGAIN this command needs the group's level"));
  EXPECT_EQ(node_.proposals(), 0U);
}

TEST_F(SessionSlotsCommand, ACancelledMoveEndsAsAWhole) {
  EXPECT_EQ(done("MOVE 0-9 TO 2"), ":10\r\n");
  EXPECT_EQ(done("MOVE 20-21 TO 2"), ":2\r\n");
  EXPECT_EQ(done("CANCEL 5 100"), ":10\r\n");
  EXPECT_EQ(phase(node_, 0), kv::SlotPhase::owned);
  EXPECT_EQ(phase(node_, 20), kv::SlotPhase::copying);
  EXPECT_EQ(done("CANCEL 0-16383"), ":2\r\n");
  EXPECT_EQ(slots("CANCEL 0-16383"), ":0\r\n");
  EXPECT_EQ(slots(""), "*0\r\n");
}

TEST_F(SessionSlotsCommand, AnAttemptThatBeginsInBetweenIsCancelledToo) {
  EXPECT_EQ(done("MOVE 0-2 TO 2"), ":3\r\n");
  EXPECT_EQ(slots("CANCEL 1"), "");
  ASSERT_EQ(node_.proposals(), 1U);
  apply_before({kv::BeginMove{1, 2, 2, {0, 1, 2}}});
  node_.commit_one();
  EXPECT_EQ(pump(), "");
  ASSERT_EQ(node_.proposals(), 1U) << "with the other number";
  node_.commit_one();
  EXPECT_EQ(pump(), ":3\r\n");
  EXPECT_EQ(phase(node_, 1), kv::SlotPhase::owned);
}

TEST_F(SessionSlotsCommand, FrozenSlotsGoForwardOnly) {
  EXPECT_EQ(done("MOVE 0-2 TO 2"), ":3\r\n");
  freeze(0);
  EXPECT_THAT(slots("CANCEL 1"), StartsWith("-ERR slot 1 is frozen: "));
  EXPECT_EQ(node_.proposals(), 0U);
  EXPECT_EQ(done("MOVE 9-10 TO 2"), ":2\r\n");
  const std::string reply = done("CANCEL 0-10");
  EXPECT_THAT(reply, StartsWith("-ERR slot 0 is frozen: "));
  EXPECT_THAT(reply, HasSubstr("; slots that stay all the same: 2\r\n"));
}

TEST_F(SessionSlotsCommand, ACancellationWithoutALeaderSaysSo) {
  EXPECT_EQ(done("MOVE 0-2 TO 2"), ":3\r\n");
  EXPECT_EQ(slots("CANCEL 1"), "");
  replica::ProposeResult dropped;
  dropped.status = replica::ProposeStatus::dropped;
  node_.end_proposal(dropped);
  EXPECT_THAT(pump(), StartsWith("-NOLEADER "));
}

TEST_F(SessionSlotsCommand, ANodeThatMayNotDecideRefuses) {
  state_.options.witness = true;
  for (const char* words : {"", "LIST", "MOVE 1 TO 2", "CANCEL 1"}) {
    EXPECT_THAT(slots(words), StartsWith("-WITNESS ")) << words;
  }
  state_.options.witness = false;
  state_.draining = true;
  EXPECT_THAT(slots("MOVE 1 TO 2"), StartsWith("-TRYAGAIN this node is about to stop"));
  EXPECT_EQ(slots(""), "*0\r\n");
}

TEST_F(SessionSlotsCommand, AClientThatLeavesDoesNoHarm) {
  EXPECT_EQ(slots("MOVE 1 TO 2"), "");
  session_.reset();
  node_.commit_all();
  executor_.run();
  EXPECT_EQ(phase(node_, 1), kv::SlotPhase::copying);
}

using SessionOneGroup = SessionTest;

TEST_F(SessionOneGroup, HasAllSlots) {
  EXPECT_EQ(feed("LEASEHOLD SLOTS\r\n"), "*0\r\n");
  EXPECT_EQ(feed("LEASEHOLD SLOTS LIST\r\n"),
            "*1\r\n*6\r\n$5\r\nfirst\r\n:0\r\n$4\r\nlast\r\n:16383\r\n$5\r\ngroup\r\n:1\r\n");
  EXPECT_THAT(feed("LEASEHOLD SLOTS MOVE 1 TO 1\r\n"),
              StartsWith("-ERR this server has one group"));
  EXPECT_THAT(feed("LEASEHOLD SLOTS CANCEL 1\r\n"), StartsWith("-ERR this server has one group"));
}

}  // namespace
}  // namespace leasehold::server
