#include <leasehold/base/assert.h>
#include <leasehold/story/cluster.h>

#include <fmt/format.h>

#include <algorithm>

namespace leasehold::story {
namespace {

constexpr Duration kTimerGrain = std::chrono::milliseconds(1);
constexpr Duration kCampaignGrain = std::chrono::milliseconds(10);
constexpr Duration kNever = Duration::max();

Duration round_up(Duration time, Duration grain) {
  return (time + grain - Duration(1)) / grain * grain;
}

raft::InitialState initial_state(const StoryReplica& replica, const raft::Membership& membership) {
  raft::InitialState state;
  state.hard_state = replica.disk_hard_state;
  state.base_membership = membership;
  for (const raft::Entry& entry : replica.disk_log) {
    if (state.runs.empty() || state.runs.back().term != entry.id.term) {
      state.runs.push_back({entry.id.term, entry.id.index});
    }
    state.last_index = entry.id.index;
    if (entry.kind != raft::EntryKind::membership) continue;
    Result<raft::Membership> decoded = raft::decode_membership(entry.payload.view());
    LEASEHOLD_ASSERT(decoded.ok());
    state.memberships.push_back({entry.id.index, std::move(decoded).value()});
  }
  return state;
}

/// Records leave out the first group.
GroupId told_group(GroupId group) {
  return group == kFirstGroup ? GroupId() : group;
}

}  // namespace

// ---- A message ----

std::string Flight::way() const {
  return fmt::format("{}->{}", short_name(from, group), short_name(to, group));
}

std::string Flight::name() const {
  return std::visit([](const auto& what) { return message_name(what); }, message);
}

std::string Flight::text() const {
  return std::visit([](const auto& what) { return message_text(what); }, message);
}

Record Flight::record(Duration at, Kind kind) const {
  const bool arrives = kind == Kind::delivered;
  Record record = std::visit(
      [&](const auto& what) {
        return record_of(at, kind, arrives ? to : from, arrives ? from : to, what);
      },
      message);
  record.group = told_group(group);
  record.number = number;
  if (kind != Kind::sent) record.from = sent;
  return record;
}

// ---- Start ----

Cluster::Cluster(const Options& options, Sink sink)
    : delay_(options.delay),
      shared_(options.shared),
      groups_(options.groups),
      sink_(std::move(sink)) {
  LEASEHOLD_ASSERT(options.nodes >= 1 && options.nodes <= kNodesMax);
  LEASEHOLD_ASSERT(groups_ >= 1 && groups_ <= (shared_ ? kGroupsMax : 1));
  for (std::uint64_t i = 1; i <= options.nodes; ++i) {
    membership_.members.push_back({NodeId(i), raft::Uuid{i, i}, fmt::format("node-{}:1", i)});
    membership_.voters.emplace_back(i);
  }
  for (const raft::Member& member : membership_.members) {
    StoryNode& node = nodes_[member.id];
    node.id = member.id;
    node.options.group = kFirstGroup;
    node.options.id = member.id;
    node.options.uuid = member.uuid;
    node.options.timing = options.timing;
    node.options.seed = options.seed * 1000 + member.id.value();
    for (GroupId group = kFirstGroup; group.value() <= groups_; group = group.next()) {
      node.replicas.emplace_back(Replica{member.id, group}, [this, group](Record told) {
        told.group = told_group(group);
        sink_(told);
      });
    }
  }
  for (auto& entry : nodes_) start(entry.second);
}

void Cluster::start(StoryNode& node) {
  node.options.incarnation = node.options.incarnation.next();
  node.up = true;
  Record started = record(Kind::start, node.id);
  started.number = node.options.incarnation.value();
  tell(started);
  make_cores(node);
  for (StoryReplica& replica : node.replicas) {
    replica.watch.started(now_, *replica.core, node.clock);
  }
  drain(node);
}

void Cluster::make_cores(StoryNode& node) {
  if (shared_) start_promises(node);
  for (StoryReplica& replica : node.replicas) {
    raft::CoreOptions options = node.options;
    options.group = replica.id.group;
    options.seed += (replica.id.group.value() - 1) * 100;
    replica.core = std::make_unique<raft::Core>(options, initial_state(replica, membership_),
                                                node.clock.at(now_));
  }
}

void Cluster::preset(Replica id, Term term, const std::vector<Term>& log) {
  StoryReplica& replica = this->replica(id);
  replica.disk_hard_state = raft::HardState{};
  replica.disk_hard_state.term = term;
  replica.disk_log.clear();
  for (const Term of : log) {
    const Index index(replica.disk_log.size() + 1);
    replica.disk_log.push_back({{of, index}, raft::EntryKind::command, Bytes()});
  }
  replica.log = replica.disk_log;
  // A preset may replace an earlier one of the replica, which then no longer counts.
  Term& preset = preset_terms_[id.group];
  preset = Term();
  for (const auto& [any, node] : nodes_) {
    const StoryReplica& one = node.of(id.group);
    if (!one.log.empty()) preset = std::max(preset, one.log.back().id.term);
  }
  make_cores(node(id.node));
  drain(node(id.node));
}

Record Cluster::record(Kind kind, NodeId id) const {
  Record record;
  record.at = now_;
  record.kind = kind;
  record.node = id;
  return record;
}

Record Cluster::record(Kind kind, Replica id) const {
  Record record = this->record(kind, id.node);
  record.group = told_group(id.group);
  return record;
}

void Cluster::tell(Record record) {
  record.at = now_;
  sink_(record);
}

// ---- Time ----

void Cluster::advance(Duration span) {
  now_ += span;
  check();
}

Duration Cluster::next_timer() const {
  Duration next = kNever;
  for (const auto& entry : nodes_) {
    const StoryNode& node = entry.second;
    if (!node.up || node.paused) continue;
    const raft::PromiseInstant due = Cluster::due(node);
    if (due == raft::PromiseInstant::never()) continue;
    const bool overdue = node.clock.at(now_).promise >= due;
    next =
        std::min(next, overdue ? now_ : std::max(now_, round_up(node.clock.of(due), kTimerGrain)));
  }
  return next;
}

void Cluster::run(Duration span) {
  const Duration end = now_ + span;
  for (;;) {
    Duration arrival = kNever;
    std::size_t first = 0;
    for (std::size_t i = 0; i < flights_.size(); ++i) {
      const Duration due = std::max(now_, flights_[i].due);
      if (due < arrival) {
        arrival = due;
        first = i;
      }
    }
    const Duration timer = next_timer();
    const Duration next = std::min(arrival, timer);
    if (next > end) break;
    now_ = next;
    check();
    if (arrival <= timer) {
      const Flight& flight = flights_[first];
      take(first, is_cut(flight.from, flight.to));
      continue;
    }
    for (auto& entry : nodes_) {
      StoryNode& node = entry.second;
      if (!node.up || node.paused) continue;
      if (node.clock.at(now_).promise >= due(node)) let_timers_fall(node);
    }
  }
  now_ = end;
  check();
}

bool Cluster::campaign(Replica id) {
  StoryNode& node = this->node(id.node);
  const StoryReplica& replica = this->replica(id);
  if (!node.up || node.paused || replica.core->role() == raft::Role::leader) return false;
  while (wait_for_support(node, replica)) {
  }
  const raft::PromiseInstant due =
      replica.core->awaits_place() ? node.clock.at(now_).promise : replica.core->next_deadline();
  if (due == raft::PromiseInstant::never()) return false;
  now_ = std::max(now_, round_up(node.clock.of(due), kCampaignGrain));
  check();
  tick(id);
  return true;
}

void Cluster::tick(Replica id) {
  StoryNode& node = this->node(id.node);
  if (!node.up || node.paused) return;
  if (node.promises) {
    node.promises->look(node.clock.at(now_));
    drain(node);
  }
  replica(id).core->tick(node.clock.at(now_));
  drain(node);
}

void Cluster::set_rates(NodeId id, std::int64_t holder_ppm, std::int64_t promise_ppm) {
  StoryNode& node = this->node(id);
  node.clock.set_rates(now_, holder_ppm, promise_ppm);
  Record changed = record(Kind::clock, id);
  changed.holder_ppm = holder_ppm;
  changed.promise_ppm = promise_ppm;
  tell(changed);
  if (!node.up) return;
  for (StoryReplica& replica : node.replicas) {
    replica.watch.rates_changed(now_, *replica.core, node.clock);
  }
}

// ---- Messages ----

void Cluster::send(StoryNode& node, NodeId to, Flight::Message message, GroupId group) {
  LEASEHOLD_ASSERT(flights_.size() < kFlightsMax);
  Flight flight{next_flight_++,           node.id, to, std::move(message), now_, now_ + delay_,
                node.options.incarnation, group};
  if (const auto* const of_group = std::get_if<raft::Message>(&flight.message)) {
    node.of(group).watch.sent(now_, *of_group);
  }
  tell(flight.record(now_, Kind::sent));
  flights_.push_back(std::move(flight));
}

void Cluster::take(std::size_t position, bool lost) {
  Flight flight = std::move(flights_[position]);
  flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(position));
  if (past_.size() >= kFlightsMax) past_.erase(past_.begin());
  past_[flight.number] = flight;
  StoryNode& to = node(flight.to);
  if (lost || !to.up) {
    tell(flight.record(now_, Kind::lost));
  } else if (to.paused) {
    to.inbox.push_back(std::move(flight));
  } else {
    step(to, flight);
  }
}

void Cluster::step(StoryNode& node, const Flight& flight) {
  tell(flight.record(now_, Kind::delivered));
  const raft::Peer from{flight.from, this->node(flight.from).options.uuid, {flight.sender, 0}};
  const auto* const of_group = std::get_if<raft::Message>(&flight.message);
  if (of_group == nullptr) return step_promises(node, from, flight);
  const auto* append = std::get_if<raft::AppendRequest>(of_group);
  if (append != nullptr && !leads({flight.from, flight.group}, append->term)) return;
  node.of(flight.group).core->step(node.clock.at(now_), from, *of_group);
  drain(node);
}

void Cluster::deliver(std::uint64_t number) {
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    if (flights_[i].number == number) return take(i, is_cut(flights_[i].from, flights_[i].to));
  }
}

void Cluster::drop(std::uint64_t number) {
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    if (flights_[i].number == number) return take(i, true);
  }
}

bool Cluster::again(std::uint64_t number) {
  const auto found = past_.find(number);
  if (found == past_.end() || !node(found->second.to).up) return false;
  const Flight flight = found->second;
  step(node(flight.to), flight);
  return true;
}

void Cluster::settle() {
  while (!flights_.empty()) take(0, is_cut(flights_.front().from, flights_.front().to));
}

void Cluster::forge(Replica from, NodeId to, raft::Message message) {
  const raft::Incarnation sender = node(from.node).options.incarnation;
  const Flight flight{next_flight_++, from.node, to,     std::move(message),
                      now_,           now_,      sender, from.group};
  past_[flight.number] = flight;
  if (node(to).up) step(node(to), flight);
}

void Cluster::cut(NodeId from, NodeId to) {
  if (!cut_.insert({from, to}).second) return;
  Record cut = record(Kind::cut, from);
  cut.peer = to;
  tell(cut);
}

void Cluster::join(NodeId from, NodeId to) {
  if (cut_.erase({from, to}) == 0) return;
  Record joined = record(Kind::join, from);
  joined.peer = to;
  tell(joined);
}

// ---- The effects of a turn, in the order that ready.h asks for ----

void Cluster::drain(StoryNode& node) {
  raft::Ready ready;
  do {
    for (StoryReplica& replica : node.replicas) {
      while (replica.core->take_ready(ready)) act(node, replica, ready);
    }
  } while (node.promises && carry_out_promises(node));
  check();
}

void Cluster::act(StoryNode& node, StoryReplica& replica, raft::Ready& ready) {
  if (ready.lease) replica.view = *ready.lease;
  if (ready.release) node.promises->released(replica.id.group, *ready.release);
  for (const raft::Event& event : ready.events) {
    auto record = record_of(now_, event);
    if (!record) continue;
    record->group = told_group(replica.id.group);
    sink_(*record);
  }
  replica.watch.observe(now_, *replica.core, node.clock);
  // The payloads are in memory from here on: an intent of this very Ready may ask for them.
  std::vector<raft::Entry>& log = replica.log;
  if (ready.persist.truncate_from) log.resize(ready.persist.truncate_from->value() - 1);
  log.insert(log.end(), ready.persist.entries.begin(), ready.persist.entries.end());
  for (raft::OutgoingMessage& m : ready.messages) {
    send(node, m.to, std::move(m.message), replica.id.group);
  }
  for (const raft::AppendIntent& intent : ready.intents) fill(node, replica, intent);
  for (raft::HeldMessage& m : ready.held) replica.held.push_back(std::move(m));
  for (const raft::ReadAnswer& answer : ready.reads) answered(replica, answer);
  if (!ready.persist.empty()) {
    replica.unsynced.push_back(ready.persist);
    if (!node.disk_stalled) persist(node, replica);
  }
}

void Cluster::answered(const StoryReplica& replica, const raft::ReadAnswer& answer) {
  StoryRead& read = reads_[answer.read];
  read.answered = true;
  read.answer = answer;
  Record told = record(Kind::read, replica.id);
  told.number = answer.read;
  told.term = replica.core->term();
  told.what = answer.basis == raft::ReadBasis::lease    ? "lease"
              : answer.basis == raft::ReadBasis::quorum ? "quorum"
                                                        : "leader";
  if (answer.index) told.index = *answer.index;
  if (!answer.index) told.why = "refused";
  tell(told);
}

void Cluster::fill(StoryNode& node, StoryReplica& replica, const raft::AppendIntent& intent) {
  raft::AppendRequest m;
  m.term = intent.term;
  m.prev = intent.prev;
  m.commit = intent.commit;
  m.round = intent.round;
  m.lease = intent.lease;
  m.drift_ppm = intent.drift_ppm;
  m.bind = intent.bind;
  std::size_t bytes = 0;
  const Index last = std::min(intent.last, intent.prev.index + entries_max_);
  for (Index i = intent.prev.index.next(); i <= last; i = i.next()) {
    m.entries.push_back(replica.log[i.value() - 1]);
    bytes += m.entries.back().payload.size();
  }
  send(node, intent.to, raft::Message(std::move(m)), replica.id.group);
  replica.core->filled(node.clock.at(now_), intent, last, bytes);
}

void Cluster::persist(StoryNode& node, StoryReplica& replica) {
  std::vector<raft::Entry>& log = replica.disk_log;
  while (!replica.unsynced.empty()) {
    const raft::PersistBatch batch = std::move(replica.unsynced.front());
    replica.unsynced.pop_front();
    if (batch.hard_state) replica.disk_hard_state = *batch.hard_state;
    if (batch.truncate_from) log.resize(batch.truncate_from->value() - 1);
    log.insert(log.end(), batch.entries.begin(), batch.entries.end());
    replica.core->persisted(node.clock.at(now_), batch.id);
    std::deque<raft::HeldMessage> waiting;
    for (raft::HeldMessage& m : replica.held) {
      if (m.after <= batch.id) {
        send(node, m.to, std::move(m.message), replica.id.group);
      } else {
        waiting.push_back(std::move(m));
      }
    }
    replica.held.swap(waiting);
  }
}

}  // namespace leasehold::story
