// The leases of a group with a node in this process.
#pragma once

#include <leasehold/client/lease_service.h>
#include <leasehold/kv/local/local_group.h>

#include <string>

namespace leasehold::kv {

/// At the leader a renewal costs no entry in the log, and no message; elsewhere it is a command.
/// Any thread but the node's own.
class LocalLeases final : public client::LeaseService {
 public:
  explicit LocalLeases(LocalGroup group) : group_(group) {}

  Result<Granted> grant(const Request& request, lease::Duration timeout) override;
  Result<Found> find(const std::string& name, lease::Duration timeout) override;
  Result<lease::Duration> renew(grant::LeaseId id, lease::Duration timeout) override;
  Result<void> revoke(grant::LeaseId id, lease::Duration timeout) override;

 private:
  const LocalGroup group_;
};

}  // namespace leasehold::kv
