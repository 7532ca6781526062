// The voter's side of the lease: until when this node elects nobody else.
#pragma once

#include <leasehold/lease/instant.h>

namespace leasehold::lease {

/// One promise, bounded by time. Whom it was given to, and in which term, the consensus core keeps
/// beside it.
///
/// Only time ends a promise, or its replacement by one to a newer leader. `until` lives in memory
/// alone; what a restart needs is the longest duration that may still bind this node, the
/// remembered D, which is stored before it is promised.
class VoterPromise {
 public:
  /// No promise was ever given.
  VoterPromise() = default;
  /// After a restart: a full promise of the remembered D, because when the old one was given is not
  /// known.
  static VoterPromise restarted(Duration remembered, PromiseInstant now);

  /// Whether this node is bound at `now`.
  bool live(PromiseInstant now) const { return now < until_; }
  /// The first instant at which this node is free; PromiseInstant::earliest() without a promise.
  PromiseInstant until() const { return until_; }
  /// The D that has to be stored; zero without a promise.
  Duration remembered() const { return remembered_; }

  /// The same leader was heard from: `until` moves to the later of itself and now + duration, never
  /// back. A larger D is remembered at once; a smaller one replaces it only when now + duration
  /// reaches `until`, because until then the longer promise still binds and a restart has to honour
  /// it.
  void renew(Duration duration, PromiseInstant now);
  /// A leader of a newer term was accepted: its promise replaces the old one, even by a shorter.
  void replace(Duration duration, PromiseInstant now);
  /// This node became leader itself: its promises to lower terms are void.
  void drop();

 private:
  PromiseInstant until_ = PromiseInstant::earliest();
  /// Invariant: until_ <= (the instant of the last renewal) + remembered_.
  Duration remembered_{0};
};

}  // namespace leasehold::lease
