// What each command does. Both stores evaluate here, so that no rule is written twice.
#pragma once

#include <leasehold/kv/command.h>
#include <leasehold/kv/events.h>
#include <leasehold/kv/sessions.h>
#include <leasehold/kv/store.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace leasehold::kv {

/// What the evaluation reads and writes. It sees the writes of earlier commands. Of one command,
/// everything that is read is read before the first write, and no key is written twice, so an
/// implementation may hold the writes back until evaluate() has returned.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Result<std::optional<Value>> load(std::string_view key) = 0;
  virtual void put(std::string_view key, Value value) = 0;
  virtual void erase(std::string_view key) = 0;
  /// The largest token that has written the key; it outlives the key. 0: none.
  virtual Result<grant::FencingToken> fence(std::string_view key) = 0;
  virtual void put_fence(std::string_view key, grant::FencingToken token) = 0;
  /// Asked for by commands that look at leases or change them, with no step under way. Changes are
  /// made at once. After evaluate() has returned and what else it wrote is shown, the
  /// implementation looks at the step, which is empty if nothing was changed, and keeps it.
  virtual grant::LeaseTable& leases() = 0;
  /// What the command changed, if it raised the revision: to be told to watchers once everything
  /// that it wrote is shown to readers, and not before. Views, valid during the call.
  virtual void tell(const Revision& revision) = 0;
};

/// The numbers that stand beside the keys.
struct Counters {
  std::uint64_t revision = 0;  ///< commands that changed anything
  std::uint64_t keys = 0;      ///< keys that exist
};

/// Decodes and runs one command, an entry of `term`. A command that changes something raises
/// counters.revision by one, and whatever it writes carries that revision. Returns the reply,
/// encoded; it tells of every rule that was broken, and then nothing was changed but perhaps a
/// session. An error is the backend's: no key was changed, and the store must not go on.
Result<Bytes> evaluate(std::string_view command, raft::Term term, Backend& backend,
                       Sessions& sessions, Counters& counters);

}  // namespace leasehold::kv
