// A store that asks another one, for tests that look at what it is asked.
#pragma once

#include <leasehold/kv/store.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server {

class StoreOver : public kv::Store {
 public:
  /// `store` outlives it.
  explicit StoreOver(kv::Store& store) : store_(store) {}

  Result<std::vector<std::string>> keys_after(std::optional<std::string_view> after,
                                              std::size_t count) const override {
    return store_.keys_after(after, count);
  }
  Result<std::optional<kv::Value>> get(std::string_view key) const override {
    return store_.get(key);
  }
  Result<std::vector<std::optional<kv::Value>>> get_all(const std::vector<std::string_view>& keys,
                                                        kv::Load load) const override {
    return store_.get_all(keys, load);
  }
  Result<kv::Rows> rows(std::string_view prefix, std::optional<std::string_view> after,
                        std::size_t count, kv::Load load) const override {
    return store_.rows(prefix, after, count, load);
  }
  Result<kv::SlotRows> slot_rows(const kv::SlotSet& slots, std::optional<std::string_view> after,
                                 kv::Load load) const override {
    return store_.slot_rows(slots, after, load);
  }
  Result<kv::SlotFences> slot_fences(const kv::SlotSet& slots,
                                     std::optional<std::string_view> after) const override {
    return store_.slot_fences(slots, after);
  }
  Result<grant::FencingToken> fence(std::string_view key) const override {
    return store_.fence(key);
  }
  Result<std::optional<std::size_t>> length(std::string_view key) const override {
    return store_.length(key);
  }
  Result<std::vector<replica::SessionTable::Session>> sessions() const override {
    return store_.sessions();
  }
  Result<std::optional<kv::FoundLease>> find_lease(grant::LeaseId id,
                                                   std::string_view name) const override {
    return store_.find_lease(id, name);
  }
  Result<std::optional<grant::LeaseTable::Lease>> lease_terms(
      grant::LeaseId id, std::string_view name) const override {
    return store_.lease_terms(id, name);
  }
  Result<std::vector<grant::LeaseTable::Lease>> leases_after(grant::LeaseId after,
                                                             std::size_t count) const override {
    return store_.leases_after(after, count);
  }
  Result<kv::LeaseChanges> lease_changes(std::uint64_t cursor) const override {
    return store_.lease_changes(cursor);
  }
  const kv::EventHistory& events() const override { return store_.events(); }
  const kv::Users& users() const override { return store_.users(); }
  const kv::Slots& slots() const override { return store_.slots(); }
  std::uint64_t size() const override { return store_.size(); }
  std::uint64_t fences() const override { return store_.fences(); }
  std::uint64_t revision() const override { return store_.revision(); }
  raft::Index applied_index() const override { return store_.applied_index(); }
  raft::Index durable_index() const override { return store_.durable_index(); }
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands,
                           raft::Index last) override {
    return store_.apply(commands, last);
  }

 private:
  kv::Store& store_;
};

}  // namespace leasehold::server
