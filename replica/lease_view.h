// The lock-free door to the lease: how a thread that is not the node's learns that it may serve a
// read.
#pragma once

#include <leasehold/lease/clock.h>
#include <leasehold/raft/ready.h>
#include <leasehold/raft/types.h>

#include <atomic>
#include <cstdint>
#include <optional>

namespace leasehold::replica {

/// One look at the lease: the view, and the instant after it.
struct LeaseLook {
  raft::LeaseState state;
  raft::HolderInstant at = raft::HolderInstant::earliest();

  /// See LeaseView::readable_index().
  std::optional<raft::Index> readable_index() const {
    if (at < state.end) return state.commit;
    return std::nullopt;
  }
};

/// A seqlock of {term, lease end, commit index} in one cache line, and the applied index in
/// another.
///
/// Written by the node's one thread (publish) and the apply thread (publish_applied); read by any
/// number of threads without a lock, a system call (the clock read is in the vDSO), an allocation
/// or a write to shared memory. There are no fences: release stores and acquire loads only, which
/// the thread sanitizer understands.
class LeaseView {
 public:
  /// Node's thread. Before any message of the same turn leaves and before any waiter completes.
  void publish(const raft::LeaseState& state);
  /// Apply thread, after the state machine shows the effects of everything up to `index`.
  void publish_applied(raft::Index index) {
    applied_.store(index.value(), std::memory_order_release);
  }

  /// One consistent copy.
  raft::LeaseState load() const;
  raft::Index applied() const { return raft::Index(applied_.load(std::memory_order_acquire)); }

  /// Copies the view first and reads the clock after: a pause between the two only makes the check
  /// stricter. Call it when the read has *already arrived*.
  LeaseLook look(const lease::Clock& clock) const {
    LeaseLook look;
    look.state = load();
    look.at = clock.holder_now();
    return look;
  }

  /// The index at which a read that has *already arrived* is linearizable under the lease; none
  /// without a valid lease. The caller may read once applied() has reached the index; if it lags,
  /// wait for it, do not fall back to a quorum.
  std::optional<raft::Index> readable_index(const lease::Clock& clock) const {
    return look(clock).readable_index();
  }

 private:
  /// Odd while publish() is at work.
  alignas(64) std::atomic<std::uint64_t> sequence_{0};
  std::atomic<std::uint64_t> term_{0};
  std::atomic<std::int64_t> end_{raft::HolderInstant::earliest().since_origin().count()};
  std::atomic<std::uint64_t> commit_{0};
  alignas(64) std::atomic<std::uint64_t> applied_{0};
};

}  // namespace leasehold::replica
