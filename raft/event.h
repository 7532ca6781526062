// The steps of the protocol, as a closed set of values. Events feed logs, metrics, traces and
// golden tests.
#pragma once

#include <leasehold/raft/settings.h>
#include <leasehold/raft/types.h>

#include <variant>

namespace leasehold::raft {

enum class RoleChangeReason : std::uint8_t {
  started,           ///< restart or first start
  election_timeout,  ///< no leader for an election timeout
  pre_vote_won,
  election_won,
  higher_term,      ///< a higher term was learned
  leader_appeared,  ///< an append of the current term came in
  quorum_lost,      ///< no quorum acknowledged a round for a whole lease
  disk_stalled,     ///< the oldest unanswered durable write is older than an election timeout, and
                    ///< others have committed more than this disk has
  process_stalled,  ///< the process makes no progress (SharedPromises::healthy())
  machine_stalled,  ///< the state machine makes no progress (Core::machine_stalled())
  election_lost,    ///< the pre-vote or the vote was refused by a quorum, or timed out
  transfer,         ///< the leader has transferred to this node
  removed,          ///< the leader's own removal from the voters is committed
  leader_ended,     ///< the process of the leader is known to have ended
  leader_released,  ///< the leader has left its role, and has said so
};

struct RoleChanged {
  Role from = Role::follower;
  Role to = Role::follower;
  RoleChangeReason reason = RoleChangeReason::started;
  friend bool operator==(const RoleChanged&, const RoleChanged&) = default;
};
/// The node learned the leader of the term.
struct LeaderKnown {
  NodeId leader;
  friend bool operator==(const LeaderKnown&, const LeaderKnown&) = default;
};
struct VoteGranted {
  NodeId candidate;
  bool pre_vote = false;
  friend bool operator==(const VoteGranted&, const VoteGranted&) = default;
};
enum class VoteRefusal : std::uint8_t {
  own_lease_valid,  ///< this node leads and its lease is valid
  promised,         ///< a promise to another node binds this one
  old_term,
  voted_for_other,
  log_behind,  ///< the candidate's log is less up to date
  no_member,   ///< this node waits to be added to its group, and has not heard from a leader
};
struct VoteRefused {
  NodeId candidate;
  bool pre_vote = false;
  VoteRefusal reason = VoteRefusal::promised;
  friend bool operator==(const VoteRefused&, const VoteRefused&) = default;
};
/// A promise to a new holder, or in a new term. Renewals by the same leader are too frequent for
/// events.
struct PromiseGiven {
  NodeId holder;
  PromiseInstant until;
  friend bool operator==(const PromiseGiven&, const PromiseGiven&) = default;
};
/// The process that held the promise of `promised` has ended, and so has the promise.
struct HolderEnded {
  Peer holder;
  Term promised;
  friend bool operator==(const HolderEnded&, const HolderEnded&) = default;
};
/// A leader has a lease that it did not have before.
struct LeaseGained {
  HolderInstant end;
  friend bool operator==(const LeaseGained&, const LeaseGained&) = default;
};
/// A leader dropped its lease. (A lease that expires ends without an event.)
struct LeaseLost {
  HolderInstant end;  ///< the end of the lease that it dropped
  friend bool operator==(const LeaseLost&, const LeaseLost&) = default;
};
/// A leader of this term promised another duration than this node's own setting, in a group whose
/// log has no settings.
struct SettingsDiffer {
  NodeId peer;
  Duration theirs{0};
  friend bool operator==(const SettingsDiffer&, const SettingsDiffer&) = default;
};

/// Other settings of the group are in effect on this node from now on.
struct SettingsChanged {
  Index index;  ///< the place of their entry in the log
  GroupSettings settings;
  friend bool operator==(const SettingsChanged&, const SettingsChanged&) = default;
};

/// The log of this node now begins after `to`: the state machine holds the effect of the cut
/// entries, durably.
struct LogCut {
  Index to;
  friend bool operator==(const LogCut&, const LogCut&) = default;
};
/// A leader begins to send a snapshot: the peer needs entries that are cut off.
struct SnapshotSending {
  NodeId peer;
  friend bool operator==(const SnapshotSending&, const SnapshotSending&) = default;
};
/// A snapshot from the leader replaced this node's log, durably. The state machine gets it next.
struct SnapshotInstalled {
  LogId last;  ///< the last entry whose effect is in it
  friend bool operator==(const SnapshotInstalled&, const SnapshotInstalled&) = default;
};

/// A leader begins a transfer: it takes no proposals, and brings the target up to date.
struct TransferStarted {
  NodeId target;
  friend bool operator==(const TransferStarted&, const TransferStarted&) = default;
};
/// A leader has dropped its lease and lets the target campaign.
struct TokenIssued {
  NodeId target;
  Index last;  ///< nothing is appended after it until the transfer ends
  friend bool operator==(const TokenIssued&, const TokenIssued&) = default;
};
/// This node got a token that it cannot use for a campaign: the token is late, or its log has
/// changed since.
struct TokenUnused {
  NodeId issuer;
  Index last;
  friend bool operator==(const TokenUnused&, const TokenUnused&) = default;
};
enum class TransferOutcome : std::uint8_t {
  left_role,      ///< this node no longer leads: the target does, unless something else happened
  target_behind,  ///< the target did not catch up in time; the lease was not dropped
  not_elected,    ///< the target did not campaign, or lost
};
struct TransferEnded {
  NodeId target;
  TransferOutcome outcome = TransferOutcome::left_role;
  friend bool operator==(const TransferEnded&, const TransferEnded&) = default;
};
/// Another membership is in effect on this node from now on: a membership entry was appended or
/// truncated, or a snapshot brought one.
struct MembershipChanged {
  Index index;  ///< its place in the log
  std::uint32_t voters = 0;
  std::uint32_t outgoing_voters = 0;  ///< not zero: it is joint
  std::uint32_t learners = 0;
  friend bool operator==(const MembershipChanged&, const MembershipChanged&) = default;
};
/// The newest membership of this node is known to be committed.
struct MembershipCommitted {
  Index index;
  friend bool operator==(const MembershipCommitted&, const MembershipCommitted&) = default;
};

/// What no correct member can have claimed.
enum class Violation : std::uint8_t {
  term_too_high,          ///< beyond what elections can have reached
  index_too_high,         ///< beyond what appends can have reached
  lease_too_long,         ///< a D that is not positive, or above an hour
  second_leader,          ///< this node knows another leader of the same term
  committed_replaced,     ///< another entry in the place of a committed one
  impossible_membership,  ///< a membership that cannot follow the one before it
  answer_to_nothing,      ///< a round that never began, or an index that the log does not have
};
/// For people: what the message claimed.
const char* text_of(Violation violation);
/// A message was ignored because of its claim. At most one event in each second.
struct ProtocolViolation {
  NodeId peer;
  Violation what = Violation::term_too_high;
  std::uint64_t count = 0;  ///< all messages that this process has ignored so, this one included
  friend bool operator==(const ProtocolViolation&, const ProtocolViolation&) = default;
};

struct Event {
  GroupId group;
  NodeId node;
  Term term;
  Now at;
  std::variant<RoleChanged, LeaderKnown, VoteGranted, VoteRefused, PromiseGiven, LeaseGained,
               LeaseLost, SettingsDiffer, LogCut, SnapshotSending, SnapshotInstalled,
               MembershipChanged, MembershipCommitted, TransferStarted, TokenIssued, TokenUnused,
               TransferEnded, ProtocolViolation, SettingsChanged, HolderEnded>
      what;
};

}  // namespace leasehold::raft
