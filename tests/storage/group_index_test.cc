#include <leasehold/base/random.h>
#include <leasehold/storage/group_index.h>
#include <leasehold/storage/positions.h>

#include <gtest/gtest.h>

#include <map>

namespace leasehold::storage::testing {
namespace {

using raft::Index;

// An index that knows the segment of each entry, and nothing else.
TEST(GroupIndex, KnowsTheSegmentOfEachEntry) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    Holders holders;
    GroupIndex index;
    std::map<std::uint64_t, std::uint64_t> model;  // entry -> segment
    std::uint64_t base = 0;
    std::uint64_t last = 0;
    std::uint64_t segment = 1;
    for (int step = 0; step < 120; ++step) {
      if (random.chance(1, 4)) ++segment;
      switch (random.below(6)) {
        case 0:
          if (last > base) {
            const std::uint64_t from = base + 1 + random.below(last - base);
            index.truncate(Index(from), holders);
            model.erase(model.lower_bound(from), model.end());
            last = from - 1;
          }
          break;
        case 1:
          base += random.below(last - base + 1);
          index.cut(Index(base), holders);
          model.erase(model.begin(), model.upper_bound(base));
          break;
        case 2: {
          // What one part holds moves, or a piece of it.
          if (index.parts().empty()) break;
          const Part part = index.parts()[random.below(index.parts().size())];
          if (part.segment == segment) break;
          const std::uint64_t size = part.last - part.first + 1;
          const std::uint64_t first = part.first.value() + random.below(size);
          const std::uint64_t to = first + random.below(part.last.value() - first + 1);
          index.move(Index(first), Index(to), segment, holders);
          for (std::uint64_t at = first; at <= to; ++at) model[at] = segment;
          break;
        }
        default:
          for (std::uint64_t count = random.below(6); count > 0; --count) {
            model[++last] = segment;
            index.add(Index(last), 10, segment, holders);
          }
      }
      std::uint64_t next = base + 1;
      for (const Part& part : index.parts()) {
        ASSERT_EQ(part.first.value(), next) << seed;
        for (; next <= part.last.value(); ++next) ASSERT_EQ(model.at(next), part.segment) << seed;
      }
      ASSERT_EQ(next, last + 1) << seed;
      for (std::uint64_t at = 1; at <= segment; ++at) {
        bool held = false;
        for (const auto& [entry, where] : model) held = held || where == at;
        ASSERT_EQ(holders.any(at), held) << seed << ", segment " << at;
      }
    }
    index.remove(holders);
    EXPECT_EQ(holders.bytes(), 0U);
  }
}

TEST(GroupIndex, TheNewestStateAndFoundationHoldTheirSegments) {
  Holders holders;
  GroupIndex index;
  index.set_state({}, 1, holders);
  index.set_foundation(1, holders);
  index.set_state({}, 3, holders);
  EXPECT_TRUE(holders.any(1));
  EXPECT_TRUE(holders.any(3));
  index.set_foundation(3, holders);
  EXPECT_FALSE(holders.any(1));
  index.remove(holders);
  EXPECT_FALSE(holders.any(3));
}

TEST(Positions, CopiesMayComeBehindWhatFollowsThem) {
  Positions positions;
  positions.add(Index(10), 1000, 50);
  positions.put(Index(5), 2000, 50);
  positions.put(Index(6), 2050, 50);
  positions.put(Index(10), 3000, 50);
  ASSERT_EQ(positions.runs().size(), 2U);
  EXPECT_EQ(positions.runs()[0].first, Index(5));
  EXPECT_EQ(positions.runs()[0].count, 2U);
  EXPECT_EQ(positions.runs()[1].offset, 1000U) << "one that stands here stays where it is";
  positions.put(Index(7), 4000, 50);
  ASSERT_EQ(positions.runs().size(), 3U);
  EXPECT_EQ(positions.runs()[1].first, Index(7));
}

}  // namespace
}  // namespace leasehold::storage::testing
