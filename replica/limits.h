// The limits of a replica.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/lease/instant.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace leasehold::replica {

/// The bounds of a replica's queues and buffers, and how much of its log it keeps.
struct Limits {
  /// Payload bytes of recent entries kept in memory, so that healthy followers and the applier
  /// never wait for the disk. Entries that are not durable or not yet given to the applier are
  /// always kept.
  std::size_t cache_bytes_max = 8U << 20U;
  /// Payload bytes of one append message; one entry may exceed it.
  std::size_t append_bytes_max = 1U << 20U;
  /// Payload bytes of one call of Applier::apply, and calls under way.
  std::size_t apply_bytes_max = 1U << 20U;
  std::size_t applies_max = 4;
  /// A replica whose state machine ends no call for this time does not lead until it does. Above 0.
  lease::Duration apply_patience = std::chrono::seconds(10);
  /// Proposals that wait for their result, by number and by bytes. Beyond it a proposal is dropped
  /// as overloaded.
  std::size_t proposals_max = 65536;
  std::size_t proposal_bytes_max = 64U << 20U;
  /// One command. A larger one is always dropped: it would not fit into the frames between the
  /// nodes.
  std::size_t command_bytes_max = 24U << 20U;
  /// Reads that wait. Beyond it a read is refused as overloaded.
  std::size_t reads_max = 262144;
  /// Bytes that a leader has appended but not committed. Beyond it forwarded and own proposals are
  /// dropped as overloaded.
  std::size_t uncommitted_bytes_max = 64U << 20U;

  // The log is cut, once the state machine has made the effect of those entries durable: down to
  // log_tail_bytes when there are log_cut_bytes more than that, and entries older than log_age_max.
  // A follower that needs cut entries gets a snapshot, which costs more than entries: the tail
  // should hold the writes of the time in which a member restarts.

  std::uint64_t log_tail_bytes = 64U << 20U;
  /// A larger one makes cuts rarer, and with them the writes of the state machine.
  std::uint64_t log_cut_bytes = 64U << 20U;
  /// Zero: the age does not matter.
  lease::Duration log_age_max = std::chrono::hours(24);
  /// While a snapshot is sent, and until the peer also has the entries after it, the log keeps
  /// these, up to this many bytes: a peer that is slower than that needs another snapshot.
  std::uint64_t log_held_bytes_max = 1ULL << 30U;

  /// One chunk of a snapshot. It must fit into a frame between the nodes.
  std::size_t snapshot_chunk_bytes = 256U << 10U;
  /// Bytes of a snapshot that may be under way to one peer.
  std::size_t snapshot_window_bytes = 1U << 20U;
  /// The rate of all outgoing snapshots together. 0: no limit.
  std::uint64_t snapshot_bytes_per_second = 0;
  /// The sending to a peer that confirms nothing for this time ends until the peer is heard from
  /// again.
  lease::Duration snapshot_patience = std::chrono::seconds(30);
  /// A snapshot that no peer needs any more is kept for this time, for another peer.
  lease::Duration snapshot_keep = std::chrono::seconds(10);
  /// Arriving chunks that wait to be stored. Beyond it they are dropped, as if lost.
  std::size_t chunks_storing_max = 16;
  /// Callers that wait for a CutLog. Beyond it one is refused as overloaded.
  std::size_t cuts_waiting_max = 64;
  /// Readers of the log that wait, and those that have a place in it. Beyond it one is refused as
  /// overloaded.
  std::size_t log_reads_max = 64;
  /// How long the log is kept for a reader behind its last call (LogReadFrom::reader).
  lease::Duration log_reader_patience = std::chrono::seconds(30);

  /// Refuses a limit under which a replica could do nothing, and one under which it would give its
  /// log or a peer more at once than they take. The error names it.
  Result<void> validate() const;
};

}  // namespace leasehold::replica
