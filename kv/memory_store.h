// MemoryStore: the key-value store in memory. Nothing survives the object: the log is applied anew.
#pragma once

#include <leasehold/kv/store.h>

#include <memory>

namespace leasehold::kv {

/// See store.h. durable_index() is always 0. A read takes the short lock of one of many
/// shards (a read of several keys those of several) and copies no bytes of the value. keys_after()
/// looks at every key, whatever `count` is.
class MemoryStore final : public Store {
 public:
  MemoryStore();
  ~MemoryStore() override;

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

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold::kv
