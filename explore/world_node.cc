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
  Node& node = own(i);
  node.unsynced.clear();
  node.held.clear();
  node.durable = raft::ReadyId();
  node.snapshots.clear();
  node.token.reset();
  node.log = node.disk;
  node.view = {};
  node.options.incarnation = node.options.incarnation.next();
  const auto lost = [i](const Read& read) { return read.node == id_of(i); };
  reads_.erase(std::remove_if(reads_.begin(), reads_.end(), lost), reads_.end());
  if (sink) {
    story::Record started = record(story::Kind::start, i);
    started.number = node.options.incarnation.value();
    sink(started);
  }
  node.core.emplace(node.options,
                    initial_state(node.disk_hard_state, node.disk.base, node.disk.entries),
                    clock(i));
  drain(i, sink);
}

/// A node that knows nothing, and is a member of no group.
void World::wipe(std::size_t i, const story::Sink& sink) {
  Node& node = own(i);
  node.disk = {};
  node.disk_hard_state = {};
  node.options.uuid.low += 100;
  if (sink) sink(record(story::Kind::crash, i));
  start(i, sink);
}

void World::hear(const Flight& flight, const story::Sink& sink) {
  const std::size_t i = static_cast<std::size_t>(flight.to.value()) - 1;
  if (sink) {
    sink(story::record_of(now_, story::Kind::delivered, flight.to, flight.from, *flight.message));
  }
  Node& node = own(i);
  node.core->step(clock(i), flight.sender, *flight.message);
  if (const auto* reply = std::get_if<raft::SnapshotReply>(flight.message.get())) {
    // A snapshot here is one chunk: it was taken, or refused.
    const auto intent =
        std::find_if(node.snapshots.begin(), node.snapshots.end(),
                     [&flight](const raft::SnapshotIntent& one) { return one.to == flight.from; });
    if (intent != node.snapshots.end() && intent->term == reply->request_term) {
      node.core->snapshot_ended(clock(i), *intent);
      node.snapshots.erase(intent);
    }
  }
  drain(i, sink);
}

/// Sends the messages of node i, and notes what is known from outside.
World::Proof World::proof(std::size_t i, raft::Message& message) {
  const Node& node = at(i);
  const lease::Timing& timing = node.options.timing;
  // The round is the newest that was heard, and the promise was renewed when it was.
  const auto promised = [&](auto& reply) {
    if (silent(i)) reply.promised = false;
    const raft::StoredPromise& promise = node.core->hard_state().promise;
    return Proof{reply.promised && promise.term == reply.request_term &&
                     node.core->promise().until() >= clock(i).promise + timing.lease,
                 node.options.uuid};
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
  if (sink) sink(story::record_of(now_, story::Kind::sent, id_of(i), to, message));
  if (static_cast<std::size_t>(to.value()) > size()) return;
  Flight flight;
  flight.from = id_of(i);
  flight.to = to;
  const raft::CoreOptions& options = at(i).options;
  flight.sender = {options.id, options.uuid, {options.incarnation, 0}};
  flight.proof = proof;
  flight.print.add(flight.from.value() * 16 + to.value());
  flight.print.add(options.uuid.low * 2 + (proof.promised ? 1 : 0));
  flight.print.add(options.incarnation.value());
  raft::add_message(message, flight.print);
  flight.message = std::make_shared<const raft::Message>(std::move(message));
  flights_.push_back(std::move(flight));
}

/// own(i) has been called: the node is this world's alone.
void World::drain(std::size_t i, const story::Sink& sink) {
  raft::Ready ready;
  while (nodes_[i]->core->take_ready(ready)) carry_out(i, ready, sink);
}

/// What raft::carry_out() asks of a host.
struct World::Hands {
  World& world;
  std::size_t i;
  const story::Sink& sink;
  Node& node;

  void publish(const raft::LeaseState& state) { node.view = state; }
  void release(const raft::Release&) {}  // there is one group
  void send(NodeId to, raft::Message message) {
    // From here on a client may know of the commit, and read at the leader.
    const auto* append = std::get_if<raft::AppendRequest>(&message);
    if (append != nullptr && append->commit > Index(world.ledger_.size())) {
      world.committed(i, append->commit);
      world.check_views();
    }
    const Proof proof = world.proof(i, message);
    world.send(i, to, std::move(message), proof, sink);
  }
  void write(const raft::PersistBatch& batch, const std::vector<raft::AppendIntent>& intents) {
    node.log.write(batch);
    for (const raft::AppendIntent& intent : intents) world.fill(i, intent, sink);
    if (!batch.empty()) node.unsynced.push_back(batch);
  }
  void hold(raft::HeldMessage held) {
    const Proof proof = world.proof(i, held.message);
    if (held.after <= node.durable) {
      world.send(i, held.to, std::move(held.message), proof, sink);
    } else {
      node.held.push_back({std::move(held), proof});
    }
  }
  void send_snapshot(const raft::SnapshotIntent& intent) {
    const auto same = [&intent](const raft::SnapshotIntent& one) { return one.to == intent.to; };
    node.snapshots.erase(std::remove_if(node.snapshots.begin(), node.snapshots.end(), same),
                         node.snapshots.end());
    raft::SnapshotChunk chunk;
    const raft::Log& log = node.core->log();
    chunk.id = {log.base(), 1};
    chunk.membership = log.membership_at(log.base().index);
    chunk.size = 1;
    chunk.data = Bytes("s");
    if (!node.core->stamp(intent, chunk)) return;
    node.snapshots.push_back(intent);
    world.send(i, intent.to, std::move(chunk), {}, sink);
  }
  void store_chunk(const raft::ReceivedChunk& received) { node.chunks.push_back(received); }
  void install(const raft::SnapshotId&) {}  // no state machine
  void apply_to(Index) {}
  void committed(Index index) { world.committed(i, index); }
  void answer(const raft::ReadAnswer& answer) { world.answered(i, answer); }
  void tell(const raft::Event& event) {
    if (const auto* token = std::get_if<raft::TokenIssued>(&event.what)) {
      node.token = raft::TransferToken{node.core->term(), token->target, token->last};
    }
    if (std::holds_alternative<raft::TransferEnded>(event.what)) node.token.reset();
  }
};

void World::carry_out(std::size_t i, raft::Ready& ready, const story::Sink& sink) {
  if (sink) {
    for (const raft::Event& event : ready.events) {
      if (const auto told = story::record_of(now_, event)) sink(*told);
    }
  }
  Hands hands{*this, i, sink, *nodes_[i]};
  raft::carry_out(ready, hands);
  if (!left_.slow_disk) persist(i, sink);
  store_chunks(i);
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
                    i + 1, answer.index->value(), found->least.value()));
  }
  reads_.erase(found);
}

void World::fill(std::size_t i, const raft::AppendIntent& intent, const story::Sink& sink) {
  Node& node = *nodes_[i];
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
    m.entries.push_back(node.log.at(k));
    bytes += m.entries.back().payload.size();
  }
  send(i, intent.to, std::move(m), {}, sink);
  node.core->filled(clock(i), intent, intent.last, bytes);
}

/// A chunk is a whole snapshot, and is stored as soon as it has arrived.
void World::store_chunks(std::size_t i) {
  Node& node = *nodes_[i];
  const std::vector<raft::ReceivedChunk> chunks = std::exchange(node.chunks, {});
  for (const raft::ReceivedChunk& received : chunks) {
    const raft::SnapshotChunk& chunk = received.chunk;
    node.core->snapshot_received(clock(i), chunk.id, chunk.membership);
    raft::Core::StoredChunk stored;
    stored.from = received.from;
    stored.request_term = chunk.term;
    stored.round = chunk.round;
    stored.id = chunk.id;
    stored.offset = chunk.size;
    node.core->chunk_stored(clock(i), stored);
  }
}

void World::persist(std::size_t i, const story::Sink& sink) {
  Node& node = *nodes_[i];
  while (!node.unsynced.empty()) {
    const raft::PersistBatch batch = std::move(node.unsynced.front());
    node.unsynced.pop_front();
    if (batch.hard_state) node.disk_hard_state = *batch.hard_state;
    node.disk.write(batch);
    node.durable = batch.id;
    node.core->persisted(clock(i), batch.id);
    std::vector<Held> waiting;
    for (Held& held : node.held) {
      if (held.message.after <= batch.id) {
        send(i, held.message.to, std::move(held.message.message), held.proof, sink);
      } else {
        waiting.push_back(std::move(held));
      }
    }
    node.held.swap(waiting);
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
