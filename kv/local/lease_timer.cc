#include <leasehold/kv/local/lease_timer.h>

#include <chrono>

namespace leasehold::kv {
namespace {

/// Time limit of a command that ends leases.
constexpr lease::Duration kTimeout = std::chrono::seconds(5);

}  // namespace

LeaseTimer::LeaseTimer(node::Group& node, kv::LeaseKeeper& keeper, lease::Duration interval)
    : watch_(node, keeper, kTimeout) {
  thread_ = std::thread([this, interval] { run(interval); });
}

LeaseTimer::~LeaseTimer() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    ended_.notify_all();
  }
  thread_.join();
}

void LeaseTimer::run(lease::Duration interval) {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, interval, [this] { return ending_; })) {
    lock.unlock();
    watch_.look();
    lock.lock();
  }
}

}  // namespace leasehold::kv
