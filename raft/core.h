// raft::Core: one replica of one group, as a pure function of (state, now, input).
#pragma once

#include <leasehold/base/random.h>
#include <leasehold/lease/leader_lease.h>
#include <leasehold/lease/promise.h>
#include <leasehold/lease/rounds.h>
#include <leasehold/lease/timing.h>
#include <leasehold/raft/log.h>
#include <leasehold/raft/message.h>
#include <leasehold/raft/progress.h>
#include <leasehold/raft/ready.h>
#include <leasehold/raft/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace leasehold::raft {

struct CoreOptions {
  GroupId group;
  NodeId id;
  Incarnation incarnation;  ///< of this process; sent with read-index requests
  lease::Timing timing;     ///< has passed validate()
  std::uint64_t seed = 0;   ///< of the election timeouts
  /// Append intents and unacknowledged entry messages per peer; past it the peer gets heartbeats
  /// only.
  std::size_t inflight_messages_max = 64;
  /// Unacknowledged payload bytes per peer.
  std::size_t inflight_bytes_max = 8U << 20U;
};

/// How a read asks to be justified. The answer is linearizable either way.
enum class ReadMode : std::uint8_t {
  lease,   ///< by the lease if it is valid, else silently by a quorum round
  quorum,  ///< always by a round that begins after the read arrived
};

/// The consensus protocol of one replica.
///
/// Contract: deterministic; never blocks, throws, logs, or reads a clock; cheap to copy. Every
/// input takes the time first, sampled after the input was in memory. After any number of inputs
/// the caller drains take_ready() and acts on each Ready in the order that ready.h describes. One
/// thread at a time.
///
/// Where it departs from the Raft paper: pre-vote (dissertation 9.6) always; a voter's promise
/// binds its votes and is a state of its own (lease/README.md); a leader without a quorum for a
/// whole lease steps down; a leader that learns of a higher term campaigns at once.
class Core {
 public:
  Core(const CoreOptions& options, InitialState initial, Now now);

  /// Lets time pass. Call it no later than next_deadline(); calling it earlier is harmless.
  void tick(Now now);
  /// A message from `from`, whose identity the transport has checked.
  void step(Now now, NodeId from, Message message);
  /// Appends entries of `kind` command, one per payload, in order. Returns the id of the first, or
  /// none when this node is not the leader (nothing is appended; leader() hints where to go).
  std::optional<LogId> propose(Now now, std::vector<Bytes> payloads);
  /// Asks for an index at which a read that has arrived is linearizable. Exactly one ReadAnswer
  /// names `read`, at once or later; the numbers are the caller's and unique while pending. Works
  /// on any node: a follower asks its leader.
  void read_index(Now now, std::uint64_t read, ReadMode mode);
  /// Batch `id` and all before it are durable.
  void persisted(Now now, ReadyId id);
  /// The entries after `intent.prev` up to `last` left for the peer, `bytes` of payload in all.
  /// Nothing was sent: last == prev. Ignored when the intent is no longer the open one.
  void filled(Now now, const AppendIntent& intent, Index last, std::size_t bytes);
  /// Whether an intent is still the open one of its peer: entries for it may leave only while this
  /// holds.
  bool current(const AppendIntent& intent) const;

  /// Moves the effects since the last call into `ready`, whose old content is dropped. False: there
  /// are none.
  bool take_ready(Ready& ready);
  /// When tick() is due. On the clock that every timer runs on.
  PromiseInstant next_deadline() const;

  NodeId id() const { return options_.id; }
  const CoreOptions& options() const { return options_; }
  Role role() const { return role_; }
  Term term() const { return hard_state_.term; }
  /// Who leads the current term, as far as this node knows; kNobody otherwise.
  NodeId leader() const { return leader_; }
  Index commit_index() const { return commit_; }
  /// The prefix of the log that is durable on this node.
  Index durable_index() const { return durable_; }
  const Log& log() const { return log_; }
  const Membership& membership() const { return log_.membership(); }
  const HardState& hard_state() const { return hard_state_; }
  const lease::VoterPromise& promise() const { return promise_; }
  /// The lease as published: none until an entry of the own term is committed. earliest() for any
  /// other role.
  HolderInstant lease_end() const;
  /// What a leader knows of its peers; empty for any other role.
  const std::map<NodeId, Progress>& progress() const { return progress_; }
  /// Reads that have not been answered.
  std::size_t pending_reads() const;

 private:
  CoreOptions options_;
  HardState hard_state_;
  lease::VoterPromise promise_;
  Role role_ = Role::follower;
  NodeId leader_;
  Log log_;
  Index commit_;
  Index durable_;
  std::map<NodeId, Progress> progress_;
};

}  // namespace leasehold::raft
