#include <leasehold/node/session_expiry.h>

#include <utility>

namespace leasehold::node {

std::vector<SessionExpiry::Idle> SessionExpiry::look(
    raft::PromiseInstant now, std::optional<raft::Term> leads_in,
    const std::vector<SessionTable::Session>& sessions) {
  if (leads_in != term_) seen_.clear();
  term_ = leads_in;
  std::vector<Idle> due;
  if (!leads_in) return due;
  std::map<SessionId, Seen> still;
  for (const SessionTable::Session& session : sessions) {
    const auto before = seen_.find(session.id);
    const bool moved = before == seen_.end() || before->second.activity != session.activity;
    const Seen seen = moved ? Seen{session.activity, now} : before->second;
    if (now - seen.since >= idle_max_) due.push_back({session.id, session.activity});
    still.emplace_hint(still.end(), session.id, seen);
  }
  seen_ = std::move(still);
  return due;
}

}  // namespace leasehold::node
