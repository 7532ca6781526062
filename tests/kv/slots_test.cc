// Slots that move from one group to another: the commands, asked of both stores, and what a group
// answers about keys that it has no more.
#include <leasehold/kv/slots.h>
#include <leasehold/tests/kv/snapshot_support.h>
#include <leasehold/tests/kv/store_support.h>

#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::kv::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// Of two groups the first one has the slot of "bar" and of all {bar}, the second one that of "foo".
constexpr std::uint32_t kBar = 5061;
constexpr std::uint32_t kFoo = 12182;
constexpr std::uint32_t kFirst = 1;
constexpr std::uint32_t kSecond = 2;

const char* const kMoved =
    "error 18: slot 5061 is not of this group now; nothing was done, ask the group that has it";

MovedKey row(std::string_view key, std::string_view value, std::uint64_t revision = 1) {
  MovedKey moved;
  moved.key = key;
  moved.exists = true;
  moved.value = value;
  moved.create_revision = revision;
  moved.mod_revision = revision;
  moved.version = 1;
  return moved;
}

class SlotsContract : public EachStore {
 protected:
  void SetUp() override {
    EachStore::SetUp();
    second_ = make("second");
    ASSERT_NE(second_, nullptr);
  }
  static std::string run(Store& store, const Command& command) {
    return apply(store, store.applied_index().value() + 1, {encoded(command)}).at(0);
  }
  std::string first(const Command& command) { return run(*store_, command); }
  std::string second(const Command& command) { return run(*second_, command); }

  std::string begin() { return first(BeginMove{kFirst, 2, kSecond, {kBar}}); }
  std::string expect(std::uint64_t move, std::uint64_t epoch = 1) {
    return second(ExpectSlots{kSecond, 2, kFirst, move, {{kBar, epoch}}});
  }
  std::string import(std::uint64_t move, const MovedKey& key) {
    return second(ImportKeys{kFirst, move, {key}});
  }
  /// One key moves.
  void move_all() {
    EXPECT_EQ(first(Set{"bar", "v"}), "OK");
    EXPECT_EQ(begin(), "2");
    EXPECT_EQ(expect(2), "0");
    EXPECT_EQ(import(2, row("bar", "v")), "1");
    EXPECT_EQ(first(FreezeMove{2}), "3");
    EXPECT_EQ(second(TakeSlots{kFirst, 2, 3}), "1");
    EXPECT_EQ(first(LeaveSlots{2}), "1");
    EXPECT_EQ(first(DropKeys{kSecond, 2, {"bar"}}), "1");
    EXPECT_EQ(first(ForgetSlots{kSecond, 2}), "1");
  }

  std::unique_ptr<Store> second_;
};

TEST_P(SlotsContract, AMoveTakesTheKeysAlong) {
  move_all();
  EXPECT_EQ(first(Transaction{{}, {Get{"bar"}}}), kMoved);
  EXPECT_EQ(store_->size(), 0U);
  EXPECT_EQ(second(Transaction{{}, {Get{"bar"}}}), "[\"v\",]");
  EXPECT_EQ(second_->size(), 1U);
  EXPECT_EQ(second_->get("bar").value()->mod_revision, 1U) << "who watches it sees no change";
}

TEST_P(SlotsContract, WhatIsCopiedIsServedUntilItIsFrozen) {
  first(Set{"bar", "v"});
  begin();
  EXPECT_EQ(first(Set{"bar", "w"}), "OK");
  EXPECT_EQ(first(IncrBy{"{bar}n", 1}), "1");
  EXPECT_EQ(first(Set{"foo", "f"}), "OK");
  EXPECT_EQ(first(FreezeMove{2}), "6");
  for (const Command& command : std::vector<Command>{
           Set{"bar", "x"},
           Del{{"foo", "bar"}},
           IncrBy{"{bar}n", 1},
           MGet{{"bar"}},
           StrLen{"bar"},
           Exists{{"bar"}},
           Append{"bar", "x"},
           SetRange{0, "bar", "x"},
           GetDel{"bar"},
           MSet{MSetCondition::none, {{"foo", "x"}, {"bar", "x"}}},
           Rename{false, "foo", "bar"},
           Rename{false, "bar", "foo"},
           SetSequential{"{bar}", "x"},
           AttachKey{grant::LeaseId(0), "bar"},
           DelEqual{"w", {"bar"}},
           KeyLease{"bar"},
           GetRange{0, 1, "bar"},
           Transaction{{{"bar", 1}}, {}},
           ExpireKey{"bar"},
           GrantLease{grant::LeaseId(7), std::chrono::seconds(1), "bar", "holder"}}) {
    EXPECT_EQ(first(command), kMoved);
  }
  EXPECT_EQ(first(Set{"foo", "of another slot"}), "OK");
  EXPECT_EQ(store_->get("foo").value()->version, 2U) << "no part of a command was done";
  EXPECT_EQ(store_->get("bar").value()->bytes.view(), "w");
}

TEST_P(SlotsContract, NoKeyIsSeenBeforeAllHaveCome) {
  begin();
  expect(1);
  EXPECT_EQ(import(1, row("bar", "v")), "1");
  EXPECT_EQ(second(Get{"bar"}), kMoved);
  EXPECT_EQ(second(Set{"bar", "w"}), kMoved);
  EXPECT_EQ(second_->size(), 0U);
  EXPECT_EQ(second(TakeSlots{kFirst, 1, 2}), "1");
  EXPECT_EQ(second(TakeSlots{kFirst, 1, 2}), "1") << "twice";
  EXPECT_EQ(second_->size(), 1U);
  EXPECT_EQ(second(Set{"bar", "w"}), "OK");
}

TEST_P(SlotsContract, LaterRevisionsAreAboveThoseOfTheFirstGroup) {
  for (int i = 0; i < 20; ++i) first(Set{"bar", "v"});
  first(
      Set{"bar", "v", SetCondition::none, false, false, grant::LeaseId(0), grant::FencingToken(9)});
  EXPECT_EQ(begin(), "22");
  expect(22);
  MovedKey moved = row("bar", "v", 21);
  moved.token = grant::FencingToken(9);
  EXPECT_EQ(import(22, moved), "1");
  EXPECT_EQ(first(FreezeMove{22}), "23");
  const std::uint64_t watched_from = second_->revision() + 1;
  EXPECT_EQ(second(TakeSlots{kFirst, 22, 23}), "1");
  EXPECT_EQ(second_->revision(), 24U);
  EXPECT_EQ(second_->events().head(), 24U);
  EXPECT_TRUE(second_->events().read(watched_from, 10).lost) << "there are none of these numbers";
  const auto granted =
      second(GrantLease{grant::LeaseId(7), std::chrono::seconds(1), "bar", "holder"});
  EXPECT_EQ(granted, "[7,25,]") << "a token above all that the first group gave";
  EXPECT_THAT(second(Set{"bar", "w", SetCondition::none, false, false, grant::LeaseId(0),
                         grant::FencingToken(8)}),
              HasSubstr("error 15"));
}

TEST_P(SlotsContract, AnEarlierAttemptIsVoid) {
  first(Set{"bar", "v"});
  EXPECT_EQ(begin(), "2");
  expect(2);
  EXPECT_EQ(import(2, row("bar", "old")), "1");
  EXPECT_EQ(begin(), "3");
  EXPECT_EQ(first(FreezeMove{2}), "nil");
  EXPECT_EQ(first(CancelMove{2}), "0");
  EXPECT_EQ(expect(3), "2") << "a key of an earlier attempt is here";
  EXPECT_EQ(second(DropKeys{kFirst, 2, {"bar"}}), "0") << "of another attempt";
  EXPECT_EQ(second(TakeSlots{kFirst, 2, 3}), "nil") << "its keys are about to be dropped";
  EXPECT_EQ(second(DropKeys{kFirst, 3, {"bar"}}), "1");
  EXPECT_EQ(expect(3), "0");
  EXPECT_EQ(expect(2), "nil");
  EXPECT_EQ(import(2, row("bar", "old")), "nil");
  EXPECT_EQ(second(TakeSlots{kFirst, 2, 3}), "nil");
  EXPECT_EQ(second(DropKeys{kFirst, 2, {"bar"}}), "0");
  EXPECT_EQ(import(3, row("bar", "v")), "1");
  EXPECT_EQ(first(FreezeMove{3}), "4");
  EXPECT_EQ(second(TakeSlots{kFirst, 3, 4}), "1");
  EXPECT_EQ(second(Transaction{{}, {Get{"bar"}}}), "[\"v\",]");
}

TEST_P(SlotsContract, WhatIsFrozenGoesForwardOnly) {
  begin();
  EXPECT_EQ(first(FreezeMove{1}), "2");
  EXPECT_EQ(first(CancelMove{1}), "0");
  EXPECT_THAT(first(BeginMove{kFirst, 3, 3, {kBar}}), HasSubstr("on its way to group 2"));
  EXPECT_THAT(first(BeginMove{kFirst, 2, kSecond, {kBar - 1, kBar}}), HasSubstr("error 19"));
  EXPECT_EQ(begin(), "3") << "another attempt of the same move";
  EXPECT_EQ(first(Get{"bar"}), kMoved);
  EXPECT_EQ(first(LeaveSlots{1}), "0");
  EXPECT_EQ(first(LeaveSlots{3}), "1");
  EXPECT_EQ(first(LeaveSlots{3}), "0");
  EXPECT_EQ(first(FreezeMove{3}), "nil");
}

TEST_P(SlotsContract, AnotherAttemptIsOfAWholeMoveThatGoesOn) {
  const std::vector<std::uint32_t> both = {kBar, kBar + 1};
  EXPECT_EQ(first(RetryMove{1, both}), "nil");
  EXPECT_EQ(first(BeginMove{kFirst, 2, kSecond, both}), "1");
  EXPECT_EQ(first(RetryMove{1, {kBar}}), "nil") << "the other one would be frozen with it";
  EXPECT_EQ(first(RetryMove{1, {kBar, kBar + 2}}), "nil");
  EXPECT_EQ(first(RetryMove{1, {kBar, kBar + 1, kBar + 2}}), "nil");
  EXPECT_EQ(first(RetryMove{1, both}), "2");
  EXPECT_EQ(first(FreezeMove{1}), "nil");
  EXPECT_EQ(first(RetryMove{1, both}), "nil");
  EXPECT_EQ(first(FreezeMove{2}), "3");
  EXPECT_EQ(first(RetryMove{2, both}), "4") << "frozen, and it stays so";
  EXPECT_EQ(first(LeaveSlots{4}), "2");
  EXPECT_EQ(first(RetryMove{4, both}), "nil") << "they have left";
}

TEST_P(SlotsContract, WhatDoesNotArriveIsForgottenWithoutItsKeys) {
  begin();
  EXPECT_EQ(expect(1), "0");
  EXPECT_EQ(import(1, row("bar", "v")), "1");
  first(CancelMove{1});
  EXPECT_EQ(second(ForgetSlots{kFirst, 1, true}), "0") << "a key is here";
  EXPECT_EQ(second(DropKeys{kFirst, 1, {"bar"}}), "1");
  EXPECT_EQ(second(ForgetSlots{kFirst, 2, true}), "0") << "another move";
  EXPECT_EQ(second(ForgetSlots{kFirst, 1, true}), "1");
  EXPECT_EQ(import(1, row("bar", "v")), "nil");
  EXPECT_EQ(second(TakeSlots{kFirst, 1, 9}), "nil");
  EXPECT_EQ(second_->slots().list()->at(kBar), (SlotRecord{SlotPhase::gone, 0, kFirst, 1, 0}));
  EXPECT_EQ(begin(), "3");
  EXPECT_EQ(expect(3), "0");
}

TEST_P(SlotsContract, SlotsOfOneMoveGoOnTogether) {
  EXPECT_EQ(first(BeginMove{kFirst, 2, kSecond, {kBar, kBar + 1}}), "1");
  EXPECT_EQ(second(ExpectSlots{kSecond, 2, kFirst, 1, {{kBar, 1}, {kBar + 1, 1}}}), "0");
  EXPECT_THAT(begin(), HasSubstr("slot 5062 is on its way to group 2 in one move with some"));
  EXPECT_THAT(first(BeginMove{kFirst, 3, 3, {kBar + 1}}), HasSubstr("error 19"));
  EXPECT_EQ(first(BeginMove{kFirst, 2, kSecond, {kBar - 1, kBar, kBar + 1}}), "2");
  EXPECT_EQ(first(FreezeMove{1}), "nil");
  EXPECT_EQ(first(FreezeMove{2}), "3");
  EXPECT_THAT(begin(), HasSubstr("error 19"));
}

TEST_P(SlotsContract, ACancelledMoveLeavesTheSlotWhereItIs) {
  begin();
  EXPECT_EQ(first(CancelMove{1}), "1");
  EXPECT_EQ(first(FreezeMove{1}), "nil");
  EXPECT_EQ(first(RetryMove{1, {kBar}}), "nil");
  EXPECT_EQ(first(Set{"bar", "v"}), "OK");
  EXPECT_EQ(first(TakeSlots{kSecond, 1, 2}), "nil") << "a move of the other group has this number";
  const auto snapshot = store_->take_snapshot();
  ASSERT_TRUE(snapshot);
  const auto other = make("other");
  ASSERT_TRUE(other->install_snapshot(
      BytesSnapshot(bytes_of(*snapshot.value()), snapshot.value()->last())));
  EXPECT_EQ(*other->slots().list(), *store_->slots().list());
  EXPECT_EQ(begin(), "4");
}

TEST_P(SlotsContract, OnlyTheGroupThatHasASlotMovesIt) {
  EXPECT_THAT(first(BeginMove{kFirst, 2, kSecond, {kFoo}}), HasSubstr("error 18"));
  EXPECT_THAT(second(BeginMove{kSecond, 2, kFirst, {kBar}}), HasSubstr("error 18"));
  move_all();
  EXPECT_THAT(begin(), HasSubstr("error 18"));
  EXPECT_EQ(second(BeginMove{kSecond, 2, kFirst, {kBar}}), "5");
}

TEST_P(SlotsContract, ASlotComesBack) {
  move_all();
  const auto moved = second(BeginMove{kSecond, 2, kFirst, {kBar}});
  ASSERT_EQ(moved, "5");
  EXPECT_EQ(first(ExpectSlots{kFirst, 2, kSecond, 5, {{kBar, 2}}}), "0");
  EXPECT_EQ(first(ImportKeys{kSecond, 5, {row("bar", "w", 4)}}), "1");
  EXPECT_EQ(second(FreezeMove{5}), "6");
  EXPECT_EQ(first(TakeSlots{kSecond, 5, 6}), "1");
  EXPECT_EQ(second(LeaveSlots{5}), "1");
  EXPECT_EQ(first(Transaction{{}, {Get{"bar"}}}), "[\"w\",]");
  EXPECT_EQ(store_->slots().list()->at(kBar).epoch, 2U);
  EXPECT_EQ(second_->slots().list()->at(kBar).epoch, 2U);
}

TEST_P(SlotsContract, AGroupThatStillHasKeysOfASlotDoesNotTakeItBack) {
  first(Set{"bar", "v"});
  begin();
  first(FreezeMove{2});
  first(LeaveSlots{2});
  EXPECT_THAT(first(ExpectSlots{kFirst, 2, kSecond, 5, {{kBar, 2}}}), HasSubstr("error 19"));
  EXPECT_EQ(first(DropKeys{kSecond, 2, {"bar", "{bar}other"}}), "1");
  EXPECT_EQ(first(ForgetSlots{kSecond, 2}), "1");
  EXPECT_EQ(first(ExpectSlots{kFirst, 2, kSecond, 5, {{kBar, 2}}}), "0");
}

TEST_P(SlotsContract, AGroupThatHasTakenASlotSaysSo) {
  move_all();
  EXPECT_EQ(expect(2), "1");
  EXPECT_EQ(expect(9), "1");
  EXPECT_THAT(second(ExpectSlots{kSecond, 2, kFirst, 9, {{kBar, 1}, {kBar + 1, 1}}}),
              HasSubstr("error 19"));
  EXPECT_THAT(first(ExpectSlots{kFirst, 2, kSecond, 9, {{kBar + 1, 1}}}),
              HasSubstr("error 19: slot 5062 has never left this group"));
}

TEST_P(SlotsContract, NoKeyThatIsNotMovingIsDroppedOrImported) {
  first(Set{"bar", "v"});
  second(Set{"foo", "v"});
  EXPECT_EQ(first(DropKeys{kSecond, 2, {"bar"}}), "0");
  EXPECT_EQ(import(2, row("foo", "w")), "nil");
  begin();
  first(FreezeMove{2});
  EXPECT_EQ(first(DropKeys{kSecond, 2, {"bar"}}), "0") << "the other group may not have it yet";
  EXPECT_EQ(first(ForgetSlots{kSecond, 2}), "0");
}

TEST_P(SlotsContract, ALeaseOfAClientStaysWithItsSlot) {
  const auto second_of = std::chrono::seconds(1);
  first(GrantLease{grant::LeaseId(7), second_of, "bar", "holder"});
  EXPECT_EQ(begin(), "2");
  EXPECT_EQ(first(FreezeMove{2}), "error 19: slot 5061 has the name of lease 7; nothing was done");
  EXPECT_EQ(first(RevokeLease{grant::LeaseId(7)}), "OK");
  first(GrantLease{grant::LeaseId(8), second_of, "foo", "holder"});
  Set set{"bar", "v"};
  set.lease = grant::LeaseId(8);
  EXPECT_EQ(first(set), "OK");
  EXPECT_EQ(first(FreezeMove{2}), "error 19: slot 5061 has a key of lease 8; nothing was done");
  EXPECT_EQ(first(Del{{"bar"}}), "1");
  EXPECT_EQ(first(FreezeMove{2}), "7");
}

// In the group that a client has selected, it may have the name of any slot.
TEST_P(SlotsContract, NoSlotComesWhereALeaseHasItsName) {
  second(GrantLease{grant::LeaseId(7), std::chrono::hours(1), "{bar}lock", "holder"});
  begin();
  EXPECT_THAT(expect(1), HasSubstr("slot 5061 has the name of lease 7"));
  EXPECT_TRUE(second_->slots().list()->empty());
  second(RevokeLease{grant::LeaseId(7)});
  EXPECT_EQ(expect(1), "0");
}

TEST_P(SlotsContract, AKeyTakesItsTimeAlong) {
  begin();
  expect(1);
  MovedKey moved = row("bar", "v");
  moved.ttl = std::chrono::milliseconds(900);
  EXPECT_EQ(import(1, moved), "1");
  EXPECT_EQ(import(1, moved), "1") << "once more: the first lease ends";
  const auto changes = second_->lease_changes(0);
  ASSERT_TRUE(changes);
  ASSERT_EQ(changes.value().alive.size(), 1U);
  const TimedLease timed = changes.value().alive[0];
  const ExpireLeases over{raft::Term(1), {{timed.id, timed.stamp}}};
  EXPECT_EQ(second(over), "0") << "it is not here yet";
  first(FreezeMove{1});
  second(TakeSlots{kFirst, 1, 2});
  EXPECT_EQ(second(over), "1");
  EXPECT_EQ(second_->size(), 0U);
}

TEST_P(SlotsContract, NoKeyOfAFrozenSlotEnds) {
  Set set{"bar", "v"};
  set.ttl = std::chrono::milliseconds(1);
  first(set);
  const TimedLease timed = store_->lease_changes(0).value().alive.at(0);
  const ExpireLeases over{raft::Term(1), {{timed.id, timed.stamp}}};
  begin();
  first(FreezeMove{2});
  EXPECT_EQ(first(over), "0");
  EXPECT_EQ(store_->size(), 1U);
  first(LeaveSlots{2});
  EXPECT_EQ(first(over), "0");
  EXPECT_EQ(first(DropKeys{kSecond, 2, {"bar"}}), "1");
  EXPECT_TRUE(store_->lease_changes(0).value().alive.empty()) << "its lease goes with it";
}

TEST_P(SlotsContract, ATokenOutlivesItsKeyInAMove) {
  for (int i = 0; i < 5; ++i) second(Set{"foo", "v"});
  begin();
  expect(1);
  MovedKey gone;
  gone.key = "bar";
  gone.token = grant::FencingToken(5);
  EXPECT_EQ(import(1, row("bar", "v")), "1");
  EXPECT_EQ(import(1, gone), "1");
  second(TakeSlots{kFirst, 1, 1});
  EXPECT_EQ(second_->size(), 1U) << "foo";
  Set set{"bar", "w"};
  set.token = grant::FencingToken(4);
  EXPECT_THAT(second(set), HasSubstr("error 15"));
}

TEST_P(SlotsContract, ASnapshotHasTheSlots) {
  move_all();
  second(SetUser{"ann", 0, "on"});
  EXPECT_EQ(second(BeginMove{kSecond, 2, kFirst, {kBar, kFoo}}), "6");
  const auto snapshot = second_->take_snapshot();
  ASSERT_TRUE(snapshot);
  const auto other = make("other");
  const std::uint64_t before = other->slots().changes();
  ASSERT_TRUE(other->install_snapshot(
      BytesSnapshot(bytes_of(*snapshot.value()), snapshot.value()->last())));
  EXPECT_GT(other->slots().changes(), before);
  EXPECT_EQ(*other->slots().list(), *second_->slots().list());
  EXPECT_EQ(other->slots().list()->size(), 2U);
  EXPECT_EQ(run(*other, FreezeMove{6}), second(FreezeMove{6}));
}

/// At each change of what is shown: whether the slot is here, and whether its key is.
using Sights = std::vector<std::pair<bool, bool>>;
Sights seen_while(Store& store, const std::vector<Command>& commands) {
  Sights sights;
  const auto listener = store.slots().listen([&] {
    const auto records = store.slots().list();
    const auto at = records->find(kBar);
    const bool here = serves(at == records->end() ? nullptr : &at->second);
    sights.emplace_back(here, store.get("bar").value().has_value());
  });
  std::vector<Bytes> encodings;
  for (const Command& command : commands) encodings.push_back(encoded(command));
  apply(store, store.applied_index().value() + 1, encodings);
  store.slots().forget(listener);
  return sights;
}

// Replicas that catch up apply many commands at once.
TEST_P(SlotsContract, ASlotIsSeenHereOnlyWhileItsKeysAre) {
  const Sights arrives =
      seen_while(*second_, {ExpectSlots{kSecond, 2, kFirst, 2, {{kBar, 1}}},
                            ImportKeys{kFirst, 2, {row("bar", "v")}}, TakeSlots{kFirst, 2, 3}});
  EXPECT_EQ(arrives.back(), std::pair(true, true));
  EXPECT_THAT(arrives, Not(Contains(std::pair(true, false))));
  first(Set{"bar", "v"});
  const Sights leaves =
      seen_while(*store_, {BeginMove{kFirst, 2, kSecond, {kBar}}, FreezeMove{2}, LeaveSlots{2},
                           DropKeys{kSecond, 2, {"bar"}}, ForgetSlots{kSecond, 2}});
  EXPECT_FALSE(leaves.back().first);
  EXPECT_FALSE(store_->get("bar").value());
  EXPECT_THAT(leaves, Not(Contains(std::pair(true, false))));
  EXPECT_THAT(leaves, Contains(std::pair(false, true))) << "not shown before its keys have gone";
}

TEST_P(SlotsContract, ASnapshotWithoutTheKeysOfASlotDoesNotShowItHere) {
  move_all();
  const auto snapshot = store_->take_snapshot();
  ASSERT_TRUE(snapshot);
  const auto other = make("other");
  run(*other, Set{"bar", "v"});
  Sights sights;
  other->slots().listen([&] {
    sights.emplace_back(serves(&other->slots().list()->at(kBar)),
                        other->get("bar").value().has_value());
  });
  ASSERT_TRUE(other->install_snapshot(
      BytesSnapshot(bytes_of(*snapshot.value()), snapshot.value()->last())));
  EXPECT_THAT(sights, ElementsAre(std::pair(false, true)));
}

TEST(Slots, AreShownInTwoSteps) {
  const auto record = [](SlotPhase phase, std::uint64_t epoch) {
    return SlotRecord{phase, epoch, kSecond, 1, 0};
  };
  Slots slots;
  const auto shown = [&slots] { return slots.list()->at(7).phase; };
  const auto step = [&](const SlotRecord& to) {
    slots.set({{7, to}});
    slots.about_to_write();
    const SlotPhase between = shown();
    slots.saved();
    EXPECT_EQ(shown(), to.phase);
    return between;
  };
  EXPECT_EQ(slots.changes(), Slots::kNoChanges);
  EXPECT_EQ(step(record(SlotPhase::copying, 0)), SlotPhase::copying) << "it was here";
  EXPECT_EQ(step(record(SlotPhase::frozen, 0)), SlotPhase::frozen);
  EXPECT_EQ(step(record(SlotPhase::owned, 2)), SlotPhase::arriving);
  EXPECT_EQ(step(record(SlotPhase::copying, 2)), SlotPhase::copying);
  EXPECT_EQ(step(record(SlotPhase::owned, 4)), SlotPhase::arriving) << "it has been away since";
  const std::uint64_t changes = slots.changes();
  slots.about_to_write();
  slots.saved();
  EXPECT_EQ(slots.changes(), changes);
}

INSTANTIATE_TEST_SUITE_P(Stores, SlotsContract, each_store(), name_of_store);

TEST(SlotsOnDisk, SurviveTheProcess) {
  const TemporaryFolder folder;
  SlotMap before;
  {
    const auto store = open_store(folder.path("kv"));
    apply(*store, 1,
          {encoded(Set{"bar", "v"}), encoded(BeginMove{1, 2, 2, {kBar, kBar + 1}}),
           encoded(FreezeMove{2})});
    before = *store->slots().list();
  }
  const auto store = open_store(folder.path("kv"));
  EXPECT_EQ(*store->slots().list(), before);
  EXPECT_EQ(before.size(), 2U);
  EXPECT_EQ(apply(*store, 4, {encoded(Get{"bar"}), encoded(LeaveSlots{2})}),
            (std::vector<std::string>{kMoved, "2"}));
}

}  // namespace
}  // namespace leasehold::kv::testing
