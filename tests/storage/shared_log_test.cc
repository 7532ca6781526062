// The logs of many groups in one folder.
#include <leasehold/storage/shared_log.h>
#include <leasehold/tests/storage/crash_points.h>
#include <leasehold/tests/storage/shared_rig.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>

namespace leasehold::storage::testing {
namespace {

using raft::GroupId;

TEST(SharedLog, KeepsTheLogOfEachGroup) {
  const auto history = std::make_shared<DiskHistory>();
  Random random(3);
  std::vector<Writer> writers;
  for (std::uint64_t i = 1; i <= 20; ++i) writers.emplace_back(GroupId(i), 100 + i, Cuts::many);
  for (int life = 0; life < 6; ++life) {
    auto opened = open_shared(history);
    ASSERT_TRUE(opened) << opened.error().message;
    SharedLog& log = *opened.value();
    EXPECT_EQ(log.groups().size(), life > 0 ? writers.size() : 0);
    for (Writer& writer : writers) writer.open(log);
    for (int turn = 0; turn < 40; ++turn)
      writers[random.below(writers.size())].write(1 + random.below(5));
    for (Writer& writer : writers) {
      writer.wait();
      writer.expect_entries();
      writer.close();
    }
    ASSERT_FALSE(::testing::Test::HasFailure()) << "life " << life;
  }
}

TEST(SharedLog, OneSyncServesAllGroupsThatWait) {
  const auto history = std::make_shared<DiskHistory>();
  auto log = std::move(open_shared(history)).value();
  std::vector<Writer> writers;
  for (std::uint64_t i = 1; i <= 30; ++i) writers.emplace_back(GroupId(i), i, Cuts::none);
  for (Writer& writer : writers) writer.open(*log);
  history->hold_syncs(true);
  const std::uint64_t before = log->syncs();
  for (Writer& writer : writers) writer.write(2);
  history->hold_syncs(false);
  for (Writer& writer : writers) writer.wait();
  // The first batch, and all that came meanwhile.
  EXPECT_LE(log->syncs() - before, 3U);
}

TEST(SharedLog, WhatIsHeldTakesOneSync) {
  const auto history = std::make_shared<DiskHistory>();
  auto log = std::move(open_shared(history)).value();
  std::vector<Writer> writers;
  for (std::uint64_t i = 1; i <= 30; ++i) writers.emplace_back(GroupId(i), i, Cuts::none);
  for (Writer& writer : writers) writer.open(*log);
  for (Writer& writer : writers) writer.wait();
  const std::uint64_t before = log->syncs();
  log->hold();
  for (Writer& writer : writers) writer.write(1);
  log->release();
  for (Writer& writer : writers) writer.wait();
  EXPECT_EQ(log->syncs() - before, 1U);
}

// The end of a replica is durable on return: it must not wait for the one who holds the log.
TEST(SharedLog, AGroupIsRemovedWhileTheLogIsHeld) {
  const auto history = std::make_shared<DiskHistory>();
  auto log = std::move(open_shared(history)).value();
  Writer writer(GroupId(1), 5, Cuts::none);
  writer.open(*log);
  writer.wait();
  writer.close();
  log->hold();
  EXPECT_TRUE(log->remove_group(GroupId(1), raft::NodeId(7)));
  log->release();
}

// Of a turn that takes long, the disk gets what there is.
TEST(SharedLog, ManyBatchesDoNotWaitForTheRelease) {
  const auto history = std::make_shared<DiskHistory>();
  auto log = std::move(open_shared(history)).value();
  Writer writer(GroupId(1), 5, Cuts::none);
  writer.open(*log);
  writer.wait();
  log->hold();
  writer.write(400);
  while (log->progress().second < 200) std::this_thread::yield();
  log->release();
  writer.wait();
}

// A disk that stalls under the writes of many groups must not end all of them.
TEST(SharedLog, IsBehindForAllGroupsWhileMoreThanHalfOfItsQueueWaits) {
  const auto history = std::make_shared<DiskHistory>();
  SegmentLogOptions options = small_options();
  options.queue_bytes_max = 100'000;
  auto log = std::move(open_shared(history, options)).value();
  Writer busy(GroupId(1), 5, Cuts::none);
  Writer quiet(GroupId(2), 6, Cuts::none);
  busy.open(*log);
  quiet.open(*log);
  EXPECT_FALSE(quiet.log().behind());
  history->hold_syncs(true);
  int batches = 0;
  for (; batches < 1000 && !quiet.log().behind(); ++batches) busy.write(1);
  EXPECT_GT(batches, 10);
  EXPECT_LT(batches, 100);
  EXPECT_TRUE(busy.log().behind());
  quiet.write(3);  // what has to be written still is
  history->hold_syncs(false);
  busy.wait();
  quiet.wait();
  EXPECT_FALSE(quiet.log().behind());
  EXPECT_FALSE(busy.sink().failure());
}

// Else the answer could reach the next replica of the group that is opened here.
TEST(SharedLog, AGroupThatClosesWaitsForTheAnswerToItsRead) {
  const auto history = std::make_shared<DiskHistory>();
  auto log = std::move(open_shared(history)).value();
  Writer writer(GroupId(1), 5, Cuts::none);
  writer.open(*log);
  writer.write(3);
  writer.wait();
  history->hold_reads(true);
  const std::uint64_t asked = history->reads_asked();
  writer.log().read({9, raft::Index(1), raft::Index(1), 1000});
  while (history->reads_asked() == asked) std::this_thread::yield();
  std::future<void> closed = std::async(std::launch::async, [&writer] { writer.close(); });
  EXPECT_EQ(closed.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  history->hold_reads(false);
  closed.wait();
  EXPECT_TRUE(writer.sink().wait_read(9));
}

TEST(SharedLog, WhatABusyGroupLeavesBehindGoesAlthoughAQuietOneStandsAmongIt) {
  const auto history = std::make_shared<DiskHistory>();
  Writer quiet(GroupId(1), 8, Cuts::none);
  Writer busy(GroupId(2), 9, Cuts::many);
  {
    auto log = std::move(open_shared(history)).value();
    quiet.open(*log);
    busy.open(*log);
    quiet.write(20);
    quiet.wait();
    std::size_t most = 0;
    for (int i = 0; i < 60; ++i) {
      busy.write(20);
      busy.wait();
      most = std::max(most, segments_of(*history));
    }
    // 1,200 batches of some 900 bytes fill 65 segments of 16 KiB.
    EXPECT_LT(most, 30U);
    quiet.expect_entries();
    busy.expect_entries();
    quiet.write(3);
    quiet.wait();
    quiet.expect_entries();
    quiet.close();
    busy.close();
  }
  auto log = std::move(open_shared(history)).value();
  quiet.open(*log);
  busy.open(*log);
  quiet.expect_entries();
  busy.expect_entries();
  quiet.close();
  busy.close();
  EXPECT_LT(segments_of(*history), 30U);
}

TEST(SharedLog, ARemovedGroupIsGoneAndMayBeMadeAnew) {
  const auto history = std::make_shared<DiskHistory>();
  Writer stays(GroupId(1), 5, Cuts::none);
  Writer goes(GroupId(2), 6, Cuts::none);
  {
    auto log = std::move(open_shared(history)).value();
    stays.open(*log);
    goes.open(*log);
    stays.write(10);
    goes.write(10);
    goes.wait();
    goes.close();
    EXPECT_FALSE(log->open_group(GroupId(2))) << "it was open in this process";
    ASSERT_TRUE(log->remove_group(GroupId(2), raft::NodeId(5)));
    Writer next(GroupId(2), 7, Cuts::none);
    next.open(*log);
    next.write(4);
    next.wait();
    next.close();
    ASSERT_TRUE(log->remove_group(GroupId(2), raft::NodeId(4)));
    ASSERT_TRUE(log->remove_group(GroupId(3), raft::NodeId(1))) << "there is none";
    stays.wait();
    stays.close();
  }
  auto log = std::move(open_shared(history)).value();
  EXPECT_EQ(log->groups(), std::vector<GroupId>{GroupId(1)});
  stays.open(*log);
  stays.expect_entries();
  stays.close();
  auto again = std::move(log->open_group(GroupId(2))).value();
  EXPECT_FALSE(again->formed());
}

TEST(SharedLog, RemembersWhatTheProcessHasPromised) {
  const auto history = std::make_shared<DiskHistory>();
  const std::vector<SupportRecord> two = {
      {raft::NodeId(2), {2, 2}, std::chrono::seconds(2)},
      {raft::NodeId(3), {3, 3}, std::chrono::seconds(1)},
  };
  {
    auto log = std::move(open_shared(history)).value();
    EXPECT_TRUE(log->supports().empty());
    std::atomic<std::uint64_t> done{0};
    log->set_process_sink([&done](std::uint64_t write) { done = write; });
    log->remember({two[0]}, 1);
    log->remember(two, 2);
    while (done != 2) std::this_thread::yield();
    log->set_process_sink({});
  }
  auto log = std::move(open_shared(history)).value();
  EXPECT_EQ(log->supports(), two);
}

TEST(SharedLog, RemembersTheNumbersThatWereRemoved) {
  const auto history = std::make_shared<DiskHistory>();
  const std::vector<SupportRecord> support = {{raft::NodeId(2), {2, 2}, std::chrono::seconds(2)}};
  {
    auto log = std::move(open_shared(history)).value();
    EXPECT_EQ(log->retired(GroupId(7)), raft::kNobody);
    log->remember(support, 1);
    ASSERT_TRUE(log->remove_group(GroupId(7), raft::NodeId(5)));
    ASSERT_TRUE(log->remove_group(GroupId(7), raft::NodeId(4)));
    ASSERT_TRUE(log->remove_group(GroupId(8), raft::NodeId(1)));
    EXPECT_EQ(log->retired(GroupId(7)), raft::NodeId(5)) << "the highest";
  }
  auto log = std::move(open_shared(history)).value();
  EXPECT_EQ(log->retired(GroupId(7)), raft::NodeId(5));
  EXPECT_EQ(log->retired(GroupId(8)), raft::NodeId(1));
  EXPECT_EQ(log->retired(GroupId(9)), raft::kNobody);
  EXPECT_EQ(log->supports(), support) << "the one record has both";
}

TEST(SharedLog, TakesOverTheLogOfOneGroup) {
  const auto history = std::make_shared<DiskHistory>();
  SegmentLogOptions options = small_options();
  options.group = GroupId(7);
  Sequence sequence(12);
  raft::Membership members;
  {
    auto log = std::move(open_on(history, options)).value();
    members = three_voters(log->identity().uuid);
    ASSERT_TRUE(log->confirm_set(members.members));
    ASSERT_TRUE(log->form());
    static_cast<void>(log->take_initial_state());
    RecordingSink sink;
    log->start(sink);
    while (sequence.number() < 50) log->persist(sequence.next());
    ASSERT_TRUE(sink.wait_persisted(raft::ReadyId(50)));
  }
  for (int life = 0; life < 2; ++life) {
    auto log = std::move(open_shared(history)).value();
    ASSERT_EQ(log->groups(), std::vector<GroupId>{GroupId(7)});
    auto group = std::move(log->open_group(GroupId(7))).value();
    Model model = sequence.model();
    if (model.base.id == raft::LogId{}) model.base.membership = members;
    expect_initial_state(group->take_initial_state(), model);
    RecordingSink sink;
    group->start(sink);
    group->persist(sequence.next());
    ASSERT_TRUE(sink.wait_persisted(raft::ReadyId(sequence.number())));
    group->read(
        {1, sequence.model().base.id.index.next(), sequence.model().last().index, 1U << 30U});
    ASSERT_TRUE(sink.wait_read(1));
    EXPECT_TRUE(sink.take_read(1).value() == sequence.model().entries);
    group.reset();
  }
  const auto refused = open_on(history, options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("the logs of many groups"), std::string::npos);
}

// ---- Crashes ----

constexpr std::size_t kGroups = 3;
/// What was acknowledged of each group, in one number.
constexpr std::uint64_t kPerGroup = 1U << 20U;

class Acknowledged {
 public:
  explicit Acknowledged(std::shared_ptr<DiskHistory> history) : history_(std::move(history)) {}
  void note(std::size_t group, std::uint64_t count) {
    const std::lock_guard lock(mutex_);
    counts_[group] = count;
    std::uint64_t packed = 0;
    for (const std::uint64_t each : counts_) packed = packed * kPerGroup + each;
    history_->note(packed);
  }

 private:
  std::shared_ptr<DiskHistory> history_;
  std::mutex mutex_;
  std::array<std::uint64_t, kGroups> counts_{};
};

class GroupSink final : public StorageSink {
 public:
  GroupSink(Acknowledged& acknowledged, std::size_t group)
      : acknowledged_(acknowledged), group_(group) {}
  void persisted(raft::ReadyId id) override {
    acknowledged_.note(group_, 1 + id.value());
    inner.persisted(id);
  }
  void entries_read(std::uint64_t, Result<std::vector<raft::Entry>>) override {}
  void space(bool) override {}
  void failed(Error error) override { inner.failed(std::move(error)); }
  RecordingSink inner;

 private:
  Acknowledged& acknowledged_;
  std::size_t group_;
};

/// The third group writes little, so that it is copied.
Sequence sequence_of(std::size_t group, std::uint64_t seed) {
  return Sequence(seed * 10 + group, group == 2 ? Cuts::none : Cuts::many);
}

std::shared_ptr<DiskHistory> live_together(std::uint64_t seed, std::uint64_t turns) {
  Random random(seed);
  const auto history = std::make_shared<DiskHistory>();
  Acknowledged acknowledged(history);
  auto log = std::move(open_shared(history)).value();
  std::vector<std::unique_ptr<GroupLog>> groups;
  std::vector<std::unique_ptr<GroupSink>> sinks;
  std::vector<Sequence> sequences;
  for (std::size_t i = 0; i < kGroups; ++i) {
    groups.push_back(std::move(log->open_group(GroupId(i + 1))).value());
    EXPECT_TRUE(groups.back()->confirm_set(three_voters(log->identity().uuid).members, {}));
    EXPECT_TRUE(groups.back()->form({}));
    acknowledged.note(i, 1);
    static_cast<void>(groups.back()->take_initial_state());
    sinks.push_back(std::make_unique<GroupSink>(acknowledged, i));
    groups.back()->start(*sinks.back());
    sequences.push_back(sequence_of(i, seed));
  }
  for (std::uint64_t turn = 0; turn < turns; ++turn) {
    const std::size_t group = random.chance(1, 15) ? 2 : random.below(2);
    groups[group]->persist(sequences[group].next());
    if (random.chance(1, 3)) {
      sinks[group]->inner.wait_persisted(raft::ReadyId(sequences[group].number()));
    }
  }
  groups.clear();
  return history;
}

/// Every group is there with what was acknowledged, and with nothing that it never wrote.
void expect_all_there(const Image& image, std::uint64_t note, std::uint64_t seed) {
  const auto left = std::make_shared<DiskHistory>(image);
  auto opened = open_shared(left);
  ASSERT_TRUE(opened) << opened.error().message;
  SharedLog& log = *opened.value();
  for (std::size_t i = kGroups; i-- > 0; note /= kPerGroup) {
    const std::uint64_t acknowledged = note % kPerGroup;
    auto group = std::move(log.open_group(GroupId(i + 1))).value();
    ASSERT_TRUE(group->formed() || acknowledged == 0) << "group " << i + 1;
    if (!group->formed()) continue;
    const raft::InitialState state = group->take_initial_state();
    const std::uint64_t reached = state.hard_state.term.value();
    ASSERT_GE(reached + 1, acknowledged) << "group " << i + 1;
    Sequence sequence = sequence_of(i, seed);
    while (sequence.number() < reached) sequence.next();
    Model model = sequence.model();
    if (model.base.id == raft::LogId{}) model.base.membership = three_voters(log.identity().uuid);
    expect_initial_state(state, model);
    RecordingSink sink;
    group->start(sink);
    if (!model.entries.empty()) {
      group->read({1, model.base.id.index.next(), model.last().index, std::size_t{1} << 40U});
      ASSERT_TRUE(sink.wait_read(1));
      const auto entries = sink.take_read(1);
      ASSERT_TRUE(entries && entries.value() == model.entries) << "group " << i + 1;
    }
    group.reset();
  }
}

TEST(SharedLogCrash, EveryStateThatACrashCanLeaveHasWhatWasAcknowledged) {
  std::size_t states = 0;
  std::size_t moved = 0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Random random(seed);
    const auto history = live_together(seed, 400);
    moved += segments_of(*history) < 20 ? 1 : 0;
    CrashPoints points(history->before(), history->events());
    points.visit(random, 0, 8, [&](const Image& image, std::uint64_t note) {
      if (::testing::Test::HasFailure() || !random.chance(1, 6)) return;
      ++states;
      expect_all_there(image, note, seed);
    });
    ASSERT_FALSE(::testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(states, 500U);
  EXPECT_EQ(moved, 3U) << "no front was moved";
}

// A host that finds the number among the removed ones removes nothing again.
TEST(SharedLogCrash, AReplicaAndItsNumberGoAtTheSameInstant) {
  const auto history = std::make_shared<DiskHistory>();
  SegmentLogOptions apart = small_options();
  apart.sync_bytes_max = 1;  // two batches are never one write
  {
    auto log = std::move(open_shared(history, apart)).value();
    Writer goes(GroupId(2), 9, Cuts::none);
    goes.open(*log);
    goes.write(3);
    goes.wait();
    goes.close();
    history->note(1);
    ASSERT_TRUE(log->remove_group(GroupId(2), raft::NodeId(4)));
    history->note(2);
  }
  std::array<std::size_t, 2> seen{};  // with the log, and without
  Random random(1);
  CrashPoints points(history->before(), history->events());
  points.visit(random, 0, 64, [&](const Image& image, std::uint64_t note) {
    if (note == 0 || ::testing::Test::HasFailure()) return;
    auto log = std::move(open_shared(std::make_shared<DiskHistory>(image))).value();
    const bool gone = log->groups().empty();
    EXPECT_EQ(log->retired(GroupId(2)), raft::NodeId(gone ? 4 : 0));
    EXPECT_TRUE(gone || note == 1);
    ++seen[gone ? 1 : 0];
  });
  EXPECT_GT(seen[0], 0U);
  EXPECT_GT(seen[1], 0U);
}

TEST(SharedLogCrash, DamageIsRefusedOrHarmless) {
  const auto history = live_together(4, 120);
  const Image whole = history->now();
  // All of it was acknowledged.
  Random random(4);
  int refused = 0;
  for (int i = 0; i < 400; ++i) {
    Image image = whole;
    auto file = std::next(image.begin(), static_cast<std::ptrdiff_t>(random.below(image.size())));
    if (file->second.empty()) continue;
    char& byte = file->second[random.below(file->second.size())];
    byte = static_cast<char>(byte ^ (1 << random.below(8)));
    if (!open_shared(std::make_shared<DiskHistory>(image))) {
      ++refused;
      continue;
    }
    const std::uint64_t note = history->events().empty() ? 0 : [&] {
      std::uint64_t newest = 0;
      for (const DiskEvent& event : history->events()) {
        if (event.kind == DiskEvent::Kind::note) newest = event.offset;
      }
      return newest;
    }();
    expect_all_there(image, note, 4);
    ASSERT_FALSE(::testing::Test::HasFailure()) << "file " << file->first;
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace leasehold::storage::testing
