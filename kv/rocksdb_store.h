// RocksdbStore: the key-value store on RocksDB, without a write-ahead log: the Raft log is one.
// Format: docs/formats/kv.md.
#pragma once

#include <leasehold/kv/store.h>

#include <functional>
#include <memory>
#include <string>

namespace leasehold::kv {

struct RocksdbStoreOptions {
  /// The database's own folder. Made, with its parents, if it does not exist.
  std::string dir;
  std::uint64_t cluster_id = 0;
  raft::NodeId id;  ///< of this node, above 0
  /// Called once, on the thread that met it, when the disk fails: the node has to stop. May be
  /// empty.
  std::function<void(Error)> on_failure;
};

/// See store.h. Each apply() is one atomic write of its data, the applied index and the revision
/// into memory, which RocksDB flushes in its own time. After a crash durable_index() is what was
/// flushed; the destructor flushes, so that a planned restart applies nothing again.
class RocksdbStore final : public Store {
 public:
  using Options = RocksdbStoreOptions;

  /// Errors, each naming the directory and what to do: invalid_argument, in_use, wrong_cluster (it
  /// belongs to another cluster or node), unsupported_format (with both numbers), corrupted, io.
  static Result<std::unique_ptr<RocksdbStore>> open(Options options);
  ~RocksdbStore() override;
  RocksdbStore(const RocksdbStore&) = delete;
  RocksdbStore& operator=(const RocksdbStore&) = delete;

  /// What was durable at open() or by the last flush() since.
  raft::Index durable_index() const override;
  std::vector<Bytes> apply(const std::vector<node::Command>& commands, raft::Index last) override;

  Result<std::optional<Value>> get(std::string_view key) const override;
  Result<std::vector<std::optional<Value>>> get_all(const std::vector<std::string_view>& keys,
                                                    Load load) const override;
  Result<std::vector<std::string>> keys_after(std::optional<std::string_view> after,
                                              std::size_t count) const override;
  Result<bool> exists(std::string_view key) const override;
  std::uint64_t size() const override;
  std::uint64_t revision() const override;
  raft::Index applied_index() const override;

  /// Makes everything applied so far durable. Blocks on the disk; any thread.
  Result<void> flush();

 private:
  class Impl;
  explicit RocksdbStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold::kv
