// Disks that refuse writes: full ones, on which the log continues for a while, and broken ones, on
// which it does not.
#include <leasehold/storage/folder.h>
#include <leasehold/storage/segment_load.h>
#include <leasehold/storage/segment_store.h>
#include <leasehold/tests/storage/segment_rig.h>

#include <algorithm>

namespace leasehold::storage::testing {
namespace {

/// A formed log on a disk in memory, and what is appended to it.
class Rig {
 public:
  explicit Rig(SegmentLog::Options options = small_options(),
               std::shared_ptr<DiskHistory> history = std::make_shared<DiskHistory>())
      : history_(std::move(history)), options_(std::move(options)) {
    auto opened = open_on(history_, options_);
    if (!opened) ADD_FAILURE() << opened.error().message;
    log_ = std::move(opened).value();
    EXPECT_TRUE(log_->confirm_set(three_voters(log_->identity().uuid).members));
    EXPECT_TRUE(log_->form());
    state_ = log_->take_initial_state();
    index_ = state_.last_index.value();
  }
  ~Rig() { log_.reset(); }
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  static SegmentLog::Options options(std::uint64_t free_bytes_min = 0) {
    auto options = small_options();
    options.free_bytes_min = free_bytes_min;
    options.space_retry = std::chrono::milliseconds(1);
    return options;
  }
  DiskHistory& disk() { return *history_; }
  const std::shared_ptr<DiskHistory>& history() { return history_; }
  RecordingSink& sink() { return sink_; }
  SegmentLog& log() { return *log_; }
  const raft::InitialState& state() const { return state_; }
  std::uint64_t index() const { return index_; }
  void start() { log_->start(sink_); }
  void close() { log_.reset(); }

  /// Persists one entry of `bytes` bytes.
  raft::ReadyId append(std::size_t bytes = 100) {
    raft::PersistBatch batch;
    batch.id = raft::ReadyId(++ready_);
    batch.entries.push_back(command_entry(++index_, 1, std::string(bytes, 'x')));
    log_->persist(batch);
    return batch.id;
  }
  /// Why the log has failed, if it has.
  std::string failure() {
    const auto failure = sink_.failure();
    return failure ? failure->message : "";
  }
  bool append_durably(std::size_t bytes = 100) { return sink_.wait_persisted(append(bytes)); }
  raft::ReadyId cut(std::uint64_t index) {
    raft::PersistBatch batch;
    batch.id = raft::ReadyId(++ready_);
    batch.cut = raft::LogBase{{raft::Term(1), raft::Index(index)}, three_voters()};
    log_->persist(batch);
    return batch.id;
  }
  /// Appends until the log fails; false: it did not.
  bool append_until_it_fails(std::size_t bytes = 100) {
    for (int i = 0; i < 10000 && !sink_.failure(); ++i) append(bytes);
    return sink_.wait_failed();
  }
  /// Waits until the segments up to `number` have been made, and the mark names them.
  bool wait_made(std::uint64_t number) {
    return wait([&] {
      return decode_mark(history_->now().at(std::string(kMarkName))).value().last_segment >= number;
    });
  }
  bool wait_removed(std::uint64_t number) {
    return wait([&] { return history_->now().count(segment_name(number)) == 0; });
  }
  template <class Condition>
  static bool wait(Condition condition, std::chrono::steady_clock::duration patience = kPatience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

 private:
  std::shared_ptr<DiskHistory> history_;
  SegmentLog::Options options_;
  RecordingSink sink_;
  std::unique_ptr<SegmentLog> log_;
  raft::InitialState state_;
  std::uint64_t ready_ = 0;
  std::uint64_t index_ = 0;
};

/// What the files of a log's folder take.
std::uint64_t used(const DiskHistory& disk) {
  std::uint64_t bytes = 0;
  for (const auto& file : disk.now()) bytes += file.second.size();
  return bytes;
}

TEST(SegmentSpace, AFullDiskIsReportedBeforeTheReserveIsTouched) {
  Rig rig(Rig::options());
  rig.start();
  ASSERT_TRUE(rig.wait_made(3));
  rig.disk().fill_up(true);
  // Segment 1 is being written, 2 and 3 are there: there is no need for another one yet.
  EXPECT_FALSE(rig.sink().full());
  while (newest_written(rig.disk()) < 2) ASSERT_TRUE(rig.append_durably());
  ASSERT_TRUE(rig.sink().wait_space(true));
  EXPECT_EQ(newest_written(rig.disk()), 2U) << "the reserve is untouched";
  // The segments made ahead can still be used: most of two segments of 16 KiB.
  const std::uint64_t said_at = rig.index();
  ASSERT_TRUE(rig.append_until_it_fails());
  EXPECT_EQ(newest_written(rig.disk()), 3U);
  EXPECT_EQ(rig.sink().failure()->code, ErrorCode::io);
  EXPECT_NE(rig.sink().failure()->message.find("the disk is full, and the space that was set aside "
                                               "is used up: free some space on it"),
            std::string::npos)
      << rig.sink().failure()->message;
  EXPECT_GE(rig.sink().persisted_ids().back().value(), said_at + 80);
  EXPECT_TRUE(rig.sink().full());
  const std::uint64_t acknowledged = rig.sink().persisted_ids().back().value();
  rig.close();

  // It starts again on the full disk, says so, and has what was acknowledged.
  Rig again(Rig::options(), rig.history());
  EXPECT_GE(again.state().last_index.value(), acknowledged);
  again.start();
  ASSERT_TRUE(again.sink().wait_space(true));
  again.disk().fill_up(false);
  ASSERT_TRUE(again.sink().wait_space(false));
  ASSERT_TRUE(again.append_durably());
}

// The thread that makes segments hangs in the middle of it, and no other thread knows yet that
// there is no space: the writer waits for the result, however long that takes.
TEST(SegmentSpace, TheReserveIsNotTouchedWhileASegmentIsMade) {
  Rig rig(Rig::options());
  rig.start();
  ASSERT_TRUE(rig.wait_made(3));
  rig.disk().hold_creation(true);
  rig.disk().fill_up(true);
  const auto durable = [&](raft::ReadyId id) {
    const auto ids = rig.sink().persisted_ids();
    return !ids.empty() && ids.back() == id;
  };
  // The first two segments have room for some 30 of these, and the third is the reserve.
  for (int i = 0; i < 60; ++i) {
    const raft::ReadyId id = rig.append(700);
    if (!Rig::wait([&] { return durable(id); }, std::chrono::milliseconds(500))) break;
  }
  EXPECT_LE(newest_written(rig.disk()), 2U);
  EXPECT_FALSE(rig.sink().full());
  rig.disk().hold_creation(false);
  ASSERT_TRUE(rig.sink().wait_space(true));
  EXPECT_TRUE(Rig::wait([&] { return newest_written(rig.disk()) == 3; }));
}

// The writer may be faster than the thread that makes segments: it waits for the result.
TEST(SegmentSpace, AFastWriterDoesNotTouchTheReserveBeforeTheReport) {
  for (int round = 0; round < 20; ++round) {
    Rig rig(Rig::options());
    rig.disk().set_capacity(used(rig.disk()) + 2 * 16384);  // one more, or two
    rig.start();
    for (int i = 0; i < 10000 && !rig.sink().failure(); ++i) {
      rig.append(700);
      if (newest_written(rig.disk()) == 3) {
        EXPECT_TRUE(rig.sink().full());
        break;
      }
    }
    ASSERT_TRUE(rig.sink().wait_space(true));
    ASSERT_TRUE(rig.append_until_it_fails());
  }
}

TEST(SegmentSpace, SpaceIsReportedWhenTheReserveIsWholeAgain) {
  Rig rig(Rig::options());
  rig.disk().fill_up(true);
  rig.start();
  ASSERT_TRUE(rig.sink().wait_space(true));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(rig.append_durably());
  // Room for one segment is not enough: behind the one that is next there has to be another.
  rig.disk().set_capacity(used(rig.disk()) + 16384 + kMarkBytes);
  ASSERT_TRUE(rig.wait_made(2));
  const auto asked = rig.disk().creations_asked();
  ASSERT_TRUE(rig.wait([&] { return rig.disk().creations_asked() >= asked + 3; }));
  EXPECT_EQ(rig.sink().spaces(), 0) << "nor does it hear so for a moment";
  EXPECT_TRUE(rig.sink().full());
  rig.disk().fill_up(false);
  ASSERT_TRUE(rig.sink().wait_space(false));
  EXPECT_GT(rig.disk().now().count(segment_name(3)), 0U)
      << "the file is there when the sink hears of it";
  for (int i = 0; i < 400; ++i) rig.append();
  ASSERT_TRUE(rig.append_durably());
  EXPECT_FALSE(rig.sink().full());
}

TEST(SegmentSpace, WhatHasToStayFreeCountsAsFull) {
  const std::uint64_t minimum = 100000;
  Rig rig(Rig::options(minimum));
  const std::uint64_t capacity = used(rig.disk()) + minimum + 3 * 16384;
  rig.disk().set_capacity(capacity);
  rig.start();
  ASSERT_TRUE(rig.wait_made(3));
  while (!rig.sink().full()) ASSERT_TRUE(rig.append_durably());
  ASSERT_TRUE(rig.append_until_it_fails(200));
  EXPECT_LE(used(rig.disk()) + minimum, capacity);
  EXPECT_GT(used(rig.disk()) + minimum + 16384, capacity);
  rig.close();
  Rig again(Rig::options(), rig.history());  // 0: the log takes all there is
  again.start();
  for (int i = 0; i < 100; ++i) again.append();
  ASSERT_TRUE(again.append_durably());
}

TEST(SegmentSpace, WhatOthersUseUpIsNoticedWhileNothingHasToBeMade) {
  const std::uint64_t minimum = 100000;
  auto options = Rig::options(minimum);
  options.space_look = std::chrono::milliseconds(1);
  Rig rig(options);
  rig.start();
  ASSERT_TRUE(rig.wait_made(3));
  EXPECT_FALSE(rig.sink().full());
  for (int turn = 0; turn < 3; ++turn) {
    rig.disk().set_capacity(used(rig.disk()) + minimum - 1);
    ASSERT_TRUE(rig.sink().wait_space(true)) << "turn " << turn;
    ASSERT_TRUE(rig.append_durably()) << "there is room for what is under way";
    rig.disk().set_capacity(used(rig.disk()) + minimum + options.segment_bytes);
    ASSERT_TRUE(rig.sink().wait_space(false)) << "turn " << turn;
  }
}

TEST(SegmentSpace, ACutGivesSpaceBackWhileTheDiskIsFull) {
  Rig rig(Rig::options());
  rig.start();
  // Nothing more can be made, not even another mark.
  rig.disk().set_capacity(used(rig.disk()) + 4 * 16384);
  for (int turn = 0; turn < 12; ++turn) {
    while (!rig.sink().full()) ASSERT_TRUE(rig.append_durably(500));
    rig.disk().set_capacity(used(rig.disk()));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(rig.append_durably(500));
    const std::uint64_t front = std::stoull(rig.disk().now().begin()->first);
    ASSERT_TRUE(rig.sink().wait_persisted(rig.cut(rig.index() - 3)));
    ASSERT_TRUE(rig.wait_removed(front));
    ASSERT_TRUE(rig.sink().wait_space(false)) << "turn " << turn;
  }
  const Image left = rig.disk().now();
  EXPECT_LE(left.size(), 6U);
  rig.close();
  Rig again(Rig::options(), rig.history());
  EXPECT_EQ(again.state().last_index.value(), rig.index());
  EXPECT_EQ(again.state().base.index.value(), rig.index() - 3);
}

// Space for one segment came back. That is not a whole reserve, so the disk still counts as full,
// but the waiting batches fit.
TEST(SegmentSpace, WhatIsMadeAtTheLastMomentIsUsed) {
  auto options = Rig::options();
  options.space_retry = std::chrono::hours(1);  // the writer's need alone is a reason to try
  Rig rig(options);
  rig.disk().fill_up(true);
  rig.start();
  ASSERT_TRUE(rig.sink().wait_space(true));
  rig.disk().set_capacity(used(rig.disk()) + 16384);
  while (newest_written(rig.disk()) < 2) ASSERT_TRUE(rig.append_durably(700)) << rig.failure();
  EXPECT_TRUE(rig.sink().full());
  EXPECT_EQ(rig.sink().spaces(), 0);
}

// What waits is one group, and the group that a free disk would take does not fit any more.
TEST(SegmentSpace, WhatWaitsIsDividedIntoWhatStillFits) {
  Rig rig(Rig::options());
  rig.start();
  ASSERT_TRUE(rig.wait_made(3));
  rig.disk().fill_up(true);
  // Most of segment 2 is left in addition to the reserve.
  while (newest_written(rig.disk()) < 2) ASSERT_TRUE(rig.append_durably());
  ASSERT_TRUE(rig.sink().wait_space(true));
  raft::ReadyId last;
  for (int i = 0; i < 20; ++i) last = rig.append(1000);  // together more than a segment
  ASSERT_TRUE(rig.sink().wait_persisted(last)) << rig.failure();
}

// The group was made before the log knew that the disk is full, and a disk with space would have
// taken it.
TEST(SegmentSpace, AGroupThatFindsTheDiskFullIsDivided) {
  Rig rig(Rig::options());
  rig.start();
  ASSERT_TRUE(rig.wait_made(3));
  const std::uint64_t synced = rig.disk().syncs_asked();
  rig.disk().hold_syncs(true);
  rig.append();
  ASSERT_TRUE(rig.wait([&] { return rig.disk().syncs_asked() > synced; }));
  raft::ReadyId last;
  for (int i = 0; i < 20; ++i) last = rig.append(1000);  // together more than a segment
  rig.disk().fill_up(true);
  rig.disk().hold_syncs(false);
  ASSERT_TRUE(rig.sink().wait_persisted(last)) << rig.failure();
  EXPECT_TRUE(rig.sink().full());
  rig.close();
  rig.disk().fill_up(false);
  Rig again(Rig::options(), rig.history());
  EXPECT_EQ(again.state().last_index.value(), rig.index());
}

// A batch that fits into no segment made ahead ends the log; before that the log tries once more to
// make the file that it needs.
TEST(SegmentSpace, ABatchThatIsTooLargeForTheReserveEndsTheLog) {
  Rig rig(Rig::options());
  rig.start();
  ASSERT_TRUE(rig.wait_made(3));
  rig.disk().fill_up(true);
  while (!rig.sink().full()) ASSERT_TRUE(rig.append_durably());
  rig.append(100000);
  ASSERT_TRUE(rig.sink().wait_failed());
  EXPECT_EQ(rig.sink().failure()->code, ErrorCode::io);
}

TEST(SegmentSpace, ALargeBatchGetsALargeFile) {
  Rig rig(Rig::options());
  rig.start();
  for (const std::size_t bytes : {100U, 100000U, 100U, 20000U, 300000U, 5U}) {
    ASSERT_TRUE(rig.append_durably(bytes));
  }
  const auto last = rig.index();
  rig.close();
  EXPECT_EQ(Rig(Rig::options(), rig.history()).state().last_index.value(), last);
}

// Disks that fail.

// Only one sync fails: the next one would succeed, but prove nothing.
TEST(SegmentDisk, AFailedSyncIsTheLastOne) {
  Rig rig;
  rig.start();
  ASSERT_TRUE(rig.wait_made(3));
  ASSERT_TRUE(rig.append_durably());
  rig.disk().break_syncs(1);
  rig.append();
  ASSERT_TRUE(rig.sink().wait_failed());
  EXPECT_EQ(rig.sink().failure()->code, ErrorCode::io);
  EXPECT_NE(rig.sink().failure()->message.find("cannot sync"), std::string::npos);
  EXPECT_NE(rig.sink().failure()->message.find("check the disk"), std::string::npos);
  const auto before = rig.disk().events().size();
  const auto syncs = rig.disk().syncs_asked();
  rig.append();
  rig.close();
  EXPECT_EQ(rig.sink().persisted_ids().size(), 1U);
  EXPECT_EQ(rig.disk().events().size(), before) << "nothing is written any more";
  EXPECT_EQ(rig.disk().syncs_asked(), syncs) << "nothing is synced any more";
  const auto mark = decode_mark(rig.disk().now().at(std::string(kMarkName)));
  ASSERT_TRUE(mark) << mark.error().message;
  EXPECT_FALSE(mark.value().closed) << "the log did not end well";
}

TEST(SegmentDisk, ASegmentThatCannotBeMadeEndsTheLogAtOnce) {
  Rig rig;
  rig.disk().break_creation();
  rig.start();
  ASSERT_TRUE(rig.sink().wait_failed());
  EXPECT_EQ(rig.sink().failure()->code, ErrorCode::io);
  EXPECT_FALSE(rig.sink().full());
  const auto asked = rig.disk().creations_asked();
  rig.append();
  rig.close();
  EXPECT_EQ(rig.disk().creations_asked(), asked) << "it is not tried again";
  EXPECT_TRUE(rig.sink().persisted_ids().empty());
}

TEST(SegmentDisk, AFileThatCannotBeRemovedEndsTheLog) {
  Rig rig(Rig::options());
  rig.start();
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(rig.append_durably(300));
  rig.disk().break_removal();
  rig.cut(rig.index());
  ASSERT_TRUE(rig.sink().wait_failed());
  EXPECT_EQ(rig.sink().failure()->code, ErrorCode::io);
  rig.close();
  rig.disk().break_removal(false);
  Rig again(Rig::options(), rig.history());
  EXPECT_EQ(again.state().base.index.value(), rig.index());
  EXPECT_EQ(again.disk().now().count(segment_name(1)), 0U) << "what was left is removed";
}

}  // namespace
}  // namespace leasehold::storage::testing
