// The ordering thread of a simulated process: what it takes, when it acts, and its timer.
#include <leasehold/base/assert.h>
#include <leasehold/sim/world/sim_node.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace leasehold::sim {
/// `put` adds one event to what it is given: to the turn that begins at once, if nobody waits.
template <class Put>
void SimNode::take_in(Put put) {
  LEASEHOLD_ASSERT(up());
  if (process_->inbox.empty() && can_act()) {
    process_->pumping = true;
    put(process_->batch);
    take_turn();
    process_->pumping = false;
  } else {
    put(process_->inbox);
  }
  pump();
}

void SimNode::receive(const raft::Peer& from, wire::PeerMessage& message) {
  if (!up() || process_->inbox.size() >= kInboxMax) return;
  if (message.group > kFirstGroup) {
    if (process_->side_inbox.size() >= kInboxMax) return;
    const raft::GroupId group = message.group;
    return post_side(group, replica::PeerMessageReceived{from, std::move(message)});
  }
  if (out_of_the_group(message)) return;
  judge_.on_arrival(*this, from.id, message);
  take_in([&from, &message](auto& events) {
    replica::Event& event = events.emplace_back(std::in_place_type<replica::PeerMessageReceived>);
    auto& received = std::get<replica::PeerMessageReceived>(event);
    received.from = from;
    received.message = std::move(message);
  });
}

void SimNode::post(replica::Event event) {
  take_in([&event](auto& events) { events.push_back(std::move(event)); });
}

// A tick of the first group brings the turn.
void SimNode::post_side(raft::GroupId group, replica::Event event) {
  LEASEHOLD_ASSERT(up());
  process_->side_inbox.emplace_back(group, std::move(event));
  if (process_->inbox.empty()) post(replica::Tick{});
}

bool SimNode::can_act() const {
  return !process_->pumping && !frozen() && process_->ordering_paused.empty() &&
         process_->late_batch.empty() && !process_->stopping && !world_.failed();
}

void SimNode::pump() {
  while (!process_->inbox.empty() && can_act()) {
    process_->pumping = true;
    take_batch();
    take_turn();
    process_->pumping = false;
  }
}

void SimNode::take_turn() {
  // Sampled after the events were in memory; acted upon maybe much later.
  const lease::Now now = clock_.now();
  if (!sleeps_before_acting(now)) {
    act(now, process_->batch, std::exchange(process_->side_inbox, {}));
  }
}

void SimNode::take_batch() {
  const bool many = process_->inbox.size() > 1 && random_.chance(1, 2);
  const std::size_t count = many ? std::min(process_->inbox.size(), kBatchMax) : 1;
  for (std::size_t i = 0; i < count; ++i) {
    process_->batch.push_back(std::move(process_->inbox.front()));
    process_->inbox.pop_front();
  }
}

bool SimNode::sleeps_before_acting(lease::Now now) {
  const NodePlan& plan = world_.plan.nodes[id_.value() - 1];
  if (world_.healed || plan.late_ppm == 0 || !random_.chance_ppm(plan.late_ppm)) return false;
  world_.used(FaultClass::late_handling);
  process_->late_batch.swap(process_->batch);
  process_->late_side_batch = std::exchange(process_->side_inbox, {});
  const std::uint64_t life = life_;
  world_.queue.after(draw_duration(random_, Duration{0}, plan.late_max), [this, life, now] {
    run_in_process(life, [this, now] {
      std::vector<replica::Event> batch = std::exchange(process_->late_batch, {});
      // Events posted during the turn wait for the next one.
      process_->pumping = true;
      act(now, batch, std::exchange(process_->late_side_batch, {}));
      process_->pumping = false;
      pump();
    });
  });
  return true;
}

void SimNode::act(lease::Now now, std::vector<replica::Event>& batch, SideEvents&& side_batch) {
  const std::uint64_t life = life_;
  for (auto& [group, event] : side_batch) give(group, std::move(event));
  process_->replica->handle_batch(now, batch);
  trace_lease();
  if (world_.recorder) world_.recorder->turn(*this);
  // A node whose storage has failed gives it no more work, and sends no more messages; what its
  // core still believes binds no other node.
  if (!process_->replica->failure()) {
    judge_.after_handle(*this);
    const raft::Index commit = process_->replica->commit_index();
    const raft::Index before = std::exchange(process_->commit, commit);
    if (commit > before && leads() && on_commit_) on_commit_(before);
  }
  for (const std::function<void()>& complete : process_->replica->take_completions()) complete();
  if (process_->replica->failure() || a_side_group_failed()) {
    // As in production: the process ends.
    process_->stopping = true;
    world_.trace.add(TraceKind::failed, id_.value());
    world_.queue.after(Duration{0}, [this, life] {
      if (life == life_) crash(false);
    });
    return;
  }
  schedule_tick();
}

void SimNode::trace_lease() {
  const raft::LeaseState state = process_->view.load();
  if (state == process_->traced) return;
  process_->traced = state;
  const bool none = state.end == lease::HolderInstant::earliest();
  const Duration left = none ? Duration{0} : state.end - clock_.holder_now();
  world_.trace.add(TraceKind::published, id_.value(), state.term.value(), state.commit.value(),
                   static_cast<std::uint64_t>(left.count()));
}

void SimNode::schedule_tick() {
  const TrueInstant due =
      std::max(clock_.when(process_->replica->next_deadline()), world_.queue.now());
  if (due == TrueInstant::never() || due >= process_->tick_at) return;
  process_->tick_at = due;
  const std::uint64_t number = ++process_->tick_number;
  // Timers are late, never early.
  const TrueInstant wake =
      due + draw_duration(random_, Duration{0}, std::chrono::microseconds(200));
  world_.queue.at(wake, [this, life = life_, number] {
    run_in_process(life, [this, number] { tick_due(number); });
  });
}

void SimNode::tick_due(std::uint64_t number) {
  if (number != process_->tick_number) return;  // an earlier one was scheduled since
  process_->tick_at = TrueInstant::never();
  if (clock_.now().promise >= process_->replica->next_deadline()) {
    post(replica::Tick{});
  } else {
    schedule_tick();
  }
}

}  // namespace leasehold::sim
