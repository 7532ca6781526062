#include <leasehold/replica/group_calls.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::replica {

// ---- Changes of the members and the settings ----

void GroupCalls::change(lease::Now now, ChangeMembers& event) {
  if (event.deadline <= now.promise) {
    ChangeResult late;
    late.status = GroupCallStatus::refused;
    late.refused = raft::ChangeRefused{raft::ChangeObstacle::too_late};
    late.leader = context_.core.leader();
    context_.completions.add(event.done, late);
    return;
  }
  const auto answer = context_.core.change_membership(now, event.wanted, event.expected);
  if (const auto* refused = std::get_if<raft::ChangeRefused>(&answer)) {
    ChangeResult result;
    const bool same = refused->obstacle == raft::ChangeObstacle::already_so;
    result.status = same ? GroupCallStatus::done : GroupCallStatus::refused;
    result.refused = *refused;
    result.leader = context_.core.leader();
    context_.completions.add(event.done, result);
    return;
  }
  const raft::Membership& newest = context_.core.membership();
  await(event.deadline, Change{event.group, std::move(event.done), context_.core.term(),
                               newest.joint() ? raft::without_outgoing(newest) : newest});
}

void GroupCalls::change_settings(lease::Now now, ChangeSettings& event) {
  SettingsResult result;
  result.leader = context_.core.leader();
  if (event.deadline <= now.promise) {
    result.status = GroupCallStatus::refused;
    result.refused = raft::SettingsRefused{raft::SettingsObstacle::too_late};
    context_.completions.add(event.done, result);
    return;
  }
  // Here, and not where the call was made: another change may have come in between.
  const raft::Membership& newest = context_.core.membership();
  raft::GroupSettings now_followed;
  now_followed.timing = context_.core.timing();
  const raft::GroupSettings wanted = event.edit.applied_to(newest.settings.value_or(now_followed));
  const auto answer = context_.core.change_settings(now, wanted);
  if (const auto* refused = std::get_if<raft::SettingsRefused>(&answer)) {
    const bool same = refused->obstacle == raft::SettingsObstacle::already_so;
    result.status = same ? GroupCallStatus::done : GroupCallStatus::refused;
    result.refused = *refused;
    context_.completions.add(event.done, result);
    return;
  }
  await(event.deadline, Change{event.group, std::move(event.done), context_.core.term(),
                               context_.core.membership()});
}

void GroupCalls::await(raft::PromiseInstant deadline, Change change) {
  const std::uint64_t number = ++last_number_;
  changes_.emplace(number, std::move(change));
  context_.deadlines.add(deadline, WaiterKind::group_call, number);
}

bool GroupCalls::settled() const {
  const raft::Core& core = context_.core;
  return core.log().membership_index() <= core.commit_index();
}

void GroupCalls::finish(std::map<std::uint64_t, Change>::iterator call, GroupCallStatus status) {
  if (auto* members = std::get_if<ChangeCompletion>(&call->second.done)) {
    context_.completions.add(*members, ChangeResult{status, {}, context_.core.leader()});
  } else {
    auto& settings = std::get<SettingsCompletion>(call->second.done);
    context_.completions.add(settings, SettingsResult{status, {}, context_.core.leader()});
  }
  changes_.erase(call);
}

// ---- Transfers ----

void GroupCalls::transfer_leadership(lease::Now now, TransferLeadership& event) {
  std::optional<raft::TransferRefused> refused;
  if (event.deadline <= now.promise) {
    refused = raft::TransferRefused{raft::TransferObstacle::too_late, raft::kNobody};
  } else {
    refused = context_.core.transfer(now, event.to);
  }
  if (refused) {
    TransferResult result;
    const bool same = refused->obstacle == raft::TransferObstacle::already_leads;
    result.status = same ? GroupCallStatus::done : GroupCallStatus::refused;
    result.refused = refused;
    result.leader = context_.core.leader();
    context_.completions.add(event.done, result);
    return;
  }
  const std::uint64_t number = ++last_number_;
  transfers_.emplace(number,
                     Transfer{event.group, std::move(event.done), context_.core.term(), false});
  context_.deadlines.add(event.deadline, WaiterKind::group_call, number);
}

void GroupCalls::on_event(const raft::Event& event) {
  const auto* ended = std::get_if<raft::TransferEnded>(&event.what);
  if (ended == nullptr) return;
  for (auto call = transfers_.begin(); call != transfers_.end();) {
    const auto next = std::next(call);
    if (ended->outcome == raft::TransferOutcome::left_role) {
      call->second.left = true;
    } else if (!call->second.left) {
      finish(call, GroupCallStatus::failed);
    }
    call = next;
  }
}

void GroupCalls::finish(std::map<std::uint64_t, Transfer>::iterator call, GroupCallStatus status) {
  TransferResult result;
  result.status = status;
  result.leader = context_.core.leader();
  context_.completions.add(call->second.done, result);
  transfers_.erase(call);
}

// ---- Both ----

void GroupCalls::look() {
  if (size() == 0) return;
  const raft::Core& core = context_.core;
  for (auto call = changes_.begin(); call != changes_.end();) {
    const auto next = std::next(call);
    const bool leads_on = core.role() == raft::Role::leader && core.term() == call->second.term;
    if (settled() && core.membership() == call->second.goal) {
      finish(call, GroupCallStatus::done);
    } else if (!leads_on) {
      // The next leader may complete it, or may not have the entry at all.
      finish(call, GroupCallStatus::unknown);
    }
    call = next;
  }
  for (auto call = transfers_.begin(); call != transfers_.end();) {
    const auto next = std::next(call);
    if (call->second.left && core.leader() != raft::kNobody) {
      const bool elected_again = core.leader() == context_.core.options().id;
      finish(call, elected_again ? GroupCallStatus::failed : GroupCallStatus::done);
    }
    call = next;
  }
}

void GroupCalls::expired(std::uint64_t number) {
  const auto change = changes_.find(number);
  if (change != changes_.end()) finish(change, GroupCallStatus::unknown);
  const auto transfer = transfers_.find(number);
  if (transfer != transfers_.end()) finish(transfer, GroupCallStatus::unknown);
}

void GroupCalls::cancelled(CallGroup group) {
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, call] : changes_) {
    if (call.group == group) numbers.push_back(number);
  }
  for (const auto& [number, call] : transfers_) {
    if (call.group == group) numbers.push_back(number);
  }
  for (const std::uint64_t number : numbers) expired(number);
}

void GroupCalls::complete_all() {
  while (!changes_.empty()) finish(changes_.begin(), GroupCallStatus::unknown);
  while (!transfers_.empty()) finish(transfers_.begin(), GroupCallStatus::unknown);
}

}  // namespace leasehold::replica
