// Sends snapshots to peers that need entries which the leader has cut off.
#pragma once

#include <leasehold/base/boxed.h>
#include <leasehold/replica/driver_context.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::replica {

/// There is one snapshot at a time, shared by all peers that need one, and used again while its
/// last entry is at or above the log's base. To each peer it goes in chunks:
///
///     waits ──heard from the peer, and a snapshot is there──> sends ──all, or refused──> rests
///       ^ ──────────── the log was cut above the snapshot ──────┤                          │
///       └── a new intent <── Core::snapshot_ended() <── no progress for snapshot_patience ─┘
///
/// While it `sends`, one read of the snapshot is under way at a time, and at most a window of bytes
/// that the peer has not confirmed. At first, and after a silence, a single chunk goes out, whose
/// answer says where to go on (`probing`): the peer may hold a part from before, or may have lost
/// one. So a chunk or an answer may be lost, doubled or late at any point.
///
/// A peer that has its snapshot *follows* until it has the entries behind it, too: the log keeps
/// them meanwhile. Else they would be cut off while they are on their way, and a group that is
/// written to would send one snapshot after the other.
///
/// A silent peer costs nothing: no snapshot is taken for it, and no log is kept.
class SnapshotSender {
 public:
  explicit SnapshotSender(DriverContext& context) : context_(context) {}

  void send(const raft::SnapshotIntent& intent);
  /// A message arrived from `peer`.
  void heard(raft::NodeId peer);
  void replied(lease::Now now, raft::NodeId from, const raft::SnapshotReply& reply);
  void taken(lease::Now now, SnapshotTaken& event);
  void read(lease::Now now, SnapshotRead& event);
  /// Lets time pass and does what can be done. True: the core got an input.
  bool turn(lease::Now now);
  raft::PromiseInstant next_deadline() const;

  /// The log is needed from the entry after this one on, for the peers to go on with after their
  /// snapshot. None: this part does not need the log.
  std::optional<raft::Index> holds() const;
  /// The snapshots that are being sent, for people.
  void status(std::vector<SnapshotTransfer>& out) const;

 private:
  enum class Step : std::uint8_t { waits, sends, rests };
  struct Sending {
    raft::SnapshotIntent intent;
    Step step = Step::waits;
    bool heard = false;
    bool complete = false;         ///< rests: because the peer has all of it
    bool probing = true;           ///< one chunk at a time
    std::uint64_t acked = 0;       ///< the peer holds everything below
    std::uint64_t sent = 0;        ///< what is sent next. Invariant: acked <= sent
    std::uint64_t reported = 0;    ///< what the newest answer said
    std::uint64_t best = 0;        ///< the most that any answer said
    std::uint64_t token = 0;       ///< of the read under way; 0: none
    std::uint64_t reading = 0;     ///< the offset that it reads
    raft::PromiseInstant read_at;  ///< when it began
    lease::Duration resend_after{0};
    raft::PromiseInstant resend_at;
    /// When `best` last rose, plus the time since then that the peer waited for this node: for its
    /// rate limit, and for its disk.
    raft::PromiseInstant progress_at;
    raft::PromiseInstant rests_until;
  };
  /// A peer that has got its snapshot.
  struct Following {
    raft::Index match;
    raft::PromiseInstant progress_at;  ///< when `match` last rose
  };
  /// The present snapshot.
  struct Held {
    raft::SnapshotId id;
    raft::Membership membership;
    std::uint64_t size = 0;
  };

  lease::Duration beats(int count) const;
  bool usable() const;
  bool wants_to_read(const Sending& sending) const;
  bool awaits_answer(const Sending& sending) const;
  void start(lease::Now now, Sending& sending);
  void rest(lease::Now now, Sending& sending);
  void pump(lease::Now now, Sending& sending);
  bool pass_time(lease::Now now, Sending& sending);
  void follow(lease::Now now);
  void drop_snapshot();

  DriverContext& context_;
  /// By peer; at most one for each member.
  std::map<raft::NodeId, Sending> sendings_;
  std::map<raft::NodeId, Following> following_;
  Boxed<Held> held_;
  bool taking_ = false;
  /// The state machine cannot take snapshots.
  bool unsupported_ = false;
  std::uint64_t last_token_ = 0;
  /// When to try again after a take that failed.
  raft::PromiseInstant take_again_at_ = raft::PromiseInstant::earliest();
  /// When the rate limit lets the next chunk leave.
  raft::PromiseInstant pace_ = raft::PromiseInstant::earliest();
  /// When to release held_, which no peer needs any more.
  raft::PromiseInstant release_at_ = raft::PromiseInstant::never();
};

}  // namespace leasehold::replica
