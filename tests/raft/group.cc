#include "group.h"

#include <leasehold/base/assert.h>

#include <algorithm>

namespace leasehold::raft::test {
namespace {

InitialState initial_state(const Replica& replica) {
  InitialState state;
  state.hard_state = replica.disk_hard_state;
  state.base = replica.disk_base.id;
  state.base_membership = replica.disk_base.membership;
  state.last_index = state.base.index;
  state.applied = replica.options.witness ? state.base.index : Index(replica.disk_machine.size());
  for (const Entry& entry : replica.disk_log) {
    if (state.runs.empty() || state.runs.back().term != entry.id.term) {
      state.runs.push_back({entry.id.term, entry.id.index});
    }
    if (entry.kind == EntryKind::membership) {
      state.memberships.push_back(
          {entry.id.index, decode_membership(entry.payload.view()).value()});
    }
  }
  if (!replica.disk_log.empty()) state.last_index = replica.disk_log.back().id.index;
  return state;
}

constexpr int kTurnsMax = 100'000;

/// Moves `base` and `log` as `batch` says.
void write(const PersistBatch& batch, Index& base, std::vector<Entry>& log) {
  if (batch.reset) {
    base = batch.reset->id.index;
    log.clear();
  }
  if (batch.truncate_from) log.resize(batch.truncate_from->value() - base.value() - 1);
  log.insert(log.end(), batch.entries.begin(), batch.entries.end());
  if (batch.cut) {
    const std::uint64_t count = batch.cut->id.index.value() - base.value();
    LEASEHOLD_ASSERT(log.at(count - 1).id == batch.cut->id);
    log.erase(log.begin(), log.begin() + static_cast<std::ptrdiff_t>(count));
    base = batch.cut->id.index;
  }
}

}  // namespace

Group::Group(int size, lease::Timing timing, std::uint64_t seed, Duration commit_news_delay,
             const std::vector<int>& witnesses)
    : timing_(timing),
      seed_(seed),
      commit_news_delay_(commit_news_delay),
      now_{HolderInstant(std::chrono::hours(1)), PromiseInstant(std::chrono::hours(1))} {
  for (int i = 1; i <= size; ++i) {
    const NodeId id(static_cast<std::uint64_t>(i));
    membership_.members.push_back({id, Uuid{id.value(), id.value()}, "node" + std::to_string(i)});
    membership_.voters.push_back(id);
  }
  for (const int id : witnesses) {
    membership_.witnesses.push_back(NodeId(static_cast<std::uint64_t>(id)));
  }
  for (const Member& member : membership_.members) {
    Replica& replica = replicas_[member.id];
    replica.options = options(member.id);
    replica.options.witness = membership_.is_witness(member.id);
    replica.disk_base.membership = membership_;
    start(replica);
  }
}

CoreOptions Group::options(NodeId id) const {
  CoreOptions options;
  options.id = id;
  options.uuid = Uuid{id.value(), id.value()};
  options.incarnation = Incarnation(1);
  options.timing = timing_;
  options.seed = seed_ * 1000 + id.value();
  options.commit_news_delay = commit_news_delay_;
  return options;
}

void Group::add(int id, bool witness) {
  LEASEHOLD_ASSERT(replicas_.count(NodeId(static_cast<std::uint64_t>(id))) == 0);
  Replica& replica = replicas_[NodeId(static_cast<std::uint64_t>(id))];
  replica.options = options(NodeId(static_cast<std::uint64_t>(id)));
  replica.options.witness = witness;
  start(replica);
}

void Group::jump(Duration step) {
  now_.holder = now_.holder + step;
  now_.promise = now_.promise + step;
}

void Group::run(Duration span) {
  const PromiseInstant end = now_.promise + span;
  settle();
  for (int turns = 0;; ++turns) {
    LEASEHOLD_ASSERT(turns < kTurnsMax);  // due again and again, at one instant
    PromiseInstant next = next_end();
    for (auto& [id, replica] : replicas_) {
      if (replica.up) next = std::min(next, replica.core->next_deadline());
    }
    if (next > end) break;
    if (next > now_.promise) jump(next - now_.promise);
    if (next_end() <= now_.promise) look_at_ends();
    for (auto& [id, replica] : replicas_) {
      if (!replica.up) continue;
      if (replica.core->next_deadline() <= now_.promise || replica.core->awaits_place()) {
        tick(static_cast<int>(id.value()));
      }
    }
    settle();
  }
  jump(end - now_.promise);
}

void Group::settle() {
  while (!in_flight_.empty()) {
    const Envelope envelope = std::move(in_flight_.front());
    in_flight_.pop_front();
    if (cut_.count({envelope.from, envelope.to}) != 0 || !filter(envelope)) continue;
    Peer from = peer_of(static_cast<int>(envelope.from.value()));
    from.process = envelope.process;
    step(from, static_cast<int>(envelope.to.value()), envelope.message);
  }
}

int Group::elect() {
  for (int round = 0; round < 1000; ++round) {
    for (auto& [id, replica] : replicas_) {
      const Core& core = *replica.core;
      if (replica.up && core.role() == Role::leader &&
          core.lease_end() != HolderInstant::earliest()) {
        return static_cast<int>(id.value());
      }
    }
    run(ms(10));
  }
  LEASEHOLD_UNREACHABLE();
}

void Group::tick(int id) {
  if (!replica(id).up) return;
  core(id).tick(now_);
  for (const auto& [to, sending] : replica(id).sendings) {
    if (core(id).current(sending.intent)) {
      send(replica(id).options.id, to, chunk(id, sending));
    }
  }
  drain(id);
}

Peer Group::peer_of(int id) {
  const CoreOptions& options = replica(id).options;
  return {options.id, options.uuid, {options.incarnation, 0}};
}

void Group::step(int from, int to, Message message) {
  step(peer_of(from), to, std::move(message));
}

void Group::step(const Peer& sender, int to, Message message) {
  // There is no node behind the address, or not any more.
  const auto at = replicas_.find(NodeId(static_cast<std::uint64_t>(to)));
  if (at == replicas_.end() || !at->second.up) return;
  const auto* reply = std::get_if<SnapshotReply>(&message);
  if (reply == nullptr) {
    core(to).step(now_, sender, std::move(message));
  } else {
    core(to).step(now_, sender, message);
    answered(replica(to), sender.id, *reply);
  }
  drain(to);
}

void Group::cut(int a, int b) {
  const NodeId x(static_cast<std::uint64_t>(a));
  const NodeId y(static_cast<std::uint64_t>(b));
  cut_.insert({x, y});
  cut_.insert({y, x});
}

void Group::isolate(int id) {
  for (const auto& [other, unused] : replicas_) {
    if (other.value() != static_cast<std::uint64_t>(id)) cut(id, static_cast<int>(other.value()));
  }
}

void Group::send(NodeId from, NodeId to, Message message) {
  in_flight_.push_back(
      {from, to, std::move(message), peer_of(static_cast<int>(from.value())).process});
}

void Group::drain(int id) {
  Replica& replica = this->replica(id);
  Ready ready;
  while (replica.core->take_ready(ready)) {
    if (ready.lease) replica.view = *ready.lease;
    if (ready.release) replica.releases.push_back(*ready.release);
    // The payloads are in memory from here on: an intent of this very Ready may ask for them.
    write(ready.persist, replica.base, replica.log);
    for (OutgoingMessage& m : ready.messages) send(replica.options.id, m.to, std::move(m.message));
    for (const AppendIntent& intent : ready.intents) fill(replica, intent);
    for (HeldMessage& m : ready.held) replica.held.push_back(std::move(m));
    if (ready.install) install(replica, *ready.install);
    if (ready.apply_to.value() != 0) apply(replica, ready.apply_to);
    const bool moved = ready.install || ready.apply_to.value() != 0;
    if (moved && replica.says_applied) replica.core->applied(now_, replica.applied);
    replica.reads.insert(replica.reads.end(), ready.reads.begin(), ready.reads.end());
    replica.events.insert(replica.events.end(), ready.events.begin(), ready.events.end());
    if (!ready.persist.empty()) {
      replica.unsynced.push_back(ready.persist);
      if (replica.auto_sync) sync(id);
    }
    // The effects of these come with the next Ready.
    for (const SnapshotIntent& intent : ready.snapshots) {
      if (sends_snapshots) {
        send_snapshot(id, intent);
      } else {
        replica.intents.push_back(intent);
      }
    }
    for (const ReceivedChunk& received : ready.chunks) store(replica, received);
  }
}

// ---- Snapshots ----

void Group::cut_log(int id, Index to) {
  Replica& replica = this->replica(id);
  replica.disk_machine = replica.machine;
  replica.core->cut_log(now_, to);
  drain(id);
}

SnapshotId Group::add_snapshot(Machine machine) {
  const SnapshotId id{machine.back().id, next_tag_++};
  snapshots_[id.tag] = std::move(machine);
  return id;
}

SnapshotChunk Group::chunk(int from, const Sending& sending) {
  SnapshotChunk chunk;
  const bool open = core(from).stamp(sending.intent, chunk);
  LEASEHOLD_ASSERT(open);
  chunk.id = sending.id;
  chunk.membership = sending.membership;
  chunk.size = kSnapshotBytes;
  chunk.offset = sending.offset;
  chunk.data = Bytes("x");
  return chunk;
}

void Group::send_snapshot(int id, const SnapshotIntent& intent) {
  Replica& replica = this->replica(id);
  if (!replica.core->current(intent)) return;
  LEASEHOLD_ASSERT(replica.applied >= replica.core->log().base().index);
  const Membership& membership = replica.core->log().membership_at(replica.applied);
  const Sending sending{intent, take_snapshot(id), membership, 0};
  replica.sendings[intent.to] = sending;
  send(replica.options.id, intent.to, chunk(id, sending));
}

void Group::answered(Replica& replica, NodeId from, const SnapshotReply& reply) {
  const auto found = replica.sendings.find(from);
  if (found == replica.sendings.end() || !(found->second.id == reply.id)) return;
  Sending& sending = found->second;
  if (replica.core->current(sending.intent) && !reply.refused && reply.offset < kSnapshotBytes) {
    if (reply.offset == sending.offset) return;
    sending.offset = reply.offset;
    send(replica.options.id, from, chunk(static_cast<int>(replica.options.id.value()), sending));
    return;
  }
  replica.core->snapshot_ended(now_, sending.intent);
  replica.sendings.erase(found);
}

// As replica::Snapshots::store() says.
void Group::store(Replica& replica, const ReceivedChunk& received) {
  const SnapshotChunk& chunk = received.chunk;
  Core::StoredChunk stored{received.from, chunk.term, chunk.round, chunk.id, false, 0};
  std::optional<Arriving>& arriving = replica.arriving;
  if (replica.disk_snapshot) {
    stored.refused = true;
  } else {
    if (!arriving || !(arriving->id == chunk.id)) arriving = Arriving{chunk.id, 0};
    if (chunk.offset == arriving->offset) arriving->offset += chunk.data.size();
    stored.offset = arriving->offset;
    if (arriving->offset == chunk.size) {
      arriving.reset();
      replica.disk_snapshot = chunk.id;
      if (!replica.core->snapshot_received(now_, chunk.id, chunk.membership)) {
        replica.disk_snapshot.reset();
      }
    }
  }
  replica.core->chunk_stored(now_, stored);
}

void Group::install(Replica& replica, const SnapshotId& id) {
  LEASEHOLD_ASSERT(id.last.index > replica.applied);
  LEASEHOLD_ASSERT(replica.disk_base.id.index >= id.last.index);
  if (replica.options.witness) {
    replica.applied = id.last.index;
    return;
  }
  replica.machine = replica.disk_machine = snapshots_.at(id.tag);
  replica.applied = id.last.index;
  replica.installed.push_back(id);
  if (replica.disk_snapshot == id) replica.disk_snapshot.reset();
}

void Group::apply(Replica& replica, Index to) {
  for (Index i = replica.applied.next(); i <= to && !replica.options.witness; i = i.next()) {
    replica.machine.push_back(replica.entry(i));
    LEASEHOLD_ASSERT(replica.machine.back().id.index == i);
  }
  replica.applied = to;
}

// ---- Disks ----

void Group::fill(Replica& replica, const AppendIntent& intent) {
  AppendRequest m;
  m.term = intent.term;
  m.prev = intent.prev;
  m.commit = intent.commit;
  m.round = intent.round;
  m.lease = intent.lease;
  m.drift_ppm = intent.drift_ppm;
  m.bind = intent.bind;
  std::size_t bytes = 0;
  for (Index i = intent.prev.index.next(); i <= intent.last; i = i.next()) {
    m.entries.push_back(replica.entry(i));
    bytes += m.entries.back().payload.size();
  }
  const Index last = m.entries.empty() ? intent.prev.index : m.entries.back().id.index;
  if (!m.entries.empty()) send(replica.options.id, intent.to, std::move(m));
  replica.core->filled(now_, intent, last, bytes);
}

void Group::persist(Replica& replica, const PersistBatch& batch) {
  if (batch.hard_state) replica.disk_hard_state = *batch.hard_state;
  Index base = replica.disk_base.id.index;
  write(batch, base, replica.disk_log);
  if (batch.reset) replica.disk_base = *batch.reset;
  if (batch.cut) replica.disk_base = *batch.cut;
}

void Group::sync(int id) {
  Replica& replica = this->replica(id);
  while (!replica.unsynced.empty()) sync_one(id);
  if (!replica.auto_sync) drain(id);
}

void Group::sync_one(int id) {
  Replica& replica = this->replica(id);
  const PersistBatch batch = std::move(replica.unsynced.front());
  replica.unsynced.pop_front();
  persist(replica, batch);
  replica.core->persisted(now_, batch.id);
  release(replica, batch.id);
}

void Group::release(Replica& replica, ReadyId durable) {
  std::deque<HeldMessage> waiting;
  for (HeldMessage& m : replica.held) {
    if (m.after <= durable) {
      send(replica.options.id, m.to, std::move(m.message));
    } else {
      waiting.push_back(std::move(m));
    }
  }
  replica.held.swap(waiting);
}

void Group::crash(int id) {
  Replica& replica = this->replica(id);
  replica.up = false;
  replica.unsynced.clear();
  replica.held.clear();
  replica.view = LeaseState{};
  replica.intents.clear();
  replica.sendings.clear();
}

// A state machine that is behind the log's base is first given the snapshot that stands there.
void Group::start(Replica& replica) {
  replica.base = replica.disk_base.id.index;
  replica.log = replica.disk_log;
  if (!replica.options.witness && Index(replica.disk_machine.size()) < replica.base) {
    LEASEHOLD_ASSERT(replica.disk_snapshot.has_value());
    LEASEHOLD_ASSERT(replica.disk_snapshot->last == replica.disk_base.id);
    replica.disk_machine = snapshots_.at(replica.disk_snapshot->tag);
  }
  replica.disk_snapshot.reset();
  replica.machine = replica.disk_machine;
  replica.applied = replica.options.witness ? replica.base : Index(replica.machine.size());
  replica.core = std::make_unique<Core>(replica.options, initial_state(replica), now_);
  drain(static_cast<int>(replica.options.id.value()));
}

void Group::restart(int id) {
  crash(id);
  Replica& replica = this->replica(id);
  replica.up = true;
  replica.options.incarnation = replica.options.incarnation.next();
  start(replica);
}

void Group::notice(int id, int to) {
  core(to).ended(now_, peer_of(id));
  drain(to);
}

std::optional<LogId> Group::propose(int id, std::string payload) {
  std::vector<Bytes> payloads;
  payloads.push_back(Bytes(std::move(payload)));
  const std::optional<LogId> at = core(id).propose(now_, std::move(payloads));
  drain(id);
  return at;
}

std::variant<LogId, ChangeRefused> Group::change(int id, const WantedMembers& wanted) {
  const auto answer = core(id).change_membership(now_, wanted);
  drain(id);
  return answer;
}

void Group::ask(int id, std::uint64_t read, ReadMode mode) {
  core(id).read_index(now_, read, mode);
  drain(id);
}

std::variant<LogId, SettingsRefused> Group::change_settings(int id, const GroupSettings& wanted) {
  std::variant<LogId, SettingsRefused> answer = core(id).change_settings(now_, wanted);
  drain(id);
  return answer;
}

void Group::restart(int id, const lease::Timing& timing) {
  crash(id);
  replica(id).options.timing = timing;
  restart(id);
}

std::optional<ReadAnswer> Group::read(int id, ReadMode mode) {
  const std::uint64_t number = next_read_++;
  ask(id, number, mode);
  settle();
  for (const ReadAnswer& answer : replica(id).reads) {
    if (answer.read == number) return answer;
  }
  return std::nullopt;
}

}  // namespace leasehold::raft::test
