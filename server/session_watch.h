// Ends unused sessions, while this node leads.
#pragma once

#include <leasehold/kv/local/expiry_rounds.h>
#include <leasehold/kv/store.h>
#include <leasehold/node/group.h>
#include <leasehold/replica/session_expiry.h>

#include <atomic>
#include <cstdint>

namespace leasehold::server {

/// Looked at in turns, on one thread. Proposes what replica::SessionExpiry finds due; the state
/// machine judges it again. Outlived by no look, but by its proposals.
class SessionWatch {
 public:
  /// `idle_max`: a second at least. `timeout`: of a proposal.
  SessionWatch(node::Group& node, const kv::Store& store, lease::Duration idle_max,
               lease::Duration timeout);
  /// Does nothing most of the time: it looks at the sessions eight times within idle_max, and every
  /// five seconds at least.
  void look();
  /// Sessions that were open at the last look; 0 while this node does not lead. Any thread.
  std::uint64_t open() const { return open_.load(std::memory_order_relaxed); }

 private:
  void propose(const std::vector<replica::SessionExpiry::Idle>& due);

  node::Group& node_;
  const kv::Store& store_;
  const lease::Duration idle_max_;
  kv::ExpiryRounds rounds_;
  replica::SessionExpiry expiry_;
  raft::PromiseInstant next_;
  std::atomic<std::uint64_t> open_{0};
};

}  // namespace leasehold::server
