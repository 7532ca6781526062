// Which tasks of slots begin, and which wait for others.
#include <leasehold/kv/local/slot_agenda.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::kv::testing {
namespace {

using namespace std::chrono_literals;

SlotTask task(std::size_t group, SlotPhase phase, std::uint32_t slot, std::uint64_t move = 1) {
  return {group, {phase, 9, move, {slot, slot + 1}}};
}

class SlotAgendaTest : public ::testing::Test {
 protected:
  /// As "group:slot" of those that begin.
  std::vector<std::string> begin(const std::vector<SlotTask>& found) {
    std::vector<std::string> names;
    for (const SlotTask& one : agenda_.begin(found, now_)) {
      names.push_back(std::to_string(one.group) + ":" + std::to_string(one.job.slots.front()));
    }
    return names;
  }
  bool fail(const SlotTask& of, ErrorCode code, const char* text) {
    return agenda_.end(of, Error{code, text}, now_);
  }
  bool finish(const SlotTask& of) { return agenda_.end(of, std::uint64_t{7}, now_); }

  using Names = std::vector<std::string>;
  SlotAgenda::Instant now_{1h};
  SlotAgenda agenda_{{100ms, 10s, 500ms}};
};

TEST_F(SlotAgendaTest, WhatIsFrozenWaitsForNothing) {
  const SlotTask copy = task(0, SlotPhase::copying, 10);
  const SlotTask other_copy = task(1, SlotPhase::copying, 20);
  const SlotTask drop = task(1, SlotPhase::left, 30);
  EXPECT_EQ(begin({copy, drop, other_copy}), (Names{"0:10", "1:30"})) << "one copies at a time";
  EXPECT_EQ(begin({task(0, SlotPhase::frozen, 40), task(2, SlotPhase::frozen, 50), copy, drop}),
            (Names{"0:40", "2:50"}));
  EXPECT_FALSE(finish(copy));
  EXPECT_EQ(begin({other_copy}), (Names{"1:20"}));
}

TEST_F(SlotAgendaTest, NoMoreThanSomeAreUnderWay) {
  std::vector<SlotTask> frozen;
  for (std::uint32_t i = 0; i < 2 * SlotAgenda::kFrozenMax; ++i) {
    frozen.push_back(task(0, SlotPhase::frozen, 10 * i));
  }
  EXPECT_EQ(begin(frozen).size(), SlotAgenda::kFrozenMax);
  EXPECT_EQ(begin(frozen), Names{});
  finish(frozen[0]);
  frozen.erase(frozen.begin());
  EXPECT_EQ(begin(frozen), (Names{"0:80"}));
}

TEST_F(SlotAgendaTest, NoGroupHoldsUpTheOthers) {
  const std::vector<SlotTask> copies{task(0, SlotPhase::copying, 10),
                                     task(0, SlotPhase::copying, 20),
                                     task(3, SlotPhase::copying, 30)};
  EXPECT_EQ(begin(copies), (Names{"0:10"}));
  finish(copies[0]);
  EXPECT_EQ(begin({copies[1], copies[2]}), (Names{"3:30"}));
  finish(copies[2]);
  EXPECT_EQ(begin({copies[1]}), (Names{"0:20"}));
}

// The attempt itself freezes them, and has another number by then.
TEST_F(SlotAgendaTest, ATaskInHandIsNotBegunOnceMore) {
  const SlotTask copy = task(0, SlotPhase::copying, 10);
  EXPECT_EQ(begin({copy}), (Names{"0:10"}));
  EXPECT_EQ(begin({task(0, SlotPhase::frozen, 10, 2)}), Names{});
  EXPECT_EQ(begin({task(0, SlotPhase::left, 11, 2)}), Names{}) << "one of its slots";
  EXPECT_EQ(begin({task(1, SlotPhase::arriving, 10, 2)}), (Names{"1:10"})) << "of another group";
  finish(copy);
  EXPECT_EQ(begin({task(0, SlotPhase::left, 10, 2)}), Names{}) << "one drops at a time";
  finish(task(1, SlotPhase::arriving, 10, 2));
  EXPECT_EQ(begin({task(0, SlotPhase::left, 10, 2)}), (Names{"0:10"}));
}

TEST_F(SlotAgendaTest, WhatFailsRestsForLongerEachTime) {
  const SlotTask copy = task(0, SlotPhase::copying, 10);
  for (const auto pause : {100ms, 200ms, 400ms}) {
    EXPECT_EQ(begin({copy}), (Names{"0:10"}));
    fail(copy, ErrorCode::in_use, "a lease");
    EXPECT_EQ(agenda_.next(now_), now_ + pause);
    now_ += pause - 1ms;
    EXPECT_EQ(begin({copy}), Names{});
    now_ += 1ms;
    EXPECT_FALSE(agenda_.next(now_));
  }
  EXPECT_EQ(begin({copy}), (Names{"0:10"}));
  finish(copy);
  EXPECT_EQ(begin({copy}), (Names{"0:10"})) << "it is another one now";
}

TEST_F(SlotAgendaTest, WhatIsFrozenIsTriedAllTheTime) {
  const SlotTask copy = task(0, SlotPhase::copying, 10);
  const SlotTask frozen = task(0, SlotPhase::frozen, 10);
  EXPECT_EQ(begin({copy}), (Names{"0:10"}));
  fail(copy, ErrorCode::in_use, "a lease");
  EXPECT_EQ(begin({frozen}), (Names{"0:10"})) << "another driver has frozen it";
  for (int i = 0; i < 9; ++i) {
    fail(frozen, ErrorCode::unavailable, "no leader");
    EXPECT_EQ(begin({frozen}), Names{});
    now_ += 100ms;
    EXPECT_EQ(begin({frozen}), (Names{"0:10"}));
  }
}

TEST_F(SlotAgendaTest, AFailureIsNewsOnce) {
  const SlotTask copy = task(0, SlotPhase::copying, 10);
  const auto again = [&](ErrorCode code, const char* text) {
    now_ += 1min;
    EXPECT_EQ(begin({copy}), (Names{"0:10"}));
    return fail(copy, code, text);
  };
  EXPECT_TRUE(again(ErrorCode::in_use, "a lease"));
  EXPECT_FALSE(again(ErrorCode::in_use, "a lease"));
  EXPECT_FALSE(again(ErrorCode::stopped, "this node does not lead any more"));
  EXPECT_FALSE(again(ErrorCode::in_use, "a lease"));
  EXPECT_TRUE(again(ErrorCode::in_use, "another lease"));
}

// While the move goes on there is nothing to do, and to find that out costs a round of a group.
TEST_F(SlotAgendaTest, WhatArrivesIsLookedAtOnceInAnInterval) {
  const SlotTask arriving = task(0, SlotPhase::arriving, 10);
  EXPECT_EQ(begin({arriving}), (Names{"0:10"}));
  finish(arriving);
  EXPECT_EQ(begin({arriving}), Names{});
  EXPECT_EQ(agenda_.next(now_), now_ + 500ms);
  now_ += 500ms;
  EXPECT_EQ(begin({arriving}), (Names{"0:10"}));
}

}  // namespace
}  // namespace leasehold::kv::testing
