// The keys of a group, over its client ports.
#pragma once

#include <leasehold/client/key_service.h>
#include <leasehold/client/server_group.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::client {

/// Uses SET, transactions and the commands of watches (docs/watch.md). One thread at a time.
class RemoteKeys final : public client::KeyService {
 public:
  /// Client addresses, host:port; at least one.
  explicit RemoteKeys(std::vector<std::string> servers, Access access = {})
      : group_(std::move(servers), std::move(access)) {}

  Result<Listing> list(const std::string& prefix, lease::Duration timeout) override;
  Result<std::optional<Row>> find(const std::string& key, lease::Duration timeout) override;
  Result<bool> replace(const GuardedWrite& write, lease::Duration timeout) override;
  Result<void> put(const std::string& key, const std::string& value, grant::LeaseId lease,
                   lease::Duration timeout) override;
  void wait_change(const Interest& interest, std::uint64_t revision,
                   lease::Duration timeout) override;

 private:
  /// What the connection to the group watches. A watch without an event yet continues in the next
  /// wait.
  struct Watching {
    Interest interest;
    std::uint64_t revision = 0;
  };
  bool begin_watch(const Interest& interest, std::uint64_t revision, lease::Duration timeout);
  bool wait_for_message(lease::Duration timeout);
  void end_watch();
  void hang_up();

  ServerGroup group_;
  std::optional<Watching> watching_;
};

}  // namespace leasehold::client
