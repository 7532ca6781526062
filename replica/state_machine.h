// What Leasehold replicates: the interface that a user implements.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/raft/types.h>
#include <leasehold/replica/held_blocks.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::replica {

/// One committed command.
struct Command {
  raft::LogId id;
  std::string_view bytes;  ///< as proposed; valid during the call
  /// The node whose caller proposed it, as the leader that took it knows its peers: a command
  /// cannot be forwarded in another node's name.
  raft::NodeId origin = raft::kNobody;
};

/// The state of a state machine at one instant, as a sequence of bytes that never changes, even
/// while more is applied. node/file_snapshot.h makes one of a set of files, or of a stream.
class Snapshot {
 public:
  virtual ~Snapshot() = default;
  /// The last index whose effect is in it.
  virtual raft::Index last() const = 0;
  /// Above 0.
  virtual std::uint64_t size() const = 0;
  /// Exactly `bytes` bytes from `offset` on; offset + bytes <= size(). Any thread, one call at a
  /// time. Errors: io, corrupted.
  virtual Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const = 0;
};

/// A deterministic state machine. Every replica applies the same commands in the same order.
///
/// apply() is called on one thread. The implementation decides how to read: reads may run on any
/// thread, while apply() runs, once the lease (or a read index) has justified them.
class StateMachine {
 public:
  virtual ~StateMachine() = default;

  /// The index of the last command whose effect survives a crash of the machine or was present when
  /// this was opened; 0 when empty. Commands above it are applied again after a restart.
  virtual raft::Index durable_index() const = 0;

  /// Applies a run of consecutive committed entries, of which only the commands are passed; `last`
  /// is the index of the last entry of the run, which may be none of the commands. The state after
  /// the call, and `last` with it, must be visible to readers that arrive later. Returns one result
  /// per command, in order. A command that does not decode or breaks a rule has a result that says
  /// so; it is never skipped silently.
  virtual std::vector<Bytes> apply(const std::vector<Command>& commands, raft::Index last) = 0;

  /// Why it can apply nothing more; none: it can. Asked on the thread of apply(), after each call.
  /// If there is an answer, the results of that call are dropped, no caller hears them, no read
  /// sees its index, and the node stops: after its next start it applies the commands once more.
  virtual std::optional<Error> failure() const { return std::nullopt; }

  // Without these three the log is never cut, and a member that lost its data cannot come back.

  /// Makes everything applied before the call durable and returns the new durable_index(): the log
  /// below it may be cut. May block on the disk; called on a separate thread while apply() runs.
  /// Errors: unsupported (this state machine never does), io (the node stops).
  virtual Result<raft::Index> make_durable() { return unsupported("make itself durable"); }

  /// The applied state at some instant during the call. The index of the snapshot is at or above
  /// the last result of make_durable(). Called like make_durable(). Errors: unsupported, io.
  virtual Result<std::shared_ptr<const Snapshot>> take_snapshot() {
    return unsupported("take snapshots");
  }

  /// Replaces everything by the state of `snapshot`, which came from another member. Durable on
  /// return; after a crash at any moment before, the next start finds either the old state or the
  /// new one. Readers see one or the other. Called on the thread of apply(), between two calls, or
  /// before the first. Errors: unsupported, corrupted (the bytes are not a snapshot of this state
  /// machine; the old state stays), io.
  virtual Result<void> install_snapshot(const Snapshot& /*snapshot*/) {
    return unsupported("install snapshots");
  }

  /// What is here already of a snapshot that another member sends, so that it need not be sent.
  /// `arriving` has the size of the whole, and can be read up to `arrived`, which is above 0.
  /// Called like make_durable(), when the first bytes are here, and again as the answer asks.
  virtual HeldAnswer held_blocks(const Snapshot& /*arriving*/, std::uint64_t /*arrived*/) {
    return {};
  }

 private:
  static Error unsupported(const char* what) {
    return Error{ErrorCode::unsupported,
                 std::string("this state machine does not ") + what +
                     ": implement the snapshot functions of replica::StateMachine"};
  }
};

}  // namespace leasehold::replica
