// Which connections of one thread receive which changes.
#pragma once

#include <leasehold/kv/events.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace leasehold::server {

/// The changes that a reader may want. It may be too wide, but never too narrow: a reader that is
/// woken looks again.
struct EventInterest {
  kv::KeyFilter filter;
  /// Names of events in Redis (event_name()). Each occurs once, as the keys and prefixes do: a hub
  /// has a reader once in the list of each.
  std::set<std::string, std::less<>> names;
};

/// Redis's name of the event.
std::string_view event_name(const kv::Event& event);

/// One reader of the history, on the thread of its hub. It is *current* when nothing that it may
/// want is left to read; then writes to other keys cost it nothing.
struct EventReader {
  EventInterest interest;
  std::function<void()> wake;  ///< it is not current any more

  // The hub's.
  bool current = true;
  /// The first revision that it has not taken; of a current one: that it wants at all.
  std::uint64_t next = 0;
};

/// Goes through every revision once for all readers of its thread, and wakes those that may want
/// it. They read the history themselves, at their own pace: nothing is queued for a reader, and a
/// reader that is too slow finds that the history was lost.
///
/// One thread, except where a method says otherwise.
class EventHub {
 public:
  /// `history` outlives it.
  explicit EventHub(const kv::EventHistory& history) : history_(history) {}

  /// From the revision reader.next on. The reader stays where it is until remove().
  void add(EventReader& reader);
  /// Leaves in reader.next where to go on.
  void remove(EventReader& reader);
  /// The next revisions of a reader that is not current, at most `count`.
  kv::EventHistory::Batch read(const EventReader& reader, std::size_t count) const;
  /// The reader has everything below `next`.
  void took(EventReader& reader, std::uint64_t next) const;
  /// The first revision that was not looked at yet. A current reader has everything below it.
  std::uint64_t cursor() const { return cursor_; }
  std::uint64_t head() const { return history_.head(); }

  /// Looks at what is new, a part of it. True: there is more.
  bool look();

  // Any thread.

  /// The history has something new. True: look() has to be called soon, and says so only once until
  /// then.
  bool notice();

 private:
  using Readers = std::unordered_set<EventReader*>;
  using ByText = std::unordered_map<std::string, Readers>;

  void enlist(EventReader& reader, bool in);
  void offer(const kv::Event& event, std::uint64_t revision);
  void offer(const ByText& readers, const std::string& text, std::uint64_t revision);
  static void fall_behind(EventReader& reader, std::uint64_t revision);
  static void begin_again(EventReader& reader);

  const kv::EventHistory& history_;
  std::uint64_t cursor_ = 1;
  Readers readers_;
  ByText keys_;
  ByText names_;
  std::map<std::size_t, ByText> prefixes_;  ///< by their length
  std::atomic<bool> wanted_{false};         ///< there are readers
  std::atomic<bool> noticed_{false};
};

}  // namespace leasehold::server
