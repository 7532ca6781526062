#include <leasehold/node/preference.h>

#include <algorithm>
#include <utility>

namespace leasehold::node {
namespace {

/// A voter that lacks no more entries than this has caught up.
constexpr std::uint64_t kLagMax = 1000;

}  // namespace

bool Preference::look(lease::Now now, const replica::Driver& driver,
                      const std::function<bool(raft::NodeId)>& connected,
                      std::vector<replica::Event>& events) {
  const raft::Core& core = driver.core();
  if (wanted_.empty() || core.role() != raft::Role::leader) {
    rest();
    return false;
  }
  if (core.term() != term_) {
    rest();
    term_ = core.term();
  }
  if (std::exchange(failed_, false)) {
    factor_ = std::min(2 * factor_, kPauseFactorMax);
    candidate_ = raft::kNobody;
  }
  const raft::NodeId next = better(core, now, connected);
  if (next != candidate_) {
    candidate_ = next;
    due_ = next == raft::kNobody ? raft::PromiseInstant::never() : now.promise + settle_ * factor_;
  }
  if (asked_ || now.promise < due_) return false;
  asked_ = true;
  due_ = raft::PromiseInstant::never();
  events.emplace_back(replica::TransferLeadership{
      next, now.promise + settle_, [this](const replica::TransferResult& result) {
        asked_ = false;
        failed_ = result.status != replica::GroupCallStatus::done;
      }});
  return true;
}

void Preference::rest() {
  term_ = raft::Term();
  candidate_ = raft::kNobody;
  due_ = raft::PromiseInstant::never();
  factor_ = 1;
}

raft::NodeId Preference::better(const raft::Core& core, lease::Now now,
                                const std::function<bool(raft::NodeId)>& connected) const {
  for (const raft::NodeId id : wanted_) {
    if (id == self_) break;
    const auto found = core.progress().find(id);
    if (found == core.progress().end() || !core.membership().is_voter(id)) continue;
    const raft::Progress& progress = found->second;
    if (progress.witness) continue;
    const bool caught_up = progress.match_index + kLagMax >= core.commit_index();
    const auto heard = core.last_heard(id);
    const bool answers = heard && *heard + core.timing().lease > now.holder;
    if (caught_up && answers && connected(id)) return id;
  }
  return raft::kNobody;
}

}  // namespace leasehold::node
