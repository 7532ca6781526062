// Whether states of different instants divide the slots among them.
#include <leasehold/kv/slot_layout.h>
#include <leasehold/tests/kv/snapshot_support.h>
#include <leasehold/tests/kv/store_support.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace leasehold::kv {
namespace {

using ::testing::HasSubstr;
using Phase = SlotPhase;

/// Of three groups at first the first one's.
constexpr std::uint32_t kSlot = 5;
constexpr std::uint64_t kRevision = 100;

SlotsOfState nothing() {
  return {{}, kRevision};
}

SlotsOfState knows(Phase phase, std::uint64_t epoch, std::uint32_t other, std::uint64_t move = 50,
                   std::uint64_t keys = 0) {
  return {{{kSlot, {phase, epoch, other, move, keys}}}, kRevision};
}

std::string problem(std::vector<SlotsOfState> groups) {
  return layout_problem(groups).value_or("");
}

TEST(SlotLayout, EachStepOfAMoveHasOneOwner) {
  EXPECT_EQ(problem({nothing(), nothing(), nothing()}), "");
  EXPECT_EQ(problem({knows(Phase::copying, 0, 2), nothing(), nothing()}), "");
  EXPECT_EQ(problem({knows(Phase::copying, 0, 2), knows(Phase::arriving, 1, 1, 50, 7), nothing()}),
            "");
  EXPECT_EQ(problem({knows(Phase::frozen, 0, 2), knows(Phase::arriving, 1, 1, 50, 7), nothing()}),
            "");
  EXPECT_EQ(problem({knows(Phase::frozen, 0, 2), knows(Phase::owned, 1, 1), nothing()}), "");
  EXPECT_EQ(problem({knows(Phase::left, 1, 2), knows(Phase::owned, 1, 1), nothing()}), "");
  EXPECT_EQ(problem({knows(Phase::gone, 1, 2), knows(Phase::owned, 1, 1), nothing()}), "");
  EXPECT_EQ(problem({knows(Phase::gone, 1, 2), knows(Phase::copying, 1, 3), nothing()}), "");
  EXPECT_EQ(
      problem({knows(Phase::gone, 1, 2), knows(Phase::gone, 2, 3), knows(Phase::owned, 2, 2)}), "");
  EXPECT_EQ(problem({knows(Phase::owned, 2, 2), knows(Phase::gone, 2, 1), nothing()}), "")
      << "it came back";
  EXPECT_EQ(problem({knows(Phase::owned, 0, 0, 0), knows(Phase::arriving, 1, 1), nothing()}), "")
      << "the move was cancelled";
}

TEST(SlotLayout, ASlotThatMovedBetweenTheInstantsIsFound) {
  const std::string two = "slot 5 has two owners, groups 1 and 2";
  EXPECT_EQ(problem({nothing(), knows(Phase::owned, 1, 1), nothing()}), two);
  EXPECT_EQ(problem({knows(Phase::copying, 0, 2), knows(Phase::owned, 1, 1), nothing()}), two);
  EXPECT_EQ(problem({knows(Phase::frozen, 1, 2), knows(Phase::owned, 1, 1), nothing()}),
            "slot 5 has two owners, groups 2 and 1");
  const std::string none = "slot 5 has no owner";
  EXPECT_EQ(problem({knows(Phase::gone, 1, 2), nothing(), nothing()}), none);
  EXPECT_EQ(problem({knows(Phase::left, 1, 2), knows(Phase::arriving, 1, 1), nothing()}), none);
  EXPECT_EQ(problem({knows(Phase::gone, 1, 2), knows(Phase::gone, 2, 3), nothing()}), none);
  EXPECT_EQ(problem({knows(Phase::frozen, 0, 2), knows(Phase::gone, 1, 3), nothing()}), none);
}

TEST(SlotLayout, AnOwnerThatLacksALaterMoveIsFound) {
  const std::string older = "of slot 5 group 1 knows less than group 2: its state is older";
  // It went there and came back since.
  EXPECT_EQ(problem({nothing(), knows(Phase::gone, 2, 1), nothing()}), older);
  EXPECT_EQ(problem({nothing(), knows(Phase::arriving, 2, 1), nothing()}), older);
  EXPECT_EQ(problem({nothing(), knows(Phase::arriving, 1, 3), nothing()}), older)
      << "no other group could give it away";
  EXPECT_EQ(problem({nothing(), knows(Phase::arriving, 1, 1, kRevision), nothing()}), "");
  EXPECT_EQ(problem({nothing(), knows(Phase::arriving, 1, 1, kRevision + 1), nothing()}), older)
      << "group 1 would give this number to another move";
  EXPECT_EQ(problem({knows(Phase::owned, 2, 2), knows(Phase::gone, 2, 1),
                     knows(Phase::arriving, 2, 2, kRevision + 1)}),
            "of slot 5 group 2 knows less than group 3: its state is older");
  EXPECT_THAT(problem({nothing(), knows(Phase::arriving, 0, 9), nothing()}), HasSubstr("older"))
      << "there is no such group";
}

TEST(SlotLayout, OneGroupOfManyIsNotTheWhole) {
  EXPECT_EQ(problem({nothing()}), "");
  EXPECT_EQ(problem({knows(Phase::gone, 1, 2)}), "slot 5 has no owner");
}

TEST(SlotLayout, WhatMovesIsNamed) {
  const auto moving = [](const SlotsOfState& state) {
    return moving_slot(state.slots).value_or("none");
  };
  EXPECT_EQ(moving(nothing()), "none");
  EXPECT_EQ(moving(knows(Phase::owned, 1, 1)), "none");
  EXPECT_EQ(moving(knows(Phase::left, 1, 2)), "none");
  EXPECT_EQ(moving(knows(Phase::gone, 1, 2)), "none");
  EXPECT_EQ(moving(knows(Phase::arriving, 1, 1)), "none") << "nothing has come yet";
  EXPECT_EQ(moving(knows(Phase::copying, 0, 2)), "slot 5 is moving to group 2");
  EXPECT_EQ(moving(knows(Phase::frozen, 0, 2)), "slot 5 is moving to group 2");
  EXPECT_EQ(moving(knows(Phase::arriving, 1, 1, 50, 1)), "slot 5 is moving here from group 1");
}

TEST(ArchivedSlots, AreReadWithoutUnpacking) {
  using namespace kv::testing;
  const TemporaryFolder folder;
  const auto store = open_store(folder.path("kv"));
  apply(*store, 1, {encoded(Set{"bar", std::string(300'000, 'v')})});
  EXPECT_EQ(RocksdbStore::slots_of(*store->take_snapshot().value()).value(), SlotMap());
  apply(*store, 2, {encoded(BeginMove{1, 2, 2, {7, 5061}})});
  const SlotMap begun = *store->slots().list();
  ASSERT_EQ(begun.size(), 2U);
  const auto taken = store->take_snapshot().value();
  // The store goes on, and the archive does not.
  apply(*store, 3, {encoded(FreezeMove{begun.at(7).move}), encoded(Set{"foo", "v"})});
  EXPECT_EQ(RocksdbStore::slots_of(*taken).value(), begun);

  const std::string bytes = bytes_of(*taken);
  const BytesSnapshot whole(bytes, taken->last());
  EXPECT_EQ(RocksdbStore::slots_of(whole).value(), begun);
  std::size_t damaged = 0;
  for (std::size_t at = 7; at < bytes.size(); at += 997) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 16);
    const auto read = RocksdbStore::slots_of(BytesSnapshot(flipped, taken->last()));
    // It may be a part that is not read.
    if (read) {
      EXPECT_EQ(read.value(), begun) << at;
    } else {
      ++damaged;
    }
  }
  EXPECT_GT(damaged, 0U);
  EXPECT_FALSE(RocksdbStore::slots_of(BytesSnapshot(bytes.substr(0, 999), taken->last())));
}

}  // namespace
}  // namespace leasehold::kv
