// The state machine of a witness.
#pragma once

#include <leasehold/replica/state_machine.h>

#include <atomic>
#include <vector>

namespace leasehold::node {

/// Takes every command and keeps nothing. It is always durable, because nothing can be lost. It has
/// also "applied" the entries before the beginning of a witness's log, so a start begins there.
class WitnessMachine final : public replica::StateMachine {
 public:
  raft::Index durable_index() const override { return raft::Index(applied_.load()); }
  /// The results are empty: no caller gets them (Driver refuses the callers of a witness).
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands,
                           raft::Index last) override {
    applied_.store(last.value());
    return std::vector<Bytes>(commands.size());
  }
  Result<raft::Index> make_durable() override { return durable_index(); }
  /// The log begins after `index`. On the thread of apply(), or before the first call.
  void begin_at(raft::Index index) { applied_.store(index.value()); }

 private:
  std::atomic<std::uint64_t> applied_{0};
};

}  // namespace leasehold::node
