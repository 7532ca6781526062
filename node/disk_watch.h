// Whether the disk of a process makes progress: its beats stop while it does not.
#pragma once

#include <leasehold/lease/instant.h>

#include <cstdint>

namespace leasehold::node {

/// Passive. While the disk hangs, the groups that are led here commit nothing, and their leaders
/// would keep their leases. Without beats the leases run out, and another process takes over.
class DiskWatch {
 public:
  /// How long one write may take.
  explicit DiskWatch(lease::Duration patience) : patience_(patience) {}

  /// `accepted` writes were given to the disk so far, of which `durable` are.
  bool healthy(std::uint64_t accepted, std::uint64_t durable, lease::PromiseInstant now) {
    if (accepted == durable) {
      waits_ = false;
      return true;
    }
    if (!waits_ || durable != durable_) {
      waits_ = true;
      durable_ = durable;
      since_ = now;
    }
    return now - since_ < patience_;
  }

 private:
  const lease::Duration patience_;
  bool waits_ = false;
  std::uint64_t durable_ = 0;  ///< when a write was last seen to end
  lease::PromiseInstant since_;
};

}  // namespace leasehold::node
