#include <leasehold/base/assert.h>
#include <leasehold/node/node_group.h>
#include <leasehold/node/node_loop.h>
#include <leasehold/replica/refusal.h>

#include <pthread.h>

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

namespace leasehold::node {
namespace {

/// What concerns the process, and no group of it by itself.
constexpr raft::GroupId kProcess{0};
/// Of the thread that takes snapshots, from 0 (normal) to 19: reads come before one.
constexpr int kSnapshotNiceness = 10;
/// Groups whose time has come, in one turn. What has arrived goes first: or, after a standstill,
/// thousands of groups would ask for votes, and send rounds again, before any answer is heard.
constexpr int kDueInATurn = 256;
/// Arrivals of a turn for which the memory stays.
constexpr std::size_t kArrivalsKept = 1024;

Error disrupted_clock() {
  return {ErrorCode::clock_disrupted,
          "this machine was stopped from outside (a virtual machine that was paused, moved or "
          "restored), and its clocks may not have seen for how long: no lease can be judged on "
          "them. A new start of the node goes on"};
}

}  // namespace

Loop::Loop(const Options& options, const lease::Clock& clock, replica::Observer& observer)
    : clock_(clock),
      observer_(observer),
      appliers_("lh-apply", options.appliers),
      snapshots_("lh-snap", 1, kSnapshotNiceness),
      own_io_(options.io == nullptr ? std::make_unique<asio::io_context>(1) : nullptr),
      io_(own_io_ ? *own_io_ : *options.io),
      work_(io_.get_executor()),
      timer_(io_),
      here_(own_io_ ? nullptr : std::make_shared<Loop*>(this)),
      notices_of_ends_(
          io_, options.deputy, [this](const raft::Peer& peer) { ended(peer); },
          [this](const std::string& line) { say(line); }),
      name_(options.name) {}

// ---- Its life ----

void Loop::connect(net::TcpOptions tcp, const net::TcpCallbacks& policy) {
  net::TcpCallbacks callbacks = policy;
  callbacks.on_message = [this](const raft::Peer& from, wire::PeerMessage message) {
    received(from, std::move(message));
  };
  callbacks.on_peer = [this, &policy](const raft::Peer& peer) {
    refusal_.connected(peer.id);
    if (policy.on_peer) policy.on_peer(peer);
  };
  callbacks.on_met = [this, &policy](const wire::Hello& hello) {
    met(hello);
    if (policy.on_met) policy.on_met(hello);
  };
  callbacks.on_reject = [this, &policy](const net::Rejection& rejection) {
    note(rejection);
    if (policy.on_reject) policy.on_reject(rejection);
  };
  notices_of_ends_.prepare(tcp);
  transport_ = std::make_unique<net::TcpTransport>(io_, std::move(tcp), std::move(callbacks));
}

Result<void> Loop::listen() {
  if (const auto started = transport_->start(); !started.ok()) return started.error();
  notices_of_ends_.start(*transport_);
  return {};
}

void Loop::run() {
  runs_ = true;
  turn_scheduled_ = true;
  wake();
  if (!own_io_) return;
  thread_ = std::thread([this] { io_.run(); });
  pthread_setname_np(thread_.native_handle(), name_);
}

void Loop::stop(const std::function<void()>& last) {
  std::call_once(stopped_once_, [this, &last] {
    if (thread_.joinable()) {
      post_task([this] { stop_on_loop(); });
      thread_.join();
    } else if (runs_) {
      stop_on_loop();
    }
    if (here_) *here_ = nullptr;
    // Before the mailbox is closed: the calls of these threads go into it, and do not wait.
    for (auto& [id, seat] : seats_) seat.group->stop_work();
    // From here on this is the only thread that runs the groups; tasks that come now wait for it.
    const std::lock_guard lock(ending_);
    mailbox_.close();
    if (transport_) transport_->stop();
    stopping_ = true;
    for (auto& [id, seat] : seats_) {
      seat.group->stop_turns(clock_.now());
      schedule(*seat.group);
    }
    turn();  // what came in between
    last();
  });
}

void Loop::stop_on_loop() {
  stopping_ = true;
  bool leads = false;
  const lease::Now now = clock_.now();
  for (auto& [id, seat] : seats_) {
    leads = seat.group->leads() || leads;
    seat.group->stop_turns(now);
    if (process_ && seat.group->driver() != nullptr) process_->handled(*seat.group->driver());
  }
  if (process_) process_->stop(now);
  notices_of_ends_.stop(leads);
  transport_->stop();
  timer_.cancel();
  work_.reset();
  if (own_io_) own_io_->stop();
}

// ---- The other threads ----

void Loop::post(raft::GroupId group, replica::Event event, Mailbox::Haste haste) {
  switch (mailbox_.add(group, event, haste)) {
    case Mailbox::Added::first: wake(); break;
    case Mailbox::Added::behind: break;
    case Mailbox::Added::closed: replica::refuse(event, false); break;
  }
}

void Loop::post(raft::GroupId group, std::vector<replica::Event> events) {
  switch (mailbox_.add(group, events)) {
    case Mailbox::Added::first: wake(); break;
    case Mailbox::Added::behind: break;
    case Mailbox::Added::closed:
      for (replica::Event& event : events) replica::refuse(event, false);
      break;
  }
}

void Loop::post_task(Mailbox::Task task) {
  switch (mailbox_.add(task)) {
    case Mailbox::Added::first: wake(); break;
    case Mailbox::Added::behind: break;
    case Mailbox::Added::closed: {
      const std::lock_guard lock(ending_);
      task();
      break;
    }
  }
}

void Loop::admit(Mailbox::Task admission) {
  if (mailbox_.admit(std::move(admission)) == Mailbox::Added::first) wake();
}

void Loop::wake() {
  if (!runs_) return;  // the first turn takes it
  if (own_io_) {
    asio::post(io_, [this] { turn(); });
  } else {
    asio::post(io_, [here = here_] {
      if (*here != nullptr) (*here)->turn();
    });
  }
}

// ---- Groups ----

void Loop::add(GroupShell& group) {
  const bool fresh = seats_.try_emplace(group.id(), Seat{&group}).second;
  LEASEHOLD_ASSERT(fresh);
  schedule(group);
}

void Loop::began(GroupShell& group) {
  LEASEHOLD_ASSERT(group.driver() != nullptr);
  if (process_) process_->add(*group.driver(), group.places());
}

void Loop::remove(GroupShell& group) {
  const auto seat = seats_.find(group.id());
  LEASEHOLD_ASSERT(seat != seats_.end() && seat->second.group == &group);
  if (process_ && group.driver() != nullptr) process_->remove(*group.driver());
  due_.erase({seat->second.due, group.id()});
  if (seat->second.awaits) --awaiting_;
  seats_.erase(seat);
}

void Loop::schedule(GroupShell& group) {
  const auto seat = seats_.find(group.id());
  if (seat == seats_.end() || std::exchange(seat->second.scheduled, true)) return;
  scheduled_.push_back(group.id());
  if (!gathering_) schedule_turn();
}

/// Everything that arrives before the turn comes shares it.
void Loop::schedule_turn() {
  if (turn_scheduled_) return;
  turn_scheduled_ = true;
  wake();
}

// ---- A turn ----

void Loop::turn() {
  turn_scheduled_ = false;
  mailbox_.take(admissions_, arrivals_, tasks_);
  // What came behind an admission may already be here, too.
  for (Mailbox::Task& admit : std::exchange(admissions_, {})) admit();
  // After the events are in memory: a promise or a lease judged on an older time would be unsafe.
  const lease::Now now = clock_.now();
  turn_now_ = now;
  if (clock_.disrupted()) {
    for (auto& [id, seat] : seats_) seat.group->fail(disrupted_clock());
  }
  gathering_ = true;
  look_at_deadlines(now);
  dispatch(now);
  gathering_ = false;
  run_turns(now);
  if (process_) {
    process_->set_healthy(healthy_(now));
    // Later than `now`: a beat that began before all these groups had their turns would be worth
    // less.
    process_->finish(clock_.now());
  }
  turn_now_.reset();
  for (Mailbox::Task& task : std::exchange(tasks_, {})) task();
  if (stopping_) return;
  arm_timer(now);
  // At a follower usually no caller waits for what is applied: the news waits for the next message,
  // which saves one wake-up per write.
  if (mailbox_.set_awaiting(awaiting_ > 0)) wake();
}

/// The disk and the threads that apply begin with what all these groups have for them.
void Loop::run_turns(lease::Now now) {
  appliers_.hold();
  if (log_ != nullptr) log_->hold();
  turns_.swap(scheduled_);
  for (const raft::GroupId id : turns_) {
    const auto seat = seats_.find(id);
    if (seat == seats_.end()) continue;  // removed since
    seat->second.scheduled = false;
    GroupShell& group = *seat->second.group;
    group.turn(now);
    if (process_ && group.driver() != nullptr) process_->handled(*group.driver());
    note_due(group);
  }
  turns_.clear();
  if (log_ != nullptr) log_->release();
  appliers_.release();
}

void Loop::look_at_deadlines(lease::Now now) {
  for (int begun = 0; begun < kDueInATurn;) {
    if (due_.empty() || due_.begin()->first > now.promise) return;
    Seat& seat = seats_.at(due_.begin()->second);
    due_.erase(due_.begin());
    // A follower whose promise rests on beats has more time, with each of them.
    seat.due = seat.group->due();
    if (seat.due > now.promise) {
      if (seat.due != raft::PromiseInstant::never()) {
        due_.insert({seat.due, seat.group->id()});
      } else {
        seat.group->rest();
      }
      continue;
    }
    seat.due = raft::PromiseInstant::never();
    schedule(*seat.group);
    ++begun;
  }
}

void Loop::dispatch(lease::Now now) {
  std::vector<Posted> arrived;
  arrived.swap(arrivals_);
  const auto follow = [this] {
    if (!process_) return;
    for (replica::ProcessDriver::Follows& one : process_->take_follows()) {
      give(one.driver->group(), std::move(one.event));
    }
  };
  follow();
  for (Posted& one : arrived) {
    const bool taken = process_ && one.group == kProcess && process_->take(now, one.event);
    if (!taken && one.group != kProcess) {
      give(one.group, std::move(one.event));
    } else if (const auto* ended = std::get_if<replica::PeerEnded>(&one.event)) {
      for (auto& [id, seat] : seats_) seat.group->ended(ended->peer);
    }
    follow();
  }
  arrived.clear();
  // Keeps its memory, but not that of a storm.
  if (arrivals_.empty() && arrived.capacity() <= kArrivalsKept) arrivals_.swap(arrived);
}

void Loop::give(raft::GroupId group, replica::Event event) {
  const auto seat = seats_.find(group);
  if (seat == seats_.end()) return replica::refuse(event, false);
  seat->second.group->take(std::move(event));
  schedule(*seat->second.group);
}

void Loop::note_due(GroupShell& group) {
  Seat& seat = seats_.at(group.id());
  const raft::PromiseInstant due = group.due();
  if (due != seat.due) {
    due_.erase({seat.due, group.id()});
    seat.due = due;
    if (due != raft::PromiseInstant::never()) due_.insert({due, group.id()});
  }
  if (seat.awaits == group.awaits_applied()) return;
  seat.awaits = !seat.awaits;
  seat.awaits ? ++awaiting_ : --awaiting_;
}

void Loop::arm_timer(lease::Now now) {
  raft::PromiseInstant due = due_.empty() ? raft::PromiseInstant::never() : due_.begin()->first;
  if (process_) due = std::min(due, process_->next_deadline());
  if (due >= armed_for_) return;
  if (due <= now.promise) return schedule_turn();
  armed_for_ = due;
  timer_.expires_after(due - now.promise);
  timer_.async_wait([this, here = here_](const asio::error_code& error) {
    if (error) return;  // it was set again meanwhile
    if (here && *here == nullptr) return;
    armed_for_ = raft::PromiseInstant::never();
    schedule_turn();
  });
}

// ---- The connections ----

void Loop::received(const raft::Peer& from, wire::PeerMessage&& message) {
  raft::GroupId to = kProcess;
  raft::Peer sender = from;
  if (!wire::of_process(message.payload)) {
    const auto seat = seats_.find(message.group);
    // As if it had been lost.
    if (seat == seats_.end() || !seat->second.group->addressed(message, sender)) return;
    to = message.group;
  } else if (!process_) {
    return;
  }
  // Filled in place: g++ 12 warns that a moved temporary is uninitialised.
  Posted& posted = arrivals_.emplace_back();
  posted.group = to;
  auto& taken = posted.event.emplace<replica::PeerMessageReceived>();
  taken.from = sender;
  taken.message = std::move(message);
  schedule_turn();
}

void Loop::met(const wire::Hello& hello) {
  notices_of_ends_.met(hello, *transport_);
  // The lock of its directory let it in, so the process before it has ended.
  raft::Peer before = wire::peer_of(hello);
  if (before.process.incarnation.value() <= 1) return;
  before.process.incarnation = before.process.incarnation.prev();
  ended(before);
}

void Loop::ended(const raft::Peer& host) {
  arrivals_.push_back({kProcess, replica::PeerEnded{host}});
  schedule_turn();
}

void Loop::note(const net::Rejection& rejection) {
  const raft::PromiseInstant now = clock_.now().promise;
  if (const auto line = refusal_lines_.line(rejection, now)) say(*line);
  refusal_.note(rejection, now);
}

void Loop::describe(NodeStatus& status) const {
  if (status.problem.empty()) status.problem = refusal_.text(clock_.now().promise);
  notices_of_ends_.describe(status);
  status.frames_rejected = transport_ ? transport_->counters().rejected_total() : 0;
}

}  // namespace leasehold::node
