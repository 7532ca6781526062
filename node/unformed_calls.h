// Callers that come before the group is formed.
#pragma once

#include <leasehold/lease/clock.h>
#include <leasehold/replica/driver.h>

#include <cstddef>
#include <vector>

namespace leasehold::node {

/// They wait for the driver that does not exist yet, up to their deadlines. Bounded: what comes
/// past `calls_max` is refused as overloaded.
class UnformedCalls {
 public:
  explicit UnformedCalls(std::size_t calls_max) : calls_max_(calls_max) {}

  /// Takes the calls in `events` and leaves it empty; refuses what is cancelled or too late, and
  /// what only a leader does. `closed`: there will be no driver, and everything is refused.
  void take(lease::Now now, std::vector<replica::Event>& events, bool closed);
  /// The driver is there: appends everything to `events`.
  void release(std::vector<replica::Event>& events);
  /// When take() is due even if nothing comes.
  raft::PromiseInstant next_deadline() const { return next_deadline_; }

 private:
  const std::size_t calls_max_;
  std::vector<replica::Event> waiting_;
  raft::PromiseInstant next_deadline_ = raft::PromiseInstant::never();
};

}  // namespace leasehold::node
