// The node's thread: one turn takes what has arrived, runs the driver, and sets the timer.
#include <leasehold/base/assert.h>
#include <leasehold/node/node_ground.h>
#include <leasehold/node/node_shell.h>
#include <leasehold/replica/refusal.h>

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

namespace leasehold::node {

namespace {

/// While the group forms, how often a node says again what it has confirmed.
constexpr lease::Duration kFormationRepeat = std::chrono::milliseconds(200);

Error disrupted_clock() {
  return {ErrorCode::clock_disrupted,
          "this machine was stopped from outside (a virtual machine that was paused, moved or "
          "restored), and its clocks may not have seen for how long: no lease can be judged on "
          "them. A new start of the node goes on"};
}

}  // namespace

/// Everything that arrives before the turn comes shares it.
void NodeShell::schedule_turn() {
  if (turn_scheduled_) return;
  turn_scheduled_ = true;
  wake();
}

void NodeShell::turn() {
  turn_scheduled_ = false;
  mailbox_.take(batch_, tasks_);
  if (drain_.begun() || (driver_ && !members_->seated())) {
    replica::refuse_calls(batch_, driver_ ? driver_->core().leader() : raft::kNobody);
  }
  // After the events are in memory: a promise or a lease judged on an older time would be unsafe.
  const lease::Now now = clock_.now();
  if (clock_.disrupted()) fail(disrupted_clock());
  if (driver_) {
    run_driver(now);
  } else {
    before_formation(now);
  }
  for (Mailbox::Task& task : tasks_) task();
  tasks_.clear();
  if (stopping_) return;
  look_at_leadership(now);
  arm_timer(now);
  // At a follower usually no caller waits for what is applied: the news waits for the next message,
  // which saves one wake-up per write.
  const bool awaited = driver_ && (drain_.begun() || driver_->awaits_applied());
  if (driver_ && mailbox_.set_awaiting(awaited)) wake();
}

void NodeShell::run_driver(lease::Now now) {
  driver_->handle_batch(now, batch_);
  changes_.look(driver_->core(), now.holder, !stopping_ && !driver_->failure());
  members_->look(driver_->core(), now);
  notices_.look(*driver_, options_.data_dir, observer_);
  for (auto& completion : driver_->take_completions()) completion();
  if (!failure_ && driver_->failure()) {
    failure_ = driver_->failure();
    members_->complete_all();
    transport_->stop();
    report_failure();
  } else if (!failure_) {
    if (const auto gone = members_->gone(now)) fail(*gone);
  }
}

void NodeShell::feed_cut(const replica::LogCutCompletion& done) {
  if (stopping_) return done(Error{ErrorCode::stopped, "the node is stopping"});
  if (!driver_) return done(Error{ErrorCode::unavailable, "the group has not formed yet"});
  batch_.push_back(replica::CutLog{done});
  schedule_turn();
}

void NodeShell::begin_drain(raft::PromiseInstant deadline, const DrainCompletion& done) {
  drain_.begin(deadline, done);
  stopping_ ? drain_.end(true) : schedule_turn();
}

void NodeShell::look_at_leadership(lease::Now now) {
  if (!driver_ || failure_) return drain_.end(true);
  const auto reached = [this](raft::NodeId id) { return connected(id); };
  drain_.look(now, *driver_, reached, batch_);
  if (!drain_.begun() && preference_.look(now, *driver_, reached, batch_)) {
    observer_.on_notice(
        "another node is preferred, and has been well for a while: transferring the leadership");
  }
  if (!batch_.empty()) schedule_turn();
}

/// Remembered too: the disk may be full before there is a driver.
void NodeShell::feed_machine_space(bool full) {
  machine_full_ = full;
  if (!driver_) return;
  batch_.push_back(replica::MachineSpace{full});
  schedule_turn();
}

void NodeShell::before_formation(lease::Now now) {
  if (now.promise >= next_repeat_ && !failure_ && !stopping_) {
    next_repeat_ = now.promise + kFormationRepeat;
    if (formation_) formation_->repeat();
    act_on_formation();
    if (driver_) {
      schedule_turn();
      return;
    }
  }
  unformed_.take(now, batch_, failure_ || stopping_);
}

void NodeShell::arm_timer(lease::Now now) {
  raft::PromiseInstant due = driver_ ? driver_->next_deadline() : next_repeat_;
  due = std::min({due, drain_.next_deadline(), preference_.next_deadline()});
  if (driver_ && !failure_) due = std::min(due, members_->due());
  if (due >= armed_for_) return;
  armed_for_ = due;
  timer_.expires_after(std::max(due - now.promise, lease::Duration{0}));
  timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;  // it was set again meanwhile
    armed_for_ = raft::PromiseInstant::never();
    schedule_turn();
  });
}

void NodeShell::act_on_formation() {
  if (!formation_) return;
  for (Formation::Output& output : formation_->take_outputs()) {
    if (failure_) return;
    Result<void> done;
    if (auto* confirm = std::get_if<Formation::Confirm>(&output)) {
      done = log_->confirm_set(std::move(confirm->set.members), confirm->set.settings);
    } else if (auto* send = std::get_if<Formation::Send>(&output)) {
      transport_->send(send->to, {kGroup, std::move(send->message)});
    } else {
      done = log_->form(restored_ ? restored_->begin() : raft::LogId{});
      if (done.ok()) done = start_driver();
      if (done.ok()) {
        observer_.on_notice("the group has formed");
        unformed_.release(batch_);
        schedule_turn();
      }
    }
    if (!done.ok()) fail(done.error());
  }
}

}  // namespace leasehold::node
