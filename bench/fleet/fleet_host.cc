#include <leasehold/bench/fleet/fleet.h>
#include <leasehold/bench/fleet/fleet_host.h>
#include <leasehold/raft/carry_out.h>

#include <algorithm>
#include <utility>

namespace leasehold::bench {
namespace {

raft::Now at(Duration now) {
  return {raft::HolderInstant(now), raft::PromiseInstant(now)};
}

raft::NodeId id_of(std::size_t host) {
  return raft::NodeId(host + 1);
}

std::size_t host_of(raft::NodeId id) {
  return static_cast<std::size_t>(id.value()) - 1;
}

raft::GroupId group_id(std::uint32_t group) {
  return raft::GroupId(group + std::uint64_t{1});
}

template <class Key>
void move_between(std::map<Key, std::set<std::size_t>>& sets, std::size_t replica,
                  const std::optional<Key>& from, const std::optional<Key>& to) {
  if (from == to) return;
  if (from) sets[*from].erase(replica);
  if (to) sets[*to].insert(replica);
}

void put_in(std::set<std::size_t>& set, std::size_t replica, bool in) {
  if (in) {
    set.insert(replica);
  } else {
    set.erase(replica);
  }
}

}  // namespace

FleetHost::FleetHost(Fleet& fleet, std::size_t number) : fleet_(fleet), number_(number) {}

raft::Peer FleetHost::peer(std::size_t host, std::uint64_t life) const {
  return {id_of(host), raft::Uuid{host + 1, host + 1}, {raft::Incarnation(life), 0}};
}

void FleetHost::add_group(std::uint32_t group, const raft::Membership& membership) {
  by_group_[group] = replicas_.size();
  Replica& replica = replicas_.emplace_back();
  replica.group = group;
  replica.membership = membership;
  replica.options.group = group_id(group);
  replica.options.id = id_of(number_);
  replica.options.uuid = peer(number_, 0).uuid;
  replica.options.timing = fleet_.plan().timing;
  replica.options.seed = fleet_.plan().seed * 1'000'003 + group * 101 + number_;
}

void FleetHost::start(Duration now) {
  const Plan& plan = fleet_.plan();
  ++life_;
  up_ = true;
  busy_until_ = now;
  if (plan.shared) {
    raft::ProcessOptions options;
    options.self = peer(number_, life_);
    options.timing = plan.timing;
    options.longest_promise = 10 * plan.timing.lease;
    promises_.emplace(options, remembered_, at(now));
    std::set<raft::NodeId> others;
    for (const Replica& replica : replicas_) {
      for (const raft::Member& member : replica.membership.members) others.insert(member.id);
    }
    others.erase(id_of(number_));
    std::vector<raft::Peer> peers;
    for (const raft::NodeId id : others) peers.push_back(peer(host_of(id), 0));
    promises_->set_peers(peers);
  }
  for (std::size_t r = 0; r < replicas_.size(); ++r) {
    Replica& replica = replicas_[r];
    replica.options.incarnation = raft::Incarnation(life_);
    replica.options.shared = promises_ ? &*promises_ : nullptr;
    raft::InitialState state;
    state.hard_state = replica.hard_state;
    state.base_membership = replica.membership;
    state.runs = replica.runs;
    state.last_index = replica.last;
    replica.core.emplace(replica.options, std::move(state), at(now));
    drain(r, at(now));
    after_input(r);
  }
  fleet_.wake(number_, now);
}

void FleetHost::kill() {
  for (Replica& replica : replicas_) {
    fleet_.shows(replica.group, number_, false);
    replica.core.reset();
    replica.held.clear();
    replica.durable = {};
    replica.view = {};
    replica.due = raft::PromiseInstant::never();
    replica.lease_class = raft::kNoClass;
    replica.bound_to.reset();
  }
  promises_.reset();
  up_ = false;
  inbox_.clear();
  deaths_.clear();
  timers_ = {};
  leading_.clear();
  busy_.clear();
  resting_.clear();
  bound_.clear();
  outbox_.clear();
  acknowledged_ = returned_ = syncing_ = false;
  writing_.clear();
  waiting_.clear();
  written_.clear();
}

void FleetHost::arrive(std::size_t from, std::vector<Letter> letters) {
  if (!up()) return;
  inbox_.emplace_back(from, std::move(letters));
}

void FleetHost::ended(std::size_t other, std::uint64_t life) {
  if (up()) deaths_.emplace_back(other, life);
}

void FleetHost::synced() {
  written_ = std::move(writing_);
  writing_.clear();
  syncing_ = false;
}

bool FleetHost::holds_lease(std::uint32_t group, Duration now) const {
  const auto found = by_group_.find(group);
  if (!up() || found == by_group_.end()) return false;
  const Replica& replica = replicas_[found->second];
  const raft::HolderInstant at(now);
  if (replica.view.end > at) return true;
  return replica.view.lease_class != raft::kNoClass &&
         promises_->lease_class(replica.view.lease_class).end > at;
}

// ---- A turn ----

void FleetHost::turn(Duration now) {
  if (!up()) return;
  if (now < busy_until_) return fleet_.wake(number_, busy_until_);
  const raft::Now n = at(now);
  handled_ = 0;
  const auto frames = std::exchange(inbox_, {});
  for (const auto& [other, life] : std::exchange(deaths_, {})) {
    if (promises_) promises_->ended(n, peer(other, life));
    for (std::size_t r = 0; r < replicas_.size(); ++r) {
      if (replicas_[r].membership.find(id_of(other)) == nullptr) continue;
      replicas_[r].core->ended(n, peer(other, life));
      look(r, n);
      ++handled_;
    }
  }
  take_written(n);
  for (const auto& [from, letters] : frames) {
    for (const Letter& letter : letters) take(from, letter, n);
  }
  fire_timers(n);
  settle(n);
  const Plan& plan = fleet_.plan();
  const Duration work = plan.per_frame * (frames.size() + 1) + plan.per_message * handled_;
  busy_until_ = now + work * slowness_;
  write_out(busy_until_);
  plan_next(now);
}

void FleetHost::take(std::size_t from, const Letter& letter, raft::Now now) {
  ++handled_;
  const raft::Peer sender = peer(from, letter.life);
  if (const auto* beat = std::get_if<raft::ProcessBeat>(&letter.what)) {
    promises_->beat(now, sender, *beat);
    carry_out_promises(now);
    return;
  }
  if (const auto* reply = std::get_if<raft::ProcessBeatReply>(&letter.what)) {
    promises_->reply(now, sender, *reply);
    carry_out_promises(now);
    return;
  }
  const std::size_t replica = by_group_.at(letter.group);
  replicas_[replica].core->step(now, sender, std::get<raft::Message>(letter.what));
  look(replica, now);
}

void FleetHost::take_written(raft::Now now) {
  for (Written& one : std::exchange(written_, {})) {
    if (!one.remember.empty()) {
      for (const raft::RememberedSupport& support : one.remember) {
        std::erase_if(remembered_, [&support](const raft::RememberedSupport& earlier) {
          return earlier.directory == support.directory;
        });
        remembered_.push_back(support);
      }
      promises_->persisted(one.write);
      carry_out_promises(now);
      continue;
    }
    Replica& replica = replicas_[one.replica];
    if (one.batch.hard_state) replica.hard_state = *one.batch.hard_state;
    if (one.batch.truncate_from) {
      replica.last = one.batch.truncate_from->prev();
      std::erase_if(replica.runs,
                    [&replica](const raft::TermRun& run) { return run.first > replica.last; });
    }
    for (const raft::Entry& entry : one.batch.entries) {
      if (replica.runs.empty() || replica.runs.back().term != entry.id.term) {
        replica.runs.push_back({entry.id.term, entry.id.index});
      }
      replica.last = entry.id.index;
    }
    replica.durable = one.batch.id;
    replica.core->persisted(now, one.batch.id);
    std::vector<raft::HeldMessage> held;
    for (raft::HeldMessage& message : std::exchange(replica.held, {})) {
      if (message.after <= replica.durable) {
        put(host_of(message.to), {replica.group, life_, std::move(message.message)});
      } else {
        held.push_back(std::move(message));
      }
    }
    replica.held = std::move(held);
    look(one.replica, now);
  }
}

void FleetHost::fire_timers(raft::Now now) {
  if (promises_ && promises_->next_deadline() <= now.promise) {
    promises_->tick(now);
    carry_out_promises(now);
  }
  while (!timers_.empty() && timers_.top().first <= now.promise) {
    const auto [due, replica] = timers_.top();
    timers_.pop();
    if (replicas_[replica].due != due) continue;
    replicas_[replica].due = raft::PromiseInstant::never();
    replicas_[replica].core->tick(now);
    look(replica, now);
  }
}

/// What follows from the promises, until nothing does.
void FleetHost::settle(raft::Now now) {
  if (!promises_) return;
  if (std::exchange(acknowledged_, false)) {
    const std::set<std::size_t> hear = std::exchange(returned_, false) ? leading_ : busy_;
    for (const std::size_t replica : hear) moved(replica, now);
  }
  for (const raft::GroupId group : promises_->elections().admit(now.promise)) {
    const std::size_t replica = by_group_.at(static_cast<std::uint32_t>(group.value() - 1));
    replicas_[replica].core->tick(now);
    look(replica, now);
  }
  carry_out_promises(now);
}

void FleetHost::moved(std::size_t replica, raft::Now now) {
  replicas_[replica].core->promises_moved(now);
  look(replica, now);
}

void FleetHost::carry_out_promises(raft::Now now) {
  while (carry_out_once(now)) {
  }
}

bool FleetHost::carry_out_once(raft::Now now) {
  raft::ProcessReady ready;
  promises_->take_ready(ready);
  for (raft::ProcessReady::Beat& beat : ready.beats) {
    put(host_of(beat.to), {0, life_, std::move(beat.message)});
  }
  for (const raft::ProcessReady::Reply& reply : ready.replies) {
    put(host_of(reply.to), {0, life_, reply.message});
  }
  if (!ready.remember.empty()) {
    Written written;
    written.remember = std::move(ready.remember);
    written.write = ready.write;
    waiting_.push_back(std::move(written));
  }
  for (const raft::ProcessReady::Released& released : ready.released) {
    const auto found = by_group_.find(static_cast<std::uint32_t>(released.group.value() - 1));
    if (found == by_group_.end()) continue;
    replicas_[found->second].core->released(now, released.holder, released.term);
    look(found->second, now);
  }
  std::set<std::size_t> woken;
  for (const raft::LeaseClassId id : ready.lapsed_classes) {
    if (const auto rest = resting_.find(id); rest != resting_.end()) {
      woken.insert(rest->second.begin(), rest->second.end());
    }
  }
  for (const raft::Uuid& holder : ready.lapsed_supports) {
    if (const auto rest = bound_.find(holder); rest != bound_.end()) {
      woken.insert(rest->second.begin(), rest->second.end());
    }
  }
  for (const std::size_t replica : woken) moved(replica, now);
  acknowledged_ = acknowledged_ || ready.acknowledged;
  returned_ = returned_ || ready.returned;
  return !ready.released.empty() || !woken.empty();
}

// ---- One replica ----

/// What raft::carry_out() asks of a host.
struct FleetHost::Hands {
  FleetHost& host;
  Replica& replica;
  std::size_t number;
  raft::Now now;

  void publish(const raft::LeaseState& state) {
    replica.view = state;
    const bool lease = state.end != raft::HolderInstant::earliest();
    host.fleet_.shows(replica.group, host.number_, lease);
  }
  void release(const raft::Release& release) {
    host.promises_->released(replica.options.group, release);
  }
  void send(raft::NodeId to, raft::Message message) {
    host.put(host_of(to), {replica.group, host.life_, std::move(message)});
  }
  void write(raft::PersistBatch& batch, const std::vector<raft::AppendIntent>& intents) {
    for (const raft::AppendIntent& intent : intents) host.fill(number, intent, now);
    if (batch.empty()) return;
    Written written;
    written.replica = number;
    written.batch = std::move(batch);
    host.waiting_.push_back(std::move(written));
  }
  void hold(raft::HeldMessage held) {
    if (held.after <= replica.durable) {
      send(held.to, std::move(held.message));
    } else {
      replica.held.push_back(std::move(held));
    }
  }
  // No log is cut, and nobody reads.
  void send_snapshot(const raft::SnapshotIntent&) {}
  void store_chunk(const raft::ReceivedChunk&) {}
  void install(const raft::SnapshotId&) {}
  void apply_to(raft::Index) {}
  void committed(raft::Index) {}
  void answer(const raft::ReadAnswer&) {}
  void tell(const raft::Event& event) {
    const auto* role = std::get_if<raft::RoleChanged>(&event.what);
    if (role != nullptr && role->to == raft::Role::leader) ++host.fleet_.traffic().elected;
  }
};

void FleetHost::drain(std::size_t replica, raft::Now now) {
  Hands hands{*this, replicas_[replica], replica, now};
  while (replicas_[replica].core->take_ready(ready_)) raft::carry_out(ready_, hands);
}

void FleetHost::look(std::size_t replica, raft::Now now) {
  drain(replica, now);
  after_input(replica);
}

/// Entries are those of new leaders: there is nothing in them.
void FleetHost::fill(std::size_t number, const raft::AppendIntent& intent, raft::Now now) {
  Replica& replica = replicas_[number];
  raft::AppendRequest m;
  m.term = intent.term;
  m.prev = intent.prev;
  m.commit = intent.commit;
  m.round = intent.round;
  m.lease = intent.lease;
  m.drift_ppm = intent.drift_ppm;
  m.bind = intent.bind;
  for (raft::Index k = intent.prev.index.next(); k <= intent.last; k = k.next()) {
    const auto term = replica.core->log().term_at(k);
    m.entries.push_back({{*term, k}, raft::EntryKind::empty, Bytes()});
  }
  put(host_of(intent.to), {replica.group, life_, std::move(m)});
  replica.core->filled(now, intent, intent.last, 0);
}

void FleetHost::after_input(std::size_t number) {
  Replica& replica = replicas_[number];
  const raft::Core& core = *replica.core;
  if (const raft::PromiseInstant due = core.next_deadline(); due != replica.due) {
    replica.due = due;
    if (due != raft::PromiseInstant::never()) timers_.emplace(due, number);
  }
  if (!promises_) return;
  const bool leads = core.role() == raft::Role::leader;
  put_in(leading_, number, leads);
  put_in(busy_, number, leads && !core.at_rest());
  const auto some = [](raft::LeaseClassId id) {
    return id != raft::kNoClass ? std::optional(id) : std::nullopt;
  };
  move_between(resting_, number, some(replica.lease_class), some(core.lease_class()));
  replica.lease_class = core.lease_class();
  const raft::Uuid* const holder = core.bound_to();
  const std::optional<raft::Uuid> bound_to =
      holder != nullptr ? std::optional(*holder) : std::nullopt;
  move_between(bound_, number, std::exchange(replica.bound_to, bound_to), bound_to);
  note_election(replica);
}

void FleetHost::note_election(const Replica& replica) {
  using State = raft::ElectionLine::State;
  const raft::Core& core = *replica.core;
  State state = State::quiet;
  if (core.awaits_place()) {
    state = State::waits;
  } else if (core.role() == raft::Role::leader) {
    const bool commits = core.log().term_at(core.commit_index()) == core.term();
    state = commits ? State::quiet : State::elects;
  } else if (core.role() != raft::Role::follower) {
    state = State::elects;
  }
  promises_->elections().note(replica.options.group, state);
}

// ---- What leaves a turn ----

void FleetHost::put(std::size_t to, Letter letter) {
  outbox_[to].push_back(std::move(letter));
}

void FleetHost::write_out(Duration leaves) {
  for (auto& [to, letters] : std::exchange(outbox_, {})) {
    fleet_.send(number_, to, leaves, std::move(letters));
  }
  if (waiting_.empty() || syncing_) return;
  syncing_ = true;
  writing_.swap(waiting_);
  ++fleet_.traffic().syncs;
  fleet_.disk_ends(number_, life_, leaves + fleet_.plan().sync);
}

void FleetHost::plan_next(Duration now) {
  raft::PromiseInstant next = raft::PromiseInstant::never();
  while (!timers_.empty() && replicas_[timers_.top().second].due != timers_.top().first) {
    timers_.pop();
  }
  if (!timers_.empty()) next = timers_.top().first;
  if (promises_) {
    next = std::min(next, promises_->next_deadline());
    next = std::min(next, promises_->elections().next_deadline());
    if (acknowledged_ && !(returned_ ? leading_ : busy_).empty()) next = raft::PromiseInstant(now);
  }
  if (next == raft::PromiseInstant::never()) return;
  fleet_.wake(number_, std::max(next.since_origin(), busy_until_));
}

}  // namespace leasehold::bench
