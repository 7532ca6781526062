#include <leasehold/base/assert.h>
#include <leasehold/replica/command_envelope.h>
#include <leasehold/replica/proposals.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace leasehold::replica {
namespace {

/// What is sent again within an election timeout, at most. One command goes out in any case; a
/// large one uses up the time of several.
constexpr std::size_t kResendsMax = 1024;
constexpr std::size_t kResendBytesMax = std::size_t{1} << 20U;

const char* name_of(wire::ForwardRefusal reason) {
  switch (reason) {
    case wire::ForwardRefusal::not_leader: return "not the leader";
    case wire::ForwardRefusal::overloaded: return "overloaded";
    case wire::ForwardRefusal::disk_full: return "disk full";
  }
  return "";
}

}  // namespace

void Proposals::propose(lease::Now now, Propose& event) {
  ++context_.counters.proposals;
  auto proposal = std::make_unique<Proposal>();
  proposal->command = std::move(event.command);
  proposal->deadline = event.deadline;
  proposal->group = event.group;
  proposal->repeatable = event.repeatable;
  proposal->expected = event.expected;
  proposal->done = std::move(event.done);
  proposal->span = std::move(event.span);
  take(now, std::move(proposal));
}

void Proposals::read(lease::Now now, Read& event) {
  auto proposal = std::make_unique<Proposal>();
  proposal->deadline = event.deadline;
  proposal->group = event.group;
  proposal->is_read = true;
  proposal->span = std::move(event.span);
  proposal->done = [done = std::move(event.done), began = now.holder,
                    &fresh = context_.ports.view.fresh_since()](const ProposeResult& result) {
    if (result.status == ProposeStatus::committed) fresh.raise(began);
    if (!done) return;
    ReadResult read;
    read.leader = result.leader;
    read.overloaded = result.overloaded;
    if (result.status == ProposeStatus::committed) read.index = result.id.index;
    done(read);
  };
  take(now, std::move(proposal));
}

void Proposals::take(lease::Now now, std::unique_ptr<Proposal> taken) {
  const Limits& limits = context_.limits;
  const bool full = table().size() >= limits.proposals_max ||
                    waiting_bytes_ + taken->command.size() > limits.proposal_bytes_max;
  waiting_bytes_ += taken->command.size();
  taken->sequence = ++last_sequence_;
  Proposal& proposal = context_.ports.callers.add(std::move(taken));
  const bool too_large = proposal.command.size() > limits.command_bytes_max;
  if (full || too_large || proposal.deadline <= now.promise) {
    drop(proposal, full && !too_large);
    return;
  }
  route(now, proposal);
}

// An unknown leader may be the expected one: then the command waits, as any does.
bool Proposals::unexpected(const raft::ExpectedLeader& expected) const {
  raft::ExpectedLeader known = expected;
  if (context_.core.leader() == raft::kNobody) known.leader = raft::kNobody;
  return !context_.core.meets(known);
}

void Proposals::route(lease::Now now, Proposal& proposal) {
  const raft::CoreOptions& core = context_.core.options();
  if (unexpected(proposal.expected)) {
    drop_as_unexpected(proposal);
    return;
  }
  // A follower without space could not apply what it forwards.
  if (context_.disk_full) {
    drop_for_space(proposal, core.id);
    return;
  }
  if (context_.leads()) {
    if (overloaded()) {
      drop(proposal, true);
      return;
    }
    ProposalList::leave(proposal);
    proposal.place = Place::queued;
    if (proposal.span) context_.note(*proposal.span, "queued");
    queue({core.id, core.incarnation, proposal.sequence, &proposal}, proposal.command);
    return;
  }
  const raft::NodeId leader = context_.core.leader();
  if (leader == raft::kNobody || leader == core.id) {
    hold(proposal);
    return;
  }
  proposal.sent_to = leader;
  proposal.sent_in = context_.core.term();
  ++context_.counters.proposals_forwarded;
  if (proposal.span) {
    context_.note(*proposal.span, "forwarded",
                  {attribute("leasehold.leader", leader.value()),
                   attribute("leasehold.term", proposal.sent_in.value())});
  }
  forward(now, proposal);
}

void Proposals::forward(lease::Now now, Proposal& proposal) {
  ProposalList::leave(proposal);
  proposal.place = Place::forwarded;
  proposal.resend_at = now.promise + context_.core.timing().election_timeout;
  resends_.push_back(proposal);
  context_.send(proposal.sent_to,
                wire::ForwardRequest{proposal.sent_in, context_.core.options().incarnation,
                                     proposal.sequence, proposal.command});
}

raft::PromiseInstant Proposals::next_resend() const {
  if (resends_.empty()) return raft::PromiseInstant::never();
  return std::max(resends_.front().resend_at, resends_from_);
}

void Proposals::resend(lease::Now now) {
  const lease::Duration interval = context_.core.timing().election_timeout;
  while (!resends_.empty()) {
    Proposal& proposal = resends_.front();
    // In a later term nobody takes it any more: a proof lets it go out again, or its deadline
    // comes.
    const bool open = proposal.sent_in == context_.core.term();
    if (!open) {
      ProposalList::leave(proposal);
      continue;
    }
    if (now.promise < next_resend()) return;
    if (now.promise >= resent_.until) resent_ = {now.promise + interval, 0, 0};
    const std::size_t size = proposal.command.size();
    const bool fits = resent_.bytes + size <= kResendBytesMax;
    if (resent_.count == kResendsMax || (resent_.count > 0 && !fits)) {
      resends_from_ = resent_.until;
      return;
    }
    ++resent_.count;
    resent_.bytes += size;
    if (!fits) resent_.until = now.promise + interval * (1 + size / kResendBytesMax);
    ++context_.counters.proposals_resent;
    if (proposal.span) context_.note(*proposal.span, "forwarded again");
    forward(now, proposal);
  }
}

void Proposals::hold(Proposal& proposal) {
  ProposalList::leave(proposal);
  proposal.place = Place::held;
  held_.push_back(proposal);
  retry_ = true;
  if (proposal.span) context_.note(*proposal.span, "held");
}

void Proposals::route_held(lease::Now now) {
  retry_ = false;
  // Each leaves the front; one that is held again goes behind all of these.
  for (std::size_t left = held_.size(); left > 0; --left) route(now, held_.front());
}

void Proposals::queue(const Queued& queued, const Bytes& command) {
  Bytes payload = encode_envelope({queued.origin, queued.incarnation, queued.sequence, command});
  uncommitted_bytes_ += payload.size();
  queue_.push_back(queued);
  queued_payloads_.push_back(std::move(payload));
}

void Proposals::forwarded(const raft::Peer& from, wire::ForwardRequest& request) {
  ++context_.counters.forwards_received;
  // A copy of a command that was taken, perhaps by an earlier process of this node, must not be
  // refused: the sender would send it anew. So only this newest leadership's are answered at all.
  if (request.term != window_term_ || !window_.take(from, request.incarnation, request.sequence)) {
    ++context_.counters.forwards_refused;
    return;
  }
  const Queued forward{from.id, request.incarnation, request.sequence, nullptr};
  // Who leaves may not see its command in its own log any more, and could tell nobody what came of
  // it. It is its leader no longer.
  if (!context_.leads() || request.term != context_.core.term() || !context_.stays(from.id)) {
    refuse(forward, wire::ForwardRefusal::not_leader);
    return;
  }
  if (context_.disk_full) {
    refuse(forward, wire::ForwardRefusal::disk_full);
    return;
  }
  if (overloaded() || request.command.size() > context_.limits.command_bytes_max) {
    refuse(forward, wire::ForwardRefusal::overloaded);
    return;
  }
  queue(forward, request.command);
}

void Proposals::refuse(const Queued& forward, wire::ForwardRefusal reason) {
  ++context_.counters.forwards_refused;
  context_.send(forward.origin, wire::ForwardReply{forward.incarnation, forward.sequence, reason,
                                                   context_.core.leader()});
}

void Proposals::refused(lease::Now now, raft::NodeId from, const wire::ForwardReply& reply) {
  if (reply.incarnation != context_.core.options().incarnation) return;
  Proposal* proposal = table().find(reply.sequence);
  if (proposal == nullptr) return;
  if (proposal->place != Place::forwarded || proposal->sent_to != from) return;
  if (proposal->span) {
    context_.note(*proposal->span, "refused by the leader",
                  {attribute("leasehold.leader", from.value()),
                   attribute("leasehold.reason", name_of(reply.reason))});
  }
  if (reply.reason == wire::ForwardRefusal::overloaded) {
    drop(*proposal, true);
    return;
  }
  if (reply.reason == wire::ForwardRefusal::disk_full) {
    drop_for_space(*proposal, from);
    return;
  }
  // Nobody takes it from this node any more.
  if (!context_.stays(context_.core.options().id)) {
    drop(*proposal, false);
    return;
  }
  renew(*proposal);
  const raft::NodeId leader = context_.core.leader();
  const bool moved = context_.leads() || (leader != raft::kNobody && leader != from);
  if (moved) {
    route(now, *proposal);  // the news of the next leader came before the word of this one
  } else {
    hold(*proposal);  // it goes out again once another leader is known, or after a pause
  }
}

// The applier may take the completion of a repeatable command at this moment: then this thread
// calls none later.
void Proposals::renew(Proposal& proposal) {
  context_.ports.callers.renumber(proposal, ++last_sequence_);
  proposal.hidden = false;
}

void Proposals::flush(lease::Now now) {
  if (queue_.empty()) return;
  std::vector<std::size_t> sizes;
  sizes.reserve(queue_.size());
  for (const Bytes& payload : queued_payloads_) sizes.push_back(payload.size());
  const std::optional<raft::LogId> first =
      context_.core.propose(now, std::exchange(queued_payloads_, {}));
  for (std::size_t i = 0; i < queue_.size(); ++i) {
    const Queued& queued = queue_[i];
    LEASEHOLD_ASSERT(queued.own == nullptr || queued.own->place == Place::queued);
    if (first) {
      const raft::LogId id{first->term, first->index + i};
      uncommitted_.push_back({id.index, sizes[i]});
      if (queued.own == nullptr) continue;
      queued.own->place = Place::appended;
      queued.own->sent_in = id.term;
      if (queued.own->span) trace_appended(*queued.own, id);
      continue;
    }
    uncommitted_bytes_ -= sizes[i];
    if (queued.own != nullptr) {
      hold(*queued.own);
    } else {
      refuse(queued, wire::ForwardRefusal::not_leader);
    }
  }
  queue_.clear();
}

void Proposals::leadership_won(raft::Term term) {
  window_.clear();
  window_term_ = term;
}

void Proposals::leadership_lost() {
  LEASEHOLD_ASSERT(queue_.empty());
  uncommitted_.clear();
  uncommitted_bytes_ = 0;
  for (const Traced& one : traced_) {
    if (!one.committed) context_.note(*one.span, "leadership lost");
  }
  traced_.clear();
}

void Proposals::trace_appended(const Proposal& proposal, raft::LogId id) {
  context_.note(*proposal.span, "appended",
                {attribute("leasehold.term", id.term.value()),
                 attribute("leasehold.index", id.index.value())});
  traced_.push_back({id.index, proposal.span});
}

void Proposals::note_traced(std::string_view station, bool Traced::*passed, raft::Index last) {
  for (Traced& one : traced_) {
    if (one.index > last) break;
    if (!std::exchange(one.*passed, true)) context_.note(*one.span, station);
  }
  std::erase_if(traced_, [](const Traced& one) { return one.durable && one.committed; });
}

void Proposals::committed(raft::Index commit) {
  while (!uncommitted_.empty() && uncommitted_.front().index <= commit) {
    uncommitted_bytes_ -= uncommitted_.front().bytes;
    uncommitted_.pop_front();
  }
  if (!traced_.empty()) note_traced("committed", &Traced::committed, commit);
}

void Proposals::applied(lease::Now now, const std::vector<std::uint64_t>& own, raft::Term term) {
  for (const std::uint64_t sequence : own) {
    Proposal* proposal = table().find(sequence);
    if (proposal == nullptr) continue;  // its deadline passed
    if (proposal->is_read) ++context_.counters.reads_log;
    remove(*proposal);
  }
  if (term <= applied_term_) return;
  applied_term_ = term;
  for (Proposal* proposal : sent_before(term)) {
    if (proposal->hidden) {
      finish(*proposal, ProposeResult{});
    } else {
      if (proposal->span) context_.note(*proposal->span, "not committed");
      renew(*proposal);
      route(now, *proposal);
    }
  }
}

// Terms never fall along the committed log. What was sent in a lower term than that of the
// snapshot's last entry was committed before it, unseen, or never; what was sent in the same term
// may still come; what was sent in a higher one lies behind it.
void Proposals::installed(lease::Now now, raft::LogId last) {
  for (Proposal* proposal : sent_before(last.term.next())) {
    if (proposal->repeatable) {
      proposal->may_be_done = true;
      renew(*proposal);
      route(now, *proposal);
    } else if (proposal->sent_in < last.term) {
      finish(*proposal, ProposeResult{});
    } else {
      proposal->hidden = true;
    }
  }
  applied_term_ = std::max(applied_term_, last.term);
}

std::vector<Proposal*> Proposals::sent_before(raft::Term term) const {
  return table().select([term](const Proposal& proposal) {
    const bool sent = proposal.place == Place::appended || proposal.place == Place::forwarded;
    return sent && proposal.sent_in < term;
  });
}

raft::PromiseInstant Proposals::next_deadline() const {
  const Proposal* earliest = table().earliest();
  return earliest == nullptr ? raft::PromiseInstant::never() : earliest->deadline;
}

void Proposals::expire_earliest() {
  expired(*table().earliest());
}

void Proposals::expired(Proposal& proposal) {
  if (proposal.place == Place::held) {
    drop(proposal, false);
    return;
  }
  finish(proposal, ProposeResult{});
}

void Proposals::cancelled(CallGroup group) {
  const auto of_group = [group](const Proposal& proposal) { return proposal.group == group; };
  for (Proposal* proposal : table().select(of_group)) expired(*proposal);
}

void Proposals::complete_all() {
  LEASEHOLD_ASSERT(queue_.empty());
  for (Proposal* proposal : table().select([](const Proposal&) { return true; })) {
    expired(*proposal);
  }
  LEASEHOLD_ASSERT(held_.empty() && resends_.empty());
  retry_ = false;
  uncommitted_.clear();
  uncommitted_bytes_ = 0;
  traced_.clear();
}

ProposalPlaces Proposals::places() const {
  return {size(), held_.size(), queue_.size(), resends_.size(), uncommitted_.size()};
}

void Proposals::check() const {
  LEASEHOLD_ASSERT(queue_.empty());
  LEASEHOLD_ASSERT(held_.size() + resends_.size() <= size());
}

void Proposals::drop(Proposal& proposal, bool overloaded_now) {
  ProposeResult result;
  result.status = ProposeStatus::dropped;
  result.overloaded = overloaded_now;
  finish(proposal, std::move(result));
}

void Proposals::drop_as_unexpected(Proposal& proposal) {
  ProposeResult result;
  result.status = ProposeStatus::dropped;
  result.other_leadership = context_.core.term();
  finish(proposal, std::move(result));
}

void Proposals::drop_for_space(Proposal& proposal, raft::NodeId at) {
  ProposeResult result;
  result.status = ProposeStatus::dropped;
  result.disk_full_at = at;
  finish(proposal, std::move(result));
}

void Proposals::finish(Proposal& proposal, ProposeResult result) {
  const std::unique_ptr<Proposal> ended = remove(proposal);
  const bool told = !ended->done;
  if (ended->is_read) {
    DriverCounters& counters = context_.counters;
    ++(told ? counters.reads_log : counters.reads_refused);
  }
  // It was not executed this time, perhaps earlier.
  if (ended->may_be_done) result = ProposeResult{};
  result.leader = context_.core.leader();
  context_.completions.add(ended->done, std::move(result));
}

std::unique_ptr<Proposal> Proposals::remove(Proposal& proposal) {
  LEASEHOLD_ASSERT(proposal.place != Place::queued);
  ProposalList::leave(proposal);
  waiting_bytes_ -= proposal.command.size();
  return context_.ports.callers.remove(proposal);
}

}  // namespace leasehold::replica
