// What the tests of the stores share: both stores behind one life.
#pragma once

#include <leasehold/kv/command.h>
#include <leasehold/kv/memory_store.h>
#include <leasehold/kv/rocksdb_store.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace leasehold::kv::testing {

/// A folder of its own, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "leasehold-XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline Bytes encoded(const Command& command) {
  auto bytes = encode_command(command);
  EXPECT_TRUE(bytes);
  return std::move(bytes).value();
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

/// Applies `commands` at index first, first + 1 ... as one run.
inline std::vector<std::string> apply(Store& store, std::uint64_t first,
                                      const std::vector<Bytes>& commands) {
  std::vector<node::Command> run;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    run.push_back({{raft::Term(1), raft::Index(first + i)}, commands[i].view()});
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

/// A copy of the store's folder as a crash would leave it. Nobody writes meanwhile, but RocksDB may
/// still remove what it has compacted: then the copy is made anew.
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

}  // namespace leasehold::kv::testing
