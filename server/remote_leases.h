// The leases of a group that is reached by its client ports.
#pragma once

#include <leasehold/holder/lease_service.h>
#include <leasehold/server/resp_client.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::server {

/// Stays with one server, the leader if it is among them, for as long as that one answers; goes on
/// to the next when it refuses or its connection breaks. One thread at a time.
class RemoteLeases final : public holder::LeaseService {
 public:
  /// Client addresses, host:port; at least one.
  explicit RemoteLeases(std::vector<std::string> servers) : servers_(std::move(servers)) {}

  Result<Granted> grant(const std::string& name, const std::string& holder, lease::Duration ttl,
                        lease::Duration timeout) override;
  Result<Found> find(const std::string& name, lease::Duration timeout) override;
  Result<lease::Duration> renew(lease::LeaseId id, lease::Duration timeout) override;
  Result<void> revoke(lease::LeaseId id, lease::Duration timeout) override;

 private:
  /// A second time does no harm, or it may be done once at most.
  enum class Repeat : std::uint8_t { harmless, never };

  Result<RespValue> call(const std::vector<std::string>& words, lease::Duration timeout,
                         Repeat repeat);
  Result<void> connect(RespClient::Timeout timeout);

  const std::vector<std::string> servers_;
  std::optional<RespClient> client_;
  /// The one that client_ speaks to, or the next to try.
  std::size_t at_ = 0;
};

}  // namespace leasehold::server
