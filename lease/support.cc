#include <leasehold/base/assert.h>
#include <leasehold/lease/support.h>

#include <algorithm>

namespace leasehold::lease {

Support Support::restarted(Incarnation self, Duration remembered, Duration binding,
                           PromiseInstant now) {
  Support support(self);
  support.promise_ = VoterPromise::restarted(remembered, binding, now);
  LEASEHOLD_ASSERT(support.remembered() == remembered);
  return support;
}

bool Support::renew(const Process& from, Duration duration, PromiseInstant now) {
  if (from.incarnation.value() == 0) return false;
  if (from != process_) {
    const bool first = process_.incarnation.value() == 0;
    // A late beat of a process that has ended.
    if (from.place == process_.place && from.incarnation < process_.incarnation) return false;
    // Not a proof: a copy of the directory, or the same one behind a reboot. Two processes must not
    // hold promises at the same time.
    // Test: Support.AProcessAtAnotherPlaceWaitsForTheEndOfTheSupport.
    if (!first && from.place != process_.place && live(now)) return false;
    replace(from, now);
  }
  promise_.renew(duration, now);
  LEASEHOLD_ASSERT(live(now));
  LEASEHOLD_ASSERT(process_ == from);
  return true;
}

void Support::end(const Process& ended, PromiseInstant now) {
  if (!ended_by(process_, ended)) return;
  replace({ended.incarnation.next(), ended.place}, now);
  LEASEHOLD_ASSERT(!ended_by(process_, ended));
}

bool Support::accepts(const Bind& bind) const {
  return bind.process == process_ && process_.incarnation.value() != 0 && bind.epoch == epoch_ &&
         bind.beat >= released_;
}

void Support::release(const Process& from, Beat beat) {
  if (from != process_) return;
  released_ = std::max(released_, beat);
  LEASEHOLD_ASSERT(released_ >= beat);
}

void Support::rely(PromiseInstant now) {
  // The live promises of other groups rest on the same epoch.
  LEASEHOLD_ASSERT(!live(now));
  let_go(now);
}

void Support::let_go(PromiseInstant now) {
  ++epoch_.counter;
  // It may have ended long before a group relied on that: the others have waited since then, too.
  // Test: Support.WhatIsReliedOnWasOverWhenItEnded.
  let_go_at_ = std::min(now, until());
  LEASEHOLD_ASSERT(epoch_.counter > 0);
}

// An epoch serves one process, and so does the number of a beat.
void Support::replace(const Process& process, PromiseInstant now) {
  if (process_.incarnation.value() != 0) let_go(now);
  process_ = process;
  released_ = Beat();
}

}  // namespace leasehold::lease
