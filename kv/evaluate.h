// The effect of each command. Both stores evaluate here, so that no rule is written twice.
#pragma once

#include <leasehold/kv/command.h>
#include <leasehold/kv/comparison.h>
#include <leasehold/kv/events.h>
#include <leasehold/kv/sessions.h>
#include <leasehold/kv/slots.h>
#include <leasehold/kv/store.h>
#include <leasehold/kv/users.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace leasehold::kv {

/// The storage below the evaluation. It sees the writes of earlier commands. One command reads
/// everything before its first write, and writes no key twice, so an implementation may delay the
/// writes until evaluate() has returned.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Result<std::optional<Value>> load(std::string_view key) = 0;
  virtual void put(std::string_view key, Value value) = 0;
  virtual void erase(std::string_view key) = 0;
  /// The largest token that has written the key; it outlives the key. 0: none.
  virtual Result<grant::FencingToken> fence(std::string_view key) = 0;
  /// `first`: the key had none.
  virtual void put_fence(std::string_view key, grant::FencingToken token, bool first) = 0;
  /// Keys that have one, without what this command has put.
  virtual std::size_t fence_count() = 0;
  /// Used by commands that read or change leases, with no step under way. Changes take effect at
  /// once. After evaluate() has returned and its other writes are visible, the implementation reads
  /// the step, which is empty if nothing was changed, and keeps it.
  virtual grant::LeaseTable& leases() = 0;
  /// Changes are shown at once. The implementation keeps what they changed.
  virtual Users& users() = 0;
  /// Null: the state is of no group that shares slots with others. The implementation keeps what
  /// the command changed, and shows it around its write (Slots).
  virtual Slots* slots() { return nullptr; }
  /// The ids of leases and sessions that are chosen here are above it: the same at all replicas.
  virtual std::uint64_t ids_above() { return 0; }
  /// No command has a revision from the newest one to this one, which is above it.
  virtual void skip_to(std::uint64_t /*revision*/) {}
  /// After the command the implementation notes its sum, if it keeps one.
  virtual void compare() {}
  virtual void hear(const StateReport& /*report*/) {}
  /// The changes of the command, if it raised the revision. Send them to watchers once readers see
  /// all its writes, and not before. Views, valid during the call.
  virtual void tell(const Revision& revision) = 0;
};

/// The numbers that a store keeps in addition to the keys.
struct Counters {
  std::uint64_t revision = 0;  ///< commands that changed anything
  std::uint64_t keys = 0;      ///< keys that exist
};

/// Decodes and runs one command of the log. A command that changes something raises
/// counters.revision by one, and everything that it writes carries that revision. Returns the
/// reply, encoded. If the reply names a broken rule, nothing was changed but perhaps a session. An
/// error is the backend's: no key was changed, and the store must not continue.
Result<Bytes> evaluate(const replica::Command& command, Backend& backend, Sessions& sessions,
                       Counters& counters);

}  // namespace leasehold::kv
