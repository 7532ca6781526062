// Whether work that is done in order goes on: writes to a disk, calls of a state machine.
#pragma once

#include <leasehold/lease/instant.h>

#include <cstdint>

namespace leasehold::replica {

/// Passive.
class ProgressWatch {
 public:
  /// How long nothing may end while something is under way.
  explicit ProgressWatch(lease::Duration patience) : patience_(patience) {}

  /// Of the pieces, counted from the first, that many have begun and ended.
  bool goes_on(std::uint64_t begun, std::uint64_t ended, lease::PromiseInstant now) {
    if (begun == ended) {
      waits_ = false;
      return true;
    }
    if (!waits_ || ended != ended_) {
      waits_ = true;
      ended_ = ended;
      since_ = now;
    }
    return now - since_ < patience_;
  }
  /// When goes_on() will be false if nothing ends; never() if nothing was under way. Once it is
  /// false: in the past.
  lease::PromiseInstant deadline() const {
    return waits_ ? since_ + patience_ : lease::PromiseInstant::never();
  }

 private:
  const lease::Duration patience_;
  bool waits_ = false;
  std::uint64_t ended_ = 0;  ///< when a piece was last seen to end
  lease::PromiseInstant since_;
};

}  // namespace leasehold::replica
