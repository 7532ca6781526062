#include <leasehold/base/assert.h>
#include <leasehold/replica/callers.h>
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

}  // namespace

void Proposals::propose(lease::Now now, Propose& event) {
  ++context_.counters.proposals;
  Waiter waiter;
  waiter.command = std::move(event.command);
  waiter.deadline = event.deadline;
  waiter.group = event.group;
  waiter.repeatable = event.repeatable;
  take(now, std::move(waiter), std::move(event.done));
}

void Proposals::read(lease::Now now, Read& event) {
  Waiter waiter;
  waiter.deadline = event.deadline;
  waiter.group = event.group;
  waiter.is_read = true;
  take(now, std::move(waiter), [done = std::move(event.done)](const ProposeResult& result) {
    if (!done) return;
    ReadResult read;
    read.leader = result.leader;
    read.overloaded = result.overloaded;
    if (result.status == ProposeStatus::committed) read.index = result.id.index;
    done(read);
  });
}

void Proposals::take(lease::Now now, Waiter waiter, ProposeCompletion done) {
  const DriverOptions& options = context_.options;
  const bool full = waiters_.size() >= options.proposals_max ||
                    waiting_bytes_ + waiter.command.size() > options.proposal_bytes_max;
  waiting_bytes_ += waiter.command.size();
  const auto added = waiters_.emplace_hint(waiters_.end(), ++last_sequence_, std::move(waiter));
  context_.ports.callers.add(added->first, std::move(done));
  const bool too_large = added->second.command.size() > options.command_bytes_max;
  if (full || too_large || added->second.deadline <= now.promise) {
    drop(added, full && !too_large);
    return;
  }
  context_.deadlines.add(added->second.deadline, WaiterKind::proposal, added->first);
  route(now, added);
}

void Proposals::route(lease::Now now, Waiters::iterator waiter) {
  const raft::CoreOptions& core = context_.options.core;
  // A follower without space could not apply what it forwards.
  if (context_.disk_full) {
    drop_for_space(waiter, core.id);
    return;
  }
  if (context_.leads()) {
    if (overloaded()) {
      drop(waiter, true);
      return;
    }
    waiter->second.place = Place::queued;
    queue(core.id, core.incarnation, waiter->first, waiter->second.command);
    return;
  }
  const raft::NodeId leader = context_.core.leader();
  if (leader == raft::kNobody || leader == core.id) {
    hold(waiter);
    return;
  }
  waiter->second.place = Place::forwarded;
  waiter->second.sent_to = leader;
  waiter->second.sent_in = context_.core.term();
  ++context_.counters.proposals_forwarded;
  forward(now, waiter);
}

void Proposals::forward(lease::Now now, Waiters::iterator waiter) {
  const raft::CoreOptions& core = context_.options.core;
  // Ended ones behind one that waits are swept as those in held_ are.
  if (resends_.size() >= 2 * waiters_.size() + 64) {
    resends_.erase(std::remove_if(resends_.begin(), resends_.end(),
                                  [this](const Resend& resend) { return !waits(resend.sequence); }),
                   resends_.end());
  }
  resends_.push_back({now.promise + core.timing.election_timeout, waiter->first});
  context_.send(waiter->second.sent_to,
                wire::ForwardRequest{waiter->second.sent_in, core.incarnation, waiter->first,
                                     waiter->second.command});
}

raft::PromiseInstant Proposals::next_resend() const {
  if (resends_.empty()) return raft::PromiseInstant::never();
  return std::max(resends_.front().at, resends_from_);
}

void Proposals::resend(lease::Now now) {
  const lease::Duration interval = context_.options.core.timing.election_timeout;
  while (!resends_.empty()) {
    const auto waiter = waiters_.find(resends_.front().sequence);
    // In a later term nobody takes it any more: a proof lets it go out anew, or its deadline comes.
    const bool open = waiter != waiters_.end() && waiter->second.place == Place::forwarded &&
                      waiter->second.sent_in == context_.core.term();
    if (open) {
      if (now.promise < next_resend()) return;
      if (now.promise >= resent_.until) resent_ = {now.promise + interval, 0, 0};
      const std::size_t size = waiter->second.command.size();
      const bool fits = resent_.bytes + size <= kResendBytesMax;
      if (resent_.count == kResendsMax || (resent_.count > 0 && !fits)) {
        resends_from_ = resent_.until;
        return;
      }
      ++resent_.count;
      resent_.bytes += size;
      if (!fits) resent_.until = now.promise + interval * (1 + size / kResendBytesMax);
      ++context_.counters.proposals_resent;
      forward(now, waiter);
    }
    resends_.pop_front();
  }
}

void Proposals::hold(Waiters::iterator waiter) {
  waiter->second.place = Place::held;
  // Expired ones are swept when they are the larger part, so that this costs nothing on average.
  if (held_.size() >= 2 * waiters_.size() + 64) {
    held_.erase(std::remove_if(held_.begin(), held_.end(),
                               [this](std::uint64_t sequence) { return !waits(sequence); }),
                held_.end());
  }
  held_.push_back(waiter->first);
}

void Proposals::route_held(lease::Now now) {
  std::vector<std::uint64_t> sequences;
  sequences.swap(held_);
  for (const std::uint64_t sequence : sequences) {
    const auto waiter = waiters_.find(sequence);
    if (waiter != waiters_.end()) route(now, waiter);
  }
}

void Proposals::queue(raft::NodeId origin, raft::Incarnation incarnation, std::uint64_t sequence,
                      const Bytes& command) {
  Bytes payload = encode_envelope({origin, incarnation, sequence, command});
  uncommitted_bytes_ += payload.size();
  queue_.push_back({origin, incarnation, sequence});
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
  const Queued forward{from.id, request.incarnation, request.sequence};
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
  if (overloaded() || request.command.size() > context_.options.command_bytes_max) {
    refuse(forward, wire::ForwardRefusal::overloaded);
    return;
  }
  queue(from.id, request.incarnation, request.sequence, request.command);
}

void Proposals::refuse(const Queued& forward, wire::ForwardRefusal reason) {
  ++context_.counters.forwards_refused;
  context_.send(forward.origin, wire::ForwardReply{forward.incarnation, forward.sequence, reason,
                                                   context_.core.leader()});
}

void Proposals::refused(lease::Now now, raft::NodeId from, const wire::ForwardReply& reply) {
  if (reply.incarnation != context_.options.core.incarnation) return;
  const auto waiter = waiters_.find(reply.sequence);
  if (waiter == waiters_.end()) return;
  if (waiter->second.place != Place::forwarded || waiter->second.sent_to != from) return;
  if (reply.reason == wire::ForwardRefusal::overloaded) {
    drop(waiter, true);
    return;
  }
  if (reply.reason == wire::ForwardRefusal::disk_full) {
    drop_for_space(waiter, from);
    return;
  }
  // Nobody takes it from this node any more.
  if (!context_.stays(context_.options.core.id)) {
    drop(waiter, false);
    return;
  }
  const auto again = renew(waiter);
  const raft::NodeId leader = context_.core.leader();
  const bool moved = context_.leads() || (leader != raft::kNobody && leader != from);
  if (moved) {
    route(now, again);  // the news of the next leader came before the word of this one
  } else {
    hold(again);  // it goes out again once another leader is known, or after a pause
  }
}

// Of a repeatable one the caller may have been told at this very moment: then nobody is told later.
Proposals::Waiters::iterator Proposals::renew(Waiters::iterator waiter) {
  ProposeCompletion done = context_.ports.callers.take(waiter->first);
  auto node = waiters_.extract(waiter);
  node.key() = ++last_sequence_;
  node.mapped().hidden = false;
  const auto again = waiters_.insert(waiters_.end(), std::move(node));
  context_.ports.callers.add(again->first, std::move(done));
  context_.deadlines.add(again->second.deadline, WaiterKind::proposal, again->first);
  return again;
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
    const bool own = queued.origin == context_.options.core.id;
    const auto waiter = own ? waiters_.find(queued.sequence) : waiters_.end();
    if (!first) {
      uncommitted_bytes_ -= sizes[i];
      if (!own) {
        refuse(queued, wire::ForwardRefusal::not_leader);
      } else if (waiter != waiters_.end()) {
        hold(waiter);
      }
      continue;
    }
    const raft::LogId id{first->term, first->index + i};
    uncommitted_.push_back({id.index, sizes[i]});
    if (waiter == waiters_.end()) continue;
    waiter->second.place = Place::appended;
    waiter->second.sent_in = id.term;
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
}

void Proposals::committed(raft::Index commit) {
  while (!uncommitted_.empty() && uncommitted_.front().index <= commit) {
    uncommitted_bytes_ -= uncommitted_.front().bytes;
    uncommitted_.pop_front();
  }
}

void Proposals::applied(lease::Now now, const std::vector<std::uint64_t>& own, raft::Term term) {
  for (const std::uint64_t sequence : own) {
    const auto waiter = waiters_.find(sequence);
    if (waiter == waiters_.end()) continue;  // its deadline passed
    if (waiter->second.is_read) ++context_.counters.reads_log;
    forget(waiter);
  }
  if (term <= applied_term_) return;
  applied_term_ = term;
  for (const std::uint64_t sequence : sent_before(term)) {
    const auto waiter = waiters_.find(sequence);
    if (waiter->second.hidden) {
      finish(waiter, ProposeResult{});
    } else {
      route(now, renew(waiter));
    }
  }
}

// Terms never fall along the committed log. What was sent in a lower term than that of the
// snapshot's last entry was committed before it, unseen, or never; what was sent in the same term
// may still come; what was sent in a higher one lies behind it.
void Proposals::installed(lease::Now now, raft::LogId last) {
  for (const std::uint64_t sequence : sent_before(last.term.next())) {
    const auto waiter = waiters_.find(sequence);
    if (waiter->second.repeatable) {
      waiter->second.may_be_done = true;
      route(now, renew(waiter));
    } else if (waiter->second.sent_in < last.term) {
      finish(waiter, ProposeResult{});
    } else {
      waiter->second.hidden = true;
    }
  }
  applied_term_ = std::max(applied_term_, last.term);
}

std::vector<std::uint64_t> Proposals::sent_before(raft::Term term) const {
  std::vector<std::uint64_t> sequences;
  for (const auto& [sequence, waiter] : waiters_) {
    const bool sent = waiter.place == Place::appended || waiter.place == Place::forwarded;
    if (sent && waiter.sent_in < term) sequences.push_back(sequence);
  }
  return sequences;
}

void Proposals::expired(std::uint64_t sequence) {
  const auto waiter = waiters_.find(sequence);
  if (waiter == waiters_.end()) return;
  if (waiter->second.place == Place::held) {
    drop(waiter, false);
    return;
  }
  finish(waiter, ProposeResult{});
}

void Proposals::cancelled(CallGroup group) {
  std::vector<std::uint64_t> sequences;
  for (const auto& [sequence, waiter] : waiters_) {
    if (waiter.group == group) sequences.push_back(sequence);
  }
  for (const std::uint64_t sequence : sequences) expired(sequence);
}

void Proposals::complete_all() {
  while (!waiters_.empty()) {
    const auto waiter = waiters_.begin();
    if (waiter->second.place == Place::held || waiter->second.place == Place::queued) {
      drop(waiter, false);
    } else {
      finish(waiter, ProposeResult{});
    }
  }
  held_.clear();
  resends_.clear();
  queue_.clear();
  queued_payloads_.clear();
  uncommitted_.clear();
  uncommitted_bytes_ = 0;
}

void Proposals::drop(Waiters::iterator waiter, bool overloaded_now) {
  ProposeResult result;
  result.status = ProposeStatus::dropped;
  result.overloaded = overloaded_now;
  finish(waiter, std::move(result));
}

void Proposals::drop_for_space(Waiters::iterator waiter, raft::NodeId at) {
  ProposeResult result;
  result.status = ProposeStatus::dropped;
  result.disk_full_at = at;
  finish(waiter, std::move(result));
}

void Proposals::finish(Waiters::iterator waiter, ProposeResult result) {
  ProposeCompletion done = context_.ports.callers.take(waiter->first);
  const bool told = !done;
  if (waiter->second.is_read) {
    DriverCounters& counters = context_.counters;
    ++(told ? counters.reads_log : counters.reads_refused);
  }
  // It was not executed this time, perhaps earlier.
  if (waiter->second.may_be_done) result = ProposeResult{};
  result.leader = context_.core.leader();
  context_.completions.add(done, std::move(result));
  forget(waiter);
}

void Proposals::forget(Waiters::iterator waiter) {
  waiting_bytes_ -= waiter->second.command.size();
  waiters_.erase(waiter);
}

}  // namespace leasehold::replica
