// The log of many groups on a disk that becomes full.
#include <leasehold/storage/folder.h>
#include <leasehold/storage/segment_store.h>
#include <leasehold/tests/storage/shared_rig.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace leasehold::storage::testing {
namespace {

using raft::GroupId;

std::uint64_t newest_made(const DiskHistory& disk) {
  return decode_mark(disk.now().at(std::string(kMarkName))).value().last_segment;
}

struct Writes {
  int all = 0;
  int to_the_reserve = 0;  ///< the last segment
};

/// How much a quiet group may write from when the disk is full. `garbage`: another group has gone
/// then, and left much behind the quiet one's first entries.
Writes writes_to_a_full_disk(bool garbage) {
  const auto history = std::make_shared<DiskHistory>();
  auto log = std::move(open_shared(history)).value();
  Writer quiet(GroupId(1), 8, Cuts::none);
  Writer busy(GroupId(2), 9, Cuts::none);
  quiet.open(*log);
  busy.open(*log);
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(quiet.write_one());
  for (int i = 0; i < 400; ++i) EXPECT_TRUE(busy.write_one());
  const std::uint64_t current = newest_written(*history);
  // Two are made ahead: what is left depends on no thread.
  while (newest_made(*history) < current + SegmentStore::kAhead) std::this_thread::yield();
  history->fill_up(true);
  while (newest_written(*history) == current) EXPECT_TRUE(quiet.write_one());
  EXPECT_TRUE(quiet.sink().wait_space(true));
  busy.close();
  if (garbage) {
    EXPECT_TRUE(log->remove_group(GroupId(2), raft::NodeId(1)));
  }
  Writes writes;
  while (quiet.write_one()) {
    ++writes.all;
    if (newest_written(*history) == newest_made(*history)) ++writes.to_the_reserve;
  }
  quiet.close();
  return writes;
}

// A copy of what stands in front gives space back, which a full disk may give to others at once.
// What is in front of the reserve may be used up before the log knows that the disk is full.
TEST(SharedLog, CopiesLeaveTheReserveOfAFullDiskToWrites) {
  const int reserve = writes_to_a_full_disk(false).to_the_reserve;
  EXPECT_GT(reserve, 10);
  EXPECT_GE(writes_to_a_full_disk(true).all, reserve - 1) << "the removal is a write, too";
}

}  // namespace
}  // namespace leasehold::storage::testing
