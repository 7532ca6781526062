// What was changed, revision by revision: for those who watch keys.
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
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::kv {

/// What became of a key.
enum class EventKind : std::uint8_t {
  set,      ///< it was written
  deleted,  ///< a command deleted it
  expired,  ///< its lease's time was over
  revoked,  ///< its lease was ended before its time was over
};

/// Which command it was, as far as the kind does not say so.
enum class EventCause : std::uint8_t {
  none,
  incr_by,
  append,
  set_range,
  rename,
  attach_key,
  expire_key,  ///< the key was given a time to live; if it is gone, one that was over
  persist,     ///< its time to live was taken away
};

/// What one command did to one key: of several changes of a transaction only what they left. A
/// view, as long as its revision lives.
struct Event {
  EventKind kind = EventKind::set;
  EventCause cause = EventCause::none;
  /// Of `set`: `value` is what the key has. Otherwise the value was too long to be kept.
  bool value_kept = false;
  std::string_view key;
  std::string_view value;
  std::uint64_t create_revision = 0;  ///< of `set`; else 0
  std::uint64_t version = 0;          ///< of `set`; else 0
  /// `set`: the key is attached to it. `expired`, `revoked`: it went with it. 0: none.
  grant::LeaseId lease{};
};

/// Everything that one command changed. Whoever has seen it whole and remembers its number goes on
/// behind it, at whatever replica.
struct Revision {
  std::uint64_t number = 0;
  /// Ascending by key, each key once. Empty: only leases began or ended.
  std::vector<Event> events;
  /// Keeps what the events are views of; none: somebody else does.
  std::shared_ptr<const void> owner;
};

/// The latest revisions of one store, in memory. Every replica has the same ones, as far back as
/// its own memory goes: what the replica applied since its store was opened, or since a snapshot
/// took the store's place, and no more than the limits allow.
///
/// A revision is here once readers of the store see its effects, and before apply() has returned:
/// never what is not committed, never what the store does not show yet.
///
/// It is made whether anybody watches or not, by every command. So it is cheap: what a command
/// changed is copied into memory that is written from front to end, and forgotten from the front,
/// without an allocation for each.
class EventHistory {
 public:
  struct Limits {
    /// Of keys, values and what holds them; about. What is older is forgotten.
    std::size_t bytes_max = std::size_t{2} << 20U;
    std::size_t events_max = 100'000;
    /// A longer value is not kept: whoever wants it reads the key.
    std::size_t value_bytes_max = std::size_t{16} << 10U;
  };
  struct Batch {
    /// Something between what was asked for and what is here was forgotten, or never known.
    bool lost = false;
    /// Consecutive, from the one that was asked for.
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

  /// At most `count` revisions from `from` on; none yet if `from` is above the head.
  Batch read(std::uint64_t from, std::size_t count) const;
  /// The newest revision that is told; 0: none ever was.
  std::uint64_t head() const { return head_.load(std::memory_order_acquire); }
  Figures figures() const;
  /// Calls `news` after revisions were added or all were forgotten: on the thread of apply(), so it
  /// must be quick. After forget() has returned it is not called any more.
  Listener listen(std::function<void()> news) const;
  void forget(Listener listener) const;

  // The thread of apply().

  /// Takes a revision, which follows the one that was taken before, or the head. Nobody sees it.
  void stage(const Revision& revision);
  /// Shows what was taken.
  void publish();
  /// Forgets what was taken.
  void unstage();
  /// Another state has taken the store's place, of this revision: nothing before it is known.
  void restart(std::uint64_t revision);

 private:
  /// Bytes of some revisions, one behind the other. What is written stays as it is.
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
    std::size_t bytes = 0;  ///< all that it takes
  };
  char* room_for(std::size_t bytes);
  static Revision decode(std::uint64_t number, const Place& place);
  void tell() const;

  const Limits limits_;
  const std::size_t chunk_bytes_;
  // Of the thread of apply().
  std::shared_ptr<Chunk> chunk_;  ///< that is being filled
  std::vector<Place> staged_;

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

/// Keys that somebody watches: some by name, some by what they begin with.
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
