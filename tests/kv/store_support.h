// What the tests of the stores share: both stores behind one life.
#pragma once

#include <leasehold/base/random.h>
#include <leasehold/kv/command.h>
#include <leasehold/kv/memory_store.h>
#include <leasehold/kv/rocksdb/rocksdb_store.h>
#include <leasehold/tests/base/temporary_folder.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace leasehold::kv::testing {

inline Bytes encoded(const Command& command) {
  auto bytes = encode_command(command);
  EXPECT_TRUE(bytes);
  return std::move(bytes).value();
}

/// The command as the first entry of a log; it has to outlive that.
inline replica::Command first_of(const Bytes& command) {
  return {{raft::Term(1), raft::Index(1)}, command.view()};
}

/// A reply as a person would write it.
inline std::string text(const Bytes& bytes) {
  const auto reply = decode_reply(bytes);
  if (!reply) return "undecodable: " + reply.error().message;
  if (std::holds_alternative<Ok>(reply.value())) return "OK";
  if (std::holds_alternative<Nil>(reply.value())) return "nil";
  if (const auto* integer = std::get_if<Integer>(&reply.value())) {
    return std::to_string(integer->value);
  }
  if (const auto* value = std::get_if<ValueReply>(&reply.value())) {
    return "\"" + std::string(value->value.view()) + "\"";
  }
  if (const auto* array = std::get_if<ArrayReply>(&reply.value())) {
    std::string out;
    for (const Bytes& item : array->items) out += text(item) + ",";
    return "[" + out + "]";
  }
  const auto& error = std::get<ErrorReply>(reply.value());
  return "error " + std::to_string(static_cast<int>(error.kind)) + ": " + error.text;
}

/// Applies `commands` of `origin` at index first, first + 1 ... as one run.
inline std::vector<std::string> apply(Store& store, std::uint64_t first,
                                      const std::vector<Bytes>& commands,
                                      raft::NodeId origin = raft::NodeId(1)) {
  std::vector<replica::Command> run;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    run.push_back({{raft::Term(1), raft::Index(first + i)}, commands[i].view(), origin});
  }
  std::vector<std::string> out;
  for (const Bytes& reply : store.apply(run, raft::Index(first + commands.size() - 1))) {
    out.push_back(text(reply));
  }
  return out;
}

inline RocksdbStore::Options store_options(const std::string& dir) {
  RocksdbStore::Options options;
  options.dir = dir;
  options.cluster_id = 77;
  options.id = raft::NodeId(1);
  // One for all, and small: what others keep and take out of it changes nothing.
  static const auto cache = std::make_shared<RecordCache>(RecordCache::kLeastBytes);
  options.cache = cache;
  return options;
}

inline std::unique_ptr<RocksdbStore> open_store(const std::string& dir) {
  auto opened = RocksdbStore::open(store_options(dir));
  if (!opened) {
    ADD_FAILURE() << opened.error().message;
    return nullptr;
  }
  return std::move(opened).value();
}

enum class StoreKind { memory, rocksdb };
inline auto each_store() {
  return ::testing::Values(StoreKind::memory, StoreKind::rocksdb);
}
inline std::string name_of_store(const ::testing::TestParamInfo<StoreKind>& kind) {
  return kind.param == StoreKind::memory ? "memory" : "rocksdb";
}

/// What is asked of both stores.
class EachStore : public ::testing::TestWithParam<StoreKind> {
 protected:
  std::unique_ptr<Store> make(const std::string& name) {
    if (GetParam() == StoreKind::memory) return std::make_unique<MemoryStore>();
    return open_store(folder_.path(name));
  }
  void SetUp() override {
    store_ = make("kv");
    ASSERT_NE(store_, nullptr);
  }

  TemporaryFolder folder_;
  std::unique_ptr<Store> store_;
};

/// A copy of the store's folder as a crash would leave it. There are no writes meanwhile, but
/// RocksDB may still remove compacted files: then the copy is made again.
inline std::unique_ptr<RocksdbStore> crashed(const TemporaryFolder& folder,
                                             const std::string& name) {
  static int copies = 0;
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string copy = folder.path("copy" + std::to_string(++copies));
    std::error_code error;
    std::filesystem::copy(folder.path(name), copy, std::filesystem::copy_options::recursive, error);
    if (error) continue;
    auto opened = RocksdbStore::open(store_options(copy));
    if (opened) return std::move(opened).value();
  }
  ADD_FAILURE() << "no copy of the store is whole";
  return nullptr;
}

/// Executes the commands on a store on disk and on one in memory, and now and then again on what a
/// crash would leave of the first. The replies have to be the same each time, and `alike` gets each
/// two stores that have executed the same. Returns the replies.
inline std::vector<std::string> execute_over_crashes(
    const std::vector<Bytes>& commands, std::uint64_t seed,
    const std::function<void(const Store&, const Store&)>& alike) {
  const TemporaryFolder folder;
  const auto store = open_store(folder.path("kv"));
  MemoryStore other;
  Random random(seed);
  std::vector<std::string> replies;
  std::size_t repeated = 0;
  while (replies.size() < commands.size() && !::testing::Test::HasFailure()) {
    const std::size_t from = replies.size();
    const std::size_t count = std::min(commands.size() - from, random.below(30) + 1);
    const std::vector<Bytes> part(commands.begin() + static_cast<std::ptrdiff_t>(from),
                                  commands.begin() + static_cast<std::ptrdiff_t>(from + count));
    const auto got = apply(*store, from + 1, part);
    EXPECT_EQ(apply(other, from + 1, part), got);
    alike(other, *store);
    replies.insert(replies.end(), got.begin(), got.end());
    if (random.chance(1, 4)) {
      EXPECT_TRUE(store->make_durable());
    }
    if (!random.chance(1, 8)) continue;
    const auto after = crashed(folder, "kv");
    const std::size_t durable = after->durable_index().value();
    EXPECT_LE(durable, replies.size());
    for (std::size_t i = durable; i < replies.size(); ++i) {
      EXPECT_EQ(apply(*after, i + 1, {commands[i]}).at(0), replies[i]) << i;
      ++repeated;
    }
    alike(*after, *store);
  }
  EXPECT_EQ(other.revision(), store->revision());
  EXPECT_GT(repeated, 100U);
  return replies;
}

}  // namespace leasehold::kv::testing
