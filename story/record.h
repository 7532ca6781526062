// What happened in a run, for people: one record per event, seen from outside all nodes.
//
// Records come from the bare core in a scenario and from the production driver in the simulator. A
// story tells them in words, a trace file holds them as JSON, a timeline draws them. Nothing that
// runs depends on them.
#pragma once

#include <leasehold/raft/event.h>
#include <leasehold/raft/message.h>
#include <leasehold/raft/process_beat.h>
#include <leasehold/raft/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace leasehold::story {

using raft::Duration;
using raft::GroupId;
using raft::Index;
using raft::NodeId;
using raft::Round;
using raft::Term;

/// docs/formats/trace.md says which members each kind uses. The names in a trace file are those of
/// kind_name().
enum class Kind : std::uint8_t {
  run,         ///< first of all: what runs (text), how many nodes (number)
  start,       ///< a process starts; number is its incarnation
  crash,       ///< a process dies
  notice,      ///< node learns that a process of peer has ended; number is its incarnation
  fail,        ///< its storage failed, it stops
  pause,       ///< what: process or ordering_thread; until, if it is known
  suspend,     ///< the machine sleeps
  resume,      ///< after a pause or a suspend
  clock,       ///< the rates change: ppm of both clocks
  cut,         ///< the link to peer carries nothing
  join,        ///< it carries again
  heal,        ///< all faults end
  disk,        ///< what: stalls, continues, full or has_space
  role,        ///< what: the new role; why
  leader,      ///< the node learns that peer leads
  vote,        ///< granted to peer; what: vote or pre_vote
  refusal,     ///< of a vote to peer; what: vote or pre_vote; why
  promise,     ///< to peer, up to until; why: given, renewed, restarted or clock
  unpromised,  ///< the promise was dropped; what: elected (this node, itself), ended (the holder)
               ///< or released (by the holder)
  lease,       ///< a leader's lease, `from` to `until`; peer and round moved its end (what: beat,
               ///< then round is the number of a beat)
  lease_lost,  ///< given up before its end
  settings,    ///< what: differ (peer promised another D) or changed (those of the group); text
  log_cut,     ///< the log begins behind index
  snapshot,    ///< what: sending (to peer), or installed (in place of everything up to index)
  members,     ///< what: changed or committed; index; text: how many vote
  transfer,    ///< of the leadership to peer; what: started, token, unused, ended; why
  round,       ///< a leader begins a broadcast round
  sent,        ///< to peer; what: the message's type; why: its verdict; number: which message
  delivered,   ///< from peer, sent at `from`
  lost,        ///< to peer
  commit,      ///< this node knows that everything up to index is committed
  asked,       ///< a client asks for a read; what: the mode; number: which read
  read,        ///< its answer; what: the basis; index; why: refused, unknown or empty
  write,       ///< a client's write; what: asked, done, refused or unknown
  mark,        ///< a name for an instant (text)
};

/// The name in trace files: "lease_lost". Pinned.
const char* kind_name(Kind kind);

struct Record {
  Duration at{0};  ///< true time since the start
  Kind kind = Kind::mark;
  NodeId node;  ///< where; kNobody: everywhere
  NodeId peer;
  /// Of the replicas of node and peer, from the second group on. Zero: those of the first one, or
  /// no group is concerned.
  GroupId group;
  Term term;
  Round round;
  Index index;
  /// A window in true time, at the present clock rates.
  std::optional<Duration> from;
  std::optional<Duration> until;
  std::uint64_t number = 0;
  std::int64_t holder_ppm = 0;
  std::int64_t promise_ppm = 0;
  std::string what;
  std::string why;
  std::string text;

  friend bool operator==(const Record&, const Record&) = default;
};

using Sink = std::function<void(const Record&)>;

/// The record of an event of the core. None for what a CoreWatch sees better from outside: promises
/// and leases with all their renewals.
std::optional<Record> record_of(Duration at, const raft::Event& event);
/// A message on its way between `node` and `peer`.
Record record_of(Duration at, Kind kind, NodeId node, NodeId peer, const raft::Message& message);
/// One between their processes: its round is the number of the beat.
Record record_of(Duration at, Kind kind, NodeId node, NodeId peer, const raft::ProcessBeat& beat);
Record record_of(Duration at, Kind kind, NodeId node, NodeId peer,
                 const raft::ProcessBeatReply& reply);

/// "append_reply": how scenarios and trace files name a message.
std::string message_name(const raft::Message& message);
std::string message_name(const raft::ProcessBeat& beat);
std::string message_name(const raft::ProcessBeatReply& reply);
/// "promised round 3, holds 1..4": the part of it that matters.
std::string message_text(const raft::Message& message);
std::string message_text(const raft::ProcessBeat& beat);
std::string message_text(const raft::ProcessBeatReply& reply);
/// "1.0": that of the second process of a node begins with a 2.
std::string epoch_text(const lease::Epoch& epoch);
const char* role_name(raft::Role role);

/// "node 3", and "node 3b" for its replica of the second group.
std::string node_name(NodeId node, GroupId group = GroupId());
/// "3", "3b".
std::string short_name(NodeId node, GroupId group = GroupId());

/// "12.5ms": milliseconds with at most three digits behind the point, rounded down.
std::string format_time(Duration time);

}  // namespace leasehold::story
