// The voter's side of the lease: until when this node elects no other node.
#pragma once

#include <leasehold/lease/instant.h>

namespace leasehold::lease {

/// One promise, bounded by time. The consensus core keeps its holder and its term next to it.
///
/// Time ends a promise, or a promise to a newer leader replaces it. `until` is in memory only. A
/// restart needs the longest duration that may still bind this node: the remembered D, which is
/// stored before it is promised.
class VoterPromise {
 public:
  /// No promise was ever given.
  VoterPromise() = default;
  /// After a restart: a full promise of the remembered D, because the node no longer knows when it
  /// gave the old one. It binds for `binding`, which is at least that: the clock may be worth less
  /// than the one that the promise was given by.
  static VoterPromise restarted(Duration remembered, Duration binding, PromiseInstant now);

  /// Whether this node is bound at `now`.
  bool live(PromiseInstant now) const { return now < until_; }
  /// The first instant at which this node is free; PromiseInstant::earliest() without a promise.
  PromiseInstant until() const { return until_; }
  /// The D that has to be stored; zero without a promise.
  Duration remembered() const { return remembered_; }

  /// The node heard from the same leader: `until` moves to the later of itself and now + duration,
  /// never back. A larger D is remembered at once; a smaller one replaces it only when now +
  /// duration reaches `until`, because until then the longer promise still binds and a restart has
  /// to honour it.
  void renew(Duration duration, PromiseInstant now);
  /// The node accepted a leader of a newer term: its promise replaces the old one, even if it is
  /// shorter.
  void replace(Duration duration, PromiseInstant now);
  /// This node became leader itself: its promises to lower terms are void.
  void drop();

 private:
  PromiseInstant until_ = PromiseInstant::earliest();
  /// Invariant: until_ <= (the instant of the last renewal) + remembered_, or else the promise runs
  /// since a restart, and the next restart would stretch it as well.
  Duration remembered_{0};
};

}  // namespace leasehold::lease
