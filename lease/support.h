// A node's promise to the process of one other node. The promises of groups rest on it.
#pragma once

#include <leasehold/lease/beat.h>
#include <leasehold/lease/instant.h>
#include <leasehold/lease/process.h>
#include <leasehold/lease/promise.h>

namespace leasehold::lease {

/// What a node (the *member* here) has promised to the process of one other node (the *holder*): as
/// long as it lives, every promise of a group that is bound to it lives, too.
///
/// A group's promise is bound at an epoch, and it rests on this support while that is the present
/// one. The epoch changes when the member needs to let go: then none of them rests on it any more,
/// and the holder learns of it by the next acknowledgement. The change ends no promise that lives:
/// rely() waits for the end of the support, and a process that has ended holds nothing.
class Support {
 public:
  /// Of a member whose present process is `self`: it has heard no beat.
  explicit Support(Incarnation self) : epoch_{self, 0} {}
  /// The member has started again, and remembers the longest D that it has promised to the holder.
  /// No group's promise is bound any more, so each that its disk remembers has to live for
  /// `binding` by itself, as by VoterPromise::restarted(). Until then the support lasts, too, or a
  /// shorter D would be remembered while those promises still bind.
  static Support restarted(Incarnation self, Duration remembered, Duration binding,
                           PromiseInstant now);

  /// A beat of `from` that arrived at `now`: the member promises for `duration`. That is the longer
  /// one of its own D and the beat's; the beat's is bounded, since a faulty holder may name any,
  /// and stretched for the member's clock by the drift that the beat names (Timing::stretched()).
  /// True: it is to be acknowledged at epoch(), once remembered() is durable. False: a process that
  /// has ended, or one at another place whose end nobody can prove against the one that is
  /// supported now; nothing has changed.
  bool renew(const Process& from, Duration duration, PromiseInstant now);
  /// The process, and all earlier ones of its directory at that place, have ended.
  void end(const Process& ended, PromiseInstant now);
  /// Whether a group's promise may be bound as an append asks. A bind that was asked for before the
  /// holder released the group comes too late: nothing would ever end it.
  bool accepts(const Bind& bind) const;
  /// The holder's process leads some group no more, and no append that names a beat below `beat`
  /// binds any longer. The caller unbinds the group.
  void release(const Process& from, Beat beat);
  /// A group is about to do what a promise that is bound at the present epoch has forbidden. Its
  /// promise must be over: asserts that this support is.
  void rely(PromiseInstant now);

  /// Whether a promise that is bound at `bound` lives by this support.
  bool covers(const Epoch& bound, PromiseInstant now) const { return bound == epoch_ && live(now); }
  bool live(PromiseInstant now) const { return promise_.live(now); }
  PromiseInstant until() const { return promise_.until(); }
  /// When the support at the epoch before was over, by itself or because it was let go; earliest()
  /// if the epoch never changed.
  PromiseInstant let_go_at() const { return let_go_at_; }
  /// The D that has to be durable before a beat is acknowledged.
  Duration remembered() const { return promise_.remembered(); }
  const Epoch& epoch() const { return epoch_; }
  /// See release(); Beat(0): no group was released.
  Beat released() const { return released_; }
  /// The supported one; incarnation 0 before the first beat.
  const Process& process() const { return process_; }

 private:
  void let_go(PromiseInstant now);
  void replace(const Process& process, PromiseInstant now);

  VoterPromise promise_;
  Process process_;
  /// Invariant: only rises; one value serves one process of the holder.
  Epoch epoch_;
  PromiseInstant let_go_at_ = PromiseInstant::earliest();
  /// The largest that process_ has released a group with. Empty when process_ changes.
  Beat released_;
};

}  // namespace leasehold::lease
