// Ends the leases of a store in this process, while its node leads.
#pragma once

#include <leasehold/kv/lease_keeper.h>
#include <leasehold/kv/local/lease_watch.h>
#include <leasehold/node/group.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace leasehold::kv {

/// Every node of a group has one: without it no lease ends by time while that node leads. It has a
/// thread, from the constructor to the destructor. `node` and `keeper` outlive it.
class LeaseTimer {
 public:
  /// An expiry is late by two `interval`s and a commit at most.
  LeaseTimer(node::Group& node, kv::LeaseKeeper& keeper,
             lease::Duration interval = std::chrono::milliseconds(200));
  ~LeaseTimer();
  LeaseTimer(const LeaseTimer&) = delete;
  LeaseTimer& operator=(const LeaseTimer&) = delete;

 private:
  void run(lease::Duration interval);

  LeaseWatch watch_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace leasehold::kv
