// The snapshot of a store in memory (memory_store.cc), and its tables. Not for other rooms.
#pragma once

#include <leasehold/base/coding.h>
#include <leasehold/base/result.h>
#include <leasehold/kv/slots.h>
#include <leasehold/kv/users.h>
#include <leasehold/raft/types.h>
#include <leasehold/replica/state_machine.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace leasehold::kv {

/// A snapshot that is a string.
class EncodedSnapshot final : public replica::Snapshot {
 public:
  EncodedSnapshot(raft::Index last, std::string bytes) : last_(last), bytes_(std::move(bytes)) {}
  raft::Index last() const override { return last_; }
  std::uint64_t size() const override { return bytes_.size(); }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override;

 private:
  const raft::Index last_;
  const std::string bytes_;
};

void put_users(std::string& out, const Users& users);
/// Errors: corrupted.
Result<UserMap> take_users(BigReader& in);

void put_slots(std::string& out, const SlotMap& slots);
/// Errors: corrupted.
Result<SlotMap> take_slots(BigReader& in);

}  // namespace leasehold::kv
