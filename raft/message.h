// The messages between the members of a group. Every one may be lost, delayed, duplicated,
// reordered or replayed.
#pragma once

#include <leasehold/lease/beat.h>
#include <leasehold/raft/entry.h>
#include <leasehold/raft/membership.h>
#include <leasehold/raft/types.h>

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace leasehold::raft {

/// "Would you vote for me in `term`?" Binds no node and changes nothing (dissertation 9.6).
struct PreVoteRequest {
  Term term;   ///< the term that the sender would campaign in: its own plus one
  LogId last;  ///< the sender's last entry
  friend bool operator==(const PreVoteRequest&, const PreVoteRequest&) = default;
};

struct PreVoteReply {
  Term request_term;  ///< the term that was asked for
  Term term;          ///< the responder's term
  bool granted = false;
  NodeId leader;  ///< the leader that the responder knows; kNobody if none
  friend bool operator==(const PreVoteReply&, const PreVoteReply&) = default;
};

/// A leader's permission for one campaign: `target` may be elected although promises to the leader
/// are still in force. Fixed once the leader appends nothing more and has published the loss of its
/// lease.
struct TransferToken {
  Term term;  ///< the leader's; the campaign is one above it
  NodeId target;
  Index last;  ///< the leader's last entry, which the target has
  friend bool operator==(const TransferToken&, const TransferToken&) = default;
};

struct VoteRequest {
  Term term;
  LogId last;
  std::optional<TransferToken> token{};  ///< the sender campaigns by it
  friend bool operator==(const VoteRequest&, const VoteRequest&) = default;
};

struct VoteReply {
  Term request_term;
  Term term;
  bool granted = false;
  NodeId leader;
  friend bool operator==(const VoteReply&, const VoteReply&) = default;
};

/// What a leader asks the member's promise to rest on besides its own end: the promise between
/// their processes (lease::Bind, without the process, which the transport names).
struct BindRequest {
  lease::Beat beat;
  lease::Epoch epoch;
  friend bool operator==(const BindRequest&, const BindRequest&) = default;
};

/// AppendEntries; without entries it is a heartbeat.
struct AppendRequest {
  Term term;
  LogId prev;                  ///< the entry before the first one
  std::vector<Entry> entries;  ///< follow `prev` without a gap
  Index commit;
  Round round;        ///< the newest round when this was made
  Duration lease{0};  ///< the D of the round
  /// The drift that the sender's lease allows the receiver's clock, in parts per million; 0 in a
  /// message of a build that does not say it.
  std::int64_t drift_ppm = 0;
  std::optional<BindRequest> bind{};  ///< only from a leader that shares promises between groups
  friend bool operator==(const AppendRequest&, const AppendRequest&) = default;
};

struct AppendReply {
  Term request_term;      ///< the request's term
  Term term;              ///< the responder's term
  bool promised = false;  ///< the responder promised at least the round's D
  Round round;            ///< echo of the request's round
  bool matched = false;   ///< whether `prev` was in the responder's log
  /// matched: the highest index up to which the responder's log is durable and equals the leader's.
  /// not matched: where to probe next; at most the responder's last index and below the refused
  /// `prev`.
  Index index;
  Term hint_term;       ///< not matched: the term of the responder's entry at `index`
  Index rejected_prev;  ///< not matched: `prev.index` of the request, to tell a stale refusal
  std::optional<lease::Epoch> bound{};  ///< the promise is bound at it, as the request asked
  friend bool operator==(const AppendReply&, const AppendReply&) = default;
};

/// A follower asks for an index at which a read is linearizable (dissertation 6.4).
struct ReadIndexRequest {
  Incarnation
      incarnation;       ///< of the asking process: an answer to an earlier process matches nothing
  std::uint64_t id = 0;  ///< the asker's number; unique within the incarnation
  bool quorum = false;   ///< confirm by a round even while the lease is valid
  friend bool operator==(const ReadIndexRequest&, const ReadIndexRequest&) = default;
};

struct ReadIndexReply {
  Incarnation incarnation;
  std::uint64_t id = 0;
  std::optional<Index> index;  ///< none: refused, the responder is not (or no longer) the leader
  NodeId leader;               ///< refused: the leader that the responder knows
  friend bool operator==(const ReadIndexReply&, const ReadIndexReply&) = default;
};

/// Names the bytes of one snapshot: two of the same name are equal byte for byte.
struct SnapshotId {
  LogId last;  ///< the last entry whose effect is in it
  /// Random, drawn by the node that took it: its bytes for one `last` differ from those of another
  /// node, or of the same node later.
  std::uint64_t tag = 0;
  friend bool operator==(const SnapshotId&, const SnapshotId&) = default;
};

/// A piece of a snapshot, for a peer that needs entries which the leader has cut off
/// (InstallSnapshot, Raft paper section 7). Like an append of the term it renews the receiver's
/// promise.
struct SnapshotChunk {
  Term term;
  Round round;                 ///< the newest round when this was sent
  Duration lease{0};           ///< the D of the round
  std::int64_t drift_ppm = 0;  ///< as in an append
  SnapshotId id;
  Membership membership;  ///< the one at id.last
  /// Of the whole snapshot. 0, with the tag 0 and without data: there is none, and a witness, which
  /// has no state, begins its log after id.last.
  std::uint64_t size = 0;
  std::uint64_t offset = 0;  ///< of `data`; offset + data <= size
  Bytes data;                ///< not empty, except with the size 0
  friend bool operator==(const SnapshotChunk&, const SnapshotChunk&) = default;
};

/// The answer to a chunk.
struct SnapshotReply {
  Term request_term;      ///< the chunk's term
  Term term;              ///< the responder's term
  bool promised = false;  ///< the responder promised at least the round's D
  Round round;            ///< echo of the chunk's round
  SnapshotId id;          ///< echo
  /// The responder does not want this snapshot: it does not need one, or cannot store one now.
  bool refused = false;
  /// The responder holds everything of the snapshot below this offset; send on from here.
  std::uint64_t offset = 0;
  friend bool operator==(const SnapshotReply&, const SnapshotReply&) = default;
};

/// "Campaign now": the leader transfers the leadership (dissertation 3.10).
struct TimeoutNow {
  TransferToken token;
  friend bool operator==(const TimeoutNow&, const TimeoutNow&) = default;
};

using Message =
    std::variant<PreVoteRequest, PreVoteReply, VoteRequest, VoteReply, AppendRequest, AppendReply,
                 ReadIndexRequest, ReadIndexReply, SnapshotChunk, SnapshotReply, TimeoutNow>;

}  // namespace leasehold::raft
