// Changes of keys, revision by revision, for watchers.
#pragma once

#include <leasehold/grant/lease_table.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::kv {

/// What happened to a key.
enum class EventKind : std::uint8_t {
  set,      ///< it was written
  deleted,  ///< a command deleted it
  expired,  ///< its lease's time was over
  revoked,  ///< its lease was ended before its time was over
};

/// The kind of command, where EventKind does not say it.
enum class EventCause : std::uint8_t {
  none,
  incr_by,
  append,
  set_range,
  rename,
  attach_key,
  expire_key,  ///< the key was given a time to live; if it is gone, the time was already over
  persist,     ///< its time to live was taken away
  incr_by_float,
  copy,
  set_bit,
};

/// What one command did to one key; of several changes in a transaction only the last state. A
/// view, valid while its revision lives.
struct Event {
  EventKind kind = EventKind::set;
  EventCause cause = EventCause::none;
  /// For `set`: `value` is the value of the key. False: the value was too long to be kept.
  bool value_kept = false;
  std::string_view key;
  std::string_view value;
  std::uint64_t create_revision = 0;  ///< of `set`; else 0
  std::uint64_t version = 0;          ///< of `set`; else 0
  /// `set`: the key is attached to it. `expired`, `revoked`: it went with it. 0: none.
  grant::LeaseId lease{};
};

/// Everything that one command changed. A watcher that has seen all of it and remembers its number
/// can continue after it, at any replica.
struct Revision {
  std::uint64_t number = 0;
  /// Ascending by key, each key once. Empty: only leases began or ended.
  std::vector<Event> events;
  /// Owns the memory of the events' views; none: the caller does.
  std::shared_ptr<const void> owner;
};

/// The latest revisions of one store, in memory. Every replica has the same ones, as far back as
/// its own memory goes: revisions that the replica applied since its store was opened, or since a
/// snapshot replaced the store, and no more than the limits allow.
///
/// A revision is here once readers of the store see its effects, and before apply() has returned:
/// it is always committed, and always visible in the store.
///
/// Every command adds its revision, with or without watchers. So that is cheap: the changes are
/// copied into memory that is written from front to end, and forgotten from the front, without an
/// allocation for each.
class EventHistory {
 public:
  struct Limits {
    /// Bytes of keys, values and their overhead, roughly. Older revisions are forgotten.
    std::size_t bytes_max = std::size_t{2} << 20U;
    std::size_t events_max = 100'000;
    /// A longer value is not kept: read the key instead.
    std::size_t value_bytes_max = std::size_t{16} << 10U;
  };
  struct Batch {
    /// Some revision between the requested one and the oldest one here was forgotten, or never
    /// known; or the history has begun again, below the requested one.
    bool lost = false;
    /// Consecutive, from the requested one on.
    std::vector<Revision> revisions;
  };
  struct Figures {
    std::uint64_t first = 0;  ///< the oldest revision that is here, or head + 1
    std::uint64_t head = 0;   ///< the newest one
    std::size_t events = 0;
    std::size_t bytes = 0;
    std::uint64_t forgotten = 0;  ///< events, because of the limits
  };
  using Listener = std::uint64_t;

  EventHistory() : EventHistory(Limits()) {}
  explicit EventHistory(Limits limits);
  EventHistory(const EventHistory&) = delete;
  EventHistory& operator=(const EventHistory&) = delete;

  // Any thread.

  /// At most `count` revisions from `from` on; none yet if `from` is the next one.
  Batch read(std::uint64_t from, std::size_t count) const;
  /// The newest revision that is published; 0: none yet.
  std::uint64_t head() const { return head_.load(std::memory_order_acquire); }
  Figures figures() const;
  /// Calls `news` after revisions were added or all were forgotten: on the thread of apply(), so it
  /// must be quick. After forget() has returned it is not called any more.
  Listener listen(std::function<void()> news) const;
  void forget(Listener listener) const;

  // The thread of apply().

  /// Takes a revision, which follows the one that was taken before, or the head. No reader sees it
  /// yet.
  void stage(const Revision& revision);
  /// Shows the staged revisions.
  void publish();
  /// Forgets the staged revisions.
  void unstage();
  /// Nothing has a revision from the staged ones to this one, which is above them: what was before
  /// is forgotten with the next publish().
  void skip_to(std::uint64_t revision);
  /// Another state, of this revision, has replaced the store: nothing before it is known.
  void restart(std::uint64_t revision);

 private:
  /// Bytes of some revisions, one after the other. Written bytes never change.
  struct Chunk {
    explicit Chunk(std::size_t size) : bytes(new char[size]), capacity(size) {}
    const std::unique_ptr<char[]> bytes;
    const std::size_t capacity;
    std::size_t used = 0;  ///< of the thread of apply()
  };
  /// Where a revision is.
  struct Place {
    std::shared_ptr<const Chunk> chunk;  ///< null: it has no events
    std::uint32_t offset = 0;
    std::uint32_t events = 0;
    std::size_t bytes = 0;  ///< of all of it
  };
  char* room_for(std::size_t bytes);
  static Revision decode(std::uint64_t number, const Place& place);
  void tell() const;
  /// The caller holds mutex_.
  void forget_all(std::uint64_t head);

  const Limits limits_;
  const std::size_t chunk_bytes_;
  // Used by the thread of apply().
  std::shared_ptr<Chunk> chunk_;  ///< that is being filled
  std::vector<Place> staged_;
  std::optional<std::uint64_t> skips_to_;  ///< the staged ones follow this one

  mutable std::mutex mutex_;
  /// Invariant: those of consecutive revisions, and the last one is the head's.
  std::deque<Place> places_;
  std::size_t events_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t forgotten_ = 0;
  std::atomic<std::uint64_t> head_{0};

  mutable std::mutex listeners_mutex_;
  mutable std::map<Listener, std::function<void()>> listeners_;
  mutable Listener next_listener_ = 1;
};

/// The keys of a watcher: some by name, some by prefix.
class KeyFilter {
 public:
  void add_key(std::string_view key) { keys_.emplace(key); }
  /// The empty one: every key.
  void add_prefix(std::string_view prefix) { prefixes_.emplace(prefix); }
  bool empty() const { return keys_.empty() && prefixes_.empty(); }
  bool wants(std::string_view key) const;

  const std::set<std::string, std::less<>>& keys() const { return keys_; }
  const std::set<std::string, std::less<>>& prefixes() const { return prefixes_; }

 private:
  std::set<std::string, std::less<>> keys_;
  std::set<std::string, std::less<>> prefixes_;
};

}  // namespace leasehold::kv
