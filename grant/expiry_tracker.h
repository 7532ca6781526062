// Finds granted things whose time is over: leases of clients, idle sessions.
#pragma once

#include <leasehold/grant/lease_table.h>
#include <leasehold/lease/instant.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace leasehold::grant {

/// Measures the time of things on one clock, the leader's: each has a number, a *stamp* that
/// changes whenever its time begins again, and the length of that time. It decides nothing. The
/// leader proposes a command for each thing that is due; the command names the stamp, and does
/// nothing if the stamp has changed when it is applied.
///
/// Deadlines are on the clock that stands still in suspend (instant.h): a leader that was suspended
/// waits longer, which is safe. Not thread-safe.
class ExpiryTracker {
 public:
  struct Due {
    std::uint64_t id = 0;
    std::uint64_t stamp = 0;
    friend bool operator==(const Due&, const Due&) = default;
  };

  /// Gives everything its whole time again, from `now` on. A new leader has to do this, because it
  /// does not know what the leader before has granted. `forget_named`: things that were named as
  /// due may be renewed again. Only if no proposal to end them can take effect any more.
  void begin(lease::PromiseInstant now, bool forget_named);

  struct Times {
    lease::Duration ttl{0};
    /// It is due this much later, and may be renewed until then.
    LeaseTerms::Milliseconds grace{0};
    /// Rises each time a client wants the timed thing. In its grace period it is then due at once;
    /// before the end of its time the wish has no effect, and the client has to ask again.
    std::uint32_t wants = 0;
    bool renewable = true;
  };
  /// The thing exists. Its time begins at `now`, if it is new or its stamp has changed.
  void see(std::uint64_t id, std::uint64_t stamp, const Times& times, lease::PromiseInstant now);
  void forget(std::uint64_t id);
  /// Forgets all but these, which are in rising order.
  void forget_others(const std::vector<std::uint64_t>& ids);

  enum class Renewed : std::uint8_t {
    renewed,
    unknown,  ///< or not renewable
    /// It was named as due: a command that ends it may be under way, and a renewal that is not a
    /// command itself would not stop it.
    too_late,
  };
  Renewed renew(std::uint64_t id, lease::PromiseInstant now);

  /// Those whose time is over, with its grace period, the oldest first, at most `count` of them;
  /// named again until they are forgotten or have another stamp. If there are more, the next call
  /// goes on with those: what cannot end for a while does not keep the others from their end.
  std::vector<Due> due(lease::PromiseInstant now, std::size_t count);

  /// The last one that was seen; none: there is no such thing.
  std::optional<std::uint64_t> stamp(std::uint64_t id) const;
  /// The length of its time; none: there is no such thing.
  std::optional<lease::Duration> ttl(std::uint64_t id) const;
  /// The rest of its time, as ttl().
  std::optional<lease::Duration> left(std::uint64_t id, lease::PromiseInstant now) const;
  std::size_t size() const { return timed_.size(); }

 private:
  struct Timed {
    std::uint64_t stamp = 0;
    Times times;
    lease::PromiseInstant deadline;  ///< the end of its time to live
    bool named = false;
    bool wanted = false;  ///< since the deadline

    lease::PromiseInstant due() const { return wanted ? deadline : deadline + times.grace; }
  };
  using At = std::map<std::uint64_t, Timed>::iterator;
  void take_out(At at);
  void put_back(At at);

  std::map<std::uint64_t, Timed> timed_;
  /// Invariant: when each of timed_ is due, and its number.
  std::set<std::pair<std::int64_t, std::uint64_t>> order_;
  /// The last one that was named; none: the next call begins with the oldest.
  std::optional<std::pair<std::int64_t, std::uint64_t>> named_to_;
};

}  // namespace leasehold::grant
