#include <leasehold/node/unformed_calls.h>
#include <leasehold/replica/refusal.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

namespace leasehold::node {

namespace {

replica::CallGroup group_of(const replica::Event& event) {
  if (const replica::Propose* propose = std::get_if<replica::Propose>(&event))
    return propose->group;
  if (const replica::Read* read = std::get_if<replica::Read>(&event)) return read->group;
  if (const replica::WaitApplied* wait = std::get_if<replica::WaitApplied>(&event))
    return wait->group;
  if (const replica::ReadLog* read = std::get_if<replica::ReadLog>(&event)) return read->group;
  return replica::CallGroup(0);
}

std::optional<raft::PromiseInstant> deadline_of(const replica::Event& event) {
  if (const replica::Propose* propose = std::get_if<replica::Propose>(&event))
    return propose->deadline;
  if (const replica::Read* read = std::get_if<replica::Read>(&event)) return read->deadline;
  if (const replica::WaitApplied* wait = std::get_if<replica::WaitApplied>(&event))
    return wait->deadline;
  if (const replica::ReadLog* read = std::get_if<replica::ReadLog>(&event)) return read->deadline;
  return std::nullopt;
}

}  // namespace

void UnformedCalls::take(lease::Now now, std::vector<replica::Event>& events, bool closed) {
  for (replica::Event& event : events) {
    const replica::Cancel* cancel = std::get_if<replica::Cancel>(&event);
    if (std::holds_alternative<replica::ChangeMembers>(event) ||
        std::holds_alternative<replica::ChangeSettings>(event) ||
        std::holds_alternative<replica::TransferLeadership>(event)) {
      replica::refuse(event, false);  // these are for the leader of a group, and there is none
    } else if (cancel == nullptr) {
      waiting_.push_back(std::move(event));
    } else if (cancel->group != replica::CallGroup(0)) {
      const auto cancelled = std::stable_partition(
          waiting_.begin(), waiting_.end(),
          [cancel](const replica::Event& waiting) { return group_of(waiting) != cancel->group; });
      for (auto one = cancelled; one != waiting_.end(); ++one) replica::refuse(*one, false);
      waiting_.erase(cancelled, waiting_.end());
    }
  }
  events.clear();
  std::size_t kept = 0;
  next_deadline_ = raft::PromiseInstant::never();
  for (replica::Event& event : waiting_) {
    const auto deadline = deadline_of(event);
    if (!deadline) continue;
    const bool full = kept >= calls_max_;
    if (closed || full || *deadline <= now.promise) {
      replica::refuse(event, full);
    } else {
      if (&waiting_[kept] != &event) waiting_[kept] = std::move(event);
      ++kept;
      next_deadline_ = std::min(next_deadline_, *deadline);
    }
  }
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(kept), waiting_.end());
}

void UnformedCalls::release(std::vector<replica::Event>& events) {
  for (replica::Event& event : waiting_) events.push_back(std::move(event));
  waiting_.clear();
  next_deadline_ = raft::PromiseInstant::never();
}

}  // namespace leasehold::node
