// What the holder of a lease may believe of it.
#pragma once

#include <leasehold/base/random.h>
#include <leasehold/grant/holder_timing.h>
#include <leasehold/lease/instant.h>

#include <cstdint>

namespace leasehold::grant {

/// The holder's side of one lease, from its grant to its end. A pure function of what was sent,
/// what was answered, and the holder's clock, which counts suspend. Three rules:
///
/// - The time counts from when the request was *sent* that was answered, never from its answer: the
///   store began to count in between.
/// - Whoever was late stays late. Once the deadline was passed, no answer gives the lease back,
///   though the store may have kept it: what was done under it has been told to stop. With a grace
///   period there is one exception: an answer that comes in it, and whose own deadline is still to
///   come, gives the lease back. Until the store ends a lease nobody else can have its name, and
///   what the store has ended it does not renew: so whoever was told "renewed" was its only holder
///   all the time. The token is the same as before. What was begun before and did not stop is not
///   fenced from what is begun after, and need not be: both are work of the only holder.
/// - The end by time (expired) is another thing than the word of the store that there is no such
///   lease (lost). Without a grace period nobody else can have it before end(), and behind that
///   nobody knows. Whoever was expired behind a grace period knows nothing either.
///
/// Not thread-safe.
class HeldLease {
 public:
  enum class State : std::uint8_t {
    held,
    /// The deadline has passed, and the store may still have the lease: its holder may not act, and
    /// goes on renewing. Chubby's jeopardy.
    in_grace,
    expired,   ///< no renewal was answered in time
    lost,      ///< the store knows no such lease: it was ended there, and another may hold it
    released,  ///< its holder gave it up
  };

  /// Granted by the answer, with `ttl`, to a request that was sent at `sent`, which is before the
  /// grant was made. `seed`: of the jitter. `grace`: for so long the store keeps the lease behind
  /// its time to live (LeaseTerms).
  HeldLease(const HolderTiming& timing, lease::Duration ttl, lease::HolderInstant sent,
            std::uint64_t seed, lease::Duration grace = lease::Duration(0));

  /// Whether nothing gives a lease in this state back.
  static constexpr bool is_over(State state) {
    return state != State::held && state != State::in_grace;
  }

  /// A renewal that was sent at `sent` was answered with `ttl`; it is `now`. In the grace period
  /// it is held again if `now` is before the deadline that counts from `sent`.
  void renewed(lease::HolderInstant sent, lease::Duration ttl, lease::HolderInstant now);
  /// A renewal was refused, not answered in time, or could not be sent. It is tried again soon.
  void failed(lease::HolderInstant now);
  /// The store says that there is no such lease.
  void lost();
  void released();
  /// Nobody will wait for the grace period: at the deadline the lease is expired, now or later.
  void forgo_grace();

  /// Looks at the clock: a lease whose deadline has passed is in its grace period, and without one
  /// or behind it expired for good.
  State look(lease::HolderInstant now);
  /// A renewal has failed, and none has succeeded since: the group may have ended the lease without
  /// this holder's knowledge. Nothing new is begun meanwhile.
  bool in_doubt() const { return in_doubt_; }
  /// Until when the holder may act. The margin behind it is for stopping.
  lease::HolderInstant deadline() const { return deadline_; }
  /// When the store may have ended the lease at the earliest, by the holder's clock: whatever was
  /// done under it has to have stopped before. A grace period makes it no later: behind the time
  /// to live a lease with a soft limit may be ended at any moment.
  lease::HolderInstant end() const { return deadline_ + timing_.margin; }
  /// Until when look() says the same, if nothing happens but time. Of a lease that is not over.
  lease::HolderInstant stays_until() const { return state_ == State::held ? deadline_ : hope_; }
  /// When the next renewal is to be sent.
  lease::HolderInstant next_renewal() const { return next_renewal_; }

 private:
  void plan(lease::HolderInstant from, lease::Duration longest);
  /// When the grace period is over at the store, if the lease was granted or renewed with `ttl` by
  /// a request that was sent at `sent`: at the latest that the clocks allow. The deadline has to be
  /// early, because whoever acts too long does harm. Here nobody acts, and to try too long costs a
  /// question whose answer is the truth: "renewed", or that there is no such lease. To give up too
  /// early would cost the lease. It is no bound of the store's: a new leader there begins to count
  /// anew, and then what could have been had is left.
  lease::HolderInstant hope(lease::HolderInstant sent, lease::Duration ttl) const;

  const HolderTiming timing_;
  Random random_;
  State state_ = State::held;
  bool in_doubt_ = false;
  /// Invariant: moves forward only. Each answer proved its own.
  lease::HolderInstant deadline_;
  lease::Duration grace_;  ///< 0: none, or nobody waits for it
  /// Moves forward only. Without a grace period it means nothing.
  lease::HolderInstant hope_;
  lease::HolderInstant next_renewal_;
};

}  // namespace leasehold::grant
