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

raft::InitialState initial_state(const StoryNode& node, const raft::Membership& membership) {
  raft::InitialState state;
  state.hard_state = node.disk_hard_state;
  state.base_membership = membership;
  for (const raft::Entry& entry : node.disk_log) {
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

}  // namespace

// ---- A message ----

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
  record.number = number;
  if (kind != Kind::sent) record.from = sent;
  return record;
}

// ---- Start ----

Cluster::Cluster(const Options& options, Sink sink)
    : delay_(options.delay), shared_(options.shared), sink_(std::move(sink)) {
  LEASEHOLD_ASSERT(options.nodes >= 1 && options.nodes <= kNodesMax);
  for (std::uint64_t i = 1; i <= options.nodes; ++i) {
    membership_.members.push_back({NodeId(i), raft::Uuid{i, i}, fmt::format("node-{}:1", i)});
    membership_.voters.emplace_back(i);
  }
  for (const raft::Member& member : membership_.members) {
    StoryNode& node = nodes_[member.id];
    node.id = member.id;
    node.options.group = raft::GroupId(1);
    node.options.id = member.id;
    node.options.uuid = member.uuid;
    node.options.timing = options.timing;
    node.options.seed = options.seed * 1000 + member.id.value();
    watches_.emplace(member.id, CoreWatch(member.id, sink_));
  }
  for (auto& entry : nodes_) start(entry.second);
}

void Cluster::start(StoryNode& node) {
  node.options.incarnation = node.options.incarnation.next();
  node.up = true;
  Record started = record(Kind::start, node.id);
  started.number = node.options.incarnation.value();
  tell(started);
  if (shared_) start_promises(node);
  node.core = std::make_unique<raft::Core>(node.options, initial_state(node, membership_),
                                           node.clock.at(now_));
  watches_.at(node.id).started(now_, *node.core, node.clock);
  drain(node);
}

NodeId Cluster::contradicted(NodeId id, const std::vector<Term>& log) const {
  for (const auto& [other_id, other] : nodes_) {
    if (other_id == id) continue;
    bool in_common = false;
    for (std::size_t i = std::min(log.size(), other.log.size()); i > 0; --i) {
      const bool equal = other.log[i - 1].id.term == log[i - 1];
      if (in_common && !equal) return other_id;
      in_common = in_common || equal;
    }
  }
  return raft::kNobody;
}

void Cluster::preset(NodeId id, Term term, const std::vector<Term>& log) {
  StoryNode& node = this->node(id);
  node.disk_hard_state = raft::HardState{};
  node.disk_hard_state.term = term;
  node.disk_log.clear();
  for (const Term of : log) {
    const Index index(node.disk_log.size() + 1);
    node.disk_log.push_back({{of, index}, raft::EntryKind::command, Bytes()});
  }
  node.log = node.disk_log;
  if (shared_) start_promises(node);
  // A preset may replace an earlier one of the node, which then no longer counts.
  preset_term_ = Term();
  for (const auto& [any, one] : nodes_) {
    if (!one.log.empty()) preset_term_ = std::max(preset_term_, one.log.back().id.term);
  }
  node.core = std::make_unique<raft::Core>(node.options, initial_state(node, membership_),
                                           node.clock.at(now_));
  drain(node);
}

Record Cluster::record(Kind kind, NodeId id) const {
  Record record;
  record.at = now_;
  record.kind = kind;
  record.node = id;
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

bool Cluster::campaign(NodeId id) {
  StoryNode& node = this->node(id);
  if (!node.up || node.paused || node.core->role() == raft::Role::leader) return false;
  while (wait_for_support(node)) {
  }
  const raft::PromiseInstant due =
      node.core->awaits_place() ? node.clock.at(now_).promise : node.core->next_deadline();
  if (due == raft::PromiseInstant::never()) return false;
  now_ = std::max(now_, round_up(node.clock.of(due), kCampaignGrain));
  check();
  tick(id);
  return true;
}

void Cluster::tick(NodeId id) {
  StoryNode& node = this->node(id);
  if (!node.up || node.paused) return;
  if (node.promises) {
    node.promises->look(node.clock.at(now_));
    drain(node);
  }
  node.core->tick(node.clock.at(now_));
  drain(node);
}

void Cluster::set_rates(NodeId id, std::int64_t holder_ppm, std::int64_t promise_ppm) {
  StoryNode& node = this->node(id);
  node.clock.set_rates(now_, holder_ppm, promise_ppm);
  Record changed = record(Kind::clock, id);
  changed.holder_ppm = holder_ppm;
  changed.promise_ppm = promise_ppm;
  tell(changed);
  if (node.up) watches_.at(id).rates_changed(now_, *node.core, node.clock);
}

// ---- Messages ----

void Cluster::send(StoryNode& node, NodeId to, Flight::Message message) {
  LEASEHOLD_ASSERT(flights_.size() < kFlightsMax);
  Flight flight{next_flight_++,          node.id, to, std::move(message), now_, now_ + delay_,
                node.options.incarnation};
  if (const auto* const of_group = std::get_if<raft::Message>(&flight.message)) {
    watches_.at(node.id).sent(now_, *of_group);
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
  if (append != nullptr && !leads(flight.from, append->term)) return;
  node.core->step(node.clock.at(now_), from, *of_group);
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

void Cluster::forge(NodeId from, NodeId to, raft::Message message) {
  const Flight flight{
      next_flight_++, from, to, std::move(message), now_, now_, node(from).options.incarnation};
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
    while (node.core->take_ready(ready)) act(node, ready);
  } while (node.promises && carry_out_promises(node));
  check();
}

void Cluster::act(StoryNode& node, raft::Ready& ready) {
  if (ready.lease) node.view = *ready.lease;
  if (ready.release) node.promises->released(node.options.group, *ready.release);
  for (const raft::Event& event : ready.events) {
    if (const auto record = record_of(now_, event)) sink_(*record);
  }
  watches_.at(node.id).observe(now_, *node.core, node.clock);
  // The payloads are in memory from here on: an intent of this very Ready may ask for them.
  if (ready.persist.truncate_from) node.log.resize(ready.persist.truncate_from->value() - 1);
  node.log.insert(node.log.end(), ready.persist.entries.begin(), ready.persist.entries.end());
  for (raft::OutgoingMessage& m : ready.messages) send(node, m.to, std::move(m.message));
  for (const raft::AppendIntent& intent : ready.intents) fill(node, intent);
  for (raft::HeldMessage& m : ready.held) node.held.push_back(std::move(m));
  for (const raft::ReadAnswer& answer : ready.reads) {
    StoryRead& read = reads_[answer.read];
    read.answered = true;
    read.answer = answer;
    Record told = record(Kind::read, node.id);
    told.number = answer.read;
    told.term = node.core->term();
    told.what = answer.basis == raft::ReadBasis::lease    ? "lease"
                : answer.basis == raft::ReadBasis::quorum ? "quorum"
                                                          : "leader";
    if (answer.index) told.index = *answer.index;
    if (!answer.index) told.why = "refused";
    tell(told);
  }
  if (!ready.persist.empty()) {
    node.unsynced.push_back(ready.persist);
    if (!node.disk_stalled) persist(node);
  }
}

void Cluster::fill(StoryNode& node, const raft::AppendIntent& intent) {
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
    m.entries.push_back(node.log[i.value() - 1]);
    bytes += m.entries.back().payload.size();
  }
  send(node, intent.to, raft::Message(std::move(m)));
  node.core->filled(node.clock.at(now_), intent, last, bytes);
}

void Cluster::persist(StoryNode& node) {
  while (!node.unsynced.empty()) {
    const raft::PersistBatch batch = std::move(node.unsynced.front());
    node.unsynced.pop_front();
    if (batch.hard_state) node.disk_hard_state = *batch.hard_state;
    if (batch.truncate_from) node.disk_log.resize(batch.truncate_from->value() - 1);
    node.disk_log.insert(node.disk_log.end(), batch.entries.begin(), batch.entries.end());
    node.core->persisted(node.clock.at(now_), batch.id);
    std::deque<raft::HeldMessage> waiting;
    for (raft::HeldMessage& m : node.held) {
      if (m.after <= batch.id) {
        send(node, m.to, std::move(m.message));
      } else {
        waiting.push_back(std::move(m));
      }
    }
    node.held.swap(waiting);
  }
}

// ---- What no instant may show ----

// A core that hears from two leaders of one term stops with an assertion, and a forged append can
// make one of them. A core also stops when a leader older than a preset one has committed.
bool Cluster::leads(NodeId id, Term term) {
  if (term <= preset_term_) {
    if (violation_.empty()) {
      violation_ = fmt::format(
          "node {} leads term {}, but a log that was preset has an entry of term "
          "{}, whose leader a majority has voted for: preset their terms too",
          id.value(), term.value(), preset_term_.value());
    }
    return false;
  }
  const NodeId known = leaders_.emplace(term, id).first->second;
  if (known != id && violation_.empty()) {
    violation_ = fmt::format("node {} and node {} both lead term {}", known.value(), id.value(),
                             term.value());
  }
  return known == id;
}

void Cluster::check() {
  for (const auto& entry : nodes_) {
    const StoryNode& node = entry.second;
    if (node.core != nullptr && node.up && node.core->role() == raft::Role::leader) {
      leads(node.id, node.core->term());
    }
  }
  if (!violation_.empty()) return;
  const StoryNode* holder = nullptr;
  for (const auto& entry : nodes_) {
    const StoryNode& node = entry.second;
    if (!node.up || node.shown_end() <= node.clock.at(now_).holder) continue;
    if (holder != nullptr) {
      violation_ = fmt::format("at {} node {} and node {} both hold a valid lease",
                               format_time(now_), holder->id.value(), node.id.value());
      return;
    }
    holder = &node;
  }
}

}  // namespace leasehold::story
