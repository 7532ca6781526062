// Where a holder gets its lease: a group of nodes, near or far.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/grant/lease_table.h>
#include <leasehold/lease/instant.h>

#include <string>

namespace leasehold::client {

/// The leases of one group. Each call blocks, at most for about its `timeout`. One thread calls at
/// a time. Every implementation uses the same errors:
///
///   unavailable   nothing was done: no leader, no node in reach, a node that is about to stop
///   timed_out     unknown whether it was done, or will be
///   in_use        the name is held; the message names the holder
///   not_found     there is no such lease (any more)
///   anything else will be the same the next time: wrong values, a limit that is reached
class LeaseService {
 public:
  struct Request {
    std::string name;  ///< empty: it excludes no other client
    std::string holder;
    lease::Duration ttl{0};
    grant::LeaseTerms terms{};
  };
  struct Granted {
    grant::LeaseId id;
    grant::FencingToken token;
    lease::Duration ttl{0};
  };
  /// An existing lease, and its holder.
  struct Found : Granted {
    std::string holder;
  };

  virtual ~LeaseService() = default;
  /// Also refused as in_use: nobody holds the name, but the lock delay of the expired lease is not
  /// over. If a lease with a soft limit is in its grace period, this call asks for its end: a later
  /// try gets the name.
  virtual Result<Granted> grant(const Request& request, lease::Duration timeout) = 0;
  /// The lease of this name, also in its grace period. Errors: not_found.
  virtual Result<Found> find(const std::string& name, lease::Duration timeout) = 0;
  /// Gives it its whole time to live again, also in its grace period. The answer is the time to
  /// live without the grace period. Errors: not_found.
  virtual Result<lease::Duration> renew(grant::LeaseId id, lease::Duration timeout) = 0;
  /// Ends it, with its keys. Errors: not_found.
  virtual Result<void> revoke(grant::LeaseId id, lease::Duration timeout) = 0;
};

}  // namespace leasehold::client
