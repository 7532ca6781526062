// Where a holder gets its lease: a group of nodes, near or far.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/grant/lease_table.h>
#include <leasehold/lease/instant.h>

#include <string>

namespace leasehold::client {

/// The leases of one group. Each call blocks, at most for about its `timeout`. One thread calls at
/// a time. Every implementation sorts what went wrong in the same way:
///
///   unavailable   nothing was done: no leader, nobody in reach, a node that is about to stop
///   timed_out     nobody knows whether it was done, or whether it will be
///   in_use        the name is held; the message says by whom
///   not_found     there is no such lease (any more)
///   anything else will be the same the next time: wrong values, a limit that is reached
class LeaseService {
 public:
  struct Request {
    std::string name;  ///< empty: nobody is shut out
    std::string holder;
    lease::Duration ttl{0};
    grant::LeaseTerms terms{};
  };
  struct Granted {
    grant::LeaseId id;
    grant::FencingToken token;
    lease::Duration ttl{0};
  };
  /// A lease that is there, and who holds it.
  struct Found : Granted {
    std::string holder;
  };

  virtual ~LeaseService() = default;
  /// Refused as in_use also: nobody holds the name, but the delay of the lease that expired is not
  /// over. Of a lease in its grace period that has a soft limit this asks for the end: a later try
  /// gets the name.
  virtual Result<Granted> grant(const Request& request, lease::Duration timeout) = 0;
  /// The lease of this name, also in its grace period. Errors: not_found.
  virtual Result<Found> find(const std::string& name, lease::Duration timeout) = 0;
  /// Its time to live, all of it anew, also in its grace period: what is answered is the time to
  /// live without that. Errors: not_found.
  virtual Result<lease::Duration> renew(grant::LeaseId id, lease::Duration timeout) = 0;
  /// Ends it, with its keys. Errors: not_found.
  virtual Result<void> revoke(grant::LeaseId id, lease::Duration timeout) = 0;
};

}  // namespace leasehold::client
