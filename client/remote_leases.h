// The leases of a group, over its client ports.
#pragma once

#include <leasehold/client/lease_service.h>
#include <leasehold/client/server_group.h>

#include <string>
#include <utility>
#include <vector>

namespace leasehold::client {

/// Uses the commands of leases (docs/resp.md). One thread at a time.
class RemoteLeases final : public client::LeaseService {
 public:
  /// Client addresses, host:port; at least one.
  explicit RemoteLeases(std::vector<std::string> servers, Access access = {})
      : group_(std::move(servers), std::move(access)) {}

  Result<Granted> grant(const Request& request, lease::Duration timeout) override;
  Result<Found> find(const std::string& name, lease::Duration timeout) override;
  Result<lease::Duration> renew(grant::LeaseId id, lease::Duration timeout) override;
  Result<void> revoke(grant::LeaseId id, lease::Duration timeout) override;

 private:
  ServerGroup group_;
};

}  // namespace leasehold::client
