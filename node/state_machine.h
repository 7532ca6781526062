// What Leasehold replicates: the interface that a user implements.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/raft/types.h>

#include <string_view>
#include <vector>

namespace leasehold::node {

/// One committed command.
struct Command {
  raft::LogId id;
  std::string_view bytes;  ///< as it was proposed; valid during the call
};

/// A deterministic state machine. Every replica applies the same commands in the same order.
///
/// apply() is called on one thread. Reads are the implementation's own affair: they may run on any
/// thread, while apply() runs, once the lease (or a read index) has justified them.
class StateMachine {
 public:
  virtual ~StateMachine() = default;

  /// The index of the last command whose effect survives a crash of the machine or was present when
  /// this was opened; 0 when empty. Commands above it are applied again after a restart.
  virtual raft::Index durable_index() const = 0;

  /// Applies a run of consecutive committed entries, of which only the commands are given; `last`
  /// is the index of the last entry of the run, which may be none of the commands. The state after
  /// the call, and `last` with it, must be visible to readers that arrive later. Returns one result
  /// per command, in order. A command that does not decode or breaks a rule has a result that says
  /// so; it is never skipped silently.
  virtual std::vector<Bytes> apply(const std::vector<Command>& commands, raft::Index last) = 0;
};

}  // namespace leasehold::node
