#include <leasehold/node/drain.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace leasehold::node {

void Drain::begin(raft::PromiseInstant deadline, DrainCompletion done) {
  if (!std::exchange(begun_, true)) deadline_ = deadline;
  if (done) waiting_.push_back(std::move(done));
}

void Drain::look(lease::Now now, const replica::Driver& driver,
                 const std::function<bool(raft::NodeId)>& connected,
                 std::vector<replica::Event>& events) {
  if (!begun_) return;
  const raft::Core& core = driver.core();
  const std::size_t calls = driver.pending() - (asked_ ? 1 : 0);
  const bool leads = core.role() == raft::Role::leader;
  led_ = led_ || leads;
  if (std::exchange(failed_, false)) next_try_ = now.promise + pause_;
  if (now.promise >= next_try_) next_try_ = raft::PromiseInstant::earliest();
  const raft::NodeId next = leads ? successor(core, connected) : raft::kNobody;
  if (next != raft::kNobody && !asked_ && next_try_ == raft::PromiseInstant::earliest()) {
    asked_ = true;
    // A transfer has its own timeout; the deadline of the drain is checked here.
    events.emplace_back(replica::TransferLeadership{
        next, raft::PromiseInstant::never(), [this](const replica::TransferResult& result) {
          asked_ = false;
          failed_ = result.status != replica::GroupCallStatus::done;
        }});
  }
  // While the others elect, the vote of this node may be needed.
  const bool settled = leads || core.leader() != raft::kNobody || !can_elect(core, connected);
  const bool complete = calls == 0 && next == raft::kNobody && settled;
  if (complete || now.promise >= deadline_) {
    const bool follows = !leads && core.leader() != raft::kNobody;
    answer({complete, led_ && follows, core.leader(), calls});
  }
}

void Drain::end(bool complete) {
  if (begun_) answer({complete, false, raft::kNobody, 0});
}

void Drain::answer(const DrainResult& result) {
  ended_ = true;
  for (DrainCompletion& done : std::exchange(waiting_, {})) done(result);
}

raft::PromiseInstant Drain::next_deadline() const {
  if (!begun_) return raft::PromiseInstant::never();
  raft::PromiseInstant due = ended_ ? raft::PromiseInstant::never() : deadline_;
  if (next_try_ > raft::PromiseInstant::earliest()) due = std::min(due, next_try_);
  return due;
}

// The reachable voter, not a witness, with the longest log. The core would choose the same, but it
// notices an ended node only by its silence, and here the closed connection shows it.
raft::NodeId Drain::successor(const raft::Core& core,
                              const std::function<bool(raft::NodeId)>& connected) {
  using Rank = std::pair<raft::Index, std::optional<lease::HolderInstant>>;
  raft::NodeId best = raft::kNobody;
  Rank highest;
  for (const raft::NodeId id : core.membership().voters) {
    const auto found = core.progress().find(id);
    if (found == core.progress().end() || !connected(id) || found->second.witness) continue;
    const raft::Progress& progress = found->second;
    const Rank rank{progress.match_index, core.last_heard(id)};
    if (best != raft::kNobody && rank <= highest) continue;
    best = id;
    highest = rank;
  }
  return best;
}

bool Drain::can_elect(const raft::Core& core, const std::function<bool(raft::NodeId)>& connected) {
  const std::vector<raft::NodeId>& voters = core.membership().voters;
  const auto reached = static_cast<std::size_t>(
      std::count_if(voters.begin(), voters.end(), [&](raft::NodeId id) { return connected(id); }));
  return reached > voters.size() / 2;
}

}  // namespace leasehold::node
