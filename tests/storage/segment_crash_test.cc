// What a log has after a crash or after damage: everything that was acknowledged and nothing that
// was invented; or it is refused.
#include <leasehold/storage/segment_load.h>
#include <leasehold/tests/storage/crash_points.h>
#include <leasehold/tests/storage/segment_rig.h>

#include <algorithm>
#include <iterator>

namespace leasehold::storage::testing {
namespace {

// Crashes.

/// A crash at every point of lives that `story` tells, and another while the log opens.
void expect_every_crash_survived(const Story& story) {
  constexpr std::uint64_t kBatches = 60;
  constexpr std::size_t kStatesOfAPoint = 64;
  std::size_t states = 0;
  std::size_t nested = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Random random(seed);
    const auto history = live(kBatches, seed, nullptr, story);
    CrashPoints points(history->before(), history->events());
    points.visit(random, 0, kStatesOfAPoint, [&](const Image& image, std::uint64_t note) {
      if (::testing::Test::HasFailure()) return;
      ++states;
      const auto left = std::make_shared<DiskHistory>(image);
      std::uint64_t reached = 0;
      ASSERT_EQ(examine(left, note, kBatches, reached, story), Outcome::opened)
          << open_on(std::make_shared<DiskHistory>(image)).error().message;
      // An opened log may have answered others: a later crash must not lose any of it, at any
      // point. While the log opens, what was acknowledged before still counts.
      if (!random.chance(1, 40)) return;
      auto again = std::make_shared<DiskHistory>(image);
      {
        auto opened = open_on(again);
        ASSERT_TRUE(opened);
        if (opened.value()->formed()) again->note(kFormed + reached);
      }
      CrashPoints(again->before(), again->events())
          .visit(random, note, 8, [&](const Image& second, std::uint64_t second_note) {
            ++nested;
            std::uint64_t found = 0;
            ASSERT_EQ(
                examine(std::make_shared<DiskHistory>(second), second_note, kBatches, found, story),
                Outcome::opened);
          });
    });
    ASSERT_FALSE(::testing::Test::HasFailure());
  }
  ::testing::Test::RecordProperty("states", static_cast<int>(states));
  ::testing::Test::RecordProperty("nested", static_cast<int>(nested));
  EXPECT_GT(states, 3000U);
  EXPECT_GT(nested, 200U);
}

TEST(SegmentCrash, EveryStateThatACrashCanLeaveOpensWithWhatWasAcknowledged) {
  expect_every_crash_survived(kPlain);
}

TEST(SegmentCrash, ALogThatBeginsBehindABackupOpensWithWhatWasAcknowledged) {
  expect_every_crash_survived({72, Cuts::some, {raft::Term(1), raft::Index(500)}});
}

// A process that is killed leaves writes in the kernel's memory, and if their sync had failed the
// kernel takes them for stored. A log that was opened with them does not lose them later.
TEST(SegmentCrash, WhatWasReadFromMemoryIsOnTheDiskWhenTheLogIsOpen) {
  constexpr std::uint64_t kBatches = 40;
  Random random(9);
  const auto history = live(kBatches, 9);
  CrashPoints points(history->before(), history->events());
  int different = 0;
  points.visit(random, 0, 1, [&](const Image& durable, std::uint64_t note) {
    if (::testing::Test::HasFailure() || durable != points.durable()) return;
    const Image cached = points.cached();
    if (cached == durable) return;
    ++different;
    const auto again = std::make_shared<DiskHistory>(durable, cached);
    std::uint64_t reached = 0;
    {
      std::uint64_t known = 0;
      ASSERT_EQ(examine(std::make_shared<DiskHistory>(cached), note, kBatches, reached),
                Outcome::opened);
      auto opened = open_on(again);
      ASSERT_TRUE(opened);
      known = opened.value()->formed() ? kFormed + reached
                                       : (opened.value()->confirmed_set().empty() ? 0 : kConfirmed);
      again->note(known);
    }
    CrashPoints(durable, again->events())
        .visit(random, note, 8, [&](const Image& left, std::uint64_t left_note) {
          std::uint64_t found = 0;
          ASSERT_EQ(examine(std::make_shared<DiskHistory>(left), left_note, kBatches, found),
                    Outcome::opened);
        });
  });
  EXPECT_GT(different, 20);
}

// A life goes on behind a torn write, and the next crash does not confuse the two.
TEST(SegmentCrash, LivesFollowOneAnother) {
  Random random(5);
  for (int round = 0; round < 20; ++round) {
    auto history = std::make_shared<DiskHistory>();
    std::uint64_t acknowledged = 0;
    for (int life = 0; life < 8; ++life) {
      std::uint64_t reached = 0;
      {
        NotingSink sink(history);
        auto opened = open_on(history);
        ASSERT_TRUE(opened) << opened.error().message;
        SegmentLog& log = *opened.value();
        ASSERT_TRUE(log.confirm_set(three_voters(log.identity().uuid).members));
        ASSERT_TRUE(log.form());
        const auto state = log.take_initial_state();
        reached = state.hard_state.term.value();
        ASSERT_GE(reached + kFormed, acknowledged);
        expect_initial_state(state, model_after(reached, log.identity().uuid));
        history->note(kFormed + reached);
        log.start(sink);
        write(log, sink, reached, reached + 1 + random.below(15), random);
        opened.value().reset();
      }
      // One of the states that a crash during this life could leave.
      std::vector<std::pair<Image, std::uint64_t>> states;
      CrashPoints(history->before(), history->events())
          .visit(random, acknowledged, 4,
                 [&](const Image& image, std::uint64_t note) { states.emplace_back(image, note); });
      const auto& chosen = states[states.size() / 2 + random.below(states.size() / 2)];
      history = std::make_shared<DiskHistory>(chosen.first);
      acknowledged = chosen.second;
    }
  }
}

// Damage.

constexpr std::uint64_t kDamagedBatches = 24;

struct Tally {
  int refused = 0;
  int harmless = 0;
};

/// Opens a damaged image: refused, or exactly what was acknowledged, which is everything.
void expect_refused_or_harmless(const Image& image, Tally& tally, const std::string& what) {
  std::uint64_t reached = 0;
  const auto outcome = examine(std::make_shared<DiskHistory>(image), kFormed + kDamagedBatches,
                               kDamagedBatches, reached);
  ++(outcome == Outcome::refused ? tally.refused : tally.harmless);
  ASSERT_FALSE(::testing::Test::HasFailure()) << what;
}

/// The two states of a log on an unused disk.
std::vector<std::pair<std::string, Image>> finished_logs() {
  Image crashed;
  const auto history = live(kDamagedBatches, 3, &crashed);
  return {{"crashed", crashed}, {"closed", history->now()}};
}

TEST(SegmentDamage, EveryByteFlippedOrZeroed) {
  Random random(6);
  for (const auto& log : finished_logs()) {
    Tally tally;
    for (const auto& file : log.second) {
      for (std::size_t at = 0; at < file.second.size(); ++at) {
        // The empty end of a file is as good as any other of its bytes.
        if (file.second[at] == 0 && !random.chance(1, 8)) continue;
        Image image = log.second;
        char& byte = image[file.first][at];
        const std::string where = log.first + " " + file.first + " byte " + std::to_string(at);
        byte = static_cast<char>(byte ^ (1U << random.below(8)));
        expect_refused_or_harmless(image, tally, where + " flipped");
        if (file.second[at] == 0) continue;
        byte = 0;
        expect_refused_or_harmless(image, tally, where + " zeroed");
      }
    }
    RecordProperty(log.first + "_refused", tally.refused);
    RecordProperty(log.first + "_harmless", tally.harmless);
    EXPECT_GT(tally.refused, 5000);
  }
}

TEST(SegmentDamage, EverySectorZeroedOrOverwritten) {
  Random random(7);
  for (const auto& log : finished_logs()) {
    Tally tally;
    for (const auto& file : log.second) {
      for (std::size_t at = 0; at < file.second.size(); at += kSectorBytes) {
        for (const bool zero : {true, false}) {
          Image image = log.second;
          std::string& bytes = image[file.first];
          const std::size_t end = std::min<std::size_t>(at + kSectorBytes, bytes.size());
          for (std::size_t i = at; i < end; ++i) {
            bytes[i] = zero ? '\0' : static_cast<char>(random.below(256));
          }
          expect_refused_or_harmless(image, tally,
                                     log.first + " " + file.first + " sector at " +
                                         std::to_string(at) + (zero ? " zeroed" : " overwritten"));
        }
      }
    }
    EXPECT_GT(tally.refused, 40);
  }
}

/// Zeroes everything behind the last but `frames` frames of a segment.
void forget(std::string& segment, std::size_t frames) {
  std::vector<std::size_t> at;
  for (std::size_t i = kFramesBegin; i < segment.size(); i += kFrameAlignment) {
    const auto header = decode_header(std::string_view(segment).substr(i)).header;
    if (header && header->kind != FrameKind::mark) at.push_back(i);
  }
  ASSERT_GE(at.size(), frames);
  const std::size_t from = at[at.size() - frames];
  segment.replace(from, segment.size() - from, segment.size() - from, '\0');
}

// A loss without a trace in its own segment, and without an entry whose gap would show: what
// follows, and the mark of a clean close, show it.
TEST(SegmentDamage, AVoteThatVanishedIsMissed) {
  const auto history = std::make_shared<DiskHistory>();
  RecordingSink sink;
  {
    auto log = std::move(open_on(history)).value();
    ASSERT_TRUE(log->confirm_set(three_voters(log->identity().uuid).members));
    ASSERT_TRUE(log->form());
    static_cast<void>(log->take_initial_state());
    log->start(sink);
    for (std::uint64_t term = 1; term <= 40; ++term) {
      raft::HardState hard;
      hard.term = raft::Term(term);
      hard.voted_for = raft::NodeId(2);
      raft::PersistBatch batch;
      batch.id = raft::ReadyId(term);
      batch.hard_state = hard;
      log->persist(batch);
      ASSERT_TRUE(sink.wait_persisted(raft::ReadyId(term)));
    }
  }
  const Image closed = history->now();
  ASSERT_TRUE(open_on(std::make_shared<DiskHistory>(closed)));
  const auto expect_refusal = [](const Image& image, const std::string& part) {
    const auto opened = open_on(std::make_shared<DiskHistory>(image));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::corrupted);
    EXPECT_NE(opened.error().message.find(part), std::string::npos) << opened.error().message;
  };
  std::string newest;
  for (const auto& file : closed) {
    if (file.first == kMarkName || file.second.find_last_not_of('\0') < kFramesBegin) continue;
    newest = file.first;
  }
  ASSERT_NE(newest, segment_name(1));
  Image image = closed;
  forget(image[segment_name(1)], 1);
  expect_refusal(image, "has to be");
  image = closed;
  forget(image[newest], 1);
  expect_refusal(image, "the log was closed behind frame");
  // Nothing is torn in a log that was closed.
  image = closed;
  image[newest][image[newest].size() - 1] = 'x';
  expect_refusal(image, "a torn frame where none can be");
  // The right frame with the salt of another segment.
  image = closed;
  std::string& bytes = image[segment_name(1)];
  FrameHeader header = *decode_header(std::string_view(bytes).substr(kFramesBegin)).header;
  header.salt ^= 1;
  const std::string body = bytes.substr(kFramesBegin + kFrameHeaderBytes, header.body_bytes);
  const std::string frame = encode_frame(header, body);
  bytes.replace(kFramesBegin, frame.size(), frame);
  expect_refusal(image, segment_name(1));
}

// What the mark of an idle log is for: without it, a lost sector at the very end looks like a write
// that was never made. Only the last frame can be lost in this way.
TEST(SegmentDamage, WithoutTheMarkOnlyTheLastFrameIsInDoubt) {
  Image image;
  live(kDamagedBatches, 3, &image);
  std::string newest;
  for (const auto& file : image) {
    if (file.first != kMarkName && file.second.find_last_not_of('\0') > kFramesBegin) {
      newest = file.first;
    }
  }
  std::string& bytes = image[newest];
  const std::size_t mark = bytes.find_last_not_of('\0') / kSectorBytes * kSectorBytes;
  ASSERT_EQ(decode_header(std::string_view(bytes).substr(mark)).header->kind, FrameKind::mark);
  bytes.replace(mark, kFrameHeaderBytes, kFrameHeaderBytes, '\0');
  Tally tally;
  for (std::size_t at = 0; at < mark; ++at) {
    if (bytes[at] == 0) continue;
    Image damaged = image;
    damaged[newest][at] = 0;
    expect_refused_or_harmless(damaged, tally, "byte " + std::to_string(at));
  }
  std::size_t last_frame = 0;
  for (std::size_t at = kFramesBegin; at < mark; at += kFrameAlignment) {
    if (decode_header(std::string_view(bytes).substr(at)).header) last_frame = at;
  }
  int lost = 0;
  for (std::size_t at = 0; at < mark; at += kSectorBytes) {
    Image damaged = image;
    damaged[newest].replace(at, kSectorBytes, kSectorBytes, '\0');
    std::uint64_t reached = 0;
    const auto outcome =
        examine(std::make_shared<DiskHistory>(damaged), kFormed, kDamagedBatches, reached);
    if (outcome == Outcome::refused || reached == kDamagedBatches) continue;
    ++lost;
    EXPECT_GE(at + kSectorBytes, last_frame);
  }
  EXPECT_GE(lost, 1);
}

/// The next segment, if the thread that makes them had time to: without it the log is as good.
/// Without any other last segment a log is refused, as the test shows then.
void drop_unused_segment(Image& image) {
  Image without = image;
  without.erase(std::prev(without.lower_bound(std::string(kMarkName))));
  if (open_on(std::make_shared<DiskHistory>(without))) image = without;
}

TEST(SegmentDamage, FilesThatAreMissingCutLongerOrMovedAreRefused) {
  for (auto log : finished_logs()) {
    drop_unused_segment(log.second);
    std::vector<std::string> segments;
    for (const auto& file : log.second) {
      if (file.first != kMarkName) segments.push_back(file.first);
    }
    ASSERT_GE(segments.size(), 3U);
    const auto refused = [](const Image& image, const std::string& part) {
      const auto opened = open_on(std::make_shared<DiskHistory>(image));
      ASSERT_FALSE(opened) << part;
      EXPECT_EQ(opened.error().code, ErrorCode::corrupted);
      EXPECT_NE(opened.error().message.find(part), std::string::npos) << opened.error().message;
      EXPECT_NE(opened.error().message.find("wipe the node's data folder"), std::string::npos);
    };
    for (const std::string& name : segments) {
      Image image = log.second;
      image.erase(name);
      refused(image, name + " is missing");
      for (const std::size_t keep :
           {std::size_t{0}, std::size_t{100}, std::size_t{512}, log.second.at(name).size() - 512}) {
        image = log.second;
        image[name].resize(keep);
        refused(image, name);
      }
      image = log.second;
      image[name].resize(image[name].size() + 4096);
      refused(image, name);
      for (const std::string& other : segments) {
        if (other == name) continue;
        image = log.second;
        std::swap(image[name], image[other]);
        refused(image, "it belongs to another log or another place");
        image = log.second;
        image[name] = image[other];
        refused(image, "it belongs to another log or another place");
      }
    }
    Image image = log.second;
    image.erase(std::string(kMarkName));
    refused(image, "holds no file LEASEHOLD");
    image = log.second;
    image[segment_name(segments.size() + 1)] = image[segments.back()];
    refused(image, "another log or another place");
    image = log.second;
    image[segment_name(segments.size() + 2)] = image[segments.back()];
    refused(image, "does not belong to this log");
    image = log.second;
    image["CURRENT"] = "MANIFEST";
    refused(image, "CURRENT");
  }
}

// A segment of another life of the same node, and of another node with the same number.
TEST(SegmentDamage, StaleSegmentsAreRefused) {
  Image crashed;
  live(kDamagedBatches, 3, &crashed);
  Image other;
  live(kDamagedBatches, 4, &other);
  for (const auto& file : crashed) {
    if (file.first == kMarkName || other.count(file.first) == 0) continue;
    Image image = crashed;
    image[file.first] = other[file.first];
    EXPECT_FALSE(open_on(std::make_shared<DiskHistory>(image))) << file.first;
  }
  // An older state of a segment that others follow.
  Random random(8);
  const auto history = live(kDamagedBatches, 3);
  Image older;
  CrashPoints(history->before(), history->events())
      .visit(random, 0, 1, [&](const Image& image, std::uint64_t note) {
        if (note <= kFormed) older = image;
      });
  Image image = history->now();
  ASSERT_NE(image[segment_name(1)], older[segment_name(1)]);
  image[segment_name(1)] = older[segment_name(1)];
  EXPECT_FALSE(open_on(std::make_shared<DiskHistory>(image)));
}

// Damage that comes after the log was opened is found by the read that meets it.
TEST(SegmentDamage, FoundWhileReadingIsReportedAndNotServed) {
  const auto history = live(kDamagedBatches, 3);
  const Image good = history->now();
  for (const bool large : {false, true}) {
    Image image = good;
    const auto left = std::make_shared<DiskHistory>(image);
    auto opened = open_on(left);
    ASSERT_TRUE(opened);
    const std::size_t last = opened.value()->take_initial_state().last_index.value();
    RecordingSink sink;
    opened.value()->start(sink);
    CrashDisk disk(left);
    for (const auto& file : good) {
      if (file.first == kMarkName) continue;
      auto handle = disk.open(file.first);
      const std::size_t used = file.second.find_last_not_of('\0');
      for (std::size_t at = large ? kFramesBegin : used; at <= used; ++at) {
        const char bad = static_cast<char>(file.second[at] ^ 1);
        ASSERT_TRUE(handle.value()->write(at, std::string_view(&bad, 1)));
      }
    }
    opened.value()->read({1, raft::Index(1), raft::Index(last), std::size_t{1} << 40U});
    ASSERT_TRUE(sink.wait_read(1));
    const auto entries = sink.take_read(1);
    if (large) {
      ASSERT_FALSE(entries);
      EXPECT_EQ(entries.error().code, ErrorCode::corrupted);
      EXPECT_NE(entries.error().message.find(".seg"), std::string::npos);
    } else if (entries) {
      Sequence sequence(kPlain.seed, kPlain.cuts);
      while (sequence.number() < kDamagedBatches) sequence.next();
      EXPECT_EQ(entries.value(), sequence.model().entries);
    }
    opened.value().reset();
  }
}

}  // namespace
}  // namespace leasehold::storage::testing
