// Crashes and damage around cuts and resets: what a crash leaves is the log before or after, and
// what damage leaves is one of these, or is refused.
#include <leasehold/storage/folder.h>
#include <leasehold/storage/segment_load.h>
#include <leasehold/tests/storage/crash_points.h>
#include <leasehold/tests/storage/segment_rig.h>

#include <algorithm>

namespace leasehold::storage::testing {
namespace {

constexpr Story stories[] = {
    {101, Cuts::some}, {102, Cuts::many}, {103, Cuts::many}, {104, Cuts::many}};

std::size_t segments_in(const Image& image) {
  return image.size() - image.count(std::string(kMarkName));
}

TEST(SegmentCutCrash, EveryStateThatACrashCanLeaveOpensWithWhatWasAcknowledged) {
  constexpr std::uint64_t kBatches = 90;
  std::size_t states = 0;
  std::size_t nested = 0;
  std::size_t leftovers = 0;
  for (const Story& story : stories) {
    Random random(story.seed);
    const auto history = live(kBatches, story.seed, nullptr, story);
    CrashPoints(history->before(), history->events())
        .visit(random, 0, 48, [&](const Image& image, std::uint64_t note) {
          if (::testing::Test::HasFailure()) return;
          ++states;
          if (const auto at = image.find(std::string(kMarkName)); at != image.end()) {
            const auto mark = decode_mark(at->second);
            if (image.begin()->first < segment_name(mark.value().first_segment)) ++leftovers;
          }
          const auto left = std::make_shared<DiskHistory>(image);
          std::uint64_t reached = 0;
          ASSERT_EQ(examine(left, note, kBatches, reached, story), Outcome::opened)
              << open_on(std::make_shared<DiskHistory>(image)).error().message;
          // Opening it went through removals of its own, which another crash may interrupt.
          if (!random.chance(1, 25)) return;
          const std::uint64_t known = std::max(note, kFormed + reached);
          CrashPoints(left->before(), left->events())
              .visit(random, note, 8, [&](const Image& second, std::uint64_t) {
                ++nested;
                std::uint64_t found = 0;
                ASSERT_EQ(
                    examine(std::make_shared<DiskHistory>(second), note, kBatches, found, story),
                    Outcome::opened);
                ASSERT_LE(found + kFormed, known);
              });
        });
    ASSERT_FALSE(::testing::Test::HasFailure()) << "story " << story.seed;
  }
  RecordProperty("states", static_cast<int>(states));
  RecordProperty("nested", static_cast<int>(nested));
  RecordProperty("leftovers", static_cast<int>(leftovers));
  EXPECT_GT(states, 4000U);
  EXPECT_GT(nested, 300U);
  EXPECT_GT(leftovers, 20U);
}

/// The number of segments that hold frames.
std::size_t written_segments(const Image& image) {
  return static_cast<std::size_t>(std::count_if(image.begin(), image.end(), [](const auto& file) {
    return file.first != kMarkName && file.second.find_last_not_of('\0') >= kFramesBegin;
  }));
}

/// Waits until the reserve is whole.
bool wait_reserve(const DiskHistory& history) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    const Image image = history.now();
    if (segments_in(image) >= written_segments(image) + 2) return true;
    std::this_thread::yield();
  }
  return false;
}

/// How often the mark was overwritten in its place.
std::ptrdiff_t overwritten(const DiskHistory& history) {
  const auto events = history.events();
  return std::count_if(events.begin(), events.end(), [](const DiskEvent& event) {
    return event.kind == DiskEvent::Kind::write && event.name == kMarkName;
  });
}

// On a disk that is full from time to time: the mark is overwritten in its place.
TEST(SegmentCutCrash, EveryStateOnAFullDiskOpensWithWhatWasAcknowledged) {
  constexpr std::uint64_t kBatches = 120;
  constexpr std::ptrdiff_t kOverwritten = 3;
  std::uint64_t batches = 0;
  const Story story{105, Cuts::many};
  auto options = small_options();
  options.space_retry = std::chrono::milliseconds(1);
  Random random(15);
  const auto history = std::make_shared<DiskHistory>();
  {
    NotingSink sink(history);
    auto log = std::move(open_on(history, options)).value();
    ASSERT_TRUE(log->confirm_set(three_voters(log->identity().uuid).members));
    history->note(kConfirmed);
    ASSERT_TRUE(log->form());
    history->note(kFormed);
    static_cast<void>(log->take_initial_state());
    log->start(sink);
    Sequence sequence(story.seed, story.cuts);
    // The log removes segments beside the batches, so that the disk may have space again by then.
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (sequence.number() < kBatches ||
           (overwritten(*history) < kOverwritten && std::chrono::steady_clock::now() < deadline)) {
      const auto batch = sequence.next();
      // Full while it is cut; free again before the reserve is used up.
      if (batch.cut || batch.reset) {
        ASSERT_TRUE(wait_reserve(*history));
        history->fill_up(true);
      }
      log->persist(batch);
      ASSERT_TRUE(sink.inner().wait_persisted(raft::ReadyId(sequence.number())));
      if (sequence.number() % 3 == 0) history->fill_up(false);
    }
    batches = sequence.number();
    log.reset();
    ASSERT_FALSE(sink.inner().failure());
  }
  EXPECT_GE(overwritten(*history), kOverwritten);
  std::size_t states = 0;
  CrashPoints(history->before(), history->events())
      .visit(random, 0, 48, [&](const Image& image, std::uint64_t note) {
        if (::testing::Test::HasFailure()) return;
        ++states;
        std::uint64_t reached = 0;
        ASSERT_EQ(examine(std::make_shared<DiskHistory>(image), note, batches, reached, story),
                  Outcome::opened)
            << open_on(std::make_shared<DiskHistory>(image)).error().message;
      });
  EXPECT_GT(states, 1000U);
}

// Lives with cuts follow one another, each on one of the states that a crash left.
TEST(SegmentCutCrash, LivesFollowOneAnother) {
  Random random(16);
  for (int round = 0; round < 20; ++round) {
    const Story story{200 + static_cast<std::uint64_t>(round), Cuts::many};
    auto history = std::make_shared<DiskHistory>();
    std::uint64_t acknowledged = 0;
    for (int life = 0; life < 8; ++life) {
      {
        NotingSink sink(history);
        auto opened = open_on(history);
        ASSERT_TRUE(opened) << opened.error().message;
        SegmentLog& log = *opened.value();
        ASSERT_TRUE(log.confirm_set(three_voters(log.identity().uuid).members));
        ASSERT_TRUE(log.form());
        const auto state = log.take_initial_state();
        const std::uint64_t reached = state.hard_state.term.value();
        ASSERT_GE(reached + kFormed, acknowledged);
        expect_initial_state(state, model_after(reached, log.identity().uuid, story));
        history->note(kFormed + reached);
        log.start(sink);
        write(log, sink, reached, reached + 1 + random.below(40), random, story);
        opened.value().reset();
      }
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

// Files.

/// A log whose last batches are the ones given, closed or not.
struct Finished {
  std::string name;
  Image image;
  std::vector<raft::Entry> entries;
  raft::InitialState state;
};

/// Waits until the log has removed what was cut off, and has made its segments ahead.
Image settled(const DiskHistory& history, const std::string& first) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    Image image = history.now();
    const auto mark = decode_mark(image.at(std::string(kMarkName)));
    if (image.begin()->first == first && segments_in(image) == written_segments(image) + 2 &&
        segment_name(mark.value().first_segment) == first &&
        segment_name(mark.value().last_segment) == std::prev(std::prev(image.end()))->first) {
      return image;
    }
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "the log does not come to rest";
      return image;
    }
    std::this_thread::yield();
  }
}

/// Logs that were cut in the middle of a segment, at their very end, and reset; crashed and closed.
std::vector<Finished> finished_logs() {
  std::vector<Finished> out;
  for (const std::string how : {"cut", "cut whole", "reset"}) {
    const auto history = std::make_shared<DiskHistory>();
    RecordingSink sink;
    auto log = std::move(open_on(history)).value();
    EXPECT_TRUE(log->confirm_set(three_voters(log->identity().uuid).members));
    EXPECT_TRUE(log->form());
    static_cast<void>(log->take_initial_state());
    log->start(sink);
    std::uint64_t id = 0;
    const auto persist = [&](raft::PersistBatch batch) {
      batch.id = raft::ReadyId(++id);
      raft::HardState hard;
      hard.term = raft::Term(id);
      batch.hard_state = hard;
      log->persist(batch);
      EXPECT_TRUE(sink.wait_persisted(batch.id));
    };
    const auto append = [&](std::uint64_t index, std::size_t bytes) {
      raft::PersistBatch batch;
      batch.entries.push_back(command_entry(index, 1, std::string(bytes, 'e')));
      persist(batch);
    };
    for (std::uint64_t i = 1; i <= 9; ++i) append(i, 700);
    raft::PersistBatch turn;
    if (how == "reset") {
      turn.reset = raft::LogBase{{raft::Term(1), raft::Index(30)}, three_voters({4, 4})};
    } else {
      turn.cut = raft::LogBase{{raft::Term(1), raft::Index(how == "cut" ? 7 : 9)}, three_voters()};
    }
    persist(turn);
    const std::uint64_t next = how == "reset" ? 31 : 10;
    append(next, 50);
    append(next + 1, 60);
    const Image crashed = settled(*history, segment_name(2));
    log.reset();
    for (const bool closed : {false, true}) {
      Finished finished{
          how + (closed ? ", closed" : ", crashed"), closed ? history->now() : crashed, {}, {}};
      auto opened = open_on(std::make_shared<DiskHistory>(finished.image));
      EXPECT_TRUE(opened);
      finished.state = opened.value()->take_initial_state();
      EXPECT_EQ(finished.state.last_index.value(), next + 1);
      RecordingSink reader;
      opened.value()->start(reader);
      opened.value()->read(
          {1, finished.state.base.index.next(), finished.state.last_index, 1U << 30U});
      EXPECT_TRUE(reader.wait_read(1));
      finished.entries = reader.take_read(1).value();
      EXPECT_EQ(finished.entries.back().payload.size(), 60U);
      opened.value().reset();
      out.push_back(std::move(finished));
    }
  }
  return out;
}

/// Whether it opens; then it is the same log.
bool opens_as(const Image& image, const Finished& log) {
  auto opened = open_on(std::make_shared<DiskHistory>(image));
  if (!opened) {
    EXPECT_FALSE(opened.error().message.empty());
    return false;
  }
  EXPECT_TRUE(opened.value()->formed());
  EXPECT_FALSE(opened.value()->confirmed_set().empty());
  if (!opened.value()->formed()) return true;
  const auto state = opened.value()->take_initial_state();
  EXPECT_EQ(state.hard_state, log.state.hard_state);
  EXPECT_EQ(state.base, log.state.base);
  EXPECT_EQ(state.base_membership, log.state.base_membership);
  EXPECT_EQ(state.last_index, log.state.last_index);
  EXPECT_EQ(state.runs, log.state.runs);
  EXPECT_EQ(state.memberships, log.state.memberships);
  RecordingSink sink;
  opened.value()->start(sink);
  opened.value()->read({1, state.base.index.next(), state.last_index, 1U << 30U});
  EXPECT_TRUE(sink.wait_read(1));
  const auto entries = sink.take_read(1);
  EXPECT_TRUE(entries && entries.value() == log.entries);
  opened.value().reset();
  return true;
}

TEST(SegmentCutDamage, EveryByteFlippedOrZeroed) {
  Random random(17);
  for (const Finished& log : finished_logs()) {
    int refused = 0;
    int harmless = 0;
    for (const auto& file : log.image) {
      for (std::size_t at = 0; at < file.second.size(); ++at) {
        const char good = file.second[at];
        if (good == 0 && !random.chance(1, 16)) continue;
        Image image = log.image;
        image[file.first][at] = static_cast<char>(good ^ (1U << random.below(8)));
        ++(opens_as(image, log) ? harmless : refused);
        if (good != 0) {
          image[file.first][at] = 0;
          ++(opens_as(image, log) ? harmless : refused);
        }
        ASSERT_FALSE(::testing::Test::HasFailure())
            << log.name << ", " << file.first << " byte " << at;
      }
    }
    RecordProperty(log.name + " refused", refused);
    RecordProperty(log.name + " harmless", harmless);
    EXPECT_GT(refused, 2000) << log.name;
  }
}

TEST(SegmentCutDamage, FilesThatAreMissingOrForeignAreRefused) {
  const auto logs = finished_logs();
  for (const Finished& log : logs) {
    const auto refused = [](const Image& image, const std::string& part) {
      const auto opened = open_on(std::make_shared<DiskHistory>(image));
      ASSERT_FALSE(opened) << part;
      EXPECT_EQ(opened.error().code, ErrorCode::corrupted);
      EXPECT_NE(opened.error().message.find(part), std::string::npos) << opened.error().message;
    };
    for (const auto& file : log.image) {
      if (file.first == kMarkName) continue;
      Image image = log.image;
      image.erase(file.first);
      refused(image, file.first + " is missing");
      // The same segment of another log: another salt, another uuid.
      for (const Finished& other : logs) {
        // The same log, a little earlier or later.
        if (other.name.substr(0, other.name.find(',')) == log.name.substr(0, log.name.find(','))) {
          continue;
        }
        if (other.image.count(file.first) == 0 || other.image.at(file.first) == file.second)
          continue;
        image = log.image;
        image[file.first] = other.image.at(file.first);
        refused(image, "another log or another place");
      }
    }
    // Below the first, any file with the name of a segment was cut off.
    Image image = log.image;
    image[segment_name(1)] = "what a crash left";
    EXPECT_TRUE(opens_as(image, log));
    const auto history = std::make_shared<DiskHistory>(image);
    ASSERT_TRUE(open_on(history));
    EXPECT_EQ(history->now().count(segment_name(1)), 0U);
    image["1.seg"] = "not";
    refused(image, "1.seg");
  }
}

// The frame of the cut is what makes the rest of the front a log: without it there is none.
TEST(SegmentCutDamage, ALogWhoseCutVanishedIsRefused) {
  for (const Finished& log : finished_logs()) {
    if (log.name != "cut, crashed") continue;
    Image image = log.image;
    // The segments before the first one really existed.
    const auto mark = decode_mark(image.at(std::string(kMarkName)));
    ASSERT_TRUE(mark);
    ASSERT_EQ(mark.value().first_segment, 2U);
    ASSERT_GT(mark.value().predecessor.sequence, 0U);
    for (auto& file : image) {
      if (file.first == kMarkName) continue;
      file.second.replace(kFramesBegin, file.second.size() - kFramesBegin,
                          file.second.size() - kFramesBegin, '\0');
    }
    const auto opened = open_on(std::make_shared<DiskHistory>(image));
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message.find("no frame says where the log begins"), std::string::npos)
        << opened.error().message;
    // A mark that names an older state of the front.
    FolderMark other = mark.value();
    --other.predecessor.sequence;
    image = log.image;
    image[std::string(kMarkName)] = encode_mark(other);
    EXPECT_FALSE(open_on(std::make_shared<DiskHistory>(image)));
    other = mark.value();
    ++other.predecessor.salt;
    image[std::string(kMarkName)] = encode_mark(other);
    EXPECT_FALSE(open_on(std::make_shared<DiskHistory>(image)));
  }
}

// Reads.

TEST(SegmentCutRead, AReadThatACutOvertakesIsStillAnswered) {
  const auto history = std::make_shared<DiskHistory>();
  RecordingSink sink;
  auto log = std::move(open_on(history)).value();
  ASSERT_TRUE(log->confirm_set(three_voters(log->identity().uuid).members));
  ASSERT_TRUE(log->form());
  static_cast<void>(log->take_initial_state());
  log->start(sink);
  std::uint64_t index = 0;
  std::uint64_t token = 0;
  std::uint64_t ready = 0;
  Random random(18);
  for (int turn = 0; turn < 60; ++turn) {
    const std::uint64_t base = index;
    for (int i = 0; i < 30; ++i) {
      raft::PersistBatch batch;
      batch.id = raft::ReadyId(++ready);
      batch.entries.push_back(command_entry(++index, 1, std::string(400, 'r')));
      log->persist(batch);
    }
    const std::uint64_t first = token + 1;
    for (int i = 0; i < 20; ++i) {
      log->read({++token, raft::Index(base + 1 + random.below(30)), raft::Index(index), 1U << 20U});
    }
    raft::PersistBatch batch;
    batch.id = raft::ReadyId(++ready);
    batch.cut = raft::LogBase{{raft::Term(1), raft::Index(index)}, three_voters()};
    log->persist(batch);
    for (std::uint64_t at = first; at <= token; ++at) {
      ASSERT_TRUE(sink.wait_read(at));
      const auto entries = sink.take_read(at);
      if (entries) {
        EXPECT_EQ(entries.value().back().id.index.value(), index);
      } else {
        EXPECT_EQ(entries.error().code, ErrorCode::not_found) << entries.error().message;
      }
    }
    log->read({++token, raft::Index(index), raft::Index(index), 10});
    ASSERT_TRUE(sink.wait_read(token));
    EXPECT_EQ(sink.take_read(token).error().code, ErrorCode::not_found);
  }
  ASSERT_TRUE(sink.wait_persisted(raft::ReadyId(ready)));
  log.reset();
  // Only the newest segment and those that were made ahead are left.
  EXPECT_LE(segments_in(history->now()), 4U);
}

}  // namespace
}  // namespace leasehold::storage::testing
