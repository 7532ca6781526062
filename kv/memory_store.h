// MemoryStore: the key-value store in memory. Nothing survives the object: the log is applied from
// its beginning.
#pragma once

#include <leasehold/kv/store.h>

#include <memory>

namespace leasehold::kv {

/// See store.h. durable_index() is always 0, and make_durable() is unsupported: a log that was cut
/// could never restore this store. Snapshots are copies of everything, in memory. A read takes the
/// short lock of one of many shards (a read of several keys those of several) and copies no bytes
/// of the value. keys_after() and rows() visit every key, whatever `count` is.
class MemoryStore final : public Store {
 public:
  /// `ids_above`: see Backend.
  explicit MemoryStore(EventHistory::Limits limits = {}, std::uint64_t ids_above = 0);
  ~MemoryStore() override;

  raft::Index durable_index() const override;
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands,
                           raft::Index last) override;

  Result<raft::Index> make_durable() override;
  /// Everything is encoded during the call, while apply() waits. Any thread.
  Result<std::shared_ptr<const replica::Snapshot>> take_snapshot() override;
  /// Errors: corrupted, unsupported_format, io (the snapshot's own).
  Result<void> install_snapshot(const replica::Snapshot& snapshot) override;

  Result<std::optional<Value>> get(std::string_view key) const override;
  Result<std::vector<std::optional<Value>>> get_all(const std::vector<std::string_view>& keys,
                                                    Load load) const override;
  Result<std::vector<std::string>> keys_after(std::optional<std::string_view> after,
                                              std::size_t count) const override;
  Result<Rows> rows(std::string_view prefix, std::optional<std::string_view> after,
                    std::size_t count, Load load) const override;
  Result<SlotRows> slot_rows(const SlotSet& slots, std::optional<std::string_view> after,
                             Load load) const override;
  Result<SlotFences> slot_fences(const SlotSet& slots,
                                 std::optional<std::string_view> after) const override;
  Result<grant::FencingToken> fence(std::string_view key) const override;
  Result<std::optional<std::size_t>> length(std::string_view key) const override;
  Result<std::vector<replica::SessionTable::Session>> sessions() const override;
  Result<std::optional<FoundLease>> find_lease(grant::LeaseId id,
                                               std::string_view name) const override;
  Result<std::optional<grant::LeaseTable::Lease>> lease_terms(grant::LeaseId id,
                                                              std::string_view name) const override;
  Result<std::vector<grant::LeaseTable::Lease>> leases_after(grant::LeaseId after,
                                                             std::size_t count) const override;
  Result<LeaseChanges> lease_changes(std::uint64_t cursor) const override;
  const EventHistory& events() const override;
  const Users& users() const override;
  const Slots& slots() const override;
  std::uint64_t size() const override;
  std::uint64_t fences() const override;
  std::uint64_t revision() const override;
  raft::Index applied_index() const override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace leasehold::kv
