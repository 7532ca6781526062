#include <leasehold/storage/posix_disk.h>
#include <leasehold/storage/segment_check.h>
#include <leasehold/tests/base/temporary_folder.h>
#include <leasehold/tests/storage/segment_rig.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace leasehold::storage::testing {
namespace {

bool go_on(std::uint64_t) {
  return true;
}

class SegmentCheck : public ::testing::Test {
 protected:
  void SetUp() override {
    SegmentLog::Options options = small_options();
    options.dir = dir_;
    options.free_bytes_min = 0;
    auto opened = SegmentLog::open(options);
    ASSERT_TRUE(opened);
    log_ = std::move(opened).value();
    ASSERT_TRUE(log_->confirm_set(three_voters(log_->identity().uuid).members));
    ASSERT_TRUE(log_->form());
    static_cast<void>(log_->take_initial_state());
    log_->start(sink_);
    Random random(3);
    Model model = model_after(0, log_->identity().uuid);
    for (std::uint64_t id = 1; id <= 60; ++id) {
      const raft::PersistBatch batch = random_batch(random, model, id, Cuts::none);
      model.apply(batch);
      log_->persist(batch);
      ASSERT_TRUE(sink_.wait_persisted(raft::ReadyId(id)));
    }
  }
  std::unique_ptr<const Disk> view() const { return std::move(view_posix_disk(dir_)).value(); }
  std::string first() const { return dir_ + "/" + "0000000000000001.seg"; }
  void change(std::size_t at, char bits) {
    std::fstream file(first(), std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(at));
    const char was = static_cast<char>(file.get());
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(was ^ bits));
  }

  TemporaryFolder folder_;
  std::string dir_ = folder_.path("log");
  RecordingSink sink_;
  std::unique_ptr<SegmentLog> log_;
};

TEST_F(SegmentCheck, ReadsTheFullSegmentsOfALogThatIsInUse) {
  const auto checked = check_segments(*view(), go_on);
  ASSERT_TRUE(checked) << checked.error().message;
  EXPECT_GE(checked.value(), 2U);
  int asked = 0;
  const auto one = check_segments(*view(), [&](std::uint64_t bytes) {
    EXPECT_GT(bytes, 0U);
    return ++asked < 1;
  });
  EXPECT_EQ(one.value(), 1U);
}

TEST_F(SegmentCheck, FindsEveryFlippedByteOfAFullSegment) {
  std::ifstream in(first(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  ASSERT_GT(bytes.size(), 1000U);
  int flipped = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 7) {
    if (bytes[at] == '\0') continue;  // what fills a frame up has no checksum
    change(at, 1);
    const auto found = check_segments(*view(), go_on);
    change(at, 1);
    ASSERT_FALSE(found) << at;
    EXPECT_EQ(found.error().code, ErrorCode::corrupted);
    EXPECT_NE(found.error().message.find("0000000000000001.seg"), std::string::npos);
    ++flipped;
  }
  EXPECT_GT(flipped, 100);
  EXPECT_TRUE(check_segments(*view(), go_on));
}

}  // namespace
}  // namespace leasehold::storage::testing
