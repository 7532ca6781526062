#include <leasehold/replica/session_expiry.h>

namespace leasehold::replica {

std::vector<SessionExpiry::Idle> SessionExpiry::look(
    raft::PromiseInstant now, std::optional<raft::Term> leads_in,
    const std::vector<SessionTable::Session>& sessions) {
  const bool begins = leads_in != term_;
  term_ = leads_in;
  std::vector<Idle> idle;
  if (!leads_in) return idle;
  std::vector<std::uint64_t> ids;
  for (const SessionTable::Session& session : sessions) {
    ids.push_back(session.id.value());
    tracker_.see(session.id.value(), session.activity, {idle_max_}, now);
  }
  tracker_.forget_others(ids);
  // Only a command renews a session, and the command that comes first wins.
  if (begins) tracker_.begin(now, true);
  for (const grant::ExpiryTracker::Due& due : tracker_.due(now, ids.size())) {
    idle.push_back({SessionId(due.id), due.stamp});
  }
  return idle;
}

}  // namespace leasehold::replica
