#include <leasehold/kv/comparison.h>

#include <algorithm>
#include <utility>

namespace leasehold::kv {

void Comparison::take(raft::Index index, const StateSum& kept) {
  const std::lock_guard lock(mutex_);
  rounds_.push_back({index, kept, {}});
  if (rounds_.size() > kRoundsMax) rounds_.pop_front();
}

void Comparison::hear(const StateReport& report) {
  if (report.version != kSumVersion) return;
  const std::lock_guard lock(mutex_);
  if (report.kept != report.stored) {
    damages_.push_back(report);
    if (damages_.size() > kDamagesMax) damages_.pop_front();
    return;
  }
  // The entry that is reported of stands before the report, so the round is there if it is new.
  const auto at = std::find_if(rounds_.begin(), rounds_.end(),
                               [&](const Round& one) { return one.index == report.index; });
  if (at != rounds_.end()) at->heard.insert_or_assign(report.node, report.kept);
}

void Comparison::forget_own() {
  const std::lock_guard lock(mutex_);
  rounds_.clear();
}

std::optional<Comparison::Point> Comparison::newest() const {
  const std::lock_guard lock(mutex_);
  if (rounds_.empty()) return std::nullopt;
  return Point{rounds_.back().index, rounds_.back().own};
}

Comparison::Judgement Comparison::judge(raft::NodeId self,
                                        const std::vector<raft::NodeId>& voters) const {
  const std::lock_guard lock(mutex_);
  Judgement undecided;
  for (auto at = rounds_.rbegin(); at != rounds_.rend(); ++at) {
    Judgement judgement = judge(*at, self, voters);
    if (judgement.verdict == Verdict::alike || judgement.verdict == Verdict::differs) {
      return judgement;
    }
    if (undecided.verdict == Verdict::open) undecided = std::move(judgement);
  }
  return undecided;
}

Comparison::Judgement Comparison::judge(const Round& round, raft::NodeId self,
                                        const std::vector<raft::NodeId>& voters) {
  Judgement out;
  out.index = round.index;
  std::vector<StateSum> sums;
  for (const raft::NodeId voter : voters) {
    const auto heard = round.heard.find(voter);
    if (voter == self) {
      sums.push_back(round.own);
    } else if (heard != round.heard.end()) {
      sums.push_back(heard->second);
      if (heard->second != round.own) out.others.push_back(voter);
    }
  }
  std::size_t most = 0;
  StateSum favourite;
  for (const StateSum& sum : sums) {
    const auto votes = static_cast<std::size_t>(std::count(sums.begin(), sums.end(), sum));
    if (votes <= most) continue;
    most = votes;
    favourite = sum;
  }
  if (2 * most > voters.size()) {
    out.verdict = favourite == round.own ? Verdict::alike : Verdict::differs;
  } else if (!out.others.empty() && 2 * (most + voters.size() - sums.size()) <= voters.size()) {
    out.verdict = Verdict::undecided;
  }
  return out;
}

Comparison::Damage Comparison::damage(const StateReport& own) const {
  const StateSum wrong = own.stored - own.kept;
  const std::lock_guard lock(mutex_);
  for (const StateReport& heard : damages_) {
    if (heard.stored - heard.kept != wrong) continue;
    if (heard.node != own.node) return Damage::shared;
    if (heard.index == own.index) return Damage::own;
  }
  return Damage::unheard;
}

}  // namespace leasehold::kv
