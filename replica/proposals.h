// Commands on their way: this node's own callers, and what followers forward to it while it leads.
#pragma once

#include <leasehold/replica/driver_context.h>
#include <leasehold/replica/forward_window.h>
#include <leasehold/replica/request_numbers.h>

#include <cstddef>
#include <deque>
#include <map>
#include <vector>

namespace leasehold::replica {

/// Each own command gets a sequence, and a fresh one whenever it is sent anew; so a refusal, which
/// names the sequence alone, can only ever speak of one send. A command is sent anew only after it
/// is certain that the earlier send has not been and will not be committed. There are two proofs:
///
/// - The leader refused it: it is not in its log, and the leader will never take that sequence.
/// - It was sent in term T, and this node has applied an entry of a higher term without having met
///   the command. Whoever took it appended it in term T exactly, and terms never fall along the
///   committed log, so no further entry of term T will ever be committed.
///
/// A snapshot that takes the place of entries hides what was in them: of a command that may be
/// among them nobody can tell any more, and it ends as unknown. A repeatable one is sent anew all
/// the same; but from then on no answer can say that it was not executed.
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
class Proposals {
 public:
  explicit Proposals(DriverContext& context)
      : context_(context),
        last_sequence_(first_request(context.options.core.uuid, context.options.core.incarnation)) {
  }

  void propose(lease::Now now, Propose& event);
  /// A read through the log: an empty command.
  void read(lease::Now now, Read& event);
  void forwarded(const raft::Peer& from, wire::ForwardRequest& request);
  void refused(lease::Now now, raft::NodeId from, const wire::ForwardReply& reply);

  /// Appends everything that was queued, in one call of the core. Before any input that could
  /// change who leads.
  void flush(lease::Now now);
  /// Whether anything waits for a leader.
  bool any_held() const { return !held_.empty(); }
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
  /// `own` was applied and completed, and everything up to an entry of `term`.
  void applied(lease::Now now, const std::vector<std::uint64_t>& own, raft::Term term);
  /// Whether the news of an entry that was applied lets a command be sent anew.
  bool awaits_applied() const { return !waiters_.empty() && applied_term_ < context_.core.term(); }
  /// A snapshot whose last entry is `last` was put in place of what had been applied.
  void installed(lease::Now now, raft::LogId last);
  void expired(std::uint64_t sequence);
  void cancelled(CallGroup group);
  /// The node stops: nothing of this is sent any more.
  void complete_all();

  bool waits(std::uint64_t sequence) const { return waiters_.find(sequence) != waiters_.end(); }
  std::size_t size() const { return waiters_.size(); }

 private:
  enum class Place : std::uint8_t { held, queued, appended, forwarded };
  struct Waiter {
    Bytes command;
    raft::PromiseInstant deadline;
    CallGroup group;
    bool is_read = false;
    Place place = Place::held;
    raft::NodeId sent_to;  ///< forwarded: to whom
    raft::Term sent_in;    ///< forwarded or appended: in which term
    bool hidden = false;   ///< it may be among the entries that a snapshot took the place of
    bool repeatable = false;
    bool may_be_done = false;  ///< it was sent anew without a proof
  };
  using Waiters = std::map<std::uint64_t, Waiter>;
  /// A command that the next flush() appends.
  struct Queued {
    raft::NodeId origin;
    raft::Incarnation incarnation;
    std::uint64_t sequence = 0;
  };
  struct Uncommitted {
    raft::Index index;
    std::size_t bytes = 0;
  };

  void take(lease::Now now, Waiter waiter, ProposeCompletion done);
  void hold(Waiters::iterator waiter);
  void route(lease::Now now, Waiters::iterator waiter);
  void forward(lease::Now now, Waiters::iterator waiter);
  void queue(raft::NodeId origin, raft::Incarnation incarnation, std::uint64_t sequence,
             const Bytes& command);
  bool overloaded() const { return uncommitted_bytes_ > context_.options.uncommitted_bytes_max; }
  void refuse(const Queued& forward, wire::ForwardRefusal reason);
  /// Whose fate is decided once an entry of `term` is committed.
  std::vector<std::uint64_t> sent_before(raft::Term term) const;
  /// Gives the waiter a fresh sequence; the earlier send is proven dead, or it is repeatable.
  Waiters::iterator renew(Waiters::iterator waiter);
  void drop(Waiters::iterator waiter, bool overloaded_now);
  /// The disk of `at` has no space for the command.
  void drop_for_space(Waiters::iterator waiter, raft::NodeId at);
  /// Tells the caller, unless the applier has.
  void finish(Waiters::iterator waiter, ProposeResult result);
  void forget(Waiters::iterator waiter);

  DriverContext& context_;
  std::uint64_t last_sequence_;
  /// By sequence. Bounded by Limits::proposals_max and proposal_bytes_max.
  Waiters waiters_;
  std::size_t waiting_bytes_ = 0;
  /// Sequences of the waiters at Place::held, in the order in which they will be sent. May name
  /// some that have expired.
  std::vector<std::uint64_t> held_;

  /// A command that waits at Place::forwarded, and when it is sent again.
  struct Resend {
    raft::PromiseInstant at;
    std::uint64_t sequence = 0;
  };
  /// In the order of the instants. May name some that have ended.
  std::deque<Resend> resends_;
  /// None before.
  raft::PromiseInstant resends_from_ = raft::PromiseInstant::earliest();
  /// What was sent again within the time that ends at `until`.
  struct Resent {
    raft::PromiseInstant until = raft::PromiseInstant::earliest();
    std::size_t count = 0;
    std::size_t bytes = 0;
  };
  Resent resent_;

  std::vector<Queued> queue_;
  std::vector<Bytes> queued_payloads_;

  /// The highest term of which this node has applied an entry.
  raft::Term applied_term_;

  /// What this leader appended and has not committed, own and forwarded.
  std::deque<Uncommitted> uncommitted_;
  /// Invariant: the sum over uncommitted_ and queued_payloads_.
  std::size_t uncommitted_bytes_ = 0;
  /// What was forwarded to this node in the newest term that it has led. Kept beyond that
  /// leadership: a refusal has to know what was taken.
  ForwardWindow window_;
  raft::Term window_term_;
};

}  // namespace leasehold::replica
