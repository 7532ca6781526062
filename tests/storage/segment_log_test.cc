// What only the log in segments has: a folder, a formation, a life after the process, damage.
#include <leasehold/storage/folder.h>
#include <leasehold/storage/segment_log.h>
#include <leasehold/tests/storage/log_support.h>

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>

namespace leasehold::storage::testing {
namespace {

namespace fs = std::filesystem;

SegmentLog::Options log_options(const std::string& dir) {
  SegmentLog::Options options;
  options.dir = dir;
  options.cluster_id = 77;
  options.id = raft::NodeId(1);
  return options;
}

std::unique_ptr<SegmentLog> open_log(const SegmentLog::Options& options) {
  auto opened = SegmentLog::open(options);
  if (opened) return std::move(opened).value();
  ADD_FAILURE() << opened.error().message;
  return nullptr;
}

std::unique_ptr<SegmentLog> open_formed(const std::string& dir) {
  auto log = open_log(log_options(dir));
  EXPECT_TRUE(log->confirm_set(three_voters(log->identity().uuid).members));
  EXPECT_TRUE(log->form());
  return log;
}

/// Opens and expects an error that says `expected` and names the folder.
ErrorCode refusal(const SegmentLog::Options& options, std::string_view expected) {
  const auto opened = SegmentLog::open(options);
  if (opened) {
    ADD_FAILURE() << "it opened";
    return ErrorCode::stopped;
  }
  const std::string& message = opened.error().message;
  EXPECT_NE(message.find(expected), std::string::npos) << message;
  EXPECT_NE(message.find(options.dir), std::string::npos) << message;
  return opened.error().code;
}

/// Every entry of the log.
std::vector<raft::Entry> read_all(SegmentLog& log, RecordingSink& sink, const Model& model) {
  if (model.entries.empty()) return {};
  log.read({1, model.base.id.index.next(), model.last().index, std::size_t{1} << 40U});
  EXPECT_TRUE(sink.wait_read(1));
  auto entries = sink.take_read(1);
  if (entries) return std::move(entries).value();
  ADD_FAILURE() << entries.error().message;
  return {};
}

/// Opens a log that was formed, expects exactly the model, and returns whether it opened at all.
bool opens_as(const std::string& dir, Model model) {
  auto opened = SegmentLog::open(log_options(dir));
  if (!opened) {
    EXPECT_NE(opened.error().message.find(dir), std::string::npos) << opened.error().message;
    return false;
  }
  SegmentLog& log = *opened.value();
  EXPECT_TRUE(log.formed());
  if (!log.formed()) return true;
  if (model.base.id == raft::LogId{}) model.base.membership = three_voters(log.identity().uuid);
  expect_initial_state(log.take_initial_state(), model);
  RecordingSink sink;
  log.start(sink);
  EXPECT_EQ(read_all(log, sink, model), model.entries);
  opened.value().reset();  // before the sink
  return true;
}

TEST(SegmentLogFolder, IdentityStaysAndIncarnationsRise) {
  const TemporaryFolder folder;
  const auto options = log_options(folder.path("a/b/log"));
  raft::Uuid uuid;
  for (std::uint64_t life = 1; life <= 4; ++life) {
    const auto log = open_log(options);
    EXPECT_EQ(log->identity().incarnation, raft::Incarnation(life));
    EXPECT_EQ(log->identity().cluster_id, 77U);
    EXPECT_EQ(log->identity().id, raft::NodeId(1));
    if (life == 1) uuid = log->identity().uuid;
    EXPECT_EQ(log->identity().uuid, uuid);
    EXPECT_NE(uuid, raft::Uuid());
  }
  EXPECT_NE(open_log(log_options(folder.path("another")))->identity().uuid, uuid);
}

TEST(SegmentLogFolder, TheFailedOpenOfAnotherDoesNotCount) {
  const TemporaryFolder folder;
  const auto options = log_options(folder.path("log"));
  const auto log = open_log(options);
  EXPECT_EQ(refusal(options, "another process uses the folder"), ErrorCode::in_use);
  EXPECT_EQ(refusal(options, "stop it"), ErrorCode::in_use);
}

TEST(SegmentLogFolder, AnotherClusterIsRefusedByBothNames) {
  const TemporaryFolder folder;
  auto options = log_options(folder.path("log"));
  open_log(options).reset();
  options.cluster_id = 0xab;
  EXPECT_EQ(refusal(options, "node 1 of cluster 000000000000004d"), ErrorCode::wrong_cluster);
  EXPECT_EQ(refusal(options, "node 1 of cluster 00000000000000ab"), ErrorCode::wrong_cluster);
}

TEST(SegmentLogFolder, AnotherNodeIsRefusedByBothNames) {
  const TemporaryFolder folder;
  auto options = log_options(folder.path("log"));
  open_log(options).reset();
  options.id = raft::NodeId(2);
  EXPECT_EQ(refusal(options, "belongs to node 1"), ErrorCode::wrong_cluster);
  EXPECT_EQ(refusal(options, "but this is node 2"), ErrorCode::wrong_cluster);
}

TEST(SegmentLogFolder, AnotherFormatIsRefusedBeforeAnythingIsTouched) {
  const TemporaryFolder folder;
  const auto options = log_options(folder.path("log"));
  open_log(options).reset();
  std::ofstream(options.dir + "/LEASEHOLD") << "leasehold-log 5\nnobody knows\ncheck 9e937060\n";
  EXPECT_EQ(refusal(options, "has format 5, this build knows 3 and 4: use a newer build"),
            ErrorCode::unsupported_format);
  std::ofstream(options.dir + "/LEASEHOLD") << "leasehold-log 2\ncluster 00\ncheck bb9e3166\n";
  EXPECT_EQ(refusal(options,
                    "has format 2, this build knows 3 and 4: go on with the build that wrote it"),
            ErrorCode::unsupported_format);
}

TEST(SegmentLogFolder, AForeignFolderIsRefused) {
  const TemporaryFolder folder;
  const auto options = log_options(folder.path("log"));
  fs::create_directories(options.dir);
  std::ofstream(options.dir + "/thesis.tex") << "chapter 1";
  EXPECT_EQ(refusal(options, "not empty"), ErrorCode::corrupted);
  EXPECT_EQ(std::distance(fs::directory_iterator(options.dir), fs::directory_iterator()), 1);
}

TEST(SegmentLogFolder, APathThatIsNoFolderIsRefused) {
  const TemporaryFolder folder;
  std::ofstream(folder.path("file")) << "x";
  EXPECT_EQ(refusal(log_options(folder.path("file/log")), "cannot make"), ErrorCode::io);
  EXPECT_EQ(refusal(log_options(folder.path("file")), "cannot"), ErrorCode::io);
}

TEST(SegmentLogFolder, OptionsAreChecked) {
  const TemporaryFolder folder;
  auto options = log_options(folder.path("log"));
  options.id = raft::kNobody;
  EXPECT_EQ(SegmentLog::open(options).error().code, ErrorCode::invalid_argument);
  options = log_options("");
  EXPECT_EQ(SegmentLog::open(options).error().code, ErrorCode::invalid_argument);
}

TEST(SegmentLogFormation, AConfirmedSetNeverChanges) {
  const TemporaryFolder folder;
  const auto options = log_options(folder.path("log"));
  {
    const auto log = open_log(options);
    EXPECT_TRUE(log->confirmed_set().empty());
    EXPECT_FALSE(log->formed());
    EXPECT_EQ(log->form().error().code, ErrorCode::invalid_argument);
    const auto members = three_voters(log->identity().uuid).members;
    ASSERT_TRUE(log->confirm_set({members[2], members[0], members[1]}));
    EXPECT_EQ(log->confirmed_set(), members);
    const auto syncs = log->syncs();
    EXPECT_TRUE(log->confirm_set(members));
    EXPECT_EQ(log->syncs(), syncs);
    EXPECT_FALSE(log->formed());
  }
  {
    const auto log = open_log(options);
    auto members = three_voters(log->identity().uuid).members;
    EXPECT_EQ(log->confirmed_set(), members);
    EXPECT_FALSE(log->formed());
    members[1].uuid.low += 1;
    EXPECT_EQ(log->confirm_set(members).error().code, ErrorCode::wrong_cluster);
    members.pop_back();
    EXPECT_EQ(log->confirm_set(members).error().code, ErrorCode::wrong_cluster);
    ASSERT_TRUE(log->form());
    EXPECT_TRUE(log->formed());
    EXPECT_TRUE(log->form());
  }
  const auto log = open_log(options);
  EXPECT_TRUE(log->formed());
  const auto state = log->take_initial_state();
  EXPECT_EQ(state.base_membership, three_voters(log->identity().uuid));
  EXPECT_EQ(state.last_index, raft::Index(0));
}

TEST(SegmentLogFormation, ANodeThatJoinsKnowsNoMembers) {
  const TemporaryFolder folder;
  const auto options = log_options(folder.path("log"));
  for (int life = 0; life < 2; ++life) {
    const auto log = open_log(options);
    EXPECT_EQ(log->joined(), life == 1);
    ASSERT_TRUE(log->join());
    EXPECT_TRUE(log->joined());
    EXPECT_TRUE(log->formed());
    EXPECT_TRUE(log->confirmed_set().empty());
    const auto members = three_voters(log->identity().uuid).members;
    EXPECT_EQ(log->confirm_set(members).error().code, ErrorCode::wrong_cluster);
    const auto state = log->take_initial_state();
    EXPECT_EQ(state.base_membership, raft::Membership{});
    EXPECT_EQ(state.last_index, raft::Index(0));
  }
  const auto other = open_log(log_options(folder.path("other")));
  ASSERT_TRUE(other->confirm_set(three_voters(other->identity().uuid).members));
  EXPECT_EQ(other->join().error().code, ErrorCode::wrong_cluster);
  EXPECT_FALSE(other->joined());
}

// Of a group that was restored from a backup: the entries below are in the state machines.
TEST(SegmentLogFormation, ALogMayBeginBehindABase) {
  const TemporaryFolder folder;
  const auto options = log_options(folder.path("log"));
  const raft::LogId base{raft::Term(1), raft::Index(4711)};
  raft::Membership members;
  {
    const auto log = open_log(options);
    members = three_voters(log->identity().uuid);
    ASSERT_TRUE(log->confirm_set(members.members));
    ASSERT_TRUE(log->form(base));
    EXPECT_TRUE(log->form()) << "formed once, it stays what it is";
  }
  raft::HardState hard;
  hard.term = raft::Term(1);
  const auto expect_base = [&](const raft::InitialState& state, raft::Index last) {
    EXPECT_EQ(state.base, base);
    EXPECT_EQ(state.base_membership, members);
    EXPECT_EQ(state.last_index, last);
    EXPECT_EQ(state.hard_state, hard);
  };
  {
    const auto log = open_log(options);
    ASSERT_TRUE(log->formed());
    expect_base(log->take_initial_state(), base.index);
    RecordingSink sink;
    log->start(sink);
    log->read({1, base.index, base.index, 100});
    ASSERT_TRUE(sink.wait_read(1));
    EXPECT_EQ(sink.take_read(1).error().code, ErrorCode::not_found);
    raft::PersistBatch batch;
    batch.id = raft::ReadyId(1);
    hard.term = raft::Term(3);
    hard.voted_for = raft::NodeId(2);
    batch.hard_state = hard;
    batch.entries.push_back(command_entry(4712, 3, "first"));
    log->persist(batch);
    ASSERT_TRUE(sink.wait_persisted(raft::ReadyId(1)));
  }
  const auto log = open_log(options);
  expect_base(log->take_initial_state(), base.index.next());
  RecordingSink sink;
  log->start(sink);
  log->read({1, base.index.next(), base.index.next(), 100});
  ASSERT_TRUE(sink.wait_read(1));
  EXPECT_EQ(sink.take_read(1).value().front(), command_entry(4712, 3, "first"));
}

TEST(SegmentLogFormation, AnInvalidSetIsRefused) {
  const TemporaryFolder folder;
  const auto log = open_log(log_options(folder.path("log")));
  EXPECT_EQ(log->confirm_set({}).error().code, ErrorCode::invalid_argument);
  auto strangers = three_voters({9, 9}).members;
  EXPECT_EQ(log->confirm_set(strangers).error().code, ErrorCode::invalid_argument);
  auto twice = three_voters(log->identity().uuid).members;
  twice[2].id = raft::NodeId(2);
  EXPECT_EQ(log->confirm_set(twice).error().code, ErrorCode::invalid_argument);
  EXPECT_TRUE(log->confirmed_set().empty());
}

TEST(SegmentLog, WhatWaitsSharesOneSync) {
  const TemporaryFolder folder;
  auto log = open_formed(folder.path("log"));
  static_cast<void>(log->take_initial_state());
  RecordingSink sink;
  log->start(sink);
  const std::uint64_t before = log->syncs();
  constexpr std::uint64_t kBatches = 2000;
  for (std::uint64_t i = 1; i <= kBatches; ++i) {
    raft::PersistBatch batch;
    batch.id = raft::ReadyId(i);
    batch.entries.push_back(command_entry(i, 1, "x"));
    log->persist(batch);
  }
  ASSERT_TRUE(sink.wait_persisted(raft::ReadyId(kBatches)));
  EXPECT_LT(log->syncs() - before, kBatches / 2);
  EXPECT_EQ(log->syncs() - before, sink.persisted_ids().size());
  log.reset();
}

TEST(SegmentLog, TheDestructorStoresWhatWaits) {
  const TemporaryFolder folder;
  Sequence sequence(81);
  RecordingSink sink;
  {
    auto log = open_formed(folder.path("log"));
    static_cast<void>(log->take_initial_state());
    log->start(sink);
    for (int i = 0; i < 500; ++i) log->persist(sequence.next());
  }
  EXPECT_EQ(sink.persisted_ids().back(), raft::ReadyId(500));
  EXPECT_TRUE(opens_as(folder.path("log"), sequence.model()));
}

TEST(SegmentLog, AFullQueueFailsOnceAndPersistsNothingMore) {
  const TemporaryFolder folder;
  auto options = log_options(folder.path("log"));
  open_formed(options.dir).reset();
  options.queue_bytes_max = 1000;
  auto log = open_log(options);
  static_cast<void>(log->take_initial_state());
  RecordingSink sink;  // checks that nothing is persisted after failed()
  log->start(sink);
  raft::PersistBatch batch;
  batch.id = raft::ReadyId(1);
  batch.entries.push_back(command_entry(1, 1, std::string(2000, 'x')));
  log->persist(batch);
  ASSERT_TRUE(sink.wait_failed());
  EXPECT_EQ(sink.failure()->code, ErrorCode::overloaded);
  batch.id = raft::ReadyId(2);
  batch.entries[0] = command_entry(2, 1, "x");
  log->persist(batch);
  log->read({5, raft::Index(1), raft::Index(1), 10});
  ASSERT_TRUE(sink.wait_read(5));
  EXPECT_EQ(sink.take_read(5).error().code, ErrorCode::stopped);
  log.reset();
  EXPECT_TRUE(sink.persisted_ids().empty());
}

TEST(SegmentLog, AFailedDiskFailsOnceAndPersistsNothingMore) {
  const TemporaryFolder folder;
  auto log = open_formed(folder.path("log"));
  static_cast<void>(log->take_initial_state());
  RecordingSink sink;
  log->start(sink);
  Sequence sequence(82);
  log->persist(sequence.next());
  ASSERT_TRUE(sink.wait_persisted(raft::ReadyId(1)));
  // A file-size limit makes the next large write fail.
  struct Limit {
    Limit() {
      ::signal(SIGXFSZ, SIG_IGN);
      ::getrlimit(RLIMIT_FSIZE, &old);
      rlimit small = old;
      small.rlim_cur = 100000;
      ::setrlimit(RLIMIT_FSIZE, &small);
    }
    ~Limit() { ::setrlimit(RLIMIT_FSIZE, &old); }
    rlimit old{};
  };
  {
    const Limit limit;
    raft::PersistBatch batch;
    batch.id = raft::ReadyId(2);
    batch.entries.push_back(
        command_entry(sequence.model().last().index.value() + 1, 5, std::string(300000, 'x')));
    log->persist(batch);
    ASSERT_TRUE(sink.wait_failed());
  }
  EXPECT_EQ(sink.failure()->code, ErrorCode::io);
  EXPECT_NE(sink.failure()->message.find(folder.path("log")), std::string::npos);
  raft::PersistBatch late;
  late.id = raft::ReadyId(3);
  late.hard_state = raft::HardState();
  log->persist(late);
  log.reset();
  EXPECT_EQ(sink.persisted_ids().size(), 1U);
  // The torn write is cut off; what was acknowledged is there.
  EXPECT_TRUE(opens_as(folder.path("log"), sequence.model()));
}

/// Alone on a core it takes a tenth of this; sanitizers and a busy machine take their part.
constexpr std::chrono::seconds kOpenMax{5};

TEST(SegmentLog, AHundredThousandEntriesOpenSoon) {
  const TemporaryFolder folder;
  Model model;
  {
    auto log = open_formed(folder.path("log"));
    static_cast<void>(log->take_initial_state());
    RecordingSink sink;
    log->start(sink);
    for (std::uint64_t batch = 0; batch < 1000; ++batch) {
      raft::PersistBatch persist;
      persist.id = raft::ReadyId(batch + 1);
      for (std::uint64_t i = 1; i <= 100; ++i) {
        persist.entries.push_back(
            command_entry(batch * 100 + i, 1 + batch / 50, std::string(256, 'p')));
      }
      log->persist(std::move(persist));
    }
    log.reset();
    EXPECT_EQ(sink.persisted_ids().back(), raft::ReadyId(1000));
  }
  const auto start = std::chrono::steady_clock::now();
  const auto log = open_log(log_options(folder.path("log")));
  const auto took = std::chrono::steady_clock::now() - start;
  const auto state = log->take_initial_state();
  EXPECT_EQ(state.last_index, raft::Index(100000));
  EXPECT_EQ(state.runs.size(), 20U);
  RecordProperty(
      "open_ms",
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()));
  EXPECT_LT(took, kOpenMax);
}

// Crashes.

/// A log_child with its output.
class Child {
 public:
  Child(const std::string& dir, std::uint64_t seed) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const std::vector<std::string> words = {LEASEHOLD_LOG_CHILD, dir, std::to_string(seed)};
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    ::posix_spawn_file_actions_addclose(&actions, ends[0]);
    EXPECT_EQ(::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ), 0);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    output_ = ::fdopen(ends[0], "r");
  }
  ~Child() { std::fclose(output_); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// The next number it prints; none at the end of its output.
  std::optional<std::uint64_t> next() {
    unsigned long long number = 0;
    if (std::fscanf(output_, "%llu", &number) != 1) return std::nullopt;
    return number;
  }
  void kill() {
    ::kill(pid_, SIGKILL);
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself: " << WEXITSTATUS(status);
  }

 private:
  pid_t pid_ = 0;
  FILE* output_ = nullptr;
};

TEST(SegmentLogCrash, EverythingAcknowledgedIsThereAfterKill) {
  constexpr std::uint64_t kSeed = 91;
  const TemporaryFolder folder;
  const std::string dir = folder.path("log");
  Random random(92);
  std::uint64_t acknowledged = 0;
  for (int life = 0; life < 12; ++life) {
    Child child(dir, kSeed);
    const std::uint64_t enough = acknowledged + 1 + random.below(150);
    while (acknowledged < enough) {
      const auto number = child.next();
      ASSERT_TRUE(number);
      acknowledged = *number;
    }
    child.kill();
    while (const auto number = child.next()) acknowledged = *number;

    // The term of the hard state shows how far it got. Exactly the batches up to there are in the
    // log.
    std::uint64_t reached = 0;
    {
      auto log = open_log(log_options(dir));
      ASSERT_NE(log, nullptr);
      reached = log->take_initial_state().hard_state.term.value();
    }
    EXPECT_GE(reached, acknowledged);
    Sequence sequence(kSeed);
    while (sequence.number() < reached) sequence.next();
    EXPECT_TRUE(opens_as(dir, sequence.model()));
    acknowledged = reached;
  }
}

// Damage.

}  // namespace
}  // namespace leasehold::storage::testing
