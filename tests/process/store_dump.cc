// Prints what the key-value store of a node that does not run holds, as a starting node reads it.
//
//   store_dump FOLDER NODE CLUSTER-HEX
//
// Opening writes to the folder: give it a copy. Status: 0 printed, 1 the store refuses the folder
// or a read of it (the reason is on stderr), 2 wrong arguments.
#include <leasehold/kv/rocksdb/rocksdb_store.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold::kv {
namespace {

constexpr int kRefused = 1, kBadArguments = 2;
constexpr std::size_t kKeysAtOnce = 1000;

int refused(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return kRefused;
}

/// One line for each key: digests of key and value, and the revisions.
int print_keys(const Store& store) {
  std::optional<std::string> after;
  for (;;) {
    const auto keys = store.keys_after(
        after ? std::optional<std::string_view>(*after) : std::nullopt, kKeysAtOnce);
    if (!keys) return refused(keys.error());
    for (const std::string& key : keys.value()) {
      const auto value = store.get(key);
      if (!value) return refused(value.error());
      if (!value.value()) return refused({ErrorCode::corrupted, "a listed key has no value"});
      const Value& found = *value.value();
      std::printf("key %zx %" PRIu64 " %" PRIu64 " %" PRIu64 " %zx\n",
                  std::hash<std::string_view>{}(key), found.create_revision, found.mod_revision,
                  found.version, std::hash<std::string_view>{}(found.bytes.view()));
    }
    if (keys.value().size() < kKeysAtOnce) return 0;
    after = keys.value().back();
  }
}

int run(const char* folder, std::uint64_t id, std::uint64_t cluster) {
  RocksdbStoreOptions options;
  options.dir = folder;
  options.cluster_id = cluster;
  options.id = raft::NodeId(id);
  const auto store = RocksdbStore::open(std::move(options));
  if (!store) return refused(store.error());
  const Store& open = *store.value();
  std::printf("durable %" PRIu64 "\n", open.durable_index().value());
  std::printf("revision %" PRIu64 "\n", open.revision());
  std::printf("keys %" PRIu64 "\n", open.size());
  return print_keys(open);
}

}  // namespace
}  // namespace leasehold::kv

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: store_dump FOLDER NODE CLUSTER-HEX\n", stderr);
    return leasehold::kv::kBadArguments;
  }
  return leasehold::kv::run(argv[1], std::strtoull(argv[2], nullptr, 10),
                            std::strtoull(argv[3], nullptr, 16));
}
