// What the holder of a lease knows of it.
#pragma once

#include <leasehold/base/random.h>
#include <leasehold/grant/holder_timing.h>
#include <leasehold/lease/instant.h>

#include <cstdint>

namespace leasehold::grant {

/// The holder's side of one lease, from its grant to its end. A pure function of requests, answers,
/// and the holder's clock, which counts suspend. Three rules:
///
/// - The time counts from when the holder *sent* the request, never from its answer: the store
///   began to count in between.
/// - A late holder stays late. After the deadline no answer restores the lease, though the store
///   may have kept it: the work under it has been stopped. With a grace period there is one
///   exception: an answer that comes in it, and whose own deadline is still to come, restores the
///   lease. Until the store ends a lease nobody else can have its name, and the store does not
///   renew a lease that it has ended: so a holder that gets "renewed" was the only holder all the
///   time. The token is the same as before. Work that was begun before and did not stop is not
///   fenced from later work, and need not be: both belong to the only holder.
/// - The end by time (expired) differs from the store's answer that there is no such lease (lost).
///   Without a grace period nobody else can have the lease before end(), and after that the holder
///   does not know. A holder that expired after a grace period does not know either.
///
/// Not thread-safe.
class HeldLease {
 public:
  enum class State : std::uint8_t {
    held,
    /// The deadline has passed, and the store may still have the lease: its holder may not act, and
    /// keeps renewing. Chubby's jeopardy.
    in_grace,
    expired,   ///< no renewal was answered in time
    lost,      ///< the store knows no such lease: it was ended there, and another may hold it
    released,  ///< its holder gave it up
  };

  /// Granted by the answer, with `ttl`, to a request that was sent at `sent`, which is before the
  /// grant was made. `seed`: of the jitter. `grace`: the store keeps the lease for this time after
  /// its time to live (LeaseTerms).
  HeldLease(const HolderTiming& timing, lease::Duration ttl, lease::HolderInstant sent,
            std::uint64_t seed, lease::Duration grace = lease::Duration(0));

  /// Whether nothing can restore a lease in this state.
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
  /// Ends waiting for the grace period: the lease expires at its deadline, now or later.
  void forgo_grace();

  /// Compares with the clock: after its deadline a lease is in its grace period, and without one or
  /// after it expired.
  State look(lease::HolderInstant now);
  /// A renewal has failed, and none has succeeded since: the group may have ended the lease without
  /// this holder's knowledge. No new work begins meanwhile.
  bool in_doubt() const { return in_doubt_; }
  /// Until when the holder may act. The margin after it is for stopping.
  lease::HolderInstant deadline() const { return deadline_; }
  /// When the store may have ended the lease at the earliest, by the holder's clock: all work under
  /// it has to stop before. A grace period makes it no later: after the time to live the store may
  /// end a lease with a soft limit at any moment.
  lease::HolderInstant end() const { return deadline_ + timing_.margin; }
  /// Until when look() gives the same answer, if only time passes. For a lease that is not over.
  lease::HolderInstant stays_until() const { return state_ == State::held ? deadline_ : hope_; }
  /// When the next renewal is to be sent.
  lease::HolderInstant next_renewal() const { return next_renewal_; }

 private:
  void plan(lease::HolderInstant from, lease::Duration longest);
  /// The latest end of the grace period at the store that the clocks allow, if the lease was
  /// granted or renewed with `ttl` by a request that was sent at `sent`. The deadline has to be
  /// early, because a holder that acts too long does harm. Here the holder does not act, and trying
  /// too long costs only a request whose answer is true: "renewed", or that there is no such lease.
  /// Giving up too early would lose the lease. It does not bound the store: a new leader there
  /// counts from the beginning, so the lease may exist longer than the holder tries.
  lease::HolderInstant hope(lease::HolderInstant sent, lease::Duration ttl) const;

  const HolderTiming timing_;
  Random random_;
  State state_ = State::held;
  bool in_doubt_ = false;
  /// Invariant: moves forward only. Each answer justifies its own deadline.
  lease::HolderInstant deadline_;
  lease::Duration grace_;  ///< 0: none, or no caller waits for it
  /// Moves forward only. Without a grace period it means nothing.
  lease::HolderInstant hope_;
  lease::HolderInstant next_renewal_;
};

}  // namespace leasehold::grant
