#include <leasehold/base/assert.h>
#include <leasehold/sim/world/sim_network.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace leasehold::sim {

SimNetwork::SimNetwork(World& world)
    : world_(world),
      nodes_(world.plan.nodes.size()),
      random_(random_for(world.plan.seed, 1)),
      echo_random_(random_for(world.plan.seed, 7)),
      links_(nodes_ * nodes_),
      sent_(nodes_) {}

SimNetwork::Link& SimNetwork::link(raft::NodeId from, raft::NodeId to) {
  LEASEHOLD_ASSERT(from.value() >= 1 && from.value() <= nodes_);
  LEASEHOLD_ASSERT(to.value() >= 1 && to.value() <= nodes_);
  return links_[(from.value() - 1) * nodes_ + (to.value() - 1)];
}

void SimNetwork::keep(Link& on, const Frame& frame) {
  if (!world_.plan.enabled.has(FaultClass::replay)) return;
  if (on.kept.size() < kKeptFrames) {
    on.kept.push_back(frame);
  } else {
    // Not always the oldest goes, so that some of the kept frames are very old.
    on.kept[static_cast<std::size_t>(random_.below(kKeptFrames))] = frame;
  }
}

// ---- Echoes ----

void SimNetwork::keep_answer(Link& on, const Frame& frame) {
  const auto* message = std::get_if<raft::Message>(&frame->message.payload);
  if (message == nullptr) return;
  const auto put = [&frame](std::vector<Frame>& answers, raft::Round round) {
    if (round.value() >= kKeptRounds) return;
    answers.resize(kKeptRounds);
    answers[static_cast<std::size_t>(round.value())] = frame;
  };
  if (const auto* append = std::get_if<raft::AppendReply>(message)) {
    if (append->promised) put(on.append_answers, append->round);
  } else if (const auto* chunk = std::get_if<raft::SnapshotReply>(message)) {
    if (chunk->promised) put(on.chunk_answers, chunk->round);
  }
}

// In place of the answer that it does not get, a leader gets one that the peer gave to a round of
// the same number, when this node led an earlier term. The worst that a network can do to
// a lease that is about to end.
void SimNetwork::echo(raft::NodeId leader, raft::NodeId peer, const wire::PeerMessage& lost) {
  const auto* message = std::get_if<raft::Message>(&lost.payload);
  if (message == nullptr) return;
  raft::Round round;
  raft::Term term;
  if (const auto* append = std::get_if<raft::AppendRequest>(message)) {
    round = append->round;
    term = append->term;
  } else if (const auto* chunk = std::get_if<raft::SnapshotChunk>(message)) {
    round = chunk->round;
    term = chunk->term;
  } else {
    return;
  }
  if (round.value() >= kKeptRounds) return;
  if (!echo_random_.chance(world_.plan.link.echo_percent, 100)) return;
  const Link& on = link(peer, leader);
  const bool of_chunk = echo_random_.chance(1, 2);
  const std::vector<Frame>& answers = of_chunk ? on.chunk_answers : on.append_answers;
  if (answers.empty()) return;
  const Frame frame = answers[static_cast<std::size_t>(round.value())];
  if (!frame) return;
  const auto& answer = std::get<raft::Message>(frame->message.payload);
  const raft::Term asked = of_chunk ? std::get<raft::SnapshotReply>(answer).request_term
                                    : std::get<raft::AppendReply>(answer).request_term;
  if (asked >= term) return;
  world_.used(FaultClass::replay);
  const LinkPlan& plan = world_.plan.link;
  const Duration delay = draw_duration(echo_random_, plan.delay_min, plan.delay_max);
  world_.queue.after(delay, [this, leader, peer, frame] {
    if (world_.healed) return;
    // Even over a cut link: it has been under way for long.
    world_.trace.add_message(TraceKind::replayed, leader, peer, frame->message);
    wire::PeerMessage copy = frame->message;
    deliver_(leader, frame->from, copy);
  });
}

// ---- Messages ----

void SimNetwork::send(const raft::Peer& sender, raft::NodeId to, wire::PeerMessage message) {
  const raft::NodeId from = sender.id;
  Link& on = link(from, to);
  world_.trace.add_message(TraceKind::sent, from, to, message);
  Frame frame = std::make_shared<Sent>(Sent{sender, std::move(message)});
  if (std::holds_alternative<raft::Message>(frame->message.payload)) {
    const std::uint64_t number = ++sent_[from.value() - 1];
    if (keeps_flights_) frame->number = number;
  }
  keep(on, frame);
  const LinkPlan& plan = world_.plan.link;
  if (plan.echo_percent > 0) keep_answer(on, frame);
  const bool lost =
      !world_.healed && (on.blocks > 0 || (plan.loss_ppm > 0 && random_.chance_ppm(plan.loss_ppm)));
  if (lost) {
    if (on.blocks == 0) world_.used(FaultClass::loss);
    world_.trace.add_message(TraceKind::lost, from, to, frame->message);
    if (plan.echo_percent > 0) echo(from, to, frame->message);
    return;
  }
  const bool twice =
      !world_.healed && plan.duplicate_ppm > 0 && random_.chance_ppm(plan.duplicate_ppm);
  if (twice) {
    world_.used(FaultClass::duplication);
    carry_copy(from, to, frame);
  }
  carry(on, from, to, std::move(frame));
}

void SimNetwork::carry(Link& on, raft::NodeId from, raft::NodeId to, Frame frame) {
  const LinkPlan& plan = world_.plan.link;
  Duration delay = draw_duration(random_, plan.delay_min, plan.delay_max);
  const bool spike = !world_.healed && plan.spike_ppm > 0 && random_.chance_ppm(plan.spike_ppm);
  if (spike) {
    delay += draw_duration(random_, Duration{0}, plan.spike_max);
    world_.used(FaultClass::reordering);
  }
  TrueInstant arrival = world_.queue.now() + delay;
  if (plan.keeps_order || world_.healed) {
    // After the heal, order holds among the new messages; the late ones of before do not count.
    if (!spike) arrival = std::max(arrival, on.last_arrival);
    on.last_arrival = arrival;
  }
  if (frame->number != 0) flights_[{from, frame->number}] = {to, arrival, frame};
  carry_until(arrival, from, to, std::move(frame));
}

void SimNetwork::carry_until(TrueInstant arrival, raft::NodeId from, raft::NodeId to, Frame frame) {
  world_.queue.at(arrival, [this, from, to, frame = std::move(frame)]() mutable {
    if (frame->number == 0 || is_due(from, frame->number)) {
      arrive(from, to, std::move(frame), false);
    }
  });
}

// The second copy may be late, as after a new connection.
void SimNetwork::carry_copy(raft::NodeId from, raft::NodeId to, Frame frame) {
  const Duration longest =
      random_.chance(1, 2) ? world_.plan.link.delay_max : Duration(std::chrono::milliseconds(800));
  const Duration delay = draw_duration(random_, world_.plan.link.delay_min, longest);
  world_.queue.after(delay, [this, from, to, frame = std::move(frame)]() mutable {
    arrive(from, to, std::move(frame), false);
  });
}

void SimNetwork::arrive(raft::NodeId from, raft::NodeId to, Frame frame, bool replayed) {
  // A cut may take what is under way with it, or let it through.
  const Link& on = link(from, to);
  if (on.blocks > 0 && random_.chance(on.in_flight_loss_percent, 100)) {
    world_.trace.add_message(TraceKind::lost, from, to, frame->message);
    return;
  }
  const TraceKind kind = replayed ? TraceKind::replayed : TraceKind::delivered;
  world_.trace.add_message(kind, to, from, frame->message);
  if (frame.use_count() > 1) frame = std::make_shared<Sent>(*frame);
  deliver_(to, frame->from, frame->message);
}

// ---- Messages that somebody chooses ----

std::vector<SimNetwork::Flight> SimNetwork::flights() const {
  std::vector<Flight> found;
  for (const auto& [key, flying] : flights_) {
    found.push_back({key.first, flying.to, key.second, flying.arrival,
                     std::get_if<raft::Message>(&flying.frame->message.payload)});
  }
  return found;
}

std::optional<SimNetwork::Flight> SimNetwork::flight(raft::NodeId from,
                                                     std::uint64_t number) const {
  const auto found = flights_.find({from, number});
  if (found == flights_.end()) return std::nullopt;
  const Flying& flying = found->second;
  return Flight{from, flying.to, number, flying.arrival,
                std::get_if<raft::Message>(&flying.frame->message.payload)};
}

void SimNetwork::lose(const Flight& flight) {
  const auto found = flights_.find({flight.from, flight.number});
  LEASEHOLD_ASSERT(found != flights_.end());
  const Frame frame = std::move(found->second.frame);
  flights_.erase(found);
  world_.trace.add_message(TraceKind::lost, flight.from, flight.to, frame->message);
}

void SimNetwork::hold(const Flight& flight, Duration longer) {
  Flying& flying = flights_.at({flight.from, flight.number});
  flying.arrival = flying.arrival + longer;
  carry_until(flying.arrival, flight.from, flight.to, flying.frame);
}

void SimNetwork::repeat(const Flight& flight, Duration later) {
  const Flying& flying = flights_.at({flight.from, flight.number});
  Frame copy = std::make_shared<Sent>(*flying.frame);
  copy->number = 0;
  carry_until(flying.arrival + later, flight.from, flight.to, std::move(copy));
}

/// False: it was lost meanwhile, or will arrive later.
bool SimNetwork::is_due(raft::NodeId from, std::uint64_t number) {
  const auto found = flights_.find({from, number});
  if (found == flights_.end() || found->second.arrival != world_.queue.now()) return false;
  flights_.erase(found);
  return true;
}

void SimNetwork::block(raft::NodeId from, raft::NodeId to, std::uint64_t in_flight_loss_percent) {
  Link& on = link(from, to);
  ++on.blocks;
  on.in_flight_loss_percent = in_flight_loss_percent;
  world_.trace.add(TraceKind::blocked, from.value(), to.value());
}

void SimNetwork::unblock(raft::NodeId from, raft::NodeId to) {
  Link& on = link(from, to);
  if (on.blocks == 0) return;  // healed in between
  --on.blocks;
  world_.trace.add(TraceKind::unblocked, from.value(), to.value());
}

void SimNetwork::replay(std::size_t frames) {
  for (std::size_t i = 0; i < frames; ++i) {
    const std::uint64_t from = random_.below(nodes_);
    const std::uint64_t to = random_.below(nodes_);
    const Duration delay = draw_duration(random_, Duration{0}, std::chrono::seconds(2));
    const Link& on = links_[from * nodes_ + to];
    if (on.kept.empty()) continue;
    const Frame frame = on.kept[static_cast<std::size_t>(random_.below(on.kept.size()))];
    world_.used(FaultClass::replay);
    world_.queue.after(delay, [this, from, to, frame] {
      if (!world_.healed) arrive(raft::NodeId(from + 1), raft::NodeId(to + 1), frame, true);
    });
  }
}

void SimNetwork::heal() {
  for (Link& on : links_) on.blocks = 0;
}

}  // namespace leasehold::sim
