// The cache of records in front of RocksDB, and a store behind it.
#include "store_support.h"

#include <leasehold/kv/rocksdb/record_cache.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <mutex>
#include <thread>

namespace leasehold::kv {

/// The steps of RecordCache::find().
class RecordCacheSteps {
 public:
  RecordCacheSteps(RecordCache& cache, std::uint64_t owner, std::string_view key)
      : cache_(cache), key_(RecordCache::key_of(owner, key)), look_(cache.look(key_)) {}
  bool read(std::string& record) { return cache_.read_chain(look_.entry >> 32U, key_, &record); }
  bool is_as_it_was() const { return RecordCache::is_as_it_was(look_); }

 private:
  RecordCache& cache_;
  RecordCache::Key key_;
  RecordCache::Look look_;
};

}  // namespace leasehold::kv

namespace leasehold::kv::testing {
namespace {

std::shared_ptr<RecordCache> least() {
  return std::make_shared<RecordCache>(RecordCache::kLeastBytes);
}

struct Records : CachedRecords {
  explicit Records(std::shared_ptr<RecordCache> cache) { keep_in(std::move(cache)); }
  void keep_now(std::string_view key, std::string_view record) { keep(key, record, epoch()); }
  std::string found(std::string_view key) const {
    std::string record = "left as it was";
    return find(key, record) ? record : "nothing";
  }
};

/// Of `size` bytes, each of which depends on its place.
std::string pattern(std::size_t size, std::size_t first) {
  std::string out;
  for (std::size_t i = 0; i < size; ++i) out += static_cast<char>('a' + (first + i * 7) % 26);
  return out;
}

TEST(RecordCache, FindsWhatWasKeptForItsOwner) {
  const auto cache = least();
  Records a(cache);
  Records b(cache);
  EXPECT_EQ(a.found("key"), "nothing");
  a.keep_now("key", "of a");
  EXPECT_EQ(a.found("key"), "of a");
  EXPECT_EQ(b.found("key"), "nothing");
  b.keep_now("key", "of b");
  EXPECT_EQ(a.found("key"), "of a");
  EXPECT_EQ(b.found("key"), "of b");
  a.keep_now("key", "newer");
  EXPECT_EQ(a.found("key"), "newer");
  EXPECT_EQ(a.found("ke"), "nothing");
  EXPECT_EQ(a.found("key "), "nothing");
}

TEST(RecordCache, KeepsKeysAndRecordsOfEachLength) {
  Records records(std::make_shared<RecordCache>(std::size_t{16} << 20U));
  for (std::size_t size = 0; size <= 600; ++size) {
    for (const std::size_t key_size : {std::size_t{0}, size % 40, size}) {
      records.keep_now(pattern(key_size, 1), pattern(size, 2));
      ASSERT_EQ(records.found(pattern(key_size, 1)), pattern(size, 2)) << key_size << " " << size;
    }
  }
  const std::size_t most = RecordCache::kBytesMax - 3;
  records.keep_now("big", pattern(most, 0));
  EXPECT_EQ(records.found("big"), pattern(most, 0));
  records.keep_now("bigger", pattern(most, 0));
  EXPECT_EQ(records.found("bigger"), "nothing");
}

TEST(RecordCache, IsBoundedAndKeepsWhatIsUsed) {
  const auto cache = least();
  Records records(cache);
  for (int i = 0; i < 20'000; ++i) {
    records.keep_now("key" + std::to_string(i), pattern(300, 0));
    // What replaces it is as much in use.
    if (i % 10 == 0) records.keep_now("hot", "stays");
    ASSERT_EQ(records.found("hot"), "stays") << i;
    ASSERT_LE(cache->stats().bytes, RecordCache::kLeastBytes);
  }
  const RecordCache::Stats stats = cache->stats();
  EXPECT_GE(stats.bytes, RecordCache::kLeastBytes / 2);
  EXPECT_GE(stats.evicted, 19'000U);
  int left = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string found = records.found("key" + std::to_string(i));
    left += found == "nothing" ? 0 : 1;
    ASSERT_TRUE(found == "nothing" || found == pattern(300, 0)) << i;
  }
  EXPECT_GT(left, 200);
}

TEST(RecordCache, HasNothingOfAKeyThatIsWritten) {
  Records records(least());
  records.keep_now("key", "old");
  const std::uint64_t noted = records.epoch();
  {
    CachedRecords::Write write(records);
    EXPECT_TRUE(write.take_out("key"));
    EXPECT_FALSE(write.take_out("other"));
    EXPECT_EQ(records.found("key"), "nothing");
    // A reader that has read the database before it changes.
    records.keep("key", "old", noted);
    EXPECT_EQ(records.found("key"), "nothing");
    records.keep_now("key", "old");
    EXPECT_EQ(records.found("key"), "nothing");
  }
  // One that has stopped meanwhile.
  records.keep("key", "old", noted);
  EXPECT_EQ(records.found("key"), "nothing");
  records.keep_now("key", "new");
  EXPECT_EQ(records.found("key"), "new");
}

TEST(RecordCache, HasWhatTheWriterPutsIn) {
  Records records(least());
  {
    CachedRecords::Write write(records);
    write.put_in("key", "new", true);
    write.put_in("large", pattern(RecordCache::kBytesMax, 0), true);
    EXPECT_EQ(records.found("key"), "new");
  }
  EXPECT_EQ(records.found("key"), "new");
  EXPECT_EQ(records.found("large"), "nothing");
}

TEST(RecordCache, ShowsNothingOfAPlaceThatChangesMeanwhile) {
  const auto cache = least();
  Records records(cache);
  records.keep_now("key", "old");
  std::string record;
  RecordCacheSteps reader(*cache, 1, "key");
  EXPECT_TRUE(reader.read(record));
  EXPECT_TRUE(reader.is_as_it_was());
  CachedRecords::Write write(records);
  EXPECT_TRUE(write.take_out("key"));
  EXPECT_FALSE(reader.is_as_it_was());
  write.put_in("key", "new", true);
  EXPECT_FALSE(reader.is_as_it_was());
}

TEST(RecordCache, WithoutMemoryKeepsNothing) {
  CachedRecords records;
  records.keep("key", "record", records.epoch());
  CachedRecords::Write write(records);
  EXPECT_FALSE(write.take_out("key"));
  write.put_in("key", "record", true);
  std::string record;
  EXPECT_FALSE(records.find("key", record));
}

/// Two keys that one write changes together. A reader that has seen a write at one of them sees it,
/// or a later one, at the other; and each record is whole.
class TwoKeys {
 public:
  explicit TwoKeys(std::shared_ptr<RecordCache> cache) : records_(std::move(cache)) {}

  void write(std::uint64_t number) {
    CachedRecords::Write write(records_);
    std::array<bool, 2> cached{};
    for (std::size_t i = 0; i < 2; ++i) cached.at(i) = write.take_out(kKeys.at(i));
    {
      const std::lock_guard lock(mutex_);
      number_ = number;
    }
    for (std::size_t i = 0; i < 2; ++i) {
      // Now and then readers have to look in the database.
      const bool stays = cached.at(i) || number % 5 == 0;
      if (stays && number % 4 != 0) write.put_in(kKeys.at(i), record_of(number), cached.at(i));
    }
  }
  std::string read(std::size_t key) {
    std::string record;
    if (records_.find(kKeys.at(key), record)) return record;
    const std::uint64_t epoch = records_.epoch();
    {
      const std::lock_guard lock(mutex_);
      record = record_of(number_);
    }
    records_.keep(kKeys.at(key), record, epoch);
    return record;
  }
  static std::string record_of(std::uint64_t number) {
    std::string record;
    while (record.size() < 1000) record += std::to_string(1'000'000 + number) + " ";
    return record;
  }
  static std::uint64_t number_of(const std::string& record) {
    return std::stoull(record) - 1'000'000;
  }

 private:
  static constexpr std::array<std::string_view, 2> kKeys = {"one", "two"};
  Records records_;
  std::mutex mutex_;
  std::uint64_t number_ = 0;
};

TEST(RecordCache, NeverShowsLessThanAnotherReadHasShown) {
  const auto cache = least();
  TwoKeys keys(cache);
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (std::size_t first = 0; first < 2; ++first) {
    threads.emplace_back([&, first] {
      std::uint64_t last = 0;
      while (!done.load()) {
        for (const std::size_t key : {first, 1 - first}) {
          const std::string record = keys.read(key);
          const std::uint64_t number = TwoKeys::number_of(record);
          ASSERT_EQ(record, TwoKeys::record_of(number));
          ASSERT_GE(number, last);
          last = number;
        }
      }
    });
  }
  // Blocks change hands all the time.
  threads.emplace_back([&] {
    Records others(cache);
    for (std::uint64_t i = 0; !done.load(); ++i) {
      others.keep_now("key" + std::to_string(i % 3000), pattern(i % 2000, i));
    }
  });
  for (std::uint64_t number = 1; number <= 250'000; ++number) keys.write(number);
  done.store(true);
  for (std::thread& thread : threads) thread.join();
}

class CachedStore : public ::testing::Test {
 protected:
  void run(const Command& command) {
    ++index_;
    apply(*store_, index_, {encode_command(command).value()});
  }
  std::string read(std::string_view key) {
    const auto value = store_->get(key);
    if (!value) return value.error().message;
    return value.value() ? std::string(value.value()->bytes.view()) : "nothing";
  }

  TemporaryFolder folder_;
  std::unique_ptr<RocksdbStore> store_ = open_store(folder_.path("kv"));
  std::uint64_t index_ = 0;
};

TEST_F(CachedStore, ShowsEachWriteOfAKeyThatWasRead) {
  run(Set{"key", "1"});
  EXPECT_EQ(read("key"), "1");
  EXPECT_EQ(store_->length("key").value(), 1U);
  run(Set{"key", "22"});
  EXPECT_EQ(read("key"), "22");
  EXPECT_EQ(store_->length("key").value(), 2U);
  run(Append{"key", "3"});
  EXPECT_EQ(read("key"), "223");
  run(Del{{"key"}});
  EXPECT_EQ(read("key"), "nothing");
  EXPECT_EQ(store_->length("key").value(), std::nullopt);
}

TEST(StoreWithACache, KeepsWhatIsOverwrittenButNotWhatIsNew) {
  TemporaryFolder folder;
  RocksdbStoreOptions options = store_options(folder.path("kv"));
  options.cache = std::make_shared<RecordCache>(RecordCache::kLeastBytes);
  const auto store = RocksdbStore::open(options).value();
  apply(*store, 1, {encode_command(Set{"key", "1"}).value()});
  EXPECT_EQ(options.cache->stats().bytes, 0U);
  apply(*store, 2, {encode_command(Set{"key", "2"}).value()});
  EXPECT_GT(options.cache->stats().bytes, 0U);
  EXPECT_EQ(store->get("key").value()->bytes.view(), "2");
  apply(*store, 3, {encode_command(Del{{"key"}}).value()});
  EXPECT_EQ(store->get("key").value(), std::nullopt);
}

TEST_F(CachedStore, ShowsTheStateOfASnapshot) {
  run(Set{"key", "old"});
  EXPECT_EQ(read("key"), "old");
  const auto other = open_store(folder_.path("other"));
  apply(*other, 1,
        {encode_command(Set{"key", "new"}).value(), encode_command(Set{"x", "y"}).value()});
  ASSERT_TRUE(other->make_durable());
  const auto snapshot = other->take_snapshot();
  ASSERT_TRUE(snapshot);
  ASSERT_TRUE(store_->install_snapshot(*snapshot.value()));
  EXPECT_EQ(read("key"), "new");
}

}  // namespace
}  // namespace leasehold::kv::testing
