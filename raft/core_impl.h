// What a core keeps, and its functions: one file for each chapter of the protocol. See core.h.
#pragma once

#include <leasehold/base/random.h>
#include <leasehold/base/ring.h>
#include <leasehold/raft/core.h>
#include <leasehold/raft/core_parts.h>
#include <leasehold/raft/ended_processes.h>
#include <leasehold/raft/follower_reads.h>
#include <leasehold/raft/leader.h>

#include <array>
#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

namespace leasehold::raft {

class Core::Impl {
 public:
  // Of the same names in core.h.
  Impl(const CoreOptions& options, InitialState initial, Now now);
  void tick(Now now);
  void step(Now now, const Peer& from, Message& message);
  void ended(Now now, const Peer& peer);
  void released(Now now, const Peer& peer, Term term);
  std::optional<Release> release_at_stop();
  void promises_moved(Now now);
  void machine_stalled(Now now, bool stalled);
  std::optional<LogId> propose(Now now, std::vector<Bytes> payloads,
                               const ExpectedLeader& expected);
  bool meets(const ExpectedLeader& expected) const;
  bool takes_proposals() const;
  std::variant<LogId, ChangeRefused> change_membership(Now now, const WantedMembers& wanted,
                                                       std::optional<MembershipId> expected);
  std::variant<LogId, SettingsRefused> change_settings(Now now, const GroupSettings& wanted);
  std::optional<TransferRefused> transfer(Now now, NodeId to);
  void read_index(Now now, std::uint64_t read, ReadMode mode);
  void listens(Now now, NodeId peer);
  void applied(Now now, Index index);
  void persisted(Now now, ReadyId id);
  void filled(Now now, const AppendIntent& intent, Index last, std::size_t bytes);
  bool current(const AppendIntent& intent) const;
  void cut_log(Now now, Index to);
  bool stamp(const SnapshotIntent& intent, SnapshotChunk& chunk) const;
  bool current(const SnapshotIntent& intent) const;
  void snapshot_ended(Now now, const SnapshotIntent& intent);
  void chunk_stored(Now now, const StoredChunk& stored);
  bool snapshot_received(Now now, const SnapshotId& id, const Membership& membership);
  bool take_ready(Ready& ready);
  void give_back();
  void rest_on(SharedPromises& shared) { options_.shared = &shared; }
  PromiseInstant next_deadline() const;
  const CoreOptions& options() const { return options_; }
  Role role() const;
  bool awaits_place() const;
  bool at_rest() const { return as_leader() != nullptr && as_leader()->at_rest; }
  LeaseClassId lease_class() const;
  const Uuid* bound_to() const { return bound_ ? &bound_->directory : nullptr; }
  NodeId leader() const { return leader_; }
  Index commit_index() const { return commit_; }
  Index cut_limit() const { return options_.witness ? held_ : commit_; }
  Index durable_index() const { return durable_; }
  const Log& log() const { return log_; }
  const lease::Timing& timing() const;
  const HardState& hard_state() const { return hard_state_; }
  const lease::VoterPromise& promise() const { return promise_; }
  PromiseInstant promise_until() const;
  HolderInstant lease_end() const;
  std::optional<HolderInstant> quorum_round() const;
  const Peers& progress() const;
  std::size_t pending_reads() const;
  std::optional<HolderInstant> last_heard(const Progress& peer) const;

 private:
  friend class CoreReader;  // fingerprint.cc
  // core.cc
  HolderInstant end_of(const LeaseState& state) const;
  void begin_input(Now now);
  void end_input();
  void observe_time();
  void mark_hard_state();
  ReadyId hard_state_ready() const;
  ReadyId entries_ready(Index index) const;
  std::optional<RoleChangeReason> stalled() const;
  void adopt_term(Term term, RoleChangeReason reason);
  void become_follower(RoleChangeReason reason);
  void change_role(std::variant<Follower, Candidate, Leader> next, RoleChangeReason reason);
  void append_entry(EntryKind kind, Bytes payload);
  void truncate_log(Index from);
  void advance_commit(Index index);
  Leader* as_leader() { return std::get_if<Leader>(&state_); }
  const Leader* as_leader() const { return std::get_if<Leader>(&state_); }
  Candidate* as_candidate() { return std::get_if<Candidate>(&state_); }
  const Candidate* as_candidate() const { return std::get_if<Candidate>(&state_); }

  // core_output.cc
  void send_now(NodeId to, Message&& message);
  void send_after(ReadyId after, NodeId to, Message&& message);
  void emit(decltype(Event::what) what);

  // core_settings.cc
  lease::Timing holder_timing() const;
  bool shows_leases() const;
  bool can_hold() const;
  Result<void> holdable(const GroupSettings& wanted) const;
  std::variant<LogId, SettingsRefused> begin_settings(const GroupSettings& wanted);
  void append_settings(const GroupSettings& wanted);
  void note_settings();

  // core_membership.cc
  bool own_seat() const;
  bool newcomer() const;
  bool from_impostor(const Peer& from, const Message& message) const;
  std::variant<LogId, ChangeRefused> begin_change(const WantedMembers& wanted);
  bool caught_up(const Progress& progress) const;
  void append_membership(const Membership& next);
  void settle_membership();
  void note_membership();

  // core_judge.cc
  struct Judge;
  bool reachable_term(Term term) const;
  bool another_led(NodeId from) const;
  bool contradicts_committed(LogId id) const;
  bool below_committed(LogId id) const;
  std::optional<Violation> judge_leader(NodeId from, Term term, Duration lease) const;
  std::optional<Violation> judge_memberships(const AppendRequest& m) const;
  std::optional<Violation> violation(NodeId from, const Message& message) const;
  void report(NodeId from, Violation what);

  // core_transfer.cc
  std::optional<TransferRefused> begin_transfer(NodeId to);
  void advance_transfer();
  void send_token(const TransferToken& token);
  void end_transfer();
  void leave_as_removed();
  void handle(NodeId from, const TimeoutNow& m);
  bool passes_promise(const std::optional<TransferToken>& token, NodeId candidate, Term term,
                      LogId last) const;

  // core_shared.cc
  bool promise_lives() const;
  PromiseInstant promise_was_over() const;
  const lease::Support* support() const;
  void take_bind(std::optional<BindRequest>& bind);
  void rely();
  void drop_promise();
  std::optional<BindRequest> bind_for(NodeId member) const;
  QuorumAcknowledged acknowledged(const Leader& leader, bool votes) const;
  struct Rest;
  std::optional<Rest> find_rest(Leader& leader) const;
  LeaseClassId join_class(const Leader& leader) const;
  bool try_rest(Leader& leader);
  void advance_by_class(Leader& leader) const;
  bool sleeps() const;
  void release_members(const Leader& leader);

  // core_death.cc
  void note_start(const Peer& from);
  void note_end(const Peer& peer);
  void hasten_election();
  ElectionOrder election_order() const;
  Duration pause_before_try() const;

  // core_election.cc
  bool promised_to_another() const;
  bool promised_to_other_than_sender() const;
  bool eligible() const;
  bool may_campaign() const;
  PromiseInstant election_deadline() const;
  void wait_before_election();
  void restart_election_timer();
  void start_pre_vote(RoleChangeReason reason);
  void start_campaign(const std::optional<TransferToken>& token);
  void count_votes();
  void become_leader();
  bool learn_term_from_reply(Term term);
  std::optional<VoteRefusal> judge(NodeId candidate, Term term, LogId last, bool pre_vote,
                                   const std::optional<TransferToken>& token) const;
  void handle(NodeId from, const PreVoteRequest& m);
  void handle(NodeId from, const PreVoteReply& m);
  void handle(NodeId from, const VoteRequest& m);
  void handle(NodeId from, const VoteReply& m);

  // core_derive.cc
  void derive();
  void derive_quorum(Leader& leader);
  void derive_commit(Leader& leader, bool votes);
  void derive_lease(Leader& leader, bool votes);
  void derive_reads(Leader& leader);

  // core_lease.cc
  void begin_round();
  Duration longest_promise() const;
  void renew_promise(NodeId leader, Duration carried, std::int64_t drift_ppm);

  // core_replication.cc
  bool open_intent(NodeId to, Term term, std::uint64_t id) const;
  template <class Request>
  bool hear_leader(NodeId from, Request& m);
  void handle(NodeId from, AppendRequest& m);
  void handle(NodeId from, const AppendReply& m);
  void append_from_leader(NodeId from, AppendRequest& m);
  void refuse_append(NodeId from, const AppendRequest& m);
  AppendRequest empty_append(NodeId to, Progress& progress);
  Index commit_to_send(const Progress& progress) const;
  bool keeps_news(const Progress& progress) const;
  void emit_intents();

  // core_read.cc
  void handle(NodeId from, const ReadIndexRequest& m);
  void handle(NodeId from, const ReadIndexReply& m);
  void refuse_reads();
  void ask_leader(ReadMode mode);
  void answer(const LeaderRead& read, std::optional<Index> index, ReadBasis basis);

  // core_snapshot.cc
  void handle(NodeId from, SnapshotChunk& m);
  void handle(NodeId from, const SnapshotReply& m);
  bool accept_snapshot(const SnapshotId& id, const Membership& membership);
  bool resetting() const;

  // core_witness.cc
  void transfer_as_witness();
  Index held_by_all() const;
  Index commit_for(const Progress& progress) const;
  bool state_stays() const;
  void send_beginning(NodeId to, Progress& progress);
  void take_beginning(NodeId from, const SnapshotChunk& m);

  // core_invariants.cc
  void check_invariants() const;
  void check_members(const Leader& leader) const;
  void check_transfer(const Leader& leader) const;
  void check_reads() const;

  CoreOptions options_;
  Random random_;
  /// The time of the newest input. Invariant: neither clock ever runs backwards.
  Now now_;
  /// The time and the term with which this process began: they bound the terms that it adopts.
  PromiseInstant started_at_;
  Term started_term_;
  std::uint64_t violations_ = 0;
  PromiseInstant next_report_ = PromiseInstant::earliest();

  HardState hard_state_;
  lease::VoterPromise promise_;
  /// The support that the promise is bound to, where groups share promises. Invariant: none without
  /// a promise, and none after a restart.
  std::optional<BoundPromise> bound_;
  Peer holder_;  ///< the process that it was given to; not known after a restart
  Peer sender_;  ///< of the message that is being handled
  EndedProcesses ended_;
  NodeId leader_;
  std::variant<Follower, Candidate, Leader> state_;
  PromiseInstant vote_updated_;  ///< also: when the wait before an own election began again
  /// Drawn again for each wait, from [ET, 2 ET), unless quick_tries_ is not zero.
  Duration election_timeout_{0};
  /// Elections to try in quick succession. Invariant: not zero only while no leader is known.
  int quick_tries_ = 0;
  NodeId refused_;  ///< asked for votes too early, since a leader was heard
  /// This node led, learned of a higher term, and campaigns at once unless it grants its vote.
  bool campaign_at_once_ = false;
  /// The term whose leader was reported for promising another D than this node is set to.
  Term settings_reported_;
  /// Of the newest membership, as of the last event about them.
  std::optional<GroupSettings> announced_settings_;

  Log log_;
  /// Invariant: log_.base().index <= commit_ <= log_.last_index(). Never moves back.
  Index commit_;
  Index held_;  ///< at a witness: cut_limit(), which never moves back either
  /// The durable prefix of the present log. Invariant: durable_ <= log_.last_index(), and it is
  /// below the log's base exactly while a snapshot's place there is not durable.
  Index durable_;
  Index handed_out_;  ///< the last entry that storage got and that is still in the log
  Index applied_;     ///< as the host says
  Ring<UnansweredBatch> unanswered_;
  std::optional<SnapshotId> received_;  ///< the snapshot of pending_.persist.reset
  ReadyId next_ready_{1};
  ReadyId hard_state_batch_;  ///< the newest one with a hard state
  ReadyId durable_batch_;     ///< the newest durable one
  bool machine_stalled_ = false;
  std::uint64_t next_intent_ = 1;

  std::array<FollowerReads, 2> follower_reads_;
  std::uint64_t next_request_ = 1;

  Ready pending_;           ///< what the next Ready will hold
  bool input_came_ = true;  ///< since take_ready() was called last
  LeaseState published_;
  Index announced_commit_;
  Index announced_apply_;
  mutable CheckedState checked_;
};

}  // namespace leasehold::raft
