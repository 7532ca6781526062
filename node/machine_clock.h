// The machine's clocks, for a machine that may be stopped from outside.
#pragma once

#include <leasehold/node/machine_marker.h>
#include <leasehold/node/system_clock.h>

#include <memory>
#include <utility>

namespace leasehold::node {

/// The clocks of SystemClock, with a marker that shows whether they may have stood still. Use it
/// instead of SystemClock if the replica may run in a virtual machine that is paused, moved or
/// restored. It adds two loads from memory to a lease check.
class MachineClock final : public SystemClock {
 public:
  explicit MachineClock(std::unique_ptr<MachineMarker> marker) : marker_(std::move(marker)) {}

  lease::HolderInstant holder_now() const override {
    const lease::HolderInstant at = SystemClock::holder_now();
    return marker_->changed() ? lease::HolderInstant::never() : at;
  }
  bool disrupted() const override { return marker_->changed(); }
  const MachineMarker& marker() const { return *marker_; }

 private:
  std::unique_ptr<MachineMarker> marker_;
};

}  // namespace leasehold::node
