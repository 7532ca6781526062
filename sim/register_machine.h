// The state machine of the simulator: registers.
#pragma once

#include <leasehold/node/state_machine.h>

#include <cstdint>
#include <map>

namespace leasehold::sim {

/// Registers by number. Lives on a node's disk: what was not made durable is gone after a crash,
/// and its commands are applied again.
class RegisterMachine : public node::StateMachine {
 public:
  /// The command that sets `key` to `value`. Its result is encode_value(value).
  static Bytes encode_set(std::uint64_t key, std::uint64_t value);
  static Bytes encode_value(std::uint64_t value);

  raft::Index durable_index() const override { return durable_.applied; }
  std::vector<Bytes> apply(const std::vector<node::Command>& commands, raft::Index last) override;

  /// 0 for a register that was never set.
  std::uint64_t value(std::uint64_t key) const;
  raft::Index applied() const { return present_.applied; }

  /// Everything applied so far survives a crash.
  Result<raft::Index> make_durable() override {
    durable_ = present_;
    return durable_.applied;
  }
  void crash() { present_ = durable_; }

  /// Commands that did not decode. None is ever proposed, so one is a bug.
  std::uint64_t malformed() const { return malformed_; }

 private:
  struct State {
    std::map<std::uint64_t, std::uint64_t> values;
    raft::Index applied;
  };
  State present_;
  State durable_;
  std::uint64_t malformed_ = 0;
};

}  // namespace leasehold::sim
