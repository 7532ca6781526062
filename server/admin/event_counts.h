// What the steps of the protocol come to: counts for monitors, and the latest ones for people.
#pragma once

#include <leasehold/raft/event.h>
#include <leasehold/storage/sync_times.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace leasehold::server {

/// Of all groups of a process. Counted on the threads of the groups, read by any.
class EventCounts {
 public:
  static constexpr std::size_t kReasons = 15;    ///< of raft::RoleChangeReason
  static constexpr std::size_t kRefusals = 6;    ///< of raft::VoteRefusal
  static constexpr std::size_t kOutcomes = 3;    ///< of raft::TransferOutcome
  static constexpr std::size_t kRecentMax = 64;  ///< steps that are kept

  /// A step that people ask about.
  struct Recent {
    std::chrono::microseconds at{0};  ///< since 1970
    std::uint64_t group = 0;
    std::uint64_t term = 0;
    std::string text;
  };

  /// `many`: members have the numbers of replicas (replica_number.h).
  explicit EventCounts(bool many) : many_(many) {}

  void note(const raft::Event& event);
  /// A quorum has acknowledged a round to this node.
  void note_round(lease::Duration took) { rounds_.note(took); }
  /// This node has a lease of a group now, or no longer.
  void note_lease(std::uint64_t group, raft::Term term, bool held);

  /// How often this node began to campaign, or left the role of the leader, for the reason.
  std::uint64_t campaigns(raft::RoleChangeReason reason) const { return of(campaigns_, reason); }
  std::uint64_t ends(raft::RoleChangeReason reason) const { return of(ends_, reason); }
  std::uint64_t refusals(raft::VoteRefusal reason) const { return of(refusals_, reason); }
  std::uint64_t transfers(raft::TransferOutcome outcome) const { return of(transfers_, outcome); }
  std::uint64_t leases(bool held) const { return of(leases_, held); }
  const storage::TimeCounts& rounds() const { return rounds_; }
  std::uint64_t violations() const { return violations_.load(std::memory_order_relaxed); }
  /// The newest first.
  std::vector<Recent> recent() const;

 private:
  using Count = std::atomic<std::uint64_t>;
  template <std::size_t kSize>
  using Counts = std::array<Count, kSize>;

  template <std::size_t kSize, class Which>
  static std::uint64_t of(const Counts<kSize>& counts, Which which) {
    return counts[static_cast<std::size_t>(which)].load(std::memory_order_relaxed);
  }
  template <std::size_t kSize, class Which>
  static void add(Counts<kSize>& counts, Which which) {
    counts[static_cast<std::size_t>(which)].fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t number(raft::NodeId member) const;
  void keep(std::uint64_t group, raft::Term term, std::string text);

  const bool many_;
  Counts<kReasons> campaigns_{};
  Counts<kReasons> ends_{};
  Counts<kRefusals> refusals_{};
  Counts<kOutcomes> transfers_{};
  Counts<2> leases_{};
  storage::TimeCounts rounds_;
  Count violations_{0};
  mutable std::mutex mutex_;
  std::deque<Recent> recent_;  ///< newest first; with mutex_
};

/// As the labels of metrics have them.
const char* word_of(raft::RoleChangeReason reason);
const char* word_of(raft::VoteRefusal reason);
const char* word_of(raft::TransferOutcome outcome);

}  // namespace leasehold::server
