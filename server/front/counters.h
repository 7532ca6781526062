// What the client side counts. Each io thread owns one set, so counting costs a plain add and no
// two threads share a cache line; readers sum the sets.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace leasehold::server {

/// Written by one thread, read by any.
class Count {
 public:
  void add(std::uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// Counters since the start. Every read command adds to exactly one of lease_hits, lease_waits,
/// lease_fallbacks, quorum_asked, log_asked and stale_hits, and every one but a lease or stale hit
/// later to exactly one of the answered_* or to reads_refused.
struct alignas(64) Counters {
  /// Kinds of commands: those of CommandGroup, and what is no command.
  static constexpr std::size_t kKinds = 9;
  /// What was left of the lease at a lease hit: bucket i has what is below 2^i units of about a
  /// millisecond, and the last one everything above.
  static constexpr std::size_t kLeaseBuckets = 16;
  static constexpr unsigned kLeaseUnitBits = 20;  ///< of nanoseconds

  Count commands;  ///< all, the refused ones included
  std::array<Count, kKinds> commands_of_kind;
  Count commands_refused;       ///< unknown, wrong arity or wrong arguments
  Count connections;            ///< accepted
  Count connections_refused;    ///< closed at once, because there were too many
  Count connections_displaced;  ///< nobody's yet, closed for another when there were too many
  Count connections_denied;     ///< closed at once, by protected mode
  Count connections_delayed;    ///< taken later, because too many came in a second
  Count connections_large;      ///< closed, because the memory for clients was used up
  Count connections_slow;       ///< closed, because their first request took too long to arrive
  Count http_requests;          ///< connections closed because their bytes were HTTP
  Count connections_idle;       ///< closed, because they had been idle for too long
  Count protocol_errors;        ///< connections closed because their bytes were not requests
  Count output_stalls;          ///< a client read so slowly that its requests had to wait

  // TLS on the client port.
  Count tls_handshakes;          ///< that succeeded
  Count tls_resumed;             ///< of these: continued an earlier session
  Count tls_failed_plain;        ///< the client did not speak TLS, and had to
  Count tls_failed_protocol;     ///< what it sent was no TLS that is accepted
  Count tls_failed_certificate;  ///< it showed no valid certificate
  Count tls_failed_refused;      ///< it did not accept this node's
  Count tls_failed_late;         ///< not done within kGreetingTimeMax
  Count tls_failed_crowded;      ///< too many at a time: the oldest silent one made room
  Count tls_distrusted;          ///< connections closed, since their certificate is not valid now

  std::array<Count, kLeaseBuckets> lease_left_at_hits;
  Count lease_left_sum;   ///< nanoseconds
  Count lease_hits;       ///< answered on the connection's own thread, under the lease
  Count lease_waits;      ///< valid lease, but the state machine lagged: waited for it
  Count lease_fallbacks;  ///< lease mode without a valid lease on this node: the node was asked
  Count quorum_asked;     ///< read mode quorum
  Count log_asked;        ///< read mode log
  Count stale_hits;       ///< read mode stale: answered at once, within the bound
  Count stale_fallbacks;  ///< read mode stale: the bound did not hold; goes on as mode lease
  Count answered_lease;   ///< by the lease, after a wait or on the node's thread
  Count answered_quorum;  ///< by a quorum round at the leader
  Count answered_leader;  ///< by the leader's read index, at a follower
  Count answered_log;     ///< through the log
  Count reads_refused;    ///< no leader, overloaded, or timed out

  Count writes;  ///< proposed
  Count writes_committed;
  Count writes_dropped;  ///< not executed
  Count writes_unknown;  ///< outcome unknown

  Count watches;         ///< LEASEHOLD WATCH that began
  Count watch_messages;  ///< to watchers and subscribers, of changed keys
  Count watch_events;    ///< in these messages
  Count watch_resyncs;   ///< watchers that had to read again, subscribers that were closed

  /// `kind`: a CommandGroup, or below 0: none.
  void note_command(int kind) {
    commands.add();
    commands_of_kind[kind < 0 ? kKinds - 1 : static_cast<std::size_t>(kind)].add();
  }
  /// A read that was answered under a lease of which so much is left.
  void note_lease_hit(std::chrono::nanoseconds left) {
    lease_hits.add();
    const auto units = static_cast<std::uint64_t>(left.count()) >> kLeaseUnitBits;
    const auto bucket = static_cast<std::size_t>(std::bit_width(units));
    lease_left_at_hits[bucket < kLeaseBuckets ? bucket : kLeaseBuckets - 1].add();
    lease_left_sum.add(static_cast<std::uint64_t>(left.count()));
  }
};

}  // namespace leasehold::server
