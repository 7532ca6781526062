// Stores with random content, their twins, and the archives that they would send.
#pragma once

#include <leasehold/tests/kv/command_source.h>
#include <leasehold/tests/kv/snapshot_support.h>
#include <leasehold/tests/kv/store_support.h>
#include <leasehold/tests/kv/store_twin.h>

#include <filesystem>
#include <set>
#include <string>

namespace leasehold::kv::testing {

inline std::set<std::string> names_in(const std::string& dir) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

/// A store of node 2 with `commands` commands of `seed`, and its twin.
inline void fill(Store& store, Twin& twin, std::uint64_t seed, std::size_t commands) {
  CommandSource source(seed);
  for (std::size_t i = 0; i < commands; ++i) {
    const Bytes command = source.next();
    twin.run(decode_command(command.view()).value());
    apply(store, store.applied_index().value() + 1, {command});
  }
}

inline RocksdbStore::Options node_2(const std::string& dir) {
  auto options = store_options(dir);
  options.id = raft::NodeId(2);
  return options;
}

struct Taken {
  std::string bytes;
  raft::Index last;
  Twin twin;
};

/// What node 2 would send after `commands` commands.
inline Taken archive_of(const std::string& dir, std::uint64_t seed, std::size_t commands) {
  Taken out;
  const auto store = RocksdbStore::open(node_2(dir)).value();
  fill(*store, out.twin, seed, commands);
  const auto snapshot = store->take_snapshot().value();
  out.bytes = bytes_of(*snapshot);
  out.last = snapshot->last();
  return out;
}

}  // namespace leasehold::kv::testing
