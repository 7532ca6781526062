// What a process knows of the promises that other nodes have made to it by acknowledging its beats.
#pragma once

#include <leasehold/lease/beat.h>
#include <leasehold/lease/instant.h>
#include <leasehold/lease/rounds.h>
#include <leasehold/lease/timing.h>

#include <optional>

namespace leasehold::lease {

/// The beats of this process, the holder: numbered, each with the instant at which it began. A beat
/// is to a process what a round is to the leader of a group.
class Beats {
 public:
  /// Starts the next beat at `now`, which was sampled before anything of it is sent.
  Beat begin(HolderInstant now, const Timing& timing) {
    return Beat(ring_.begin(now, timing).value());
  }
  /// The newest beat; Beat(0) before the first.
  Beat newest() const { return Beat(ring_.newest().value()); }
  /// What is known of `beat`, until another one begins; null if it never began or is forgotten.
  const RoundStart* find(Beat beat) const { return ring_.find(Round(beat.value())); }

 private:
  RoundRing ring_;
};

/// What the holder knows of one other node.
class Supporter {
 public:
  /// The node has acknowledged `beat` at `epoch`. An epoch below one that was met, and a beat that
  /// is forgotten or older than one that was acknowledged at that epoch, change nothing: false.
  bool acknowledge(const Beats& beats, Beat beat, const Epoch& epoch);
  /// The highest that was met; none before the first acknowledgement.
  const std::optional<Epoch>& epoch() const { return epoch_; }
  /// The newest beat that was acknowledged at the epoch at which the node has bound a group's
  /// promise. None: at that epoch it acknowledges no more.
  std::optional<RoundStart> acknowledged(const Epoch& bound) const;

 private:
  std::optional<Epoch> epoch_;
  /// Invariant: acknowledged at *epoch_.
  std::optional<RoundStart> newest_;
};

}  // namespace leasehold::lease
