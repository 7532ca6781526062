// The lock-free door to the lease: how a thread other than the node's learns that it may serve a
// read.
#pragma once

#include <leasehold/base/assert.h>
#include <leasehold/lease/clock.h>
#include <leasehold/raft/feature_level.h>
#include <leasehold/raft/ready.h>
#include <leasehold/raft/types.h>
#include <leasehold/replica/fresh_since.h>
#include <leasehold/replica/lease_ends.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

namespace leasehold::replica {

/// One look at the lease: the view, and the instant after it.
struct LeaseLook {
  raft::LeaseState state;
  raft::HolderInstant at = raft::HolderInstant::earliest();

  /// Whether the lease held at `at`. Then state.commit is LeaseView::readable_index(), and
  /// state.sent_commit is index_in_order(). Where a read takes nanoseconds, ask this: GCC stores an
  /// optional word by word and reads it as a whole, which stops the processor for a third of a
  /// clock read (bench/lease_check).
  bool valid() const { return at < state.end; }
  /// See LeaseView::readable_index().
  std::optional<raft::Index> readable_index() const {
    return valid() ? std::optional<raft::Index>(state.commit) : std::nullopt;
  }
  /// The same for a state machine whose readers see the commands in order: what one reader has seen
  /// of a command, each later one sees, and everything before it. Then a read need not wait for a
  /// commit that only this node knows: its callers have not been answered, and no reader can have
  /// seen more than the state machine shows (lease/README.md, rule 52). At most readable_index().
  std::optional<raft::Index> index_in_order() const {
    return valid() ? std::optional<raft::Index>(state.sent_commit) : std::nullopt;
  }
};

/// {term, lease end, commit index} in two slots, and the number of the newest publication with the
/// class that the lease rests on, in one cache line; the applied index in another, and the sent
/// commit. The ends of all classes of the process are elsewhere (LeaseEnds).
///
/// Written by the node's one thread (publish) and the apply thread (publish_applied); read by any
/// number of threads without a lock, a system call (the clock read is in the vDSO), an allocation
/// or a write to shared memory. No reader waits for the writer: if the writer is stopped inside of
/// publish(), readers see the publication before.
///
/// Why a copy is never mixed. Publication k stores its three words in slot k % 2 and then k in
/// `latest_`, all with release. A reader loads k from `latest_` and the words of slot k % 2, all
/// with acquire, and then `latest_` once more; it keeps the copy if that is still k.
/// - No word is older than publication k: the first load acquired k, and the writer stored k after
///   the words.
/// - No word is newer: the next publication in the same slot is k + 2. A reader that loads a word
///   of k + 2, or of a later one, also sees what the writer stored before that word. So its second
///   load of `latest_` gives k + 1 at least, and it drops the copy.
/// The numbers in `latest_` only rise, so no thread sees an older publication than it saw before.
/// They have 40 bits: a reader would have to stop for as many publications to take one for another.
///
/// The end of a class (LeaseEnds) is loaded after the copy, and the clock is read after that. The
/// lease lasts until the later one of the two ends. The copy's instant is the read's. If another
/// leader had been elected before it, then this one had given the lease up and published that
/// before, and the copy shows no class; or a voter that it counted had let go before, at another
/// epoch than the class names, and the class's end, whenever it is loaded, lies before the copy
/// (docs/decisions/0024).
///
/// The sent commit (LeaseState::sent_commit) is stored before the publication that it belongs to,
/// never falls, and is loaded after the copy: so it is that of the copy, or a later one, for which
/// a read may have to wait longer.
///
/// Why no thread waits. The second load differs from k only if publication k + 1 has ended since
/// the first load. So a reader tries again only if the writer has made progress. If the writer
/// stops, before any of its stores, the reader's next try succeeds.
///
/// The proof uses only the order that atomic variables give. There are no fences, because the
/// thread sanitizer does not follow them.
class LeaseView {
 public:
  /// Node's thread, before the first publication of a class: where its ends are. They outlive the
  /// publications of this.
  void rest_on(const LeaseEnds& ends) { ends_.store(&ends, std::memory_order_release); }
  /// Node's thread. Before any message of the same turn leaves and before any waiter completes.
  void publish(const raft::LeaseState& state) {
    publish(state, [] {});
  }
  /// Node's thread: that of the newest committed membership.
  void publish_level(raft::FeatureLevel level) {
    if (level > level_.load(std::memory_order_relaxed)) {
      level_.store(level, std::memory_order_release);
    }
  }
  /// Apply thread, after the state machine shows the effects of everything up to `index`.
  void publish_applied(raft::Index index) {
    applied_.store(index.value(), std::memory_order_release);
  }

  /// One consistent copy: the newest publication that had ended, or one that ended meanwhile. Its
  /// end is not before that of the class.
  raft::LeaseState load() const {
    return load([] {});
  }
  raft::Index applied() const { return raft::Index(applied_.load(std::memory_order_acquire)); }
  /// What may be proposed: the group's level as this node knows it, or less.
  raft::FeatureLevel level() const { return level_.load(std::memory_order_acquire); }

  /// Copies the view first and reads the clock after: a pause between the two only makes the check
  /// stricter. Call it when the read has *already arrived*.
  LeaseLook look(const lease::Clock& clock) const {
    LeaseLook look;
    load_into(look.state, [] {});
    look.at = clock.holder_now();
    return look;
  }

  /// The index at which a read that has *already arrived* is linearizable under the lease; none
  /// without a valid lease. The caller may read once applied() has reached the index; if it lags,
  /// wait for it, do not fall back to a quorum.
  std::optional<raft::Index> readable_index(const lease::Clock& clock) const {
    return look(clock).readable_index();
  }

  /// How old the state is. Every thread that completes a linearizable read may raise it.
  FreshSince& fresh_since() const { return fresh_since_; }

 private:
  friend class LeaseViewSteps;  ///< in the tests: stops a writer or a reader between two steps

  struct Slot {
    std::atomic<std::uint64_t> term{0};
    std::atomic<std::int64_t> end{raft::HolderInstant::earliest().since_origin().count()};
    std::atomic<std::uint64_t> commit{0};
  };

  /// `step` is called before each store.
  template <class Step>
  void publish(const raft::LeaseState& state, const Step& step) {
    // One writer: no other thread changes the number.
    const std::uint64_t next = (latest_.load(std::memory_order_relaxed) >> kClassBits) + 1;
    Slot& slot = slots_[next % 2];
    step();
    slot.term.store(state.term.value(), std::memory_order_release);
    step();
    slot.end.store(state.end.since_origin().count(), std::memory_order_release);
    step();
    slot.commit.store(state.commit.value(), std::memory_order_release);
    step();
    if (state.sent_commit.value() > sent_commit_.load(std::memory_order_relaxed)) {
      sent_commit_.store(state.sent_commit.value(), std::memory_order_release);
    }
    step();
    LEASEHOLD_ASSERT(state.lease_class <= raft::kLeaseClassMax);
    latest_.store(next << kClassBits | state.lease_class.value(), std::memory_order_release);
  }

  template <class Step>
  raft::LeaseState load(const Step& step) const {
    raft::LeaseState copy;
    load_into(copy, step);
    return copy;
  }

  /// `step` is called before each load but the first. In place and word by word: a copy of the
  /// whole state would read in large pieces what was just written in small ones, which stops the
  /// processor for longer than all the loads take (bench/lease_check).
  template <class Step>
  void load_into(raft::LeaseState& state, const Step& step) const {
    while (true) {
      const std::uint64_t newest = latest_.load(std::memory_order_acquire);
      const Slot& slot = slots_[(newest >> kClassBits) % 2];
      const raft::LeaseClassId lease_class(
          static_cast<std::uint32_t>(newest & raft::kLeaseClassMax.value()));
      step();
      const raft::Term term(slot.term.load(std::memory_order_acquire));
      step();
      raft::HolderInstant end{raft::Duration(slot.end.load(std::memory_order_acquire))};
      step();
      const raft::Index commit(slot.commit.load(std::memory_order_acquire));
      step();
      if (latest_.load(std::memory_order_relaxed) != newest) continue;
      if (lease_class != raft::kNoClass) {
        end = std::max(end, ends_.load(std::memory_order_acquire)->end(lease_class));
      }
      state.sent_commit = raft::Index(sent_commit_.load(std::memory_order_acquire));
      state.term = term;
      state.end = end;
      state.commit = commit;
      state.lease_class = lease_class;
      return;
    }
  }

  static constexpr int kClassBits = 24;
  static_assert(raft::kLeaseClassMax.value() == (1U << kClassBits) - 1);

  /// The number of the publication, and its class in the low bits. 0: the slots show no lease.
  alignas(64) std::atomic<std::uint64_t> latest_{0};
  std::array<Slot, 2> slots_;
  std::atomic<const LeaseEnds*> ends_{nullptr};
  alignas(64) std::atomic<std::uint64_t> sent_commit_{0};
  alignas(64) std::atomic<std::uint64_t> applied_{0};
  std::atomic<raft::FeatureLevel> level_{raft::kOldestLevel};  ///< only rises
  alignas(64) mutable FreshSince fresh_since_;
};

}  // namespace leasehold::replica
