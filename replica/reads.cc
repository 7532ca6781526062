#include <leasehold/replica/reads.h>

#include <algorithm>

namespace leasehold::replica {

Reads::Waiters::iterator Reads::add(lease::Now now, raft::PromiseInstant deadline,
                                    ReadCompletion& done) {
  const bool full = waiters_.size() >= context_.limits.reads_max;
  Waiter waiter;
  waiter.deadline = deadline;
  waiter.done = std::move(done);
  const auto added = waiters_.emplace_hint(waiters_.end(), ++last_number_, std::move(waiter));
  if (full || deadline <= now.promise) {
    refuse(added, full);
    return waiters_.end();
  }
  context_.deadlines.add(deadline, WaiterKind::read, added->first);
  return added;
}

void Reads::read(lease::Now now, Read& event) {
  const auto waiter = add(now, event.deadline, event.done);
  if (waiter == waiters_.end()) return;
  waiter->second.group = event.group;
  waiter->second.mode = event.mode;
  waiter->second.span = std::move(event.span);
  waiter->second.began = now.holder;
  waiter->second.counted = true;
  route(now, waiter);
}

bool Reads::answer_by_age(lease::Now now, Read& event) {
  if (event.deadline <= now.promise) return false;
  if (!context_.ports.view.fresh_since().covers(now.holder, event.max_age)) return false;
  ++context_.counters.reads_stale;
  ReadResult result;
  result.index = context_.applied;
  result.stale = true;
  result.leader = context_.core.leader();
  context_.completions.add(event.done, result);
  return true;
}

void Reads::wait_applied(lease::Now now, WaitApplied& event) {
  const auto waiter = add(now, event.deadline, event.done);
  if (waiter == waiters_.end()) return;
  waiter->second.group = event.group;
  waiter->second.span = std::move(event.span);
  waiter->second.index = event.index;
  await(waiter);
}

void Reads::route(lease::Now now, Waiters::iterator waiter) {
  if (!context_.leads() && context_.core.leader() == raft::kNobody) {
    hold(waiter);
    return;
  }
  waiter->second.place = Place::asked;
  if (waiter->second.span) trace_asked(*waiter->second.span);
  context_.core.read_index(now, waiter->first, waiter->second.mode);
}

void Reads::trace_asked(Span& span) const {
  if (context_.leads()) {
    const bool leased = context_.core.lease_end() > context_.turn_began;
    return context_.note(span, "asked", {attribute("leasehold.lease", leased ? "valid" : "none")});
  }
  context_.note(span, "asked the leader",
                {attribute("leasehold.leader", context_.core.leader().value())});
}

void Reads::hold(Waiters::iterator waiter) {
  waiter->second.place = Place::held;
  if (waiter->second.span) context_.note(*waiter->second.span, "held");
  // Expired ones are swept when they are the larger part, so that this costs nothing on average.
  if (held_.size() >= 2 * waiters_.size() + 64) {
    held_.erase(std::remove_if(held_.begin(), held_.end(),
                               [this](std::uint64_t number) { return !waits(number); }),
                held_.end());
  }
  held_.push_back(waiter->first);
}

void Reads::route_held(lease::Now now) {
  std::vector<std::uint64_t> numbers;
  numbers.swap(held_);
  for (const std::uint64_t number : numbers) {
    const auto waiter = waiters_.find(number);
    if (waiter != waiters_.end()) route(now, waiter);
  }
}

void Reads::answered(const raft::ReadAnswer& answer) {
  const auto waiter = waiters_.find(answer.read);
  if (waiter == waiters_.end()) return;  // its deadline passed
  const SpanPointer& span = waiter->second.span;
  if (!answer.index) {
    if (span) context_.note(*span, "not justified");
    hold(waiter);
    return;
  }
  if (span) {
    context_.note(*span, "justified", {attribute("leasehold.index", answer.index->value())});
  }
  waiter->second.index = *answer.index;
  waiter->second.basis = answer.basis;
  await(waiter);
}

void Reads::await(Waiters::iterator waiter) {
  waiter->second.place = Place::applying;
  if (context_.applied >= waiter->second.index) {
    complete(waiter);
  } else {
    applying_.emplace(waiter->second.index, waiter->first);
    if (waiter->second.span) {
      context_.note(*waiter->second.span, "waits for apply",
                    {attribute("leasehold.applied", context_.applied.value())});
    }
  }
}

void Reads::applied() {
  while (!applying_.empty() && applying_.begin()->first <= context_.applied) {
    const std::uint64_t number = applying_.begin()->second;
    applying_.erase(applying_.begin());
    complete(waiters_.find(number));
  }
}

void Reads::complete(Waiters::iterator waiter) {
  Waiter& done = waiter->second;
  ReadResult result;
  result.index = done.index;
  result.basis = done.basis;
  result.leader = context_.core.leader();
  if (done.counted) {
    context_.ports.view.fresh_since().raise(done.began);
    switch (done.basis) {
      case raft::ReadBasis::lease: ++context_.counters.reads_lease; break;
      case raft::ReadBasis::quorum: ++context_.counters.reads_quorum; break;
      case raft::ReadBasis::leader: ++context_.counters.reads_leader; break;
    }
  }
  context_.completions.add(done.done, result);
  waiters_.erase(waiter);
}

void Reads::refuse(Waiters::iterator waiter, bool overloaded) {
  ++context_.counters.reads_refused;
  ReadResult result;
  result.overloaded = overloaded;
  result.leader = context_.core.leader();
  context_.completions.add(waiter->second.done, result);
  waiters_.erase(waiter);
}

void Reads::expired(std::uint64_t number) {
  const auto waiter = waiters_.find(number);
  if (waiter == waiters_.end()) return;
  if (waiter->second.place == Place::applying) applying_.erase({waiter->second.index, number});
  refuse(waiter, false);
}

void Reads::cancelled(CallGroup group) {
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, waiter] : waiters_) {
    if (waiter.group == group) numbers.push_back(number);
  }
  for (const std::uint64_t number : numbers) expired(number);
}

void Reads::complete_all() {
  while (!waiters_.empty()) refuse(waiters_.begin(), false);
  held_.clear();
  applying_.clear();
}

}  // namespace leasehold::replica
