// What only the store on RocksDB has: a life after the process.
#include <leasehold/tests/kv/command_source.h>
#include <leasehold/tests/kv/same_state.h>
#include <leasehold/tests/kv/store_support.h>
#include <leasehold/tests/kv/store_twin.h>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace leasehold::kv::testing {
namespace {

namespace fs = std::filesystem;

ErrorCode refusal(const RocksdbStore::Options& options, std::string_view expected) {
  const auto opened = RocksdbStore::open(options);
  if (opened) {
    ADD_FAILURE() << "it opened";
    return ErrorCode::stopped;
  }
  const std::string& message = opened.error().message;
  EXPECT_NE(message.find(expected), std::string::npos) << message;
  EXPECT_NE(message.find(options.dir), std::string::npos) << message;
  return opened.error().code;
}

TEST(RocksdbStore, ACleanRestartAppliesNothingAgain) {
  const TemporaryFolder folder;
  {
    const auto store = open_store(folder.path("a/b/kv"));
    EXPECT_EQ(store->durable_index(), raft::Index(0));
    apply(*store, 1, {encoded(Set{"k", "v"}), encoded(IncrBy{"n", 3})});
    EXPECT_EQ(store->durable_index(), raft::Index(0));
  }
  const auto store = open_store(folder.path("a/b/kv"));
  EXPECT_EQ(store->durable_index(), raft::Index(2));
  EXPECT_EQ(store->applied_index(), raft::Index(2));
  EXPECT_EQ(store->revision(), 2U);
  EXPECT_EQ(store->size(), 2U);
  EXPECT_EQ(store->get("n").value()->bytes.view(), "3");
}

TEST(RocksdbStore, AFlushMovesTheDurableIndex) {
  const TemporaryFolder folder;
  const auto store = open_store(folder.path("kv"));
  apply(*store, 1, {encoded(Set{"k", "v"})});
  ASSERT_TRUE(store->make_durable());
  EXPECT_EQ(store->durable_index(), raft::Index(1));
}

TEST(RocksdbStore, NothingIsLeftOfWhatWasCleared) {
  const TemporaryFolder folder;
  {
    const auto store = open_store(folder.path("kv"));
    apply(*store, 1, {encoded(Set{"k", "v"}), encoded(IncrBy{"n", 3})});
    ASSERT_TRUE(store->make_durable());
    ASSERT_TRUE(store->clear());
    EXPECT_EQ(store->durable_index(), raft::Index(0));
    EXPECT_EQ(store->applied_index(), raft::Index(0));
    EXPECT_EQ(store->revision(), 0U);
    EXPECT_EQ(store->size(), 0U);
    EXPECT_FALSE(store->get("k").value());
    // As at the beginning.
    EXPECT_EQ(apply(*store, 1, {encoded(IncrBy{"n", 5})}).size(), 1U);
    EXPECT_EQ(store->get("n").value()->bytes.view(), "5");
    ASSERT_TRUE(store->clear());
  }
  const auto store = open_store(folder.path("kv"));
  EXPECT_EQ(store->durable_index(), raft::Index(0));
  EXPECT_EQ(store->size(), 0U);
}

// What was given behind the state that is left: tokens, ids and revisions of others, perhaps.
TEST(RocksdbStore, NoNumberOfAGapIsEverGiven) {
  constexpr std::uint64_t kRevisions = 1'000'000;
  constexpr std::uint64_t kIds = 1000;
  constexpr std::uint64_t kFirstLease = std::uint64_t{1} << 32U;
  const TemporaryFolder folder;
  StateSum sum;
  {
    const auto store = open_store(folder.path("kv"));
    EXPECT_EQ(apply(*store, 1,
                    {encoded(Set{"k", "v"}), encoded(OpenSession{}),
                     encoded(GrantLease{grant::LeaseId(0), std::chrono::seconds(1), "n", "h"})}),
              (std::vector<std::string>{"OK", "1", "[4294967296,2,]"}));
    const std::uint64_t revision = store->revision();
    EXPECT_EQ(store->leave_gap({raft::Index(3), 1, 1}).error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(store->leave_gap({raft::Index(9), ~std::uint64_t{0}, 1}).error().code,
              ErrorCode::invalid_argument);
    ASSERT_TRUE(store->leave_gap({raft::Index(5000), kRevisions, kIds}));
    EXPECT_EQ(store->revision(), revision + kRevisions);
    EXPECT_EQ(store->applied_index(), raft::Index(5000));
    EXPECT_EQ(store->get("k").value()->bytes.view(), "v");
    const auto scrubbed = store->scrub([](std::uint64_t) { return true; });
    ASSERT_TRUE(scrubbed && scrubbed.value());
    EXPECT_EQ(scrubbed.value()->kept, scrubbed.value()->stored);
    sum = scrubbed.value()->kept;
  }
  // The numbers are durable although no lease and no session was.
  const auto store = open_store(folder.path("kv"));
  EXPECT_EQ(store->durable_index(), raft::Index(5000));
  const auto scrubbed = store->scrub([](std::uint64_t) { return true; });
  ASSERT_TRUE(scrubbed && scrubbed.value());
  EXPECT_EQ(scrubbed.value()->stored, sum);
  const std::uint64_t token = store->revision() + 1;
  EXPECT_GT(token, kRevisions);
  const auto replies =
      apply(*store, 5001,
            {encoded(GrantLease{grant::LeaseId(0), std::chrono::seconds(1), "other", "h"}),
             encoded(OpenSession{})});
  const std::string lease = std::to_string(kFirstLease + kIds + 1);
  EXPECT_EQ(replies, (std::vector<std::string>{"[" + lease + "," + std::to_string(token) + ",]",
                                               std::to_string(kIds + 2)}));
}

/// Applies commands in another process (see store_child.cc), which dies without warning.
void apply_and_die(const std::string& dir, std::uint64_t seed, std::size_t upto,
                   std::size_t flush_at) {
  const std::vector<std::string> words = {
      LEASEHOLD_STORE_CHILD,   "apply", dir, std::to_string(seed), std::to_string(upto),
      std::to_string(flush_at)};
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = 0;
  ASSERT_EQ(::posix_spawn(&child, arguments[0], nullptr, nullptr, arguments.data(), environ), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "exit status " << WEXITSTATUS(status);
}

TEST(RocksdbStore, AfterKillTheRestIsAppliedAgainFromTheDurableIndex) {
  constexpr std::uint64_t kSeed = 31;
  constexpr std::size_t kCommands = 3000;
  const TemporaryFolder folder;
  const std::string dir = folder.path("kv");
  CommandSource source(kSeed);
  std::vector<Bytes> commands;
  for (std::size_t i = 0; i < kCommands; ++i) commands.push_back(source.next());
  Random random(32);
  std::size_t upto = 0;
  for (int life = 0; life < 6; ++life) {
    const std::size_t flush_at = upto + 1 + random.below(300);
    upto += 450;
    apply_and_die(dir, kSeed, upto, flush_at);
    // What survived is what some prefix of the commands made, up to the flush at least.
    const auto store = open_store(dir);
    const std::uint64_t durable = store->durable_index().value();
    EXPECT_GE(durable, flush_at);
    EXPECT_LE(durable, upto);
    Twin twin;
    for (std::size_t i = 0; i < durable; ++i) {
      twin.run(decode_command(commands[i].view()).value());
    }
    expect_same(*store, twin);
  }
  const auto store = open_store(dir);
  Twin twin;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const std::string expected = twin.run(decode_command(commands[i].view()).value());
    if (i < store->applied_index().value()) continue;
    ASSERT_EQ(apply(*store, i + 1, {commands[i]}).at(0), expected);
  }
  expect_same(*store, twin);
}

TEST(RocksdbStore, AnotherClustersFolderIsRefused) {
  const TemporaryFolder folder;
  auto options = store_options(folder.path("kv"));
  open_store(options.dir).reset();
  options.cluster_id = 78;
  EXPECT_EQ(refusal(options, "cluster 000000000000004d"), ErrorCode::wrong_cluster);
  EXPECT_EQ(refusal(options, "cluster 000000000000004e"), ErrorCode::wrong_cluster);
}

TEST(RocksdbStore, AnotherNodesFolderIsRefused) {
  const TemporaryFolder folder;
  auto options = store_options(folder.path("kv"));
  open_store(options.dir).reset();
  options.id = raft::NodeId(2);
  EXPECT_EQ(refusal(options, "it belongs to node 1"), ErrorCode::wrong_cluster);
}

TEST(RocksdbStore, AFolderInUseIsRefused) {
  const TemporaryFolder folder;
  const auto store = open_store(folder.path("kv"));
  EXPECT_EQ(refusal(store_options(folder.path("kv")), "stop it"), ErrorCode::in_use);
}

TEST(RocksdbStore, AForeignFolderIsRefused) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path("kv"));
  std::ofstream(folder.path("kv/thesis.tex")) << "chapter 1";
  EXPECT_EQ(refusal(store_options(folder.path("kv")), "not empty"), ErrorCode::corrupted);
  EXPECT_TRUE(fs::exists(folder.path("kv/thesis.tex")));
}

TEST(RocksdbStore, APathThatIsNoFolderIsRefused) {
  const TemporaryFolder folder;
  std::ofstream(folder.path("file")) << "x";
  EXPECT_EQ(refusal(store_options(folder.path("file/kv")), "cannot use the folder"), ErrorCode::io);
}

TEST(RocksdbStore, OptionsAreChecked) {
  const TemporaryFolder folder;
  auto options = store_options(folder.path("kv"));
  options.id = raft::kNobody;
  EXPECT_EQ(refusal(options, "above 0"), ErrorCode::invalid_argument);
}

/// Every file of a closed store, but its lock.
std::vector<fs::path> files_of(const std::string& dir) {
  std::vector<fs::path> found;
  for (const auto& file : fs::recursive_directory_iterator(dir)) {
    if (file.is_regular_file() && file.path().filename() != "LOCK") found.push_back(file.path());
  }
  return found;
}

void make_two_tables(const std::string& dir, std::size_t value_bytes = 200) {
  const auto store = open_store(dir);
  for (int table = 0; table < 2; ++table) {
    std::vector<Bytes> commands;
    for (int i = 0; i < 24; ++i) {
      commands.push_back(encoded(Set{"key" + std::to_string(i), std::string(value_bytes, 'v')}));
    }
    apply(*store, store->applied_index().value() + 1, commands);
    ASSERT_TRUE(store->make_durable());
  }
}

TEST(RocksdbStore, AMissingFileIsRefused) {
  const TemporaryFolder folder;
  const std::string dir = folder.path("kv");
  make_two_tables(dir);
  for (const fs::path& file : files_of(dir)) {
    const std::string name = file.filename().string();
    const bool data = file.extension() == ".sst" || name == "CURRENT" ||
                      name.rfind("MANIFEST-", 0) == 0 || name == "LIVE";
    if (!data) continue;
    fs::rename(file, folder.path("aside"));
    EXPECT_EQ(refusal(store_options(dir), "cannot be trusted"), ErrorCode::corrupted) << name;
    fs::rename(folder.path("aside"), file);
  }
  EXPECT_EQ(open_store(dir)->durable_index(), raft::Index(48));
}

void rewrite(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

TEST(RocksdbStore, TheFormatOfLiveCountsOnlyInAWholeFile) {
  const TemporaryFolder folder;
  const std::string dir = folder.path("kv");
  make_two_tables(dir);
  const std::string live = dir + "/LIVE";
  const std::string good = "leasehold-state 1\nlive 1\ncheck f893b019\n";
  rewrite(live, "leasehold-state 2\nlive 1\ncheck f893b019\n");
  EXPECT_EQ(refusal(store_options(dir), "cannot be trusted"), ErrorCode::corrupted);
  rewrite(live, "leasehold-state 2\nwhatever that build writes\ncheck c26cacc4\n");
  EXPECT_EQ(refusal(store_options(dir), "the folder has format 2, this build knows 1"),
            ErrorCode::unsupported_format);
  rewrite(live, good);
  EXPECT_EQ(open_store(dir)->durable_index(), raft::Index(48));
}

TEST(RocksdbStore, DamageIsRefusedOrMetByTheReaderOrHarmless) {
  const TemporaryFolder folder;
  const std::string dir = folder.path("kv");
  make_two_tables(dir);
  Random random(41);
  int refused = 0;
  for (int round = 0; round < 150; ++round) {
    const std::string copy = folder.path("copy");
    fs::remove_all(copy);
    fs::copy(dir, copy, fs::copy_options::recursive);
    const auto files = files_of(copy);
    const fs::path file = files[random.below(files.size())];
    const std::uint64_t size = fs::file_size(file);
    if (size == 0) continue;
    const auto at = static_cast<std::streamoff>(random.below(size));
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(at);
    const int old = stream.get();
    stream.seekp(at);
    stream.put(static_cast<char>(old ^ (1 << random.below(8))));
    stream.close();

    const auto opened = RocksdbStore::open(store_options(copy));
    if (!opened) {
      ++refused;
      continue;
    }
    const Store& store = *opened.value();
    // Fewer flushes may be found; the log brings the rest. But what is found is right.
    const std::uint64_t durable = store.durable_index().value();
    EXPECT_TRUE(durable == 0 || durable == 24 || durable == 48) << file << " " << at;
    for (int i = 0; i < 24; ++i) {
      const auto value = store.get("key" + std::to_string(i));
      if (!value) {
        ++refused;
        break;
      }
      ASSERT_EQ(value.value().has_value(), durable > 0) << file << " " << at;
      if (durable == 0) continue;
      EXPECT_EQ(value.value()->bytes.view(), std::string(200, 'v'));
      EXPECT_EQ(value.value()->version, durable / 24) << file << " " << at;
    }
  }
  EXPECT_GT(refused, 20);
}

TEST(RocksdbStore, AFailedStoreAnswersNothingMore) {
  const TemporaryFolder folder;
  auto options = store_options(folder.path("kv"));
  make_two_tables(options.dir, 2000);
  for (const fs::path& file : files_of(options.dir)) {
    if (file.extension() != ".sst" || fs::file_size(file) < 24 * 2000) continue;
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(fs::file_size(file) / 2));
    stream << "damage in a block of data";
  }
  int failures = 0;
  options.on_failure = [&failures](const Error&) { ++failures; };
  auto opened = RocksdbStore::open(options);
  ASSERT_TRUE(opened) << opened.error().message;
  Store& store = *opened.value();
  int met = 0;
  for (int i = 0; i < 24; ++i) {
    if (!store.get("key" + std::to_string(i))) ++met;
  }
  EXPECT_GT(met, 0);
  EXPECT_EQ(store.get("another").error().code, ErrorCode::corrupted);
  EXPECT_EQ(store.exists("another").error().code, ErrorCode::corrupted);
  const auto replies = apply(store, 49, {encoded(Set{"a", "b"}), encoded(Del{{"a"}})});
  ASSERT_EQ(replies.size(), 2U);
  EXPECT_EQ(replies.at(0).substr(0, 8), "error 6:");
  EXPECT_EQ(replies.at(1).substr(0, 8), "error 6:");
  EXPECT_EQ(store.applied_index(), raft::Index(48));
  EXPECT_EQ(failures, 1);
}

}  // namespace
}  // namespace leasehold::kv::testing
