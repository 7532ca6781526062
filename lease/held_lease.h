// What the holder of a lease may believe of it.
#pragma once

#include <leasehold/base/random.h>
#include <leasehold/lease/holder_timing.h>
#include <leasehold/lease/instant.h>

#include <cstdint>

namespace leasehold::lease {

/// The holder's side of one lease, from its grant to its end. A pure function of what was sent,
/// what was answered, and the holder's clock, which counts suspend. Three rules:
///
/// - The time counts from when the request was *sent* that was answered, never from its answer: the
///   store began to count in between.
/// - Whoever was late stays late. Once the deadline was passed, no answer gives the lease back,
///   though the store may have kept it: what was done under it has been told to stop.
/// - The end by time (expired) is another thing than the word of the store that there is no such
///   lease (lost): in the first case nobody else may have it yet.
///
/// Not thread-safe.
class HeldLease {
 public:
  enum class State : std::uint8_t {
    held,
    expired,   ///< no renewal was answered in time
    lost,      ///< the store knows no such lease: it was ended there, and another may hold it
    released,  ///< its holder gave it up
  };

  /// Granted by the answer, with `ttl`, to a request that was sent at `sent`, which is before the
  /// grant was made. `seed`: of the jitter.
  HeldLease(const HolderTiming& timing, Duration ttl, HolderInstant sent, std::uint64_t seed);

  /// A renewal that was sent at `sent` was answered with `ttl`; it is `now`.
  void renewed(HolderInstant sent, Duration ttl, HolderInstant now);
  /// A renewal was refused, not answered in time, or could not be sent. It is tried again soon.
  void failed(HolderInstant now);
  /// The store says that there is no such lease.
  void lost();
  void released();

  /// Looks at the clock: a lease whose deadline has passed is expired for good.
  State look(HolderInstant now);
  /// A renewal has failed, and none has succeeded since: the group may have ended the lease without
  /// this holder's knowledge. Nothing new is begun meanwhile.
  bool in_doubt() const { return in_doubt_; }
  /// Until when the holder may act. The margin behind it is for stopping.
  HolderInstant deadline() const { return deadline_; }
  /// When the store may have ended the lease at the earliest, by the holder's clock: whatever was
  /// done under it has to have stopped before.
  HolderInstant end() const { return deadline_ + timing_.margin; }
  /// When the next renewal is to be sent.
  HolderInstant next_renewal() const { return next_renewal_; }

 private:
  void plan(HolderInstant from, Duration longest);

  const HolderTiming timing_;
  Random random_;
  State state_ = State::held;
  bool in_doubt_ = false;
  /// Invariant: moves forward only. Each answer proved its own.
  HolderInstant deadline_;
  HolderInstant next_renewal_;
};

}  // namespace leasehold::lease
