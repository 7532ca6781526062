// One node of the world: its core, with a disk, a clock and peers that do what the world says.
#include <leasehold/base/assert.h>
#include <leasehold/explore/world.h>
#include <leasehold/raft/carry_out.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace leasehold::explore {
namespace {

raft::InitialState initial_state(const raft::HardState& hard_state, const raft::LogBase& base,
                                 const std::vector<raft::Entry>& log) {
  raft::InitialState state;
  state.hard_state = hard_state;
  state.base = base.id;
  state.base_membership = base.membership;
  state.last_index = base.id.index;
  state.applied = base.id.index;
  for (const raft::Entry& entry : log) {
    if (state.runs.empty() || state.runs.back().term != entry.id.term) {
      state.runs.push_back({entry.id.term, entry.id.index});
    }
    if (entry.kind == raft::EntryKind::membership) {
      auto decoded = raft::decode_membership(entry.payload.view());
      LEASEHOLD_ASSERT(decoded.ok());
      state.memberships.push_back({entry.id.index, std::move(decoded.value())});
    }
    state.last_index = entry.id.index;
  }
  return state;
}

}  // namespace

void World::start(std::size_t i, const story::Sink& sink) {
  own(i);
  const raft::Incarnation next = at(i).options.incarnation.next();
  for (std::size_t r = i; r < replicas(); r += size()) own_part(r).options.incarnation = next;
  const auto lost = [this, i](const Read& read) { return node_of(read.replica) == i; };
  reads_.erase(std::remove_if(reads_.begin(), reads_.end(), lost), reads_.end());
  if (sink) {
    story::Record started = record(story::Kind::start, i);
    started.number = next.value();
    sink(started);
  }
  if (left_.shared) start_promises(i);
  for (std::size_t r = i; r < replicas(); r += size()) start_replica(r);
  drain(i, sink);
}

void World::start_replica(std::size_t i) {
  Replica& replica = own_part(i);
  replica.unsynced.clear();
  replica.held.clear();
  replica.durable = raft::ReadyId();
  replica.snapshots.clear();
  replica.token.reset();
  replica.log = replica.disk;
  replica.view = {};
  replica.given = replica.shown = replica.disk.base.id.index;
  replica.core.emplace(
      replica.options,
      initial_state(replica.disk_hard_state, replica.disk.base, replica.disk.entries), clock(i));
}

/// A node that knows nothing, and is a member of no group.
void World::wipe(std::size_t i, const story::Sink& sink) {
  own(i);
  for (std::size_t r = i; r < replicas(); r += size()) {
    Replica& replica = own_part(r);
    replica.disk = {};
    replica.disk_hard_state = {};
    replica.options.uuid.low += 100;
  }
  nodes_[i]->remembered.clear();
  if (sink) sink(record(story::Kind::crash, i));
  start(i, sink);
}

void World::hear(const Flight& flight, const story::Sink& sink) {
  const std::size_t i = replica_to(flight);
  if (!flight.message) {
    hear_process(flight, sink);
    return;
  }
  if (sink) {
    sink(story::record_of(now_, story::Kind::delivered, flight.to, flight.from, *flight.message));
  }
  Replica& replica = own(i);
  replica.core->step(clock(i), flight.sender, *flight.message);
  if (const auto* reply = std::get_if<raft::SnapshotReply>(flight.message.get())) {
    // A snapshot here is one chunk: it was taken, or refused.
    const auto intent =
        std::find_if(replica.snapshots.begin(), replica.snapshots.end(),
                     [&flight](const raft::SnapshotIntent& one) { return one.to == flight.from; });
    if (intent != replica.snapshots.end() && intent->term == reply->request_term) {
      replica.core->snapshot_ended(clock(i), *intent);
      replica.snapshots.erase(intent);
    }
  }
  drain(node_of(i), sink);
}

/// Of an answer of replica i: what is known from outside.
World::Proof World::proof(std::size_t i, raft::Message& message) {
  const Replica& replica = at(i);
  const lease::Timing& timing = replica.options.timing;
  // The round is the newest that was heard, and the promise was renewed when it was.
  const auto promised = [&](auto& reply) {
    if (silent(i)) reply.promised = false;
    const raft::StoredPromise& promise = replica.core->hard_state().promise;
    return Proof{reply.promised && promise.term == reply.request_term &&
                     replica.core->promise().until() >= clock(i).promise + timing.lease,
                 replica.options.uuid};
  };
  if (auto* append = std::get_if<raft::AppendReply>(&message)) return promised(*append);
  if (auto* chunk = std::get_if<raft::SnapshotReply>(&message)) return promised(*chunk);
  const auto* vote = std::get_if<raft::VoteReply>(&message);
  const auto* pre_vote = std::get_if<raft::PreVoteReply>(&message);
  if ((vote != nullptr && vote->granted) || (pre_vote != nullptr && pre_vote->granted)) {
    granted_ = true;
  }
  return {};
}

void World::send(std::size_t i, NodeId to, raft::Message message, const Proof& proof,
                 const story::Sink& sink) {
  if (left_.codec) message = left_.codec(message);
  if (sink) sink(story::record_of(now_, story::Kind::sent, id_at(i), to, message));
  if (static_cast<std::size_t>(to.value()) > size()) return;
  Flight flight = flight_from(i, to);
  flight.proof = proof;
  flight.print.add(at(i).options.uuid.low * 2 + (proof.promised ? 1 : 0));
  raft::add_message(message, flight.print);
  flight.message = std::make_shared<const raft::Message>(std::move(message));
  flights_.push_back(std::move(flight));
}

World::Flight World::flight_from(std::size_t i, NodeId to) const {
  const raft::CoreOptions& options = at(i).options;
  Flight flight;
  flight.from = options.id;
  flight.to = to;
  flight.group = group_of(i);
  flight.sender = {options.id, options.uuid, {options.incarnation, 0}};
  flight.print.add(flight.group * 1000 + flight.from.value() * 16 + to.value());
  flight.print.add(options.incarnation.value());
  return flight;
}

/// own(i) has been called: the node is this world's alone.
void World::drain(std::size_t i, const story::Sink& sink) {
  raft::Ready ready;
  do {
    for (std::size_t r = i; r < replicas(); r += size()) {
      while (own_part(r).core->take_ready(ready)) carry_out(r, ready, sink);
    }
  } while (left_.shared && carry_out_promises(i, sink));
}

/// What raft::carry_out() asks of a host.
struct World::Hands {
  World& world;
  std::size_t i;
  const story::Sink& sink;
  Replica& replica;

  void publish(const raft::LeaseState& state) { replica.view = state; }
  void release(const raft::Release& release) {
    // Without shared promises no core has one.
    world.nodes_[world.node_of(i)]->promises->released(replica.options.group, release);
  }
  void send(NodeId to, raft::Message message) {
    // From here on a client may know of the commit, and read at the leader.
    const auto* append = std::get_if<raft::AppendRequest>(&message);
    if (append != nullptr && append->commit > Index(world.facts_of(i).ledger.size())) {
      world.committed(i, append->commit);
      world.check_views();
    }
    const Proof proof = world.proof(i, message);
    world.send(i, to, std::move(message), proof, sink);
  }
  void write(const raft::PersistBatch& batch, const std::vector<raft::AppendIntent>& intents) {
    replica.log.write(batch);
    for (const raft::AppendIntent& intent : intents) world.fill(i, intent, sink);
    if (!batch.empty()) replica.unsynced.push_back(batch);
  }
  void hold(raft::HeldMessage held) {
    const Proof proof = world.proof(i, held.message);
    if (held.after <= replica.durable) {
      world.send(i, held.to, std::move(held.message), proof, sink);
    } else {
      replica.held.push_back({std::move(held), proof});
    }
  }
  void send_snapshot(const raft::SnapshotIntent& intent) {
    const auto same = [&intent](const raft::SnapshotIntent& one) { return one.to == intent.to; };
    replica.snapshots.erase(
        std::remove_if(replica.snapshots.begin(), replica.snapshots.end(), same),
        replica.snapshots.end());
    raft::SnapshotChunk chunk;
    const raft::Log& log = replica.core->log();
    chunk.id = {log.base(), 1};
    chunk.membership = log.membership_at(log.base().index);
    chunk.size = 1;
    chunk.data = Bytes("s");
    if (!replica.core->stamp(intent, chunk)) return;
    replica.snapshots.push_back(intent);
    world.send(i, intent.to, std::move(chunk), {}, sink);
  }
  void store_chunk(const raft::ReceivedChunk& received) { replica.chunks.push_back(received); }
  void install(const raft::SnapshotId& id) { apply_to(id.last.index); }
  void apply_to(Index index) {
    replica.given = index;
    if (!world.left_.slow_apply) replica.shown = index;
  }
  void committed(Index index) { world.committed(i, index); }
  void answer(const raft::ReadAnswer& answer) { world.answered(i, answer); }
  void tell(const raft::Event& event) {
    if (const auto* token = std::get_if<raft::TokenIssued>(&event.what)) {
      replica.token = raft::TransferToken{replica.core->term(), token->target, token->last};
    }
    if (std::holds_alternative<raft::TransferEnded>(event.what)) replica.token.reset();
  }
};

void World::carry_out(std::size_t i, raft::Ready& ready, const story::Sink& sink) {
  if (sink) {
    for (const raft::Event& event : ready.events) {
      if (const auto told = story::record_of(now_, event)) sink(*told);
    }
  }
  Hands hands{*this, i, sink, own_part(i)};
  raft::carry_out(ready, hands);
  if (!left_.slow_disk) persist(i, sink);
  store_chunks(i);
}

void World::show(std::size_t i) {
  Replica& replica = own(i);
  replica.shown = replica.given;
  replica.core->applied(clock(i), replica.shown);
}

void World::answered(std::size_t i, const raft::ReadAnswer& answer) {
  const auto found = std::find_if(reads_.begin(), reads_.end(), [&answer](const Read& read) {
    return read.number == answer.read;
  });
  if (found == reads_.end()) return;
  if (answer.index && *answer.index < found->least) {
    fail(
        fmt::format("stale read: node {} answers at index {}, though {} was committed before "
                    "the read arrived",
                    name(i), answer.index->value(), found->least.value()));
  }
  reads_.erase(found);
}

void World::fill(std::size_t i, const raft::AppendIntent& intent, const story::Sink& sink) {
  Replica& replica = own_part(i);
  raft::AppendRequest m;
  m.term = intent.term;
  m.prev = intent.prev;
  m.commit = intent.commit;
  m.round = intent.round;
  m.lease = intent.lease;
  m.drift_ppm = intent.drift_ppm;
  m.bind = intent.bind;
  std::size_t bytes = 0;
  for (Index k = intent.prev.index.next(); k <= intent.last; k = k.next()) {
    m.entries.push_back(replica.log.at(k));
    bytes += m.entries.back().payload.size();
  }
  send(i, intent.to, std::move(m), {}, sink);
  replica.core->filled(clock(i), intent, intent.last, bytes);
}

/// A chunk is a whole snapshot, and is stored as soon as it has arrived.
void World::store_chunks(std::size_t i) {
  Replica& replica = own_part(i);
  const std::vector<raft::ReceivedChunk> chunks = std::exchange(replica.chunks, {});
  for (const raft::ReceivedChunk& received : chunks) {
    const raft::SnapshotChunk& chunk = received.chunk;
    replica.core->snapshot_received(clock(i), chunk.id, chunk.membership);
    raft::Core::StoredChunk stored;
    stored.from = received.from;
    stored.request_term = chunk.term;
    stored.round = chunk.round;
    stored.id = chunk.id;
    stored.offset = chunk.size;
    replica.core->chunk_stored(clock(i), stored);
  }
}

void World::persist(std::size_t i, const story::Sink& sink) {
  Replica& replica = own_part(i);
  while (!replica.unsynced.empty()) {
    const raft::PersistBatch batch = std::move(replica.unsynced.front());
    replica.unsynced.pop_front();
    if (batch.hard_state) replica.disk_hard_state = *batch.hard_state;
    replica.disk.write(batch);
    replica.durable = batch.id;
    replica.core->persisted(clock(i), batch.id);
    std::vector<Held> waiting;
    for (Held& held : replica.held) {
      if (held.message.after <= batch.id) {
        send(i, held.message.to, std::move(held.message.message), held.proof, sink);
      } else {
        waiting.push_back(std::move(held));
      }
    }
    replica.held.swap(waiting);
  }
}

void World::Stored::write(const raft::PersistBatch& batch) {
  if (batch.reset) {
    base = *batch.reset;
    entries.clear();
  }
  if (batch.truncate_from) {
    entries.resize(static_cast<std::size_t>(*batch.truncate_from - base.id.index) - 1);
  }
  entries.insert(entries.end(), batch.entries.begin(), batch.entries.end());
  if (!batch.cut) return;
  entries.erase(entries.begin(),
                entries.begin() + static_cast<std::ptrdiff_t>(batch.cut->id.index - base.id.index));
  base = *batch.cut;
}

const raft::Entry& World::Stored::at(Index index) const {
  return entries[static_cast<std::size_t>(index - base.id.index) - 1];
}

}  // namespace leasehold::explore
