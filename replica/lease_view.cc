// Why two sequence numbers, release stores and acquire loads are enough, without a fence.
//
// publish() number k writes, in program order:
//
//     sequence = 2k - 1 (odd)   term, end, commit (release)   sequence = 2k (release)
//
// load() reads sequence (acquire) as `before`, the three fields (acquire), sequence again as
// `after`, and keeps the copy when `before` is even and equal to `after`, say 2k.
//
// Not older than publish k: `before` acquired the closing store of publish k, so everything that
// publish k wrote happens before the three loads, and by coherence they return its values or later
// ones.
//
// Not newer: suppose that one field returned the value of publish m > k. Its load acquired that
// release store, and the opening store 2m - 1 precedes the store in program order; so 2m - 1
// happens before the second read of sequence, which therefore returns at least 2m - 1 > 2k. That
// contradicts `after` = 2k.
//
// So all three fields are those of publish k. Both directions only use synchronisation that an
// atomic variable carries itself, which is what the thread sanitizer tracks; it does not follow
// fences.
#include <leasehold/replica/lease_view.h>

#include <thread>

namespace leasehold::replica {

namespace {

/// Tries before a reader lets the writer have the processor. A write takes a few nanoseconds, so a
/// reader that is still turned away after so many was scheduled in the writer's place.
constexpr int kTriesBeforeYield = 1000;

}  // namespace

void LeaseView::publish(const raft::LeaseState& state) {
  // One writer: nobody else moves the sequence.
  const std::uint64_t even = sequence_.load(std::memory_order_relaxed);
  sequence_.store(even + 1, std::memory_order_relaxed);
  term_.store(state.term.value(), std::memory_order_release);
  end_.store(state.end.since_origin().count(), std::memory_order_release);
  commit_.store(state.commit.value(), std::memory_order_release);
  sequence_.store(even + 2, std::memory_order_release);
}

raft::LeaseState LeaseView::load() const {
  for (int tries = 0;; ++tries) {
    const std::uint64_t before = sequence_.load(std::memory_order_acquire);
    raft::LeaseState copy;
    copy.term = raft::Term(term_.load(std::memory_order_acquire));
    copy.end = raft::HolderInstant(raft::Duration(end_.load(std::memory_order_acquire)));
    copy.commit = raft::Index(commit_.load(std::memory_order_acquire));
    const std::uint64_t after = sequence_.load(std::memory_order_relaxed);
    if (before == after && before % 2 == 0) return copy;
    if (tries == kTriesBeforeYield) {
      std::this_thread::yield();
      tries = 0;
    }
  }
}

}  // namespace leasehold::replica
