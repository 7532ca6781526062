// The leases of a group one of whose nodes is in this process.
#pragma once

#include <leasehold/holder/lease_service.h>
#include <leasehold/local/local_group.h>

#include <string>

namespace leasehold::local {

/// At the node that leads a renewal costs no entry in the log, and no message; elsewhere it is a
/// command. Any thread but the node's own.
class LocalLeases final : public holder::LeaseService {
 public:
  explicit LocalLeases(LocalGroup group) : group_(group) {}

  Result<Granted> grant(const Request& request, lease::Duration timeout) override;
  Result<Found> find(const std::string& name, lease::Duration timeout) override;
  Result<lease::Duration> renew(lease::LeaseId id, lease::Duration timeout) override;
  Result<void> revoke(lease::LeaseId id, lease::Duration timeout) override;

 private:
  const LocalGroup group_;
};

}  // namespace leasehold::local
