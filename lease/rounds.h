// The leader's broadcast rounds: numbered, each with the instant at which it began.
//
// No instant crosses the wire. A message carries the number of the newest round, the reply echoes
// it, and the ring maps the number to an instant of this node's clock. An acknowledgement is
// therefore always counted from before the send, never from its receipt, and an old one can never
// pass for a newer one.
#pragma once

#include <leasehold/base/strong.h>
#include <leasehold/lease/instant.h>
#include <leasehold/lease/timing.h>

#include <cstddef>
#include <vector>

namespace leasehold::lease {

/// Number of a round. Rises by one within a term; starts at 1. Zero means "no round".
using Round = StrongInt<struct RoundTag>;

/// What a leader remembers of a round.
struct RoundStart {
  Round round;
  /// No later than the first send of any message that carries the round.
  HolderInstant began;
  /// The D that the round's messages carry.
  Duration duration{0};
  /// How much the lease allows a voter's clock, in parts per million: the drift that they carry, or
  /// a larger one that the numbers of limit() have allowed since.
  std::int64_t drift_ppm = 0;
  /// How long the holder may use a promise of this round, by the numbers that it followed then.
  Duration usable{0};

  /// The end of what the holder may use of it.
  HolderInstant end() const { return began + usable; }
  /// See RoundRing::limit().
  void limit(const Timing& timing);

  friend bool operator==(const RoundStart&, const RoundStart&) = default;
};

/// The newest rounds of one term. Older ones are forgotten; an acknowledgement of a forgotten round
/// is ignored, which is safe.
class RoundRing {
 public:
  static constexpr std::size_t kCapacity = 256;

  /// Starts the next round at `now`, which was sampled before anything of the round is sent.
  Round begin(HolderInstant now, const Timing& timing);
  /// The newest round; Round(0) before the first.
  Round newest() const { return newest_; }
  /// No round is worth more than by the numbers of `timing`: they allow the clocks a larger drift,
  /// or leave a larger margin, than those of earlier rounds.
  void limit(const Timing& timing);
  /// No lease rests on a round that has begun; what else it shows stays.
  void void_all();
  /// What is known of `round`, until another round begins; null if it never began or is forgotten.
  const RoundStart* find(Round round) const;

 private:
  static std::size_t place_of(Round round) { return (round.value() - 1) % kCapacity; }

  Round newest_{0};
  /// Grows to kCapacity: a leader that rests begins few.
  std::vector<RoundStart> starts_;
};

}  // namespace leasehold::lease
