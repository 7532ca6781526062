// The end of a turn: the core's effects, in the order that raft/ready.h gives, until there are
// none.
#include <leasehold/base/assert.h>
#include <leasehold/raft/carry_out.h>
#include <leasehold/replica/driver_impl.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace leasehold::replica {

void Driver::Impl::finish(lease::Now now) {
  if (!stopped_) {
    proposals_.flush(now);
    // After the events, so that a heartbeat that waited while this process slept still counts.
    raft::Core& core = context_.core;
    if (now.promise >= core.next_deadline() || core.awaits_place()) core.tick(now);
    drain(now);
    if (watch_machine(now)) drain(now);
  }
  if (!stopped_) expire(now);
  if (!stopped_) {
    proposals_.resend(now);
    if (now.promise >= retry_at_) {
      retry_at_ = raft::PromiseInstant::never();
      route_held(now);
      drain(now);
    }
    const bool leader_known = leads_ || leader_ != raft::kNobody;
    if (!leader_known || (!proposals_.any_held() && !reads_.any_held())) {
      retry_at_ = raft::PromiseInstant::never();
    } else if (retry_at_ == raft::PromiseInstant::never()) {
      retry_at_ = now.promise + context_.core.timing().heartbeat;
    }
  }
  note_round(now);
  proposals_.check();
  inside_ = false;
}

void Driver::Impl::note_round(lease::Now now) {
  const std::optional<lease::HolderInstant> round = context_.core.quorum_round();
  if (round == round_) return;
  round_ = round;
  if (round) context_.ports.observer.on_round(now.holder - *round);
}

/// Behind drain(), which gives the applier more. True: the core has had an input.
bool Driver::Impl::watch_machine(lease::Now now) {
  const bool stalled =
      !machine_watch_.goes_on(apply_.handed().value(), context_.applied.value(), now.promise);
  if (std::exchange(machine_stalled_, stalled) == stalled) return false;
  context_.core.machine_stalled(now, stalled);
  return true;
}

void Driver::Impl::drain(lease::Now now) {
  if (!ready_) ready_ = std::make_unique<raft::Ready>();
  do {
    while (!stopped_ && context_.core.take_ready(*ready_)) {
      act(now);
      proposals_.flush(now);
    }
    if (stopped_) return;
  } while (sender_.turn(now) || keeper_.turn(now, holds(now)));
  publish_level();
  apply_.pump();
  if (log_reads_.size() > 0) log_reads_.look(now);
  cache_.trim(context_.core.durable_index(), apply_.handed());
}

/// The last entry that the log may lose, as far as peers and readers need what follows.
std::optional<raft::Index> Driver::Impl::holds(lease::Now now) const {
  const std::optional<raft::Index> peers = sender_.holds();
  const std::optional<raft::Index> readers = log_reads_.holds(now);
  return peers && readers ? std::min(peers, readers) : peers ? peers : readers;
}

/// Not of a membership that could still be lost: a leader without it may get the commands.
void Driver::Impl::publish_level() {
  const raft::Core& core = context_.core;
  if (context_.ports.view.level() >= raft::kNewestLevel) return;
  if (core.log().membership_index() > core.commit_index()) return;
  context_.ports.view.publish_level(raft::level_of(core.membership()));
}

/// What raft::carry_out() asks of a host.
struct Driver::Impl::Hands {
  Impl& driver;
  lease::Now now;

  void publish(const raft::LeaseState& state) { driver.context_.ports.view.publish(state); }
  void release(const raft::Release& release) { driver.releases_.push_back(release); }
  void send(raft::NodeId to, raft::Message message) {
    if (std::holds_alternative<raft::AppendRequest>(message)) {
      ++driver.context_.counters.heartbeats_sent;
    }
    driver.context_.send(to, std::move(message));
  }
  void write(raft::PersistBatch& batch, const std::vector<raft::AppendIntent>& intents) {
    driver.write(now, batch, intents);
  }
  void hold(raft::HeldMessage held) {
    if (held.after <= driver.durable_) {
      driver.context_.send(held.to, std::move(held.message));
    } else {
      driver.held_.push_back(std::move(held));
    }
  }
  void send_snapshot(const raft::SnapshotIntent& intent) { driver.sender_.send(intent); }
  void store_chunk(const raft::ReceivedChunk& chunk) { driver.receiver_.received(now, chunk); }
  void install(const raft::SnapshotId& id) { driver.apply_.install(id); }
  void apply_to(raft::Index index) { driver.apply_.raise_target(index); }
  void committed(raft::Index index) { driver.proposals_.committed(index); }
  void answer(const raft::ReadAnswer& answer) { driver.reads_.answered(answer); }
  void tell(const raft::Event& event) {
    const auto* role = std::get_if<raft::RoleChanged>(&event.what);
    const bool elected = role != nullptr && role->to == raft::Role::leader;
    if (elected) ++driver.context_.counters.elections_won;
    driver.group_calls_.on_event(event);
    driver.context_.ports.observer.on_event(event);
    if (driver.context_.tap != nullptr) driver.context_.tap->event(event);
  }
};

void Driver::Impl::act(lease::Now now) {
  note_drift();
  if (context_.tap != nullptr) context_.tap->turned(context_.core);
  Hands hands{*this, now};
  raft::carry_out(*ready_, hands);
  note_leadership(now);
  group_calls_.look();
}

/// Entries come into the cache first, then they leave for the peers, and last they go to the disk:
/// a leader's appends overtake its own write.
void Driver::Impl::write(lease::Now now, raft::PersistBatch& batch,
                         const std::vector<raft::AppendIntent>& intents) {
  if (batch.reset) {
    cache_.clear();
    keeper_.reset(now, batch.reset->id.index);
  }
  if (batch.truncate_from) {
    cache_.truncate(*batch.truncate_from);
    keeper_.truncated(*batch.truncate_from);
  }
  for (const raft::Entry& entry : batch.entries) cache_.append(entry);
  keeper_.appended(now, batch.entries);
  for (const raft::AppendIntent& intent : intents) filler_.fill(now, intent);
  if (batch.empty()) return;
  ++context_.counters.batches_persisted;
  context_.ports.storage.persist(std::move(batch));
}

void Driver::Impl::release_held() {
  std::size_t kept = 0;
  for (raft::HeldMessage& held : held_) {
    if (held.after <= durable_) {
      context_.send(held.to, std::move(held.message));
    } else {
      if (&held_[kept] != &held) held_[kept] = std::move(held);
      ++kept;
    }
  }
  held_.resize(kept);
}

void Driver::Impl::note_leadership(lease::Now now) {
  const raft::Core& core = context_.core;
  const bool leads = context_.leads();
  if (core.term() == term_ && core.leader() == leader_ && leads == leads_) return;
  const bool same_leadership = leads_ && leads && core.term() == term_;
  if (leads_ && !same_leadership) proposals_.leadership_lost();
  if (leads && !same_leadership) proposals_.leadership_won(core.term());
  term_ = core.term();
  leader_ = core.leader();
  leads_ = leads;
  if (leads_ || leader_ != raft::kNobody) route_held(now);
}

void Driver::Impl::route_held(lease::Now now) {
  proposals_.route_held(now);
  proposals_.flush(now);
  reads_.route_held(now);
}

// Of one instant the commands end first, then the reads, the calls about the group, and the readers
// of the log.
void Driver::Impl::expire(lease::Now now) {
  Deadlines& deadlines = context_.deadlines;
  while (true) {
    while (!deadlines.empty() && !still_waits(deadlines.earliest())) deadlines.pop();
    const raft::PromiseInstant others =
        deadlines.empty() ? raft::PromiseInstant::never() : deadlines.earliest().at;
    if (std::min(proposals_.next_deadline(), others) > now.promise) break;
    if (proposals_.next_deadline() <= others) {
      proposals_.expire_earliest();
      continue;
    }
    const Deadlines::Entry entry = deadlines.earliest();
    deadlines.pop();
    switch (entry.kind) {
      case WaiterKind::read: reads_.expired(entry.number); break;
      case WaiterKind::group_call: group_calls_.expired(entry.number); break;
      case WaiterKind::log_read: log_reads_.expired(entry.number); break;
    }
  }
  if (deadlines.size() > 2 * (reads_.size() + group_calls_.size() + log_reads_.size()) + 1024) {
    deadlines.sweep([this](const Deadlines::Entry& entry) { return still_waits(entry); });
  }
}

bool Driver::Impl::still_waits(const Deadlines::Entry& entry) const {
  switch (entry.kind) {
    case WaiterKind::read: return reads_.waits(entry.number);
    case WaiterKind::group_call: return group_calls_.waits(entry.number);
    case WaiterKind::log_read: return log_reads_.waits(entry.number);
  }
  LEASEHOLD_UNREACHABLE();
}

void Driver::Impl::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
  stop();
}

void Driver::Impl::stop() {
  stopped_ = true;
  // First of all: nobody may read by a lease of a node that no longer takes part.
  const raft::Index commit = context_.core.commit_index();
  context_.ports.view.publish(
      {context_.core.term(), raft::HolderInstant::earliest(), commit, commit, raft::kNoClass});
  if (std::optional<raft::Release> release = context_.core.release_at_stop()) {
    releases_.push_back(std::move(*release));
  }
  proposals_.complete_all();
  reads_.complete_all();
  keeper_.complete_all();
  group_calls_.complete_all();
  log_reads_.complete_all();
  held_.clear();
  context_.deadlines.clear();
  if (context_.tap != nullptr) std::exchange(context_.tap, nullptr)->stopped(failure_);
}

}  // namespace leasehold::replica
