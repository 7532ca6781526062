// Ends the leases whose time is over, while this node leads.
#pragma once

#include <leasehold/kv/lease_keeper.h>
#include <leasehold/node/group.h>

#include <leasehold/kv/local/expiry_rounds.h>
#include <cstddef>

namespace leasehold::kv {

/// Call look() regularly, on one thread. Proposes to end the leases that the keeper finds due; the
/// state machine checks again.
class LeaseWatch {
 public:
  /// `timeout`: of a proposal. `told` gets the number of clients' leases that a round has ended, if
  /// any; on any thread.
  LeaseWatch(
      node::Group& node, kv::LeaseKeeper& keeper, lease::Duration timeout,
      ExpiryRounds::Told told = [](std::size_t) {});
  /// An expiry is late by the time between two looks and a commit. However many leases are due, a
  /// look proposes a bounded number, in a few entries of the log.
  void look();

 private:
  node::Group& node_;
  kv::LeaseKeeper& keeper_;
  ExpiryRounds rounds_;
  const ExpiryRounds::Told told_;
};

}  // namespace leasehold::kv
