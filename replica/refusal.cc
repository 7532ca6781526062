#include <leasehold/replica/refusal.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace leasehold::replica {

void refuse(Event& event, bool overloaded, raft::NodeId leader) {
  if (CutLog* cut = std::get_if<CutLog>(&event)) {
    if (cut->done) cut->done(Error{ErrorCode::stopped, "the node is stopping"});
    return;
  }
  if (ReadLog* read = std::get_if<ReadLog>(&event)) {
    const Error error = overloaded ? Error{ErrorCode::overloaded, "too many readers of the log"}
                                   : Error{ErrorCode::stopped, "the node is stopping"};
    if (read->done) read->done(error);
    return;
  }
  if (Propose* propose = std::get_if<Propose>(&event)) {
    ProposeResult result;
    result.status = ProposeStatus::dropped;
    result.overloaded = overloaded;
    result.leader = leader;
    if (propose->done) propose->done(std::move(result));
    return;
  }
  if (ChangeMembers* change = std::get_if<ChangeMembers>(&event)) {
    ChangeResult result;
    result.status = GroupCallStatus::refused;
    result.refused = raft::ChangeRefused{};
    if (change->done) change->done(result);
    return;
  }
  if (ChangeSettings* change = std::get_if<ChangeSettings>(&event)) {
    SettingsResult result;
    result.status = GroupCallStatus::refused;
    result.refused = raft::SettingsRefused{};
    if (change->done) change->done(result);
    return;
  }
  if (TransferLeadership* transfer_leadership = std::get_if<TransferLeadership>(&event)) {
    TransferResult result;
    result.status = GroupCallStatus::refused;
    result.refused = raft::TransferRefused{};
    if (transfer_leadership->done) transfer_leadership->done(result);
    return;
  }
  ReadResult result;
  result.overloaded = overloaded;
  result.leader = leader;
  if (Read* read = std::get_if<Read>(&event)) {
    if (read->done) read->done(result);
  } else if (WaitApplied* wait = std::get_if<WaitApplied>(&event)) {
    if (wait->done) wait->done(result);
  }
}

void refuse_calls(std::vector<Event>& events, raft::NodeId leader) {
  const auto refused = std::stable_partition(events.begin(), events.end(), [](const Event& event) {
    return !std::holds_alternative<Propose>(event) && !std::holds_alternative<Read>(event);
  });
  for (auto event = refused; event != events.end(); ++event) refuse(*event, false, leader);
  events.erase(refused, events.end());
}

}  // namespace leasehold::replica
