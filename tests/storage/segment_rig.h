// A log on a disk in memory, with a life that one seed determines, and a check of what a crash or
// damage has left.
#pragma once

#include <leasehold/storage/folder.h>
#include <leasehold/storage/segment_load.h>
#include <leasehold/storage/segment_log.h>
#include <leasehold/tests/storage/crash_disk.h>
#include <leasehold/tests/storage/log_support.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace leasehold::storage::testing {

/// Which batches a log is given, and where it begins.
struct Story {
  std::uint64_t seed = 71;
  Cuts cuts = Cuts::none;
  raft::LogId base{};
};
inline constexpr Story kPlain{};

inline SegmentLog::Options small_options() {
  SegmentLog::Options options;
  options.cluster_id = 77;
  options.id = raft::NodeId(1);
  options.first_segment_bytes = 4096;
  options.segment_bytes = 16384;
  return options;
}

/// Notes in the history of the disk what was acknowledged: 1 the confirmed set, 2 the formation,
/// and 2 + N batch N.
inline constexpr std::uint64_t kConfirmed = 1;
inline constexpr std::uint64_t kFormed = 2;

class NotingSink final : public StorageSink {
 public:
  explicit NotingSink(std::shared_ptr<DiskHistory> history) : history_(std::move(history)) {}
  void persisted(raft::ReadyId id) override {
    history_->note(kFormed + id.value());
    inner_.persisted(id);
  }
  void entries_read(std::uint64_t token, Result<std::vector<raft::Entry>> entries) override {
    inner_.entries_read(token, std::move(entries));
  }
  void space(bool full) override { inner_.space(full); }
  void failed(Error error) override { inner_.failed(std::move(error)); }
  RecordingSink& inner() { return inner_; }

 private:
  std::shared_ptr<DiskHistory> history_;
  RecordingSink inner_;
};

inline Result<std::unique_ptr<SegmentLog>> open_on(
    const std::shared_ptr<DiskHistory>& history,
    const SegmentLog::Options& options = small_options()) {
  return SegmentLog::open(options, std::make_unique<CrashDisk>(history));
}

/// The number of the newest segment that holds frames.
inline std::uint64_t newest_written(const DiskHistory& disk) {
  std::uint64_t number = 0;
  for (const auto& file : disk.now()) {
    if (file.first != kMarkName && file.second.find_last_not_of('\0') >= kFramesBegin) {
      number = std::max<std::uint64_t>(number, std::stoull(file.first));
    }
  }
  return number;
}

/// The first `count` batches of the sequence, in one model.
inline Model model_after(std::uint64_t count, raft::Uuid uuid, const Story& story = kPlain) {
  Sequence sequence(story.seed, story.cuts, story.base);
  while (sequence.number() < count) sequence.next();
  Model model = sequence.model();
  if (model.base.id == story.base) model.base.membership = three_voters(uuid);
  return model;
}

/// Writes the batches of the sequence behind `done`, up to `until`.
inline void write(SegmentLog& log, NotingSink& sink, std::uint64_t done, std::uint64_t until,
                  Random& random, const Story& story = kPlain) {
  Sequence sequence(story.seed, story.cuts, story.base);
  while (sequence.number() < done) sequence.next();
  while (sequence.number() < until) {
    log.persist(sequence.next());
    if (random.chance(1, 2)) sink.inner().wait_persisted(raft::ReadyId(sequence.number()));
  }
  EXPECT_TRUE(sink.inner().wait_persisted(raft::ReadyId(until)));
}

/// A life of a log from its beginning; `close` ends it in a tidy way. Returns the history, which
/// without a close ends when the writer rests.
inline std::shared_ptr<DiskHistory> live(std::uint64_t batches, std::uint64_t seed,
                                         Image* at_the_end = nullptr, const Story& story = kPlain) {
  Random random(seed);
  const auto history = std::make_shared<DiskHistory>();
  NotingSink sink(history);
  auto log = std::move(open_on(history)).value();
  EXPECT_TRUE(log->confirm_set(three_voters(log->identity().uuid).members));
  history->note(kConfirmed);
  EXPECT_TRUE(log->form(story.base));
  history->note(kFormed);
  static_cast<void>(log->take_initial_state());
  log->start(sink);
  write(*log, sink, 0, batches, random, story);
  if (at_the_end != nullptr) {
    // The mark of the rest comes right behind the last completion.
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    const auto rested = [&] {
      const auto events = history->events();
      for (auto at = events.rbegin(); at != events.rend(); ++at) {
        if (at->kind == DiskEvent::Kind::note) return false;
        if (at->kind == DiskEvent::Kind::write) return at->bytes.size() == kFrameHeaderBytes;
      }
      return false;
    };
    while (!rested() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(rested());
    *at_the_end = history->now();
  }
  log.reset();
  return history;
}

enum class Outcome { refused, opened };

/// Opens what is left, and proves that it is the model after `reached` batches, at least those that
/// were acknowledged. The caller decides whether a refusal is right.
inline Outcome examine(const std::shared_ptr<DiskHistory>& history, std::uint64_t acknowledged,
                       std::uint64_t batches, std::uint64_t& reached, const Story& story = kPlain) {
  auto opened = open_on(history);
  if (!opened) return Outcome::refused;
  SegmentLog& log = *opened.value();
  reached = 0;
  EXPECT_TRUE(acknowledged < kConfirmed || !log.confirmed_set().empty());
  EXPECT_TRUE(acknowledged < kFormed || log.formed());
  if (!log.formed()) return Outcome::opened;
  const auto state = log.take_initial_state();
  reached = state.hard_state.term.value() - story.base.term.value();
  EXPECT_GE(reached + kFormed, acknowledged);
  EXPECT_LE(reached, batches);
  const Model model = model_after(reached, log.identity().uuid, story);
  expect_initial_state(state, model);
  RecordingSink sink;
  log.start(sink);
  if (!model.entries.empty()) {
    log.read({1, model.base.id.index.next(), model.last().index, std::size_t{1} << 40U});
    EXPECT_TRUE(sink.wait_read(1));
    const auto entries = sink.take_read(1);
    EXPECT_TRUE(entries && entries.value() == model.entries);
  }
  opened.value().reset();
  return Outcome::opened;
}

}  // namespace leasehold::storage::testing
