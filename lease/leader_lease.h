// The leader's side of the lease: until when it may serve reads without asking other nodes.
#pragma once

#include <leasehold/base/assert.h>
#include <leasehold/lease/instant.h>

namespace leasehold::lease {

/// The end of the lease of one term of leadership. A new object at each election, with no lease.
class LeaderLease {
 public:
  /// HolderInstant::earliest() when there is none.
  HolderInstant end() const { return end_; }
  bool valid(HolderInstant now) const { return now < end_; }

  /// A quorum's promises reach to `end`. Never moves the end back.
  void extend(HolderInstant end) {
    if (end > end_) end_ = end;
    LEASEHOLD_ASSERT(end_ >= end);
  }
  /// Drops the lease, until it is extended again.
  void revoke() {
    end_ = HolderInstant::earliest();
    LEASEHOLD_ASSERT(!valid(end_));
  }

 private:
  HolderInstant end_ = HolderInstant::earliest();
};

}  // namespace leasehold::lease
