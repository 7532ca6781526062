// Store: a revisioned key-value store as a replicated state machine.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/node/state_machine.h>
#include <leasehold/raft/types.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace leasehold::kv {

/// What stands under a key. Revisions count the commands that changed anything, over the whole
/// store, from 1 on; all keys that one command changes get the same one.
struct Value {
  Bytes bytes;
  std::uint64_t create_revision = 0;  ///< when the key came into being
  std::uint64_t mod_revision = 0;     ///< when it was last written
  std::uint64_t version = 0;          ///< writes since it came into being, from 1 on
};

/// The read side. apply() runs on one thread (see node::StateMachine); every other method may run
/// on any thread meanwhile.
///
/// A command takes effect at one instant: no reader sees a part of it, and what one read has seen,
/// no later read on any thread has not. After apply() has returned, every read sees its effects.
///
/// apply() takes each index once: a command at or below the applied index is a bug of the caller
/// and asserts. So the caller starts at durable_index() + 1.
///
/// A store whose disk failed answers every read with `io` and every command with store_failed, from
/// the first failure on; it never serves what may be old.
class Store : public node::StateMachine {
 public:
  /// The value, or none if the key does not exist. Errors: io, corrupted (the store has failed).
  virtual Result<std::optional<Value>> get(std::string_view key) const = 0;
  /// get() without the value's bytes.
  virtual Result<bool> exists(std::string_view key) const = 0;
  /// How many keys exist. After a failure: the last count.
  virtual std::uint64_t size() const = 0;
  /// The newest revision; 0 for a store that never changed.
  virtual std::uint64_t revision() const = 0;
  /// The last index given to apply(), or durable_index() before the first call.
  virtual raft::Index applied_index() const = 0;
};

}  // namespace leasehold::kv
