// Snapshots: taken while the store runs, installed, and interrupted by a kill.
#include <leasehold/kv/rocksdb/rocksdb_archive.h>
#include <leasehold/tests/kv/archive_support.h>
#include <leasehold/tests/kv/command_source.h>
#include <leasehold/tests/kv/same_state.h>
#include <leasehold/tests/kv/snapshot_support.h>
#include <leasehold/tests/kv/store_support.h>
#include <leasehold/tests/kv/store_twin.h>
#include <leasehold/tests/kv/watched_env.h>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <set>
#include <thread>

namespace leasehold::kv::testing {
namespace {

namespace fs = std::filesystem;

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// ---- Both stores ----

TEST(Snapshot, OfAStoreInMemoryCarriesEverything) {
  MemoryStore from;
  Twin twin;
  fill(from, twin, 61, 400);
  const auto snapshot = from.take_snapshot().value();
  Twin later = twin;
  fill(from, later, 62, 50);
  EXPECT_EQ(snapshot->last(), raft::Index(400));
  MemoryStore to;
  Twin other;
  fill(to, other, 63, 100);
  ASSERT_TRUE(to.install_snapshot(*snapshot));
  expect_same(to, twin);
  EXPECT_EQ(to.applied_index(), raft::Index(400));
  fill(to, twin, 62, 50);
  expect_same(to, later);
  EXPECT_EQ(bytes_of(*to.take_snapshot().value()), bytes_of(*from.take_snapshot().value()));
  EXPECT_EQ(to.make_durable().error().code, ErrorCode::unsupported);
}

TEST(Snapshot, OfAStoreInMemoryIsRefusedWhenItIsDamaged) {
  MemoryStore from;
  Twin twin;
  fill(from, twin, 61, 30);
  const std::string good = bytes_of(*from.take_snapshot().value());
  MemoryStore to;
  Twin kept;
  fill(to, kept, 63, 20);
  for (std::size_t length = 0; length < good.size(); ++length) {
    const BytesSnapshot cut(good.substr(0, length), raft::Index(30));
    ASSERT_FALSE(to.install_snapshot(cut)) << length;
  }
  ASSERT_FALSE(to.install_snapshot(BytesSnapshot(good + "x", raft::Index(30))));
  ASSERT_FALSE(to.install_snapshot(BytesSnapshot(good, raft::Index(31))));
  expect_same(to, kept);
}

TEST(Snapshot, CarriesEverythingAndIsNotChangedByWhatFollows) {
  const TemporaryFolder folder;
  const auto from = RocksdbStore::open(node_2(folder.path("from"))).value();
  Twin twin;
  fill(*from, twin, 61, 400);
  const auto snapshot = from->take_snapshot().value();
  const std::string before = bytes_of(*snapshot);
  Twin later = twin;
  fill(*from, later, 62, 200);
  ASSERT_TRUE(from->make_durable());
  EXPECT_EQ(bytes_of(*snapshot), before);
  EXPECT_EQ(snapshot->last(), raft::Index(400));

  const std::string dir = folder.path("to");
  {
    const auto to = open_store(dir);
    Twin other;
    fill(*to, other, 63, 100);
    ASSERT_TRUE(to->install_snapshot(*snapshot));
    expect_same(*to, twin);
    EXPECT_EQ(to->applied_index(), raft::Index(400));
    EXPECT_EQ(to->durable_index(), raft::Index(400));
    EXPECT_EQ(names_in(dir), (std::set<std::string>{"LIVE", "LOCK", "db-2"}));
    fill(*to, twin, 62, 200);
    expect_same(*to, later);
  }
  const auto again = open_store(dir);
  expect_same(*again, later);
  EXPECT_EQ(again->durable_index(), raft::Index(600));
}

TEST(Snapshot, ReadsFromAnyOffset) {
  const TemporaryFolder folder;
  const auto store = open_store(folder.path("kv"));
  // Several blocks, the last one short.
  for (std::uint64_t i = 1; i <= 5; ++i) {
    apply(*store, i, {encoded(Set{"key" + std::to_string(i), std::string(50'000, 'v')})});
  }
  const auto snapshot = store->take_snapshot().value();
  const std::string whole = bytes_of(*snapshot);
  ASSERT_GT(whole.size(), 3 * kArchiveBlockBytes);
  Random random(64);
  for (int i = 0; i < 400; ++i) {
    const std::uint64_t offset = random.below(whole.size() + 1);
    std::string part(random.below(whole.size() - offset + 1), '\0');
    if (i % 2 == 0) part.resize(std::min<std::size_t>(part.size(), 40));
    ASSERT_TRUE(snapshot->read(offset, part.data(), part.size()));
    ASSERT_TRUE(part == whole.substr(offset, part.size())) << offset << " " << part.size();
  }
}

TEST(Snapshot, OfANewStoreIsEmpty) {
  const TemporaryFolder folder;
  const auto from = RocksdbStore::open(node_2(folder.path("from"))).value();
  const auto to = open_store(folder.path("to"));
  ASSERT_TRUE(to->install_snapshot(*from->take_snapshot().value()));
  EXPECT_EQ(to->applied_index(), raft::Index(0));
  EXPECT_EQ(to->size(), 0U);
}

/// The numbers of a snapshot are those of its contents, even if commands are applied meanwhile.
TEST(Snapshot, IsTakenWhileWritesGoOn) {
  constexpr std::size_t kCommands = 3000;
  const TemporaryFolder folder;
  const auto store = RocksdbStore::open(node_2(folder.path("from"))).value();
  CommandSource source(65);
  std::vector<Bytes> commands;
  for (std::size_t i = 0; i < kCommands; ++i) commands.push_back(source.next());
  std::vector<std::shared_ptr<const replica::Snapshot>> taken;
  std::atomic<bool> done{false};
  std::thread taker([&] {
    while (!done.load() && taken.size() < 12) {
      const raft::Index durable = store->make_durable().value();
      taken.push_back(store->take_snapshot().value());
      EXPECT_GE(taken.back()->last(), durable);
    }
  });
  for (std::size_t i = 0; i < commands.size(); ++i) apply(*store, i + 1, {commands[i]});
  done = true;
  taker.join();
  ASSERT_FALSE(taken.empty());
  Twin twin;
  std::uint64_t at = 0;
  int number = 0;
  for (const auto& snapshot : taken) {
    while (at < snapshot->last().value()) {
      twin.run(decode_command(commands[at++].view()).value());
    }
    const auto options = store_options(folder.path("to" + std::to_string(++number)));
    ASSERT_EQ(RocksdbStore::restore(options, *snapshot).value(), snapshot->last());
    expect_same(*open_store(options.dir), twin);
  }
}

TEST(Snapshot, ItsFolderGoesWithItAndLeftoversGoAtTheNextOpen) {
  const TemporaryFolder folder;
  const std::string dir = folder.path("kv");
  {
    const auto store = open_store(dir);
    apply(*store, 1, {encoded(Set{"k", "v"})});
    auto snapshot = store->take_snapshot().value();
    EXPECT_EQ(names_in(dir).count("snapshot-1"), 1U);
    snapshot.reset();
    EXPECT_EQ(names_in(dir).count("snapshot-1"), 0U);
  }
  for (const char* left : {"db-7", "snapshot-3", "snapshot-4.tmp"}) {
    fs::create_directories(dir + "/" + left);
    write_file(dir + "/" + left + "/000001.sst", "x");
  }
  EXPECT_EQ(open_store(dir)->get("k").value()->bytes.view(), "v");
  EXPECT_EQ(names_in(dir), (std::set<std::string>{"LIVE", "LOCK", "db-1"}));
}

TEST(Snapshot, WhatRocksdbFlushesByItselfIsDurable) {
  const TemporaryFolder folder;
  const auto store = open_store(folder.path("kv"));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::uint64_t index = 0;
  while (store->durable_index() == raft::Index(0)) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    apply(*store, ++index,
          {encoded(Set{"k" + std::to_string(index % 64), std::string(60'000, 'v')})});
  }
  EXPECT_LE(store->durable_index().value(), index);
  EXPECT_EQ(store->make_durable().value(), raft::Index(index));
}

// ---- A crash at every change of the disk ----

int run_child(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {LEASEHOLD_STORE_CHILD};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  EXPECT_EQ(::posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environ), 0);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Crash, WhileInstallingLeavesTheOldStateOrTheNewOne) {
  const TemporaryFolder folder;
  const Taken taken = archive_of(folder.path("from"), 61, 200);
  write_file(folder.path("archive"), taken.bytes);
  Twin old;
  {
    const auto store = open_store(folder.path("old"));
    fill(*store, old, 63, 100);
  }
  int olds = 0;
  int news = 0;
  for (std::uint64_t kill_at = 1;; ++kill_at) {
    ASSERT_LT(kill_at, 2000U);
    const std::string dir = folder.path("kv");
    fs::remove_all(dir);
    fs::copy(folder.path("old"), dir, fs::copy_options::recursive);
    const int status = run_child({"install", dir, folder.path("archive"), std::to_string(kill_at)});
    if (status != 0) {
      ASSERT_EQ(status, kKilled) << kill_at;
    }
    const auto store = open_store(dir);
    ASSERT_NE(store, nullptr) << kill_at;
    const bool is_new = store->applied_index() == taken.last;
    expect_same(*store, is_new ? taken.twin : old);
    ASSERT_TRUE(is_new || store->applied_index() == raft::Index(100)) << kill_at;
    ASSERT_TRUE(is_new || news == 0) << "old again at " << kill_at;
    const auto names = names_in(dir);
    EXPECT_EQ(names.size(), 3U) << kill_at;  // LIVE, LOCK and the database
    ++(is_new ? news : olds);
    if (status == 0) break;
  }
  EXPECT_GT(olds, 20);
  EXPECT_GT(news, 3);
}

TEST(Crash, WhileANewStoreIsMadeOrRestoredIsNoObstacle) {
  const TemporaryFolder folder;
  const Taken taken = archive_of(folder.path("from"), 61, 100);
  write_file(folder.path("archive"), taken.bytes);
  for (const char* what : {"take", "restore"}) {
    const bool restores = what == std::string("restore");
    for (std::uint64_t kill_at = 1;; ++kill_at) {
      ASSERT_LT(kill_at, 2000U);
      const std::string dir = folder.path("kv");
      fs::remove_all(dir);
      const int status = run_child({what, dir, folder.path("archive"), std::to_string(kill_at)});
      if (status != 0) {
        ASSERT_EQ(status, kKilled) << what << " " << kill_at;
      }
      const auto store = open_store(dir);
      ASSERT_NE(store, nullptr) << what << " " << kill_at;
      if (store->applied_index() != raft::Index(0)) {
        expect_same(*store, taken.twin);
      } else {
        ASSERT_FALSE(restores && status == 0);
        EXPECT_EQ(store->size(), 0U);
      }
      if (status == 0) break;
    }
  }
}

// ---- Readers ----

/// Two keys and the numbers are written together; a reader sees them together while snapshots
/// replace everything, and never an older state.
TEST(Snapshot, ReadersSeeOneStateOrTheOther) {
  constexpr int kInstalls = 12;
  const TemporaryFolder folder;
  const auto from = RocksdbStore::open(node_2(folder.path("from"))).value();
  const auto store = open_store(folder.path("to"));
  const auto write = [](Store& to, std::uint64_t index) {
    const std::string text = std::to_string(index);
    apply(to, index, {encoded(MSet{MSetCondition::none, {{"a", text}, {"b", text}}})});
  };
  write(*store, 1);
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> reads{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      std::uint64_t seen = 0;
      while (!done.load()) {
        const auto values = store->get_all({"a", "b"}, Load::whole).value();
        ASSERT_EQ(values[0]->bytes, values[1]->bytes);
        const std::uint64_t value = std::stoull(std::string(values[0]->bytes.view()));
        ASSERT_GE(value, seen);
        const std::uint64_t one = std::stoull(std::string(store->get("b").value()->bytes.view()));
        ASSERT_GE(one, value);
        ASSERT_EQ(store->keys_after(std::nullopt, 9).value().size(), 2U);
        seen = one;
        ++reads;
      }
    });
  }
  std::uint64_t index = 1;
  for (int i = 0; i < kInstalls; ++i) {
    while (from->applied_index().value() < index + 5)
      write(*from, from->applied_index().value() + 1);
    ASSERT_TRUE(store->install_snapshot(*from->take_snapshot().value()));
    index = store->applied_index().value();
    EXPECT_EQ(store->revision(), index);
    write(*store, ++index);
  }
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_GT(reads.load(), 0U);
  EXPECT_EQ(names_in(folder.path("to")),
            (std::set<std::string>{"LIVE", "LOCK", "db-" + std::to_string(kInstalls + 1)}));
}

// A backup keeps the archive behind a manifest of its own.
TEST(Snapshot, AnArchiveInAFileIsVerifiedToItsLastByte) {
  const TemporaryFolder folder;
  const Taken taken = archive_of(folder.path("from"), 62, 300);
  const std::string path = folder.path("file");
  const std::string before(100, 'm');
  write_file(path, before + taken.bytes);
  const auto archive = RocksdbStore::open_archive(path, before.size()).value();
  EXPECT_EQ(archive->last(), taken.last);
  EXPECT_EQ(bytes_of(*archive), taken.bytes);
  const ArchiveInfo info = RocksdbStore::verify(*archive).value();
  EXPECT_EQ(info, RocksdbStore::describe(*archive).value());
  EXPECT_EQ(info.last, taken.last);
  EXPECT_EQ(info.cluster_id, store_options("").cluster_id);

  Random random(63);
  for (int i = 0; i < 200; ++i) {
    std::string bytes = taken.bytes;
    const std::size_t at = i == 0 ? bytes.size() - 1 : random.below(bytes.size());
    bytes[at] = static_cast<char>(bytes[at] ^ (1U << random.below(8)));
    write_file(path, before + bytes);
    const auto damaged = RocksdbStore::open_archive(path, before.size());
    if (!damaged) continue;
    const auto verified = RocksdbStore::verify(*damaged.value());
    ASSERT_FALSE(verified) << at;
    EXPECT_EQ(verified.error().code, ErrorCode::corrupted);
  }
  for (const std::size_t length : {std::size_t{0}, std::size_t{50}, before.size(),
                                   before.size() + 10, before.size() + taken.bytes.size() - 1}) {
    write_file(path, (before + taken.bytes).substr(0, length));
    const auto shorter = RocksdbStore::open_archive(path, before.size());
    EXPECT_FALSE(shorter && RocksdbStore::verify(*shorter.value())) << length;
  }
}

TEST(Snapshot, RestoreMakesAStoreOfAnyClustersArchiveOnce) {
  const TemporaryFolder folder;
  const Taken taken = archive_of(folder.path("from"), 61, 100);
  auto options = store_options(folder.path("new"));
  options.cluster_id = 99;
  const BytesSnapshot snapshot(taken.bytes, taken.last);
  EXPECT_EQ(RocksdbStore::restore(options, snapshot).value(), taken.last);
  EXPECT_EQ(RocksdbStore::restore(options, snapshot).error().code, ErrorCode::in_use);
  expect_same(*RocksdbStore::open(options).value(), taken.twin);
  EXPECT_EQ(RocksdbStore::open(store_options(options.dir)).error().code, ErrorCode::wrong_cluster);
}

}  // namespace
}  // namespace leasehold::kv::testing
