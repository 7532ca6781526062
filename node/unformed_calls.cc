#include <leasehold/node/refusal.h>
#include <leasehold/node/unformed_calls.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

namespace leasehold::node {

namespace {

CallGroup group_of(const Event& event) {
  if (const Propose* propose = std::get_if<Propose>(&event)) return propose->group;
  if (const Read* read = std::get_if<Read>(&event)) return read->group;
  if (const WaitApplied* wait = std::get_if<WaitApplied>(&event)) return wait->group;
  return CallGroup(0);
}

std::optional<raft::PromiseInstant> deadline_of(const Event& event) {
  if (const Propose* propose = std::get_if<Propose>(&event)) return propose->deadline;
  if (const Read* read = std::get_if<Read>(&event)) return read->deadline;
  if (const WaitApplied* wait = std::get_if<WaitApplied>(&event)) return wait->deadline;
  return std::nullopt;
}

}  // namespace

void UnformedCalls::take(lease::Now now, std::vector<Event>& events, bool closed) {
  for (Event& event : events) {
    const Cancel* cancel = std::get_if<Cancel>(&event);
    if (std::holds_alternative<ChangeMembers>(event) || std::holds_alternative<HandOver>(event)) {
      refuse(event, false);  // these two are for the leader of a group, and there is none
    } else if (cancel == nullptr) {
      waiting_.push_back(std::move(event));
    } else if (cancel->group != CallGroup(0)) {
      const auto cancelled = std::stable_partition(
          waiting_.begin(), waiting_.end(),
          [cancel](const Event& waiting) { return group_of(waiting) != cancel->group; });
      for (auto one = cancelled; one != waiting_.end(); ++one) refuse(*one, false);
      waiting_.erase(cancelled, waiting_.end());
    }
  }
  events.clear();
  std::size_t kept = 0;
  for (Event& event : waiting_) {
    const auto deadline = deadline_of(event);
    if (!deadline) continue;
    const bool full = kept >= calls_max_;
    if (closed || full || *deadline <= now.promise) {
      refuse(event, full);
    } else {
      if (&waiting_[kept] != &event) waiting_[kept] = std::move(event);
      ++kept;
    }
  }
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(kept), waiting_.end());
}

void UnformedCalls::release(std::vector<Event>& events) {
  for (Event& event : waiting_) events.push_back(std::move(event));
  waiting_.clear();
}

}  // namespace leasehold::node
