// The records of slots as text: what it looks like, and that nothing else is taken for it.
#include <leasehold/server/front/slots_text.h>

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace leasehold::server {
namespace {

using kv::SlotMap;
using kv::SlotPhase;
using kv::SlotRecord;

TEST(SlotsText, JoinsNeighboursWithEqualRecords) {
  EXPECT_EQ(slots_text({}), "");
  SlotMap slots;
  const SlotRecord gone{SlotPhase::gone, 1, 2, 50, 0};
  for (const std::uint32_t slot : {0U, 1U, 2U, 4U}) slots.emplace(slot, gone);
  slots.emplace(5, SlotRecord{SlotPhase::arriving, 3, 4, 60, 7});
  slots.emplace(kv::kSlots - 1,
                SlotRecord{SlotPhase::owned, std::numeric_limits<std::uint64_t>::max(), 0, 0, 0});
  const std::string text =
      "0 2 5 1 2 50 0,4 4 5 1 2 50 0,5 5 6 3 4 60 7,16383 16383 1 18446744073709551615 0 0 0";
  EXPECT_EQ(slots_text(slots), text);
  EXPECT_EQ(parse_slots(text), slots);
  EXPECT_EQ(parse_slots(""), SlotMap());
}

TEST(SlotsText, NothingElseIsTakenForIt) {
  for (const char* wrong : {"x",
                            "0",
                            "0 0 5 1 2 50",
                            "0 0 5 1 2 50 ",
                            "0 0 5 1 2 50 0,",
                            ",0 0 5 1 2 50 0",
                            "0 0 5 1 2 50 0 0",
                            "0 0 5 1 2 50 0 ",
                            "00 0 5 1 2 50 0",
                            "-1 0 5 1 2 50 0",
                            "1 0 5 1 2 50 0",
                            "0 16384 5 1 2 50 0",
                            "0 0 0 1 2 50 0",
                            "0 0 7 1 2 50 0",
                            "0 0 261 1 2 50 0",
                            "0 0 5 1 4294967296 50 0",
                            "0 0 5 1 2 50 1",
                            "0 0 5 1 0 50 0",
                            "1 1 5 1 2 50 0,0 0 5 1 2 50 0",
                            "0 0 5 1 2 50 0,1 1 5 1 2 50 0",
                            "0 0 5 1 2 50 0,0 0 5 1 2 50 0",
                            "0 0 5 18446744073709551616 2 50 0"}) {
    EXPECT_FALSE(parse_slots(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace leasehold::server
