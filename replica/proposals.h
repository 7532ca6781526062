// Commands on their way: this node's own callers, and what followers forward to it while it leads.
#pragma once

#include <leasehold/base/ring.h>
#include <leasehold/replica/callers.h>
#include <leasehold/replica/driver_context.h>
#include <leasehold/replica/forward_window.h>
#include <leasehold/replica/request_numbers.h>

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace leasehold::replica {

/// Each own command gets a sequence, and a fresh one whenever it is sent anew; so a refusal, which
/// names the sequence alone, can only ever speak of one send. A command is sent anew only after it
/// is certain that the earlier send has not been and will not be committed. There are two proofs:
///
/// - The leader refused it: it is not in its log, and the leader will never take that sequence.
/// - It was sent in term T, and this node has applied an entry of a higher term without having met
///   the command. The leader that took it appended it in term T exactly, and terms never fall along
///   the committed log, so no further entry of term T will ever be committed.
///
/// A snapshot that takes the place of entries hides what was in them: of a command that may be
/// among them nobody can tell any more, and it ends as unknown. A repeatable one is sent anew all
/// the same; but from then on no answer can say that it was not executed.
///
/// A command may name the leadership that it wants (Propose::expected). route() is the one door to
/// both ways into a log, and looks at it each time.
///
/// A message may be lost. So what was forwarded and is not answered is sent again each election
/// timeout, under its sequence, to the same leader in the same term: that one takes a sequence at
/// most once in a term.
///
/// An own command waits in one of four places:
///
///     held ──leader known──> forwarded ──applied here──> committed
///      │ ^──proof────────────────┤ └──deadline──> unknown
///      │ ^──proof────────────────│───────────────┐
///      └──this node leads──> queued ──flush()──> appended ──applied here──> committed
///      └──deadline──> dropped                        └──deadline──> unknown
///
/// It is one record of the table in Callers, which finds it by its sequence and by its deadline. In
/// addition it is in at most one list: held_, resends_, queue_ or uncommitted_, that of its place.
class Proposals {
 public:
  explicit Proposals(DriverContext& context)
      : context_(context),
        last_sequence_(
            first_request(context.core.options().uuid, context.core.options().incarnation)) {}

  void propose(lease::Now now, Propose& event);
  /// A read through the log: an empty command.
  void read(lease::Now now, Read& event);
  void forwarded(const raft::Peer& from, wire::ForwardRequest& request);
  void refused(lease::Now now, raft::NodeId from, const wire::ForwardReply& reply);

  /// Appends everything that was queued, in one call of the core. Before any input that could
  /// change who leads.
  void flush(lease::Now now);
  /// Whether anything was held since the last route_held(). It may have ended since: the time of
  /// the next try does not depend on that.
  bool any_held() const { return retry_; }
  /// Tries again for everything that is held.
  void route_held(lease::Now now);
  /// When resend() is due; never() while nothing is forwarded.
  raft::PromiseInstant next_resend() const;
  /// Sends again what was forwarded an election timeout ago: the oldest, up to a bound in each such
  /// time, so that a leader that is slow is not buried.
  void resend(lease::Now now);

  void leadership_won(raft::Term term);
  void leadership_lost();
  void committed(raft::Index commit);
  /// Of this node's log, up to `index`.
  void durable(raft::Index index) {
    if (!traced_.empty()) note_traced("durable", &Traced::durable, index);
  }
  /// `own` was applied and completed, and everything up to an entry of `term`.
  void applied(lease::Now now, const std::vector<std::uint64_t>& own, raft::Term term);
  /// Whether the news of an entry that was applied lets a command be sent anew.
  bool awaits_applied() const { return !table().empty() && applied_term_ < context_.core.term(); }
  /// A snapshot whose last entry is `last` was put in place of what had been applied.
  void installed(lease::Now now, raft::LogId last);
  /// The earliest of all; never() while nothing waits.
  raft::PromiseInstant next_deadline() const;
  /// Ends the command whose deadline is the earliest.
  void expire_earliest();
  void cancelled(CallGroup group);
  /// The node stops: nothing of this is sent any more.
  void complete_all();

  std::size_t size() const { return table().size(); }
  ProposalPlaces places() const;
  /// Between turns: nothing is queued, and no list holds more than there is.
  void check() const;

 private:
  using Place = Proposal::Place;
  /// A command that the next flush() appends.
  struct Queued {
    raft::NodeId origin;
    raft::Incarnation incarnation;
    std::uint64_t sequence = 0;
    Proposal* own = nullptr;  ///< nullptr: it was forwarded to this node
  };
  struct Uncommitted {
    raft::Index index;
    std::size_t bytes = 0;
  };
  /// A command with a span that this leader has appended.
  struct Traced {
    raft::Index index;
    SpanPointer span;
    bool durable = false;
    bool committed = false;
  };

  const ProposalTable& table() const { return context_.ports.callers.table(); }
  void take(lease::Now now, std::unique_ptr<Proposal> taken);
  void hold(Proposal& proposal);
  bool unexpected(const raft::ExpectedLeader& expected) const;
  void route(lease::Now now, Proposal& proposal);
  void forward(lease::Now now, Proposal& proposal);
  void queue(const Queued& queued, const Bytes& command);
  bool overloaded() const {
    return uncommitted_bytes_ > context_.limits.uncommitted_bytes_max ||
           context_.ports.storage.behind();
  }
  void refuse(const Queued& forward, wire::ForwardRefusal reason);
  void trace_appended(const Proposal& proposal, raft::LogId id);
  /// `station` for those up to `last` that have not passed it. Those that have passed all leave.
  void note_traced(std::string_view station, bool Traced::*passed, raft::Index last);
  /// Whose fate is decided once an entry of `term` is committed; by sequence.
  std::vector<Proposal*> sent_before(raft::Term term) const;
  /// Gives it a fresh sequence; the earlier send is proven dead, or it is repeatable.
  void renew(Proposal& proposal);
  void expired(Proposal& proposal);
  void drop(Proposal& proposal, bool overloaded_now);
  /// The leadership is not the one that the command wants.
  void drop_as_unexpected(Proposal& proposal);
  /// The disk of `at` has no space for the command.
  void drop_for_space(Proposal& proposal, raft::NodeId at);
  /// Tells the caller, unless the applier has.
  void finish(Proposal& proposal, ProposeResult result);
  std::unique_ptr<Proposal> remove(Proposal& proposal);

  DriverContext& context_;
  std::uint64_t last_sequence_;
  /// Invariant: the sum over the table. Bounded by Limits::proposal_bytes_max.
  std::size_t waiting_bytes_ = 0;
  /// Invariant: exactly those at Place::held. They will be sent in this order.
  ProposalList held_;
  bool retry_ = false;
  /// Invariant: all at Place::forwarded that were sent in the present term, by resend_at. Those of
  /// an earlier term leave when they come up.
  ProposalList resends_;
  /// None before.
  raft::PromiseInstant resends_from_ = raft::PromiseInstant::earliest();
  /// What was sent again within the time that ends at `until`.
  struct Resent {
    raft::PromiseInstant until = raft::PromiseInstant::earliest();
    std::size_t count = 0;
    std::size_t bytes = 0;
  };
  Resent resent_;

  /// Invariant: of this node's own, exactly those at Place::queued. None ends before it has left:
  /// flush() comes first.
  std::vector<Queued> queue_;
  std::vector<Bytes> queued_payloads_;

  /// The highest term of which this node has applied an entry.
  raft::Term applied_term_;

  /// The log entries that this leader appended and has not committed, own and forwarded. They stay
  /// when their callers have given up.
  Ring<Uncommitted> uncommitted_;
  /// Invariant: the sum over uncommitted_ and queued_payloads_.
  std::size_t uncommitted_bytes_ = 0;
  /// As a rule none; by index.
  std::vector<Traced> traced_;
  /// What was forwarded to this node in the newest term that it has led. Kept beyond that
  /// leadership: a refusal has to know what was taken.
  ForwardWindow window_;
  raft::Term window_term_;
};

}  // namespace leasehold::replica
