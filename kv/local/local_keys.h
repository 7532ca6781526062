// The keys of a group with a node in this process.
#pragma once

#include <leasehold/client/key_service.h>
#include <leasehold/kv/local/local_group.h>

#include <cstdint>
#include <optional>
#include <string>

namespace leasehold::kv {

/// Any thread but the node's own.
class LocalKeys final : public client::KeyService {
 public:
  explicit LocalKeys(LocalGroup group) : group_(group) {}

  Result<Listing> list(const std::string& prefix, lease::Duration timeout) override;
  Result<std::optional<Row>> find(const std::string& key, lease::Duration timeout) override;
  Result<bool> replace(const GuardedWrite& write, lease::Duration timeout) override;
  Result<void> put(const std::string& key, const std::string& value, grant::LeaseId lease,
                   lease::Duration timeout) override;
  void wait_change(const Interest& interest, std::uint64_t revision,
                   lease::Duration timeout) override;

 private:
  const LocalGroup group_;
};

}  // namespace leasehold::kv
