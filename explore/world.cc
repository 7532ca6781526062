// The world moves: steps are taken, messages travel, and cores get their disks, clocks and peers.
#include <leasehold/base/assert.h>
#include <leasehold/explore/rules.h>
#include <leasehold/explore/world.h>
#include <leasehold/raft/carry_out.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace leasehold::explore {
namespace {

/// In parts per million.
constexpr std::int64_t kPercent = 10'000;
constexpr std::int64_t kTrusted = 25 * kPercent;
/// More than follows from anything.
constexpr int kMeetingMessagesMax = 10'000;

/// D = 49 ms and U = 29.4 ms: on the slowest clock (15 ms a unit) a lease is over after two units,
/// on the fastest (25 ms) a promise is. Elections start as soon as time has passed at all, so that
/// nothing depends on how timeouts are drawn; that ticks may be late makes up for it.
///
/// A shorter D, for nodes that are set otherwise than node 1, ends within one unit: 19 ms.
lease::Timing timing(bool shorter) {
  lease::Timing timing;
  timing.lease = std::chrono::milliseconds(49);
  timing.heartbeat = std::chrono::milliseconds(9);
  timing.max_clock_drift_ppm = kTrusted;
  timing.max_round_trip = std::chrono::milliseconds(10);
  timing.margin = Duration(0);
  timing.election_timeout = Duration(1);
  if (shorter) {
    timing.lease = std::chrono::milliseconds(19);
    timing.heartbeat = std::chrono::milliseconds(3);
    timing.max_round_trip = std::chrono::milliseconds(3);
  }
  return timing;
}

NodeId id_of(std::size_t i) {
  return NodeId(static_cast<std::uint64_t>(i) + 1);
}

std::string address_of(NodeId id) {
  return "node-" + std::to_string(id.value()) + ":1";
}

raft::Membership first_membership(const Bounds& bounds) {
  raft::Membership membership;
  for (std::uint64_t i = 1; i <= bounds.members; ++i) {
    membership.members.push_back({NodeId(i), raft::Uuid{i, i}, address_of(NodeId(i))});
    if (i <= bounds.voters) membership.voters.emplace_back(i);
  }
  if (bounds.witness) membership.witnesses.emplace_back(bounds.members);
  return membership;
}

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

story::Record record(Duration at, story::Kind kind, NodeId node) {
  story::Record record;
  record.at = at;
  record.kind = kind;
  record.node = node;
  return record;
}

}  // namespace

World::World(const Bounds& given) {
  Bounds bounds = given;
  LEASEHOLD_ASSERT(bounds.nodes >= 1 && bounds.nodes <= kNodesMax);
  if (bounds.members == 0) bounds.members = bounds.nodes;
  if (bounds.voters == 0) bounds.voters = bounds.members;
  left_ = bounds;
  alike_ = bounds.nodes == 3 && bounds.members == 3 && bounds.voters != 2 && !bounds.unbound &&
           !bounds.witness && (bounds.beginning.empty() || bounds.beginning == beginning::led(3));
  for (std::size_t i = 0; i < size(); ++i) rates_ = static_cast<std::uint8_t>(rates_ * 3 + 1);
  for (std::size_t i = 0; i < size(); ++i) {
    auto node = std::make_shared<Node>();
    node->options.group = raft::GroupId(1);
    node->options.id = id_of(i);
    node->options.uuid = raft::Uuid{i + 1, i + 1};
    node->options.timing = timing(bounds.uneven && i > 0);
    node->options.seed = 1;
    node->options.witness = bounds.witness && i + 1 == bounds.members;
    if (i < bounds.members) node->disk.base.membership = first_membership(bounds);
    nodes_[i] = node;
  }
  leaders_.resize(std::size_t{bounds.terms} + 2);
  left_.slow_disk = false;
  for (std::size_t i = 0; i < size(); ++i) start(i, {});
  begin(bounds);
}

World::Node& World::own(std::size_t i) {
  nodes_[i] = std::make_shared<Node>(*nodes_[i]);
  return *nodes_[i];
}

bool World::left() const {
  if (flights_.size() > left_.flights) return true;
  return std::any_of(nodes_.begin(), nodes_.begin() + left_.nodes,
                     [this](const auto& node) { return node->core->term() > Term(left_.terms); });
}

// ---- Steps ----

void World::take(const Step& step, const story::Sink& sink) {
  if (step.kind == StepKind::meet) {
    meet(step.what, sink);
    return;
  }
  if (!left_.rules) {
    act(step, sink);
    check();
    return;
  }
  const bool arrives = step.kind == StepKind::deliver || step.kind == StepKind::duplicate;
  std::optional<Flight> flight;
  if (arrives) flight = flights_[step.what];
  const std::size_t i =
      flight ? static_cast<std::size_t>(flight->to.value()) - 1 : std::size_t{step.node};
  const Before was = before(i, flight ? &*flight : nullptr);
  act(step, sink);
  check();
  check_rules(was, flight ? &*flight : nullptr, flight || step.kind == StepKind::tick);
}

/// In the order in which it was sent.
void World::meet(std::uint8_t group, const story::Sink& sink) {
  for (int heard = 0;; ++heard) {
    LEASEHOLD_ASSERT(heard < kMeetingMessagesMax);
    const auto next =
        std::find_if(flights_.begin(), flights_.end(),
                     [this, group](const Flight& flight) { return among(flight, group); });
    if (next == flights_.end() || !violation_.empty()) return;
    const auto place = static_cast<std::uint8_t>(next - flights_.begin());
    take({StepKind::deliver, 0, place}, sink);
  }
}

void World::drop(std::size_t flight) {
  flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(flight));
}

void World::act(const Step& step, const story::Sink& sink) {
  const std::size_t i = step.node;
  switch (step.kind) {
    case StepKind::rates: set_rates(step.what, sink); return;
    case StepKind::advance:
      --left_.time;
      now_ += kUnit;
      return;
    case StepKind::deliver: {
      const Flight flight = flights_[step.what];
      drop(step.what);
      hear(flight, sink);
      return;
    }
    case StepKind::duplicate: {
      --left_.duplicates;
      const Flight flight = flights_[step.what];
      hear(flight, sink);
      return;
    }
    case StepKind::meet: LEASEHOLD_UNREACHABLE();  // take() has made messages of it
    case StepKind::lose: drop(step.what); return;
    case StepKind::lose_all: flights_.clear(); return;
    case StepKind::keep:
      kept_.push_back(flights_[step.what]);
      drop(step.what);
      return;
    case StepKind::suspend:
      --left_.suspends;
      clocks_[i].suspend(now_);
      if (sink) sink(record(now_, story::Kind::suspend, id_of(i)));
      return;
    case StepKind::wake:
      clocks_[i].resume(now_);
      if (sink) sink(record(now_, story::Kind::resume, id_of(i)));
      return;
    case StepKind::restart:
      --left_.restarts;
      if (sink) sink(record(now_, story::Kind::crash, id_of(i)));
      start(i, sink);
      return;
    case StepKind::wipe:
      --left_.wipes;
      wipe(i, sink);
      return;
    case StepKind::tick: own(i).core->tick(clock(i)); break;
    case StepKind::sync:
      own(i);
      persist(i, sink);
      break;
    case StepKind::propose: {
      --left_.proposals;
      std::vector<Bytes> payloads(1, Bytes("x"));
      own(i).core->propose(clock(i), std::move(payloads));
      break;
    }
    case StepKind::read: {
      --left_.reads;
      const std::uint64_t number = next_read_++;
      reads_.push_back({number, id_of(i), Index(ledger_.size())});
      if (sink) {
        story::Record asked = record(now_, story::Kind::asked, id_of(i));
        asked.number = number;
        asked.what = "quorum";
        sink(asked);
      }
      own(i).core->read_index(clock(i), number, raft::ReadMode::quorum);
      break;
    }
    case StepKind::transfer:
      --left_.transfers;
      own(i).core->transfer(clock(i), id_of(step.what));
      break;
    case StepKind::change:
      --left_.changes;
      change(i, step.what);
      break;
    case StepKind::cut:
      --left_.cuts;
      own(i).core->cut_log(clock(i), end_of_cut(i));
      break;
  }
  drain(i, sink);
}

void World::set_rates(std::uint8_t which, const story::Sink& sink) {
  rates_ = which;
  left_.drift = false;
  std::size_t digits = which;
  for (std::size_t i = size(); i-- > 0; digits /= 3) {
    const std::int64_t ppm =
        (static_cast<std::int64_t>(digits % 3) - 1) * left_.drift_percent * kPercent;
    clocks_[i].set_rates(now_, ppm, ppm);
  }
  for (std::size_t i = 0; sink && i < size(); ++i) {
    story::Record changed = record(now_, story::Kind::clock, id_of(i));
    std::tie(changed.holder_ppm, changed.promise_ppm) = clocks_[i].rates();
    if (changed.holder_ppm != 0) sink(changed);
  }
}

void World::change(std::size_t i, std::size_t what) {
  raft::WantedMembers wanted;
  for (const raft::Member& member : at(i).core->membership().members) {
    if (what < kNodesMax && member.id == id_of(what)) continue;
    if (what == kSole && member.id != id_of(i)) continue;
    const bool votes = what == kAllVote || at(i).core->membership().is_voter(member.id);
    wanted.push_back({member.id, member.uuid, member.address,
                      votes ? raft::Suffrage::voter : raft::Suffrage::learner,
                      at(i).core->membership().is_witness(member.id)});
  }
  if (what >= kNodesMax && what < kAllVote) {
    const raft::CoreOptions& options = at(what - kNodesMax).options;
    wanted.push_back({options.id, options.uuid, address_of(options.id), raft::Suffrage::learner});
  }
  own(i).core->change_membership(clock(i), wanted);
}

// ---- A node ----

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
    story::Record started = record(now_, story::Kind::start, id_of(i));
    started.number = node.options.incarnation.value();
    sink(started);
  }
  node.core.emplace(node.options,
                    initial_state(node.disk_hard_state, node.disk.base, node.disk.entries),
                    clock(i));
  drain(i, sink);
}

/// It knows nothing, and no group that it could be a member of.
void World::wipe(std::size_t i, const story::Sink& sink) {
  Node& node = own(i);
  node.disk = {};
  node.disk_hard_state = {};
  node.options.uuid.low += 100;
  if (sink) sink(record(now_, story::Kind::crash, id_of(i)));
  start(i, sink);
}

void World::hear(const Flight& flight, const story::Sink& sink) {
  const std::size_t i = static_cast<std::size_t>(flight.to.value()) - 1;
  if (sink) {
    sink(story::record_of(now_, story::Kind::delivered, flight.to, flight.from, *flight.message));
  }
  Node& node = own(i);
  node.core->step(clock(i), {flight.from, flight.uuid}, *flight.message);
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

/// What leaves node i, and what is known of it.
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
  flight.uuid = at(i).options.uuid;
  flight.proof = proof;
  flight.print.add(flight.from.value() * 16 + to.value());
  flight.print.add(flight.uuid.low * 2 + (proof.promised ? 1 : 0));
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
  void send(NodeId to, raft::Message message) {
    // From here on somebody may know of the commit, and read at the leader.
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
    fail("stale read: node " + std::to_string(i + 1) + " answers at index " +
         std::to_string(answer.index->value()) + ", though " +
         std::to_string(found->least.value()) + " was committed before the read arrived");
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
