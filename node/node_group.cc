// What a replica does on its loop: one turn takes what has come, and runs the driver.
#include <leasehold/base/assert.h>
#include <leasehold/node/node_group.h>
#include <leasehold/replica/refusal.h>

#include <algorithm>
#include <string>
#include <utility>

namespace leasehold::node {
namespace {

/// While the group forms, a node says again what it has confirmed: each time after twice as long as
/// before, up to this.
constexpr lease::Duration kFormationRepeatMax = std::chrono::seconds(5);

}  // namespace

// ---- What comes ----

bool GroupShell::addressed(const wire::PeerMessage& message, raft::Peer& from) const {
  if (failure_) return false;
  if (ground_.places == nullptr) return message.from == raft::kNobody;
  if (message.to != replica_ || message.from == raft::kNobody) return false;
  const raft::Uuid known = ground_.places->directory_of(message.from);
  if (known != raft::Uuid{} && known != from.uuid) return false;  // another host claims the number
  from.id = message.from;
  // Also a member: this replica may have missed the membership that names it, and gets that only if
  // its answer arrives. Test: HostTest.AReplicaThatMissedAChangeAnswersTheNextLeader.
  ground_.places->heard(from.id, from.uuid);
  return true;
}

void GroupShell::take(replica::Event event) {
  const auto* received = std::get_if<replica::PeerMessageReceived>(&event);
  const auto* confirm = received != nullptr
                            ? std::get_if<wire::FormationConfirm>(&received->message.payload)
                            : nullptr;
  if (confirm != nullptr) {
    take_confirm(received->from, *confirm);
  } else if (driver_ ||
             (received == nullptr && !take_unformed(event))) {  // else as if it were lost
    batch_.push_back(std::move(event));
  }
}

/// Also of a member that has not heard that the group has formed.
void GroupShell::take_confirm(const raft::Peer& from, const wire::FormationConfirm& confirm) {
  if (ground_.log == nullptr) return;
  if (!formation_) make_formation();
  if (!formation_ || !formation_->judge(from.id, from.uuid).ok()) return;
  const Result<void> taken = formation_->received(from.id, confirm);
  if (!taken.ok()) fail(taken.error());
  act_on_formation();
}

/// What the log says before there is a driver.
bool GroupShell::take_unformed(replica::Event& event) {
  if (std::holds_alternative<replica::Persisted>(event)) {
    laid();
  } else if (const auto* space = std::get_if<replica::StorageSpace>(&event)) {
    log_full_ = space->full;
  } else if (auto* failed = std::get_if<replica::StorageFailed>(&event)) {
    fail(std::move(failed->error));
  } else {
    return false;
  }
  return true;
}

void GroupShell::learned(raft::NodeId member, raft::Uuid uuid) {
  if (!formation_ || !formation_->judge(member, uuid).ok()) return;
  formation_->learned(member, uuid);
  act_on_formation();
  loop_.schedule(*this);
}

void GroupShell::ended(const raft::Peer& node) {
  if (!driver_) return;
  if (ground_.places == nullptr) {
    batch_.emplace_back(replica::PeerEnded{node});
  } else {
    raft::Peer member = node;
    for (const raft::NodeId replica : ground_.places->replicas_of(node.uuid)) {
      member.id = replica;
      batch_.emplace_back(replica::PeerEnded{member});
    }
  }
  loop_.schedule(*this);
}

// ---- A turn ----

void GroupShell::turn(lease::Now now) {
  if (drain_.begun() || (driver_ && !members_->seated())) {
    replica::refuse_calls(batch_, driver_ ? driver_->core().leader() : raft::kNobody);
  }
  if (driver_) {
    run_driver(now);
  } else {
    before_formation(now);
  }
  if (!stopped_ && !loop_.stopping()) look_at_leadership(now);
  rest();
}

void GroupShell::rest() {
  if (ground_.places == nullptr || !driver_ || !batch_.empty() ||
      due() != raft::PromiseInstant::never())
    return;
  driver_->give_back();
  batch_.shrink_to_fit();
  if (!to_do_.empty()) return;
  to_do_.shrink_to_fit();
  formation_.reset();  // what it knows is in the log
}

void GroupShell::run_driver(lease::Now now) {
  driver_->handle_batch(now, batch_);
  changes_.look(driver_->core(), now.holder, !stopped_ && !driver_->failure());
  members_->look(driver_->core(), now);
  if (ground_.places != nullptr) learn_places();
  notices_.look(*driver_, data_dir_, observer_);
  for (auto& completion : driver_->take_completions()) completion();
  if (!failure_ && driver_->failure()) {
    failure_ = driver_->failure();
    members_->complete_all();
    ground_.on_failed();
    report_failure();
  } else if (!failure_) {
    if (const auto gone = members_->gone(now)) fail(*gone);
  }
}

void GroupShell::learn_places() {
  const raft::LogId newest = membership_place(driver_->core());
  if (std::exchange(placed_, newest) == newest) return;
  ground_.places->learn(driver_->core().membership());
}

void GroupShell::before_formation(lease::Now now) {
  const bool over = failure_ || stopped_;
  if (!over && formation_) {
    if (formation_->repeats() && now.promise >= next_repeat_) {
      formation_->repeat();
      next_repeat_ = now.promise + repeat_after_;
      repeat_after_ = std::min(2 * repeat_after_, kFormationRepeatMax);
    }
    act_on_formation();
    if (driver_) return loop_.schedule(*this);
  }
  unformed_.take(now, batch_, over);
}

void GroupShell::look_at_leadership(lease::Now now) {
  if (!driver_ || failure_) return drain_.end(true);
  const auto reached = [this](raft::NodeId id) { return connected(id); };
  drain_.look(now, *driver_, reached, batch_);
  if (!drain_.begun() && preference_.look(now, *driver_, reached, batch_)) {
    observer_.on_notice(
        "another node is preferred, and has been well for a while: transferring the leadership");
  }
  if (!batch_.empty()) loop_.schedule(*this);
}

raft::PromiseInstant GroupShell::due() const {
  raft::PromiseInstant due = std::min(drain_.next_deadline(), preference_.next_deadline());
  if (driver_) {
    due = std::min(due, driver_->next_deadline());
    return failure_ ? due : std::min(due, members_->due());
  }
  const bool repeats = formation_ && formation_->repeats() && !failure_;
  return std::min({due, unformed_.next_deadline(), repeats ? next_repeat_ : due});
}

bool GroupShell::connected(raft::NodeId id) const {
  return id == replica_ || ground_.links->connected(id);
}

// ---- The group forms ----

void GroupShell::act_on_formation() {
  if (!formation_) return;
  for (Formation::Output& output : formation_->take_outputs()) to_do_.push_back(std::move(output));
  while (!laying_ && !failure_ && !to_do_.empty()) {
    const Formation::Output output = std::move(to_do_.front());
    to_do_.erase(to_do_.begin());
    if (const auto* send = std::get_if<Formation::Send>(&output)) {
      ground_.transport->send(send->to, {id(), send->message});
      continue;
    }
    const auto* confirm = std::get_if<Formation::Confirm>(&output);
    const Result<void> begun =
        confirm != nullptr
            ? ground_.log->confirm_set(confirm->set.members, confirm->set.settings)
            : ground_.log->form(ground_.restored ? ground_.restored->begin() : raft::LogId{});
    if (!begun.ok()) return fail(begun.error());
    laying_ = true;
  }
}

/// The set is confirmed durably, or the group has formed.
void GroupShell::laid() {
  laying_ = false;
  if (failure_ || stopped_) return;
  if (ground_.log->formed()) {
    if (const auto ready = prepare_driver(); !ready.ok()) return fail(ready.error());
    start_driver();
    observer_.on_notice("the group has formed");
    unformed_.release(batch_);
    loop_.schedule(*this);
  } else {
    next_repeat_ = loop_.now().promise + repeat_after_;
  }
  act_on_formation();
}

// ---- Its end ----

void GroupShell::fail(Error error) {
  if (failure_) return;
  if (driver_) {
    // First of all: after stop() nothing else of the turn is handled.
    batch_.insert(batch_.begin(), replica::StorageFailed{std::move(error)});
  } else {
    failure_ = std::move(error);
    loop_.post_task([this] {
      ground_.on_failed();
      report_failure();
    });
  }
  loop_.schedule(*this);
}

void GroupShell::report_failure() {
  if (!failure_ || !on_failure_) return;
  std::exchange(on_failure_, nullptr)(*failure_);
}

void GroupShell::stop_turns(lease::Now now) {
  if (std::exchange(stopped_, true)) return;
  if (driver_) {
    batch_.emplace_back(replica::Stop{});
    run_driver(now);
  } else {
    before_formation(now);
  }
  drain_.end(false);
  if (members_) members_->complete_all();
}

void GroupShell::stop_work() {
  if (applier_) applier_->stop();
  if (snapshots_) snapshots_->stop();
}

}  // namespace leasehold::node
