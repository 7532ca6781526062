// A full disk, and a failed disk.
#include <leasehold/tests/kv/store_support.h>
#include <leasehold/tests/kv/watched_env.h>

#include <sys/mount.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

namespace leasehold::kv::testing {
namespace {

namespace fs = std::filesystem;

/// A small disk of its own.
class SmallDisk {
 public:
  explicit SmallDisk(const char* size) : path_(folder_.path("disk")) {
    fs::create_directories(path_);
    if (::mount("tmpfs", path_.c_str(), "tmpfs", 0, size) != 0) problem_ = std::strerror(errno);
  }
  ~SmallDisk() {
    if (problem_.empty()) ::umount2(path_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  const std::string& problem() const { return problem_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }
  /// Leaves `free` bytes.
  void fill(std::uintmax_t free) const {
    std::ofstream out(path("filler"), std::ios::binary);
    const std::string block(1U << 16U, 'f');
    while (fs::space(path_).available > free && out.write(block.data(), 1U << 16U).flush()) {
    }
  }
  void clear() const { fs::remove(path("filler")); }

 private:
  TemporaryFolder folder_;
  std::string path_;
  std::string problem_;
};

template <class Condition>
bool comes_true(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

class FullDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!disk_.problem().empty()) GTEST_SKIP() << "cannot mount a tmpfs: " << disk_.problem();
    options_ = store_options(disk_.path("kv"));
    options_.full_retry = std::chrono::milliseconds(30);
    options_.on_full = [this](bool full) {
      full_ = full;
      ++reports_;
    };
    options_.on_failure = [this](const Error&) { ++failures_; };
    auto opened = RocksdbStore::open(options_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(opened).value();
  }
  /// Counts up and writes a large value with each step, so that the disk is needed.
  void apply_until(std::uint64_t last) {
    for (std::uint64_t index = store_->applied_index().value() + 1; index <= last; ++index) {
      const auto replies =
          apply(*store_, index,
                {encoded(Transaction{
                    {}, {IncrBy{"n", 1}, Set{"v" + std::to_string(index % 40), value_}}})});
      if (replies[0].find("error") != std::string::npos) {
        ++refused_;
        return;
      }
    }
  }
  std::string count() const { return std::string(store_->get("n").value()->bytes.view()); }

  static constexpr std::uint64_t kLast = 400;
  const std::string value_ = std::string(50'000, 'v');
  SmallDisk disk_{"size=48m"};
  RocksdbStore::Options options_;
  std::atomic<bool> full_{false};
  std::atomic<int> reports_{0};
  std::atomic<int> failures_{0};
  std::atomic<int> refused_{0};
  std::unique_ptr<RocksdbStore> store_;
};

TEST_F(FullDisk, WritesWaitReadsGoOnAndSpaceHealsIt) {
  apply_until(20);
  disk_.fill(1U << 20U);
  std::thread writer([this] { apply_until(kLast); });
  EXPECT_TRUE(comes_true([this] { return full_.load(); }));
  const std::uint64_t stopped = store_->applied_index().value();
  EXPECT_LT(stopped, kLast);
  EXPECT_EQ(count(), std::to_string(stopped));
  EXPECT_TRUE(store_->exists("v1").value());
  std::thread durable([this] {
    const auto made = store_->make_durable();
    EXPECT_TRUE(made) << made.error().message;
  });
  std::this_thread::yield();
  EXPECT_EQ(store_->get_all({"n", "v1"}, Load::whole).value().size(), 2U);
  EXPECT_EQ(store_->applied_index().value(), stopped);
  disk_.clear();
  writer.join();
  durable.join();
  EXPECT_EQ(store_->applied_index().value(), kLast);
  EXPECT_EQ(count(), std::to_string(kLast));
  EXPECT_EQ(store_->revision(), kLast);
  EXPECT_FALSE(full_.load());
  EXPECT_EQ(failures_, 0);
  EXPECT_EQ(reports_ % 2, 0);
  EXPECT_EQ(store_->make_durable().value(), raft::Index(kLast));
  store_.reset();
  store_ = RocksdbStore::open(options_).value();
  EXPECT_EQ(store_->durable_index(), raft::Index(kLast));
  EXPECT_EQ(count(), std::to_string(kLast));
}

TEST_F(FullDisk, AStoreThatStopsDoesNotWait) {
  disk_.fill(0);
  std::thread writer([this] { apply_until(kLast); });
  EXPECT_TRUE(comes_true([this] { return full_.load(); }));
  store_->interrupt();
  writer.join();
  EXPECT_EQ(refused_, 1);
  const std::uint64_t applied = store_->applied_index().value();
  EXPECT_LT(applied, kLast);
  store_.reset();
  disk_.clear();
  store_ = RocksdbStore::open(options_).value();
  EXPECT_LE(store_->durable_index().value(), applied);
  apply_until(kLast);
  EXPECT_EQ(count(), std::to_string(kLast));
}

TEST_F(FullDisk, ASnapshotThatDoesNotFitIsRefusedBeforeItIsUnpacked) {
  constexpr std::uint64_t kKeys = 12;  // of 1 MiB: they fit into the empty disk, not into 10 MiB
  const TemporaryFolder folder;
  auto options = store_options(folder.path("from"));
  options.id = raft::NodeId(2);
  const auto from = RocksdbStore::open(options).value();
  for (std::uint64_t i = 1; i <= kKeys; ++i) {
    apply(*from, i, {encoded(Set{"k" + std::to_string(i), std::string(1U << 20U, 'v')})});
  }
  const auto snapshot = from->take_snapshot().value();
  apply(*store_, 1, {encoded(Set{"k", "v"})});
  disk_.fill(10U << 20U);  // is what it leaves
  const auto installed = store_->install_snapshot(*snapshot);
  ASSERT_FALSE(installed);
  EXPECT_EQ(installed.error().code, ErrorCode::io);
  EXPECT_NE(installed.error().message.find("free some space"), std::string::npos)
      << installed.error().message;
  EXPECT_EQ(store_->get("k").value()->bytes.view(), "v");
  disk_.clear();
  const auto again = store_->install_snapshot(*snapshot);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(store_->size(), kKeys);
}

TEST(FailedDisk, IsFinal) {
  static WatchedEnv env;  // RocksDB's threads may outlive the store
  const TemporaryFolder folder;
  auto options = store_options(folder.path("kv"));
  options.env = &env;
  int failures = 0;
  options.on_failure = [&failures](const Error&) { ++failures; };
  auto store = RocksdbStore::open(options).value();
  apply(*store, 1, {encoded(Set{"k", "v"})});
  env.failing = true;
  EXPECT_EQ(store->make_durable().error().code, ErrorCode::io);
  env.failing = false;
  EXPECT_EQ(store->make_durable().error().code, ErrorCode::io);
  EXPECT_EQ(store->get("k").error().code, ErrorCode::io);
  EXPECT_EQ(apply(*store, 2, {encoded(Set{"k", "w"})}).at(0).substr(0, 8), "error 6:");
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(store->failure().value().code, ErrorCode::io) << "so the node drops the results";
}

TEST(FailedDisk, EndsAStoreThatWaitsForSpace) {
  static WatchedEnv env;
  const TemporaryFolder folder;
  auto options = store_options(folder.path("kv"));
  options.env = &env;
  options.full_retry = std::chrono::milliseconds(5);
  std::atomic<bool> full = false;
  std::atomic<int> failures = 0;
  options.on_full = [&full](bool is) { full = is; };
  options.on_failure = [&failures](const Error&) { ++failures; };
  auto store = RocksdbStore::open(options).value();
  apply(*store, 1, {encoded(Set{"k", "v"})});
  env.full = true;
  std::thread durable([&store] { EXPECT_EQ(store->make_durable().error().code, ErrorCode::io); });
  EXPECT_TRUE(comes_true([&full] { return full.load(); }));
  EXPECT_EQ(failures, 0);
  env.failing = true;
  durable.join();
  EXPECT_EQ(failures, 1);
  EXPECT_FALSE(full);
}

}  // namespace
}  // namespace leasehold::kv::testing
