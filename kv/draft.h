// The changes of one command, before they are made. Not for other rooms.
#pragma once

#include <leasehold/kv/evaluate.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace leasehold::kv {

/// What a command has written so far, over the backend. No key reaches the backend before commit();
/// a draft that is destroyed without commit() rolls back its changes of the leases.
class Draft {
 public:
  static constexpr std::size_t kKeptBytesMax = kReplyBytesMax;

  Draft(Backend& backend, Counters& counters)
      : backend_(backend), counters_(counters), slots_(backend.slots()), keys_(counters.keys) {}
  ~Draft() {
    if (leases_ != nullptr) leases_->roll_back();
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  /// It fails if the key's slot is not here.
  Result<std::optional<Value>> load(std::string_view key);
  /// Whether this group has the slot of the key, or of a lease's name; if not, the reply has to be
  /// not_here().
  bool is_here(std::string_view key);
  std::optional<ErrorReply> not_here() const;
  /// For a command that may name one key thousands of times: load() asks the backend once, as long
  /// as the values have at most kKeptBytesMax bytes together.
  void keep_loaded() { keeps_loaded_ = true; }
  /// load() keeps all values, and fails when they have more bytes than this together. Call it
  /// first.
  void limit_loads(std::uint64_t bytes) {
    keeps_loaded_ = true;
    load_limit_ = bytes;
  }
  /// Whether load() failed for that reason.
  bool loads_too_much() const { return loads_too_much_; }
  /// `old`: what load() gave. The key is attached to `lease`: either its present lease, or
  /// cannot_attach() has allowed it.
  void write(std::string_view key, Bytes bytes, const std::optional<Value>& old,
             grant::LeaseId lease);
  /// Writes a key that does not exist, and whose name is not in the command: the draft keeps the
  /// name.
  void write_made(std::string key, Bytes bytes, grant::LeaseId lease) {
    write(*made_.insert(std::move(key)).first, std::move(bytes), std::nullopt, lease);
  }
  /// Whether write_made() wrote this key; it may be deleted again.
  bool has_made(std::string_view key) const { return made_.find(key) != made_.end(); }
  void erase(std::string_view key, const Value& old);
  /// Moves `value`, the value of `from`, to another key, whose value was `old`. A lease moves with
  /// it.
  void move(std::string_view from, const Value& value, std::string_view to,
            const std::optional<Value>& old);
  /// Whose command it is; null: everybody's. Outlives the draft.
  void act_as(const ActAs* acting) { acting_ = acting; }
  /// The cause that watchers see for the writes from here on.
  void set_cause(EventCause cause) { cause_ = cause; }

  // The leases.
  /// The lease that a key stays attached to, or none.
  static grant::LeaseId lease_of(const std::optional<Value>& old) {
    return old ? old->lease : grant::LeaseId(0);
  }
  /// Why a key may not be attached to a lease that a client holds, or none.
  std::optional<ErrorReply> cannot_attach(const std::optional<Value>& old, grant::LeaseId lease);
  /// Why the command's user may not renew, revoke or attach to this lease of a client, or none.
  std::optional<ErrorReply> not_owner(grant::LeaseId lease);
  grant::LeaseTable::Granted grant(grant::LeaseTable::Request request);
  /// False: there is no such lease, or it is the lease of a key that ends by itself.
  bool renew(grant::LeaseId id) { return !grant::is_of_key(id) && leases().renew(id); }
  bool revoke(grant::LeaseId id) {
    return !grant::is_of_key(id) && erase_ended(leases().end(id), EventKind::revoked, id);
  }
  /// A key whose slot is not here stays: it is as it is copied, or nobody's.
  bool expire(const SeenLease& seen);
  /// Why this number of keys cannot get leases of their own; none: they can.
  std::optional<ErrorReply> cannot_time(std::size_t keys);
  /// Writes a key that lives for `ttl` from now on; if its time is already over, the key is
  /// deleted. cannot_time() has said that there is room. `end_ms`: see Set.
  void write_timed(std::string_view key, Bytes bytes, const std::optional<Value>& old, KeyTime ttl,
                   std::int64_t end_ms);
  /// Keys that went with leases.
  std::size_t ended_keys() const { return ended_keys_; }
  const grant::LeaseTable& table() { return leases(); }
  /// Why `token` may not write `key`, or none: then it is the key's token from now on.
  Result<std::optional<ErrorReply>> pass_fence(std::string_view key, grant::FencingToken token);

  /// That of this command, if it changes anything.
  std::uint64_t revision() const { return counters_.revision + 1; }
  std::uint64_t keys() const { return keys_; }
  std::size_t written_bytes() const { return written_bytes_; }
  /// Work that does not follow from the bytes that are loaded and written, in kStepsMax. None: it
  /// may be done; else the command does nothing.
  std::optional<ErrorReply> take_steps(std::uint64_t steps);

  void commit();

 private:
  struct Change {
    std::optional<Value> value;  ///< none: erased
    /// Before the command. A key that the command made and deleted again is not sent to watchers.
    bool existed = false;
    EventKind kind = EventKind::set;
    EventCause cause = EventCause::none;
    grant::LeaseId ended{};  ///< the lease that it went with
  };

  Result<void> keep(std::string_view key, const std::optional<Value>& value);
  grant::LeaseTable& leases();
  bool erase_ended(const grant::LeaseTable::Keys* keys, EventKind kind, grant::LeaseId id);
  void change(std::string_view key, bool existed, Change change);
  static Event event_of(std::string_view key, const Change& change);

  Backend& backend_;
  Counters& counters_;
  const Slots* const slots_;               ///< null: all keys are here
  std::optional<std::uint32_t> not_here_;  ///< the slot that is not
  std::uint64_t keys_;
  std::size_t written_bytes_ = 0;
  std::uint64_t steps_ = 0;
  bool keeps_loaded_ = false;
  std::map<std::string, std::optional<Value>, std::less<>> loaded_;
  std::uint64_t loaded_bytes_ = 0;           ///< of the values in loaded_
  std::optional<std::uint64_t> load_limit_;  ///< then loaded_bytes_ is at most this
  bool loads_too_much_ = false;
  std::set<std::string, std::less<>> made_;  ///< a set: views of its strings stay valid
  /// The keys are views into the command, into what left the leases, or into what was made.
  std::map<std::string_view, Change> changes_;
  struct Fence {
    grant::FencingToken token;
    bool first = false;  ///< the key had none
  };
  std::map<std::string_view, Fence> fences_;
  std::size_t first_fences_ = 0;         ///< of fences_
  grant::LeaseTable* leases_ = nullptr;  ///< once they were asked for
  bool lease_began_or_ended_ = false;
  EventCause cause_ = EventCause::none;
  const ActAs* acting_ = nullptr;
  std::size_t ended_keys_ = 0;
};

}  // namespace leasehold::kv
