// A state machine in C, as the engine calls it.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/c/leasehold.h>
#include <leasehold/replica/state_machine.h>

#include <cstddef>
#include <memory>
#include <vector>

struct leasehold_results {
  std::vector<leasehold::Bytes> all;
};

namespace leasehold::c {

class Machine final : public replica::StateMachine {
 public:
  /// A copy of `given`, which may be of an earlier version. Errors: invalid_argument.
  static Result<std::unique_ptr<Machine>> make(const leasehold_machine* given);

  raft::Index durable_index() const override;
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands,
                           raft::Index last) override;
  Result<raft::Index> make_durable() override;
  Result<std::shared_ptr<const replica::Snapshot>> take_snapshot() override;
  Result<void> install_snapshot(const replica::Snapshot& snapshot) override;

 private:
  explicit Machine(const leasehold_machine& functions) : functions_(functions) {}

  const leasehold_machine functions_;
  /// Apply thread: kept for its memory.
  std::vector<leasehold_command> commands_;
};

}  // namespace leasehold::c
