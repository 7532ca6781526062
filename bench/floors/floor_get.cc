// floor_get: what looking a value up costs by itself, without a network and without a lease.
#include <leasehold/bench/report.h>
#include <leasehold/bench/workload.h>
#include <leasehold/kv/command.h>
#include <leasehold/kv/memory_store.h>
#include <leasehold/kv/rocksdb/rocksdb_store.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::bench {
namespace {

constexpr std::uint64_t kKeysPerBatch = 500;

struct Options {
  std::string dir = ".";
  Workload workload{Operation::get, 100'000, 256};
  std::size_t cache_mebibytes = 64;
  unsigned blocks = 600;
  unsigned calls = 1000;
  bool json = false;
};

/// Writes every key once, as committed commands.
Result<void> fill(kv::Store& store, const Workload& workload) {
  std::uint64_t index = store.durable_index().value();
  for (std::uint64_t key = 0; key < workload.keys;) {
    std::vector<Bytes> owners;
    std::vector<replica::Command> commands;
    for (; key < workload.keys && commands.size() < kKeysPerBatch; ++key) {
      const std::string name = key_name(key);
      const std::string value = key_value(key, workload.value_bytes);
      auto encoded = kv::encode_command(kv::Set{name, value});
      if (!encoded) return encoded.error();
      owners.push_back(std::move(encoded).value());
      commands.push_back({{raft::Term(1), raft::Index(++index)}, owners.back().view()});
    }
    store.apply(commands, raft::Index(index));
  }
  return {};
}

Result<void> lookup_block(const kv::Store& store, const Options& options, Random& random,
                          Histogram& picoseconds) {
  std::vector<std::string> keys;
  for (unsigned i = 0; i < options.calls; ++i) {
    keys.push_back(key_name(random.below(options.workload.keys)));
  }
  std::size_t bytes = 0;
  const std::uint64_t began = monotonic_ns();
  for (const std::string& key : keys) {
    auto found = store.get(key);
    if (!found) return found.error();
    if (found.value()) bytes += found.value()->bytes.size();
  }
  picoseconds.record((monotonic_ns() - began) * 1000 / options.calls);
  if (bytes != options.calls * options.workload.value_bytes) {
    return Error{ErrorCode::corrupted, "a key that was written is missing"};
  }
  return {};
}

/// A folder that is removed at the end.
struct Folder {
  std::filesystem::path path;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

Result<void> measure(const Options& options) {
  const Folder folder{std::filesystem::path(options.dir) /
                      fmt::format("floor_get.{}", monotonic_ns())};
  std::vector<std::unique_ptr<kv::Store>> stores;
  stores.push_back(std::make_unique<kv::MemoryStore>());
  for (const bool cached : {false, true}) {
    kv::RocksdbStore::Options store_options;
    store_options.dir = (folder.path / (cached ? "cached" : "plain")).string();
    store_options.cluster_id = 1;
    store_options.id = raft::NodeId(1);
    if (cached) {
      store_options.cache = std::make_shared<kv::RecordCache>(options.cache_mebibytes << 20U);
    }
    auto opened = kv::RocksdbStore::open(std::move(store_options));
    if (!opened) return opened.error();
    stores.push_back(std::move(opened).value());
  }
  for (const auto& store : stores) {
    auto filled = fill(*store, options.workload);
    if (!filled) return filled;
  }
  NamedHistograms rows = {
      {"memory", Histogram()}, {"RocksDB", Histogram()}, {"RocksDB, cache", Histogram()}};
  Random random(1);
  // A B C C B A.
  for (unsigned turn = 0; turn < options.blocks; ++turn) {
    const std::size_t at = turn % 6;
    const std::size_t row = at < 3 ? at : 5 - at;
    auto done = lookup_block(*stores[row], options, random, rows[row].second);
    if (!done) return done;
  }
  std::cout << (options.json ? json_of(rows, "ps") + "\n"
                             : fmt::format("{} keys, {}-byte values\n{}", options.workload.keys,
                                           options.workload.value_bytes,
                                           table_of(rows, 1000.0, "ns per get")));
  return {};
}

int run(int argc, char** argv) {
  CLI::App app(
      "What looking a value up costs by itself, in nanoseconds: in the store in memory, in that\n"
      "on RocksDB, and there behind its cache, interleaved; each value is the mean of a block of "
      "calls.\nThe cache fills as keys are read.");
  Options options;
  app.add_option("--dir", options.dir, "a folder for the database")->capture_default_str();
  app.add_option("--keys", options.workload.keys, "how many keys")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--value-bytes", options.workload.value_bytes, "bytes of a value")
      ->capture_default_str();
  app.add_option("--cache", options.cache_mebibytes, "MiB of the cache")->capture_default_str();
  app.add_option("--blocks", options.blocks, "blocks, in the order A B C C B A")
      ->capture_default_str();
  app.add_option("--calls", options.calls, "calls of a block")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_flag("--json", options.json, "print JSON instead of a table");
  CLI11_PARSE(app, argc, argv);

  const auto done = measure(options);
  if (!done) std::cerr << "floor_get: " << done.error().message << "\n";
  return done ? 0 : 1;
}

}  // namespace
}  // namespace leasehold::bench

int main(int argc, char** argv) {
  return leasehold::bench::run(argc, argv);
}
