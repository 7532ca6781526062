#include <leasehold/client/queue_lock.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::client {
namespace {

using lease::Duration;
using lease::HolderInstant;
using Mode = QueueLock::Mode;
using Place = QueueLock::Place;
using Row = KeyService::Row;

// How the value of a key spells its kind; another program may read it.
constexpr const char* kExclusive = "exclusive";
constexpr const char* kShared = "shared";
constexpr std::string_view kPermits = "permits/";

/// Limit of the name and the holder together: the name of the lease contains both.
constexpr std::size_t kNamesBytesMax = 240;
/// A server that is cut off from its group sends no events, so the client asks again after this
/// time.
constexpr Duration kAskAgain = std::chrono::seconds(2);
/// Behind an answer that may be another one soon.
constexpr Duration kPause = std::chrono::milliseconds(50);
/// A give_up that is asked no more often would seem to hang.
constexpr Duration kLook = std::chrono::milliseconds(200);
/// Digits of the largest lease id: keys of one length.
constexpr std::size_t kIdDigits = 20;

bool may_pass(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::timed_out;
}

/// As kv::slot_of() sees it: all names that begin so are in one slot.
bool has_tag(std::string_view name) {
  const std::size_t open = name.find('{');
  if (open == std::string_view::npos) return false;
  const std::size_t close = name.find('}', open + 1);
  return close != std::string_view::npos && close > open + 1;
}

/// `error`, and what to do about it if the names of the lock are of many groups.
Error explained(const Error& error, const std::string& name) {
  constexpr std::string_view kCrossSlot = "CROSSSLOT";
  if (error.message.substr(0, kCrossSlot.size()) != kCrossSlot || has_tag(name)) return error;
  return {error.code,
          fmt::format("CROSSSLOT '{}' has no {{tag}}, and the nodes have many groups: the lock and "
                      "its queue would be in different ones. Call it '{{{}}}', for example",
                      name, name)};
}

std::string id_text(grant::LeaseId id) {
  const std::string digits = std::to_string(id.value());
  return std::string(kIdDigits - digits.size(), '0') + digits;
}

/// Whether it is a key of this queue, and not of one whose name continues after a '/'.
bool in_queue(const Row& row, const std::string& prefix) {
  const std::string_view rest = std::string_view(row.key).substr(prefix.size());
  return rest.size() == kIdDigits &&
         std::all_of(rest.begin(), rest.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string kind_text(const QueueLock::Options& options) {
  switch (options.mode) {
    case Mode::exclusive: return kExclusive;
    case Mode::shared: return kShared;
    case Mode::permits: break;
  }
  return std::string(kPermits) + std::to_string(options.permits);
}

/// 0: it is not a semaphore.
std::uint64_t permits_of(std::string_view kind) {
  std::uint64_t permits = 0;
  if (kind.substr(0, kPermits.size()) != kPermits) return 0;
  kind.remove_prefix(kPermits.size());
  std::from_chars(kind.data(), kind.data() + kind.size(), permits);
  return permits;
}

/// The places of the queue, in their order. A value has the form "exclusive HOLDER".
std::vector<Place> places_of(const KeyService::Listing& listing, const std::string& prefix) {
  std::vector<Place> places;
  for (const Row& row : listing.rows) {
    if (!in_queue(row, prefix)) continue;
    const std::size_t blank = std::min(row.value.find(' '), row.value.size());
    places.push_back({row.value.substr(0, blank),
                      row.value.substr(std::min(blank + 1, row.value.size())),
                      grant::FencingToken(row.create_revision), row.lease, false});
  }
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.token < b.token; });
  return places;
}

/// The places before `place` that it has to wait for, in their order.
std::vector<const Place*> blockers_of(const std::vector<Place>& places, const Place& place) {
  std::vector<const Place*> blockers;
  for (const Place& other : places) {
    if (other.token >= place.token) break;
    if (place.kind != kShared || other.kind != kShared) blockers.push_back(&other);
  }
  return blockers;
}

/// So many may hold it before one has to wait.
std::size_t room_of(const Place& place) {
  return std::max<std::size_t>(permits_of(place.kind), 1);
}

/// Stands in the queue until it is its turn.
class Queueing {
 public:
  Queueing(KeyService& keys, const lease::Clock& clock, const QueueLock::Options& options,
           HolderInstant give_up_at)
      : keys_(keys),
        clock_(clock),
        options_(options),
        prefix_(queue_prefix(options.lease.name)),
        kind_(kind_text(options)),
        give_up_at_(give_up_at) {}

  /// The token. Errors: not_found (the lease is over: another one has to be taken), or what ends
  /// the attempt.
  Result<grant::FencingToken> wait_turn(LeaseHolder& lease) {
    const std::string key = prefix_ + id_text(lease.id());
    const std::string value = fmt::format("{} {}", kind_, options_.lease.holder);
    Error last{ErrorCode::unavailable, "the group was not asked"};
    bool stands = false;
    while (lease.may_act()) {
      if (!stands) {
        const auto put = keys_.put(key, value, lease.id(), options_.lease.timing.max_round_trip);
        if (!put && !may_pass(put.error().code)) return put.error();
        if (!put) last = put.error();
        stands = put.ok();
      }
      Duration pause = kPause;
      if (stands) {
        const auto found = look(lease.id());
        if (!found && !may_pass(found.error().code)) return found.error();
        // The answer may have been long on its way.
        if (!lease.may_act()) break;
        if (found && found.value().token) return *found.value().token;
        // Somebody has taken it away: its place is at the end again.
        stands = !found || found.value().stands;
        last = found ? found.value().held : found.error();
        if (found && stands) pause = wait_for(found.value());
      }
      if (options_.lease.give_up()) {
        return Error{ErrorCode::stopped, "given up: " + last.message};
      }
      if (clock_.holder_now() >= give_up_at_) return last;
      if (pause > Duration(0)) std::this_thread::sleep_for(pause);
    }
    return Error{ErrorCode::not_found, "the lease ended while it waited"};
  }

 private:
  struct Found {
    /// It is its turn.
    std::optional<grant::FencingToken> token;
    bool stands = false;
    /// Whom it waits for.
    Error held{ErrorCode::in_use, ""};
    KeyService::Interest next;
    std::uint64_t revision = 0;
  };

  Result<Found> look(grant::LeaseId own) {
    const auto listed = keys_.list(prefix_, options_.lease.timing.max_round_trip);
    if (!listed) return listed.error();
    const std::vector<Place> places = places_of(listed.value(), prefix_);
    Found found;
    found.revision = listed.value().revision;
    const auto mine = std::find_if(places.begin(), places.end(),
                                   [own](const Place& place) { return place.lease == own; });
    if (mine == places.end()) return found;
    found.stands = true;
    const std::vector<const Place*> before = blockers_of(places, *mine);
    for (const Place* other : before) {
      const bool alike = permits_of(other->kind) == permits_of(kind_);
      if (!alike) return other_kind(*other);
    }
    const std::size_t room = room_of(*mine);
    if (before.size() < room) {
      found.token = mine->token;
      return found;
    }
    found.held.message =
        fmt::format("'{}' is held by {}", options_.lease.name, before.front()->holder);
    if (before.size() > room) {
      found.held.message += fmt::format(", and {} wait before this", before.size() - room);
    }
    // At a semaphore any holder that ends makes room; otherwise the place before this one has its
    // turn first.
    found.next = room > 1 ? KeyService::Interest{prefix_, true}
                          : KeyService::Interest{prefix_ + id_text(before.back()->lease), false};
    return found;
  }

  Error other_kind(const Place& other) const {
    return {ErrorCode::invalid_argument,
            fmt::format("'{}' is another kind of lock for {}: {} there, {} here",
                        options_.lease.name, other.holder, other.kind, kind_)};
  }

  /// Returns how long nothing is worth a look.
  Duration wait_for(const Found& found) {
    const HolderInstant begin = clock_.holder_now();
    const HolderInstant until = std::min(begin + kAskAgain, give_up_at_);
    // In pieces, for give_up().
    for (;;) {
      const HolderInstant now = clock_.holder_now();
      if (now >= until || options_.lease.give_up()) return Duration(0);
      const Duration piece = std::min(until - now, kLook);
      keys_.wait_change(found.next, found.revision, piece);
      if (clock_.holder_now() < now + piece) return Duration(0);
    }
  }

  KeyService& keys_;
  const lease::Clock& clock_;
  const QueueLock::Options& options_;
  const std::string prefix_;
  const std::string kind_;
  const HolderInstant give_up_at_;
};

Result<void> validate(const QueueLock::Options& options) {
  const auto wrong = [](std::string text) {
    return Error{ErrorCode::invalid_argument, std::move(text)};
  };
  if (options.lease.name.empty()) return wrong("a lock needs a name");
  if (options.lease.name.size() + options.lease.holder.size() > kNamesBytesMax) {
    return wrong(fmt::format("the names of a lock and of its holder have at most {} bytes together",
                             kNamesBytesMax));
  }
  // No other client asks for the name of a place in the queue, and during a grace period the place
  // would be held by a client that may not act.
  if (options.lease.terms != grant::LeaseTerms{}) {
    return wrong("the lease of a lock has no grace period, no soft limit and no delay");
  }
  if (options.mode == Mode::permits && options.permits == 0) {
    return wrong("a semaphore has one permit or more");
  }
  return {};
}

}  // namespace

std::string queue_prefix(const std::string& name) {
  return fmt::format("leasehold/queue/{}/", name);
}

Result<std::vector<Place>> QueueLock::queue(KeyService& keys, const std::string& name,
                                            Duration timeout) {
  const std::string prefix = queue_prefix(name);
  const auto listed = keys.list(prefix, timeout);
  if (!listed) return explained(listed.error(), name);
  std::vector<Place> places = places_of(listed.value(), prefix);
  for (Place& place : places) {
    place.holds = blockers_of(places, place).size() < room_of(place);
  }
  return places;
}

Result<std::unique_ptr<QueueLock>> QueueLock::acquire(LeaseService& leases, KeyService& keys,
                                                      const lease::Clock& clock,
                                                      const Options& options) {
  if (auto valid = validate(options); !valid) return valid.error();
  const HolderInstant give_up_at = clock.holder_now() + options.lease.wait;
  // Before there is a lease: a node refuses the prefix at once, also while no group has a leader.
  // Whether it is in reach is seen below.
  if (const std::string& name = options.lease.name; !has_tag(name)) {
    const auto read = keys.list(queue_prefix(name), options.lease.timing.max_round_trip);
    if (!read && !may_pass(read.error().code)) return explained(read.error(), name);
  }
  Queueing queue(keys, clock, options, give_up_at);
  for (;;) {
    // No other client asks for that name: it makes a lost answer known.
    LeaseHolder::Options own = options.lease;
    own.name = fmt::format("queue {} {}", options.lease.name, options.lease.holder);
    own.wait = std::max(give_up_at - clock.holder_now(), Duration(0));
    auto lease = LeaseHolder::acquire(leases, clock, own);
    if (!lease) return lease.error();
    const auto token = queue.wait_turn(*lease.value());
    if (token) {
      return std::unique_ptr<QueueLock>(new QueueLock(std::move(lease).value(), token.value()));
    }
    // Its lease is over, because of a pause: it asks again, from the end of the queue.
    if (token.error().code != ErrorCode::not_found) return token.error();
    if (options.lease.give_up()) return Error{ErrorCode::stopped, token.error().message};
    if (clock.holder_now() >= give_up_at) {
      return Error{ErrorCode::unavailable, token.error().message};
    }
  }
}

}  // namespace leasehold::client
