// The threads that move slots. A test holds one of them inside a command and looks at the others.
#include <leasehold/kv/local/slot_mover.h>
#include <leasehold/tests/kv/quick_group.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::kv::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Fate = QuickGroup::Fate;

constexpr std::uint32_t kGroupCount = 3;
/// For what comes in a moment, unless something is broken.
constexpr auto kPatience = 60s;

class SlotMoverTest : public ::testing::Test {
 protected:
  SlotMoverTest() {
    for (std::size_t i = 0; i < kGroupCount; ++i) {
      owned_.push_back(std::make_unique<QuickGroup>());
      groups_.push_back(owned_.back().get());
      groups_[i]->store().slots().listen([this] { change([] {}); });
    }
  }
  ~SlotMoverTest() override {
    change([this] { ending_ = true; });
    mover_.reset();
  }

  void start() {
    SlotMover::Options options;
    options.interval = options.retry_min = options.retry_max = 1ms;
    options.away = away_;
    options.notice = [this](const std::string& text) { change([&] { said_ += text + "\n"; }); };
    std::vector<std::unique_ptr<LedGroup>> led;
    for (auto& one : owned_) led.push_back(std::move(one));
    mover_ = std::make_unique<SlotMover>(std::move(led), options);
  }

  /// Of a slot that `group` has at first.
  static std::string key_in(std::size_t group) {
    int i = 0;
    while (first_group_of(slot_of(std::to_string(i)), kGroupCount) != group) ++i;
    return std::to_string(i);
  }
  static std::uint32_t slot_in(std::size_t group) { return slot_of(key_in(group)); }
  /// The number of the move.
  std::uint64_t begin_move(std::size_t from, std::size_t to) {
    groups_[from]->run(BeginMove{static_cast<std::uint32_t>(from + 1),
                                 kGroupCount,
                                 static_cast<std::uint32_t>(to + 1),
                                 {slot_in(from)}});
    return groups_[from]->store().slots().list()->at(slot_in(from)).move;
  }
  bool is(std::size_t group, std::uint32_t slot, SlotPhase phase) const {
    const auto records = groups_[group]->store().slots().list();
    const auto at = records->find(slot);
    return at != records->end() && at->second.phase == phase;
  }

  /// Changes something that others wait for.
  template <class Change>
  void change(const Change& what) {
    const std::lock_guard lock(mutex_);
    what();
    changed_.notify_all();
  }
  template <class Condition>
  bool wait_until(const Condition& condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return ending_ || condition(); });
  }

  std::vector<std::unique_ptr<QuickGroup>> owned_;
  std::vector<QuickGroup*> groups_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;
  std::string said_;
  std::function<std::string(std::size_t, std::size_t, bool)> away_;
  std::unique_ptr<SlotMover> mover_;
};

TEST_F(SlotMoverTest, WhatIsFrozenWaitsForNoCopy) {
  bool copies = false;
  bool let_go = false;
  groups_[1]->before = [&](const Command& command) {
    if (std::holds_alternative<ImportKeys>(command)) {
      change([&] { copies = true; });
      EXPECT_TRUE(wait_until([&] { return let_go; }));
    }
    return Fate::executed;
  };
  groups_[0]->run(Set{key_in(0), "v"});
  begin_move(0, 1);
  start();
  ASSERT_TRUE(wait_until([&] { return copies; }));
  // As another driver has left it, who has died.
  groups_[2]->run(FreezeMove{begin_move(2, 0)});
  EXPECT_TRUE(wait_until([&] { return is(2, slot_in(2), SlotPhase::gone); }));
  EXPECT_TRUE(is(0, slot_in(2), SlotPhase::owned));
  EXPECT_TRUE(is(0, slot_in(0), SlotPhase::copying));
  change([&] { let_go = true; });
  EXPECT_TRUE(wait_until([&] { return is(0, slot_in(0), SlotPhase::gone); }));
}

// Its own attempt would be void.
TEST_F(SlotMoverTest, AnAttemptThatHasFrozenItsSlotsIsLeftAlone) {
  std::size_t looks = 0;
  std::size_t attempts = 0;
  // It has nothing to do, and is asked at each look.
  groups_[2]->run(CancelMove{begin_move(2, 0)});
  groups_[2]->leading = [&] {
    change([&] { ++looks; });
    return true;
  };
  groups_[0]->before = [&](const Command& command) {
    if (std::holds_alternative<RetryMove>(command)) ++attempts;
    return Fate::executed;
  };
  groups_[1]->before = [&](const Command& command) {
    if (!std::holds_alternative<TakeSlots>(command)) return Fate::executed;
    EXPECT_TRUE(is(0, slot_in(0), SlotPhase::frozen));
    std::size_t seen = 0;
    change([&] { seen = looks; });
    EXPECT_TRUE(wait_until([&] { return looks > seen + 2; }));
    return Fate::executed;
  };
  begin_move(0, 1);
  start();
  EXPECT_TRUE(wait_until([&] { return is(0, slot_in(0), SlotPhase::gone); }));
  mover_.reset();
  EXPECT_EQ(attempts, 1U);
}

TEST_F(SlotMoverTest, ANodeThatLeadsNoMoreStopsAndTheNextOneGoesOn) {
  std::atomic<bool> leads = true;
  std::size_t refusals = 0;
  std::size_t attempts = 0;
  groups_[0]->leading = [&] {
    if (leads) return true;
    change([&] { ++refusals; });
    return false;
  };
  groups_[1]->before = [&](const Command& command) {
    if (std::holds_alternative<ExpectSlots>(command) && ++attempts == 1) leads = false;
    EXPECT_FALSE(std::holds_alternative<ImportKeys>(command) && attempts == 1);
    return Fate::executed;
  };
  groups_[0]->run(Set{key_in(0), "v"});
  begin_move(0, 1);
  start();
  ASSERT_TRUE(wait_until([&] { return refusals > 3; }));
  EXPECT_TRUE(is(0, slot_in(0), SlotPhase::copying));
  leads = true;
  EXPECT_TRUE(wait_until([&] { return is(0, slot_in(0), SlotPhase::gone); }));
  EXPECT_TRUE(groups_[1]->store().exists(key_in(0)).value());
  mover_.reset();
  EXPECT_EQ(attempts, 2U);
  EXPECT_THAT(said_, Not(HasSubstr("cannot")));
}

TEST_F(SlotMoverTest, WhatGoesElsewhereSaysWhetherItIsFrozen) {
  std::string asked;
  away_ = [&](std::size_t from, std::size_t to, bool frozen) {
    change([&] { asked += std::to_string(from) + std::to_string(to) + (frozen ? "f " : "c "); });
    return std::string("it is elsewhere");
  };
  groups_[0]->run(Set{key_in(0), "v"});
  groups_[2]->run(FreezeMove{begin_move(2, 0)});
  begin_move(0, 1);
  start();
  const auto has = [&](const char* what) { return asked.find(what) != std::string::npos; };
  EXPECT_TRUE(wait_until([&] {
    return has("01c") && has("20f") &&
           said_.find("from group 3 to group 1 yet: it is elsewhere") != std::string::npos;
  }));
  mover_.reset();
  EXPECT_FALSE(has("01f") || has("20c")) << asked;
}

TEST_F(SlotMoverTest, WhatHasLeftIsDroppedWithoutTheOtherGroup) {
  std::atomic<bool> elsewhere{false};
  away_ = [&](std::size_t, std::size_t, bool) {
    return elsewhere ? std::string("it is elsewhere") : std::string();
  };
  groups_[0]->before = [&](const Command& command) {
    const bool first = std::holds_alternative<DropKeys>(command) && !elsewhere.exchange(true);
    return first ? Fate::refused : Fate::executed;
  };
  groups_[0]->run(Set{key_in(0), "v"});
  begin_move(0, 1);
  start();
  EXPECT_TRUE(wait_until([&] { return is(0, slot_in(0), SlotPhase::gone); }));
  EXPECT_TRUE(elsewhere);
}

TEST_F(SlotMoverTest, AFailureIsSaidOnceAndTriedAgain) {
  std::size_t refused = 0;
  groups_[1]->before = [&](const Command& command) {
    if (!std::holds_alternative<ExpectSlots>(command)) return Fate::executed;
    return ++refused > 3 ? Fate::executed : Fate::refused;
  };
  groups_[0]->run(Set{key_in(0), "v"});
  begin_move(0, 1);
  start();
  EXPECT_TRUE(wait_until([&] { return said_.find(" moved ") != std::string::npos; }));
  mover_.reset();
  const std::string slot = "slot " + std::to_string(slot_in(0));
  EXPECT_THAT(said_, StartsWith(slot + " cannot move from group 1 to group 2 yet: refused\n" +
                                slot + " moved from group 1 to group 2: 1 keys in "));
}

}  // namespace
}  // namespace leasehold::kv::testing
