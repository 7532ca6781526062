#include "group.h"

#include <leasehold/base/assert.h>

#include <algorithm>

namespace leasehold::raft::test {
namespace {

InitialState initial_state(const Replica& replica, const Membership& membership) {
  InitialState state;
  state.hard_state = replica.disk_hard_state;
  state.base_membership = membership;
  for (const Entry& entry : replica.disk_log) {
    if (state.runs.empty() || state.runs.back().term != entry.id.term) {
      state.runs.push_back({entry.id.term, entry.id.index});
    }
  }
  if (!replica.disk_log.empty()) state.last_index = replica.disk_log.back().id.index;
  return state;
}

}  // namespace

Group::Group(int size, lease::Timing timing, std::uint64_t seed, Duration commit_news_delay)
    : now_{HolderInstant(std::chrono::hours(1)), PromiseInstant(std::chrono::hours(1))} {
  for (int i = 1; i <= size; ++i) {
    const NodeId id(static_cast<std::uint64_t>(i));
    membership_.members.push_back({id, Uuid{id.value(), id.value()}, "node" + std::to_string(i)});
    membership_.voters.push_back(id);
  }
  for (const Member& member : membership_.members) {
    Replica& replica = replicas_[member.id];
    replica.options.id = member.id;
    replica.options.incarnation = Incarnation(1);
    replica.options.timing = timing;
    replica.options.seed = seed * 1000 + member.id.value();
    replica.options.commit_news_delay = commit_news_delay;
    replica.core =
        std::make_unique<Core>(replica.options, initial_state(replica, membership_), now_);
    drain(static_cast<int>(member.id.value()));
  }
}

void Group::jump(Duration step) {
  now_.holder = now_.holder + step;
  now_.promise = now_.promise + step;
}

void Group::run(Duration span) {
  const PromiseInstant end = now_.promise + span;
  settle();
  for (;;) {
    PromiseInstant next = PromiseInstant::never();
    for (auto& [id, replica] : replicas_) {
      if (replica.up) next = std::min(next, replica.core->next_deadline());
    }
    if (next > end) break;
    if (next > now_.promise) jump(next - now_.promise);
    for (auto& [id, replica] : replicas_) {
      if (replica.up && replica.core->next_deadline() <= now_.promise) {
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
    step(static_cast<int>(envelope.from.value()), static_cast<int>(envelope.to.value()),
         envelope.message);
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
  drain(id);
}

void Group::step(int from, int to, Message message) {
  if (!replica(to).up) return;
  core(to).step(now_, NodeId(static_cast<std::uint64_t>(from)), std::move(message));
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
  in_flight_.push_back({from, to, std::move(message)});
}

void Group::drain(int id) {
  Replica& replica = this->replica(id);
  Ready ready;
  while (replica.core->take_ready(ready)) {
    if (ready.lease) replica.view = *ready.lease;
    // The payloads are in memory from here on: an intent of this very Ready may ask for them.
    if (ready.persist.truncate_from) replica.log.resize(ready.persist.truncate_from->value() - 1);
    replica.log.insert(replica.log.end(), ready.persist.entries.begin(),
                       ready.persist.entries.end());
    for (OutgoingMessage& m : ready.messages) send(replica.options.id, m.to, std::move(m.message));
    for (const AppendIntent& intent : ready.intents) fill(replica, intent);
    for (HeldMessage& m : ready.held) replica.held.push_back(std::move(m));
    if (ready.apply_to.value() != 0) replica.applied = ready.apply_to;
    replica.reads.insert(replica.reads.end(), ready.reads.begin(), ready.reads.end());
    replica.events.insert(replica.events.end(), ready.events.begin(), ready.events.end());
    if (!ready.persist.empty()) {
      replica.unsynced.push_back(ready.persist);
      if (replica.auto_sync) sync(id);
    }
  }
}

void Group::fill(Replica& replica, const AppendIntent& intent) {
  AppendRequest m;
  m.term = intent.term;
  m.prev = intent.prev;
  m.commit = intent.commit;
  m.round = intent.round;
  m.lease = intent.lease;
  std::size_t bytes = 0;
  for (Index i = intent.prev.index.next(); i <= intent.last; i = i.next()) {
    m.entries.push_back(replica.log[i.value() - 1]);
    bytes += m.entries.back().payload.size();
  }
  const Index last = m.entries.empty() ? intent.prev.index : m.entries.back().id.index;
  if (!m.entries.empty()) send(replica.options.id, intent.to, std::move(m));
  replica.core->filled(now_, intent, last, bytes);
}

void Group::persist(Replica& replica, const PersistBatch& batch) {
  if (batch.hard_state) replica.disk_hard_state = *batch.hard_state;
  if (batch.truncate_from) replica.disk_log.resize(batch.truncate_from->value() - 1);
  replica.disk_log.insert(replica.disk_log.end(), batch.entries.begin(), batch.entries.end());
}

void Group::sync(int id) {
  Replica& replica = this->replica(id);
  while (!replica.unsynced.empty()) {
    const PersistBatch batch = std::move(replica.unsynced.front());
    replica.unsynced.pop_front();
    persist(replica, batch);
    replica.core->persisted(now_, batch.id);
    release(replica, batch.id);
  }
  if (!replica.auto_sync) drain(id);
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
  replica.log = replica.disk_log;
  replica.view = LeaseState{};
}

void Group::restart(int id) {
  crash(id);
  Replica& replica = this->replica(id);
  replica.up = true;
  replica.options.incarnation = replica.options.incarnation.next();
  replica.core = std::make_unique<Core>(replica.options, initial_state(replica, membership_), now_);
  drain(id);
}

std::optional<LogId> Group::propose(int id, std::string payload) {
  std::vector<Bytes> payloads;
  payloads.push_back(Bytes(std::move(payload)));
  const std::optional<LogId> at = core(id).propose(now_, std::move(payloads));
  drain(id);
  return at;
}

void Group::ask(int id, std::uint64_t read, ReadMode mode) {
  core(id).read_index(now_, read, mode);
  drain(id);
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
