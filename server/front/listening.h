// The messages that a connection gets without a request (docs/watch.md). Not for other rooms.
#pragma once

#include <leasehold/kv/events.h>
#include <leasehold/server/front/event_hub.h>
#include <leasehold/server/front/resp.h>
#include <leasehold/server/front/subscriptions.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::server {

/// Pause between two progress messages to a watcher, while other keys change and while nothing
/// does: the watcher sees that its connection lives.
inline constexpr std::chrono::seconds kProgressPause{5};
inline constexpr std::chrono::seconds kQuietPause{30};

/// A connection's reader of the history of one group.
struct Ear {
  std::size_t group = 0;   ///< in ServedGroups::all()
  std::uint64_t stay = 0;  ///< ServedGroup::stay() when the ear was placed there
  EventReader reader;
  /// Events of the revision reader.next that a subscriber has been sent, since not all of them fit
  /// into its output, and what the patterns have left for the others.
  std::size_t sent_events = 0;
  std::size_t steps_left = kNotifyStepsMax;
};

/// From when a connection begins to watch or to subscribe until it does neither.
struct Listening {
  enum class Kind : std::uint8_t { watching, subscribed };
  Kind kind = Kind::watching;
  /// Of a watcher one, of the group of its keys; of a subscriber one of each group. They stay where
  /// they are.
  std::vector<Ear> ears;
  std::size_t first_ear = 0;    ///< of the next turn
  bool values = false;          ///< a watcher wants them
  Subscriptions subscriptions;  ///< of a subscribed connection
  std::uint64_t told = 0;       ///< the newest revision that was sent to a watcher
  std::chrono::nanoseconds said{0};
  bool progress_due = false;
  std::uint64_t routes = 0;    ///< ServedGroups::routes_version() that the ears have followed
  std::size_t held_bytes = 0;  ///< about: memory of what it listens to
};
/// What it costs a group's hub that somebody listens to this: each text is kept twice, with a place
/// in a list.
std::size_t cost_of_interest(const EventInterest& interest);

/// The lease id that is sent to a watcher; 0: none. Clients do not see the lease of a key that ends
/// by itself.
inline std::int64_t told_lease(grant::LeaseId id) {
  return grant::is_of_key(id) ? 0 : static_cast<std::int64_t>(id.value());
}
/// Appends the message to a watcher about one revision. Returns how many events it has; 0: the
/// watcher wants none of them, and nothing is appended.
std::size_t append_revision(std::string& out, const kv::Revision& revision,
                            const kv::KeyFilter& filter, bool values, Protocol protocol);
/// "progress" or "resync".
void append_position(std::string& out, std::string_view word, std::uint64_t revision,
                     Protocol protocol);

}  // namespace leasehold::server
