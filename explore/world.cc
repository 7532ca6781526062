#include <leasehold/base/assert.h>
#include <leasehold/explore/world.h>
#include <leasehold/raft/quorum.h>

#include <algorithm>

namespace leasehold::explore {
namespace {

/// In parts per million.
constexpr std::int64_t kPercent = 10'000;
constexpr std::int64_t kTrusted = 25 * kPercent;

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

raft::Membership first_membership(std::size_t voters) {
  raft::Membership membership;
  for (std::uint64_t i = 1; i <= World::kNodes; ++i) {
    membership.members.push_back({NodeId(i), raft::Uuid{i, i}, "node-" + std::to_string(i) + ":1"});
    if (i <= voters) membership.voters.emplace_back(i);
  }
  return membership;
}

raft::InitialState initial_state(const raft::HardState& hard_state,
                                 const std::vector<raft::Entry>& log, std::size_t voters) {
  raft::InitialState state;
  state.hard_state = hard_state;
  state.base_membership = first_membership(voters);
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

NodeId id_of(std::size_t i) {
  return NodeId(static_cast<std::uint64_t>(i) + 1);
}

}  // namespace

World::World(const Bounds& bounds) : left_(bounds) {
  for (std::size_t i = 0; i < kNodes; ++i) {
    auto node = std::make_shared<Node>();
    node->options.group = raft::GroupId(1);
    node->options.id = id_of(i);
    node->options.uuid = raft::Uuid{i + 1, i + 1};
    node->options.timing = timing(bounds.uneven && i > 0);
    node->options.seed = 1;
    nodes_[i] = node;
  }
  leaders_.resize(std::size_t{bounds.terms} + 2);
  left_.slow_disk = false;
  for (std::size_t i = 0; i < kNodes; ++i) start(i, {});
  if (bounds.beginning != Beginning::first_election) {
    settle(0);
    // The round that told the others of the commit, and its answers.
    const Flight answer = settle(0);
    if (bounds.beginning == Beginning::late_answer) flights_.push_back(answer);
    if (bounds.beginning == Beginning::led_before) lead_again();
    LEASEHOLD_ASSERT(at(0).view.end > clock(0).holder);
  }
  left_.slow_disk = bounds.slow_disk;
}

/// The timer of `leader` falls, and everything that follows from it arrives, at once. What arrived
/// last: when it leads already, an answer to its new round.
World::Flight World::settle(std::size_t leader) {
  now_ += kUnit;
  own(leader).core->tick(clock(leader));
  drain(leader, {});
  Flight last;
  while (!flights_.empty()) {
    last = flights_.front();
    if (left_.beginning == Beginning::one_away && last.to == id_of(2)) {
      flights_.erase(flights_.begin());
    } else {
      take({StepKind::deliver, 0});
    }
  }
  return last;
}

/// Node 1 has led and begun two rounds. It begins a third one, loses the leadership to node 2 and
/// comes back; node 3's answer to that round does not arrive until then, and the next one is a
/// third one again.
void World::lead_again() {
  const Flight answer = settle(0);
  for (const std::size_t leader : {std::size_t{1}, std::size_t{0}}) {
    now_ += 2 * kUnit;  // and a third one below: all promises have ended
    settle(leader);
    settle(leader);
    LEASEHOLD_ASSERT(at(leader).core->role() == raft::Role::leader);
  }
  flights_.push_back(answer);
}

bool World::alike() const {
  return left_.voters != 2 &&
         (left_.beginning == Beginning::led || left_.beginning == Beginning::first_election);
}

World::Node& World::own(std::size_t i) {
  nodes_[i] = std::make_shared<Node>(*nodes_[i]);
  return *nodes_[i];
}

bool World::left() const {
  if (flights_.size() > left_.flights) return true;
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [this](const auto& node) { return node->core->term() > Term(left_.terms); });
}

// ---- Steps ----

std::vector<Step> World::steps() const {
  std::vector<Step> steps;
  const auto add = [&steps](StepKind kind, std::size_t argument) {
    steps.push_back({kind, static_cast<std::uint8_t>(argument)});
  };
  if (rates_ == 13 && left_.drift) {
    // Of two assignments that only swap nodes that are alike one will do.
    for (std::size_t i = 0; i < kRates; ++i) {
      if (!alike() || i / 3 % 3 <= i % 3) add(StepKind::rates, i);
    }
    return steps;
  }
  for (std::size_t i = 0; i < flights_.size(); ++i) {
    const bool again =
        std::any_of(flights_.begin(), flights_.begin() + static_cast<std::ptrdiff_t>(i),
                    [this, i](const Flight& other) {
                      return other.from == flights_[i].from && other.to == flights_[i].to &&
                             other.print == flights_[i].print;
                    });
    if (again) continue;
    add(StepKind::deliver, i);
    if (left_.duplicates > 0) add(StepKind::duplicate, i);
  }
  for (std::size_t i = 0; i < kNodes; ++i) {
    const Node& node = at(i);
    if (clock(i).promise >= node.core->next_deadline()) add(StepKind::tick, i);
    if (left_.slow_disk && !node.unsynced.empty()) add(StepKind::sync, i);
    if (left_.restarts > 0) add(StepKind::restart, i);
    const bool leads = node.core->role() == raft::Role::leader;
    if (leads && left_.proposals > 0 && node.core->takes_proposals()) add(StepKind::propose, i);
    if (leads && left_.reads > 0) add(StepKind::read, i);
    if (!leads) continue;
    for (std::size_t other = 0; other < kNodes; ++other) {
      if (left_.transfers > 0 && other != i) add(StepKind::transfer, i * 4 + other);
      if (left_.changes > 0) add(StepKind::change, i * 8 + other);
    }
    if (left_.changes == 0) continue;
    const raft::Membership& membership = node.core->membership();
    if (membership.voters.size() < membership.members.size()) {
      add(StepKind::change, i * 8 + kAllVote);
    }
    if (left_.sole) add(StepKind::change, i * 8 + kSole);
  }
  if (left_.time > 0) add(StepKind::advance, 0);
  return steps;
}

void World::take(const Step& step, const story::Sink& sink) {
  const std::size_t i = step.argument;
  switch (step.kind) {
    case StepKind::rates: set_rates(step.argument, sink); break;
    case StepKind::advance:
      --left_.time;
      now_ += kUnit;
      break;
    case StepKind::tick:
      own(i).core->tick(clock(i));
      drain(i, sink);
      break;
    case StepKind::deliver: {
      const Flight flight = flights_[i];
      flights_.erase(flights_.begin() + static_cast<std::ptrdiff_t>(i));
      hear(flight, sink);
      break;
    }
    case StepKind::duplicate: {
      --left_.duplicates;
      const Flight flight = flights_[i];
      hear(flight, sink);
      break;
    }
    case StepKind::sync:
      own(i);
      persist(i, sink);
      drain(i, sink);
      break;
    case StepKind::restart:
      --left_.restarts;
      if (sink) sink(record(now_, story::Kind::crash, id_of(i)));
      start(i, sink);
      break;
    case StepKind::propose: {
      --left_.proposals;
      std::vector<Bytes> payloads(1, Bytes("x"));
      own(i).core->propose(clock(i), std::move(payloads));
      drain(i, sink);
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
      drain(i, sink);
      break;
    }
    case StepKind::transfer:
      --left_.transfers;
      own(i / 4).core->transfer(clock(i / 4), id_of(i % 4));
      drain(i / 4, sink);
      break;
    case StepKind::change:
      --left_.changes;
      change(i / 8, i % 8);
      drain(i / 8, sink);
      break;
  }
  check();
}

std::string World::describe(const Step& step) const {
  const auto node = [](std::size_t i) { return std::to_string(i + 1); };
  const std::size_t i = step.argument;
  const auto of_flight = [&](const char* verb) {
    const Flight& flight = flights_[i];
    return std::to_string(flight.to.value()) + verb + story::message_name(*flight.message) +
           " from " + std::to_string(flight.from.value()) + ": " +
           story::message_text(*flight.message);
  };
  switch (step.kind) {
    case StepKind::rates: {
      constexpr std::array<const char*, 3> kNames = {"slow", "true", "fast"};
      return std::string("the clocks of 1, 2, 3 run ") + kNames[i / 9] + ", " + kNames[i / 3 % 3] +
             ", " + kNames[i % 3];
    }
    case StepKind::advance: return "20 ms pass";
    case StepKind::tick: return "the timer of " + node(i) + " falls";
    case StepKind::deliver: return of_flight(" hears ");
    case StepKind::duplicate: return of_flight(" hears, not for the last time, ");
    case StepKind::sync: return "what " + node(i) + " has written is durable";
    case StepKind::restart: return node(i) + " crashes and starts again";
    case StepKind::propose: return "a command for " + node(i);
    case StepKind::read: return "a read at " + node(i) + ", to be confirmed by a quorum";
    case StepKind::transfer: return node(i / 4) + " is told to hand over to " + node(i % 4);
    case StepKind::change:
      if (i % 8 == kAllVote) return node(i / 8) + " is told that all members vote";
      if (i % 8 == kSole) return node(i / 8) + " is told to remove all others";
      return node(i / 8) + " is told to remove " + node(i % 8);
  }
  LEASEHOLD_UNREACHABLE();
}

void World::set_rates(std::uint8_t which, const story::Sink& sink) {
  rates_ = which;
  left_.drift = false;
  const std::array<std::int64_t, kNodes> digits = {which / 9, which / 3 % 3, which % 3};
  for (std::size_t i = 0; i < kNodes; ++i) {
    const std::int64_t ppm = (digits[i] - 1) * left_.drift_percent * kPercent;
    clocks_[i].set_rates(now_, ppm, ppm);
    if (!sink || ppm == 0) continue;
    story::Record changed = record(now_, story::Kind::clock, id_of(i));
    changed.holder_ppm = ppm;
    changed.promise_ppm = ppm;
    sink(changed);
  }
}

void World::change(std::size_t i, std::size_t what) {
  raft::WantedMembers wanted;
  for (const raft::Member& member : at(i).core->membership().members) {
    if (what < kNodes && member.id == id_of(what)) continue;
    if (what == kSole && member.id != id_of(i)) continue;
    const bool votes = what == kAllVote || at(i).core->membership().is_voter(member.id);
    wanted.push_back({member.id, member.uuid, member.address,
                      votes ? raft::Suffrage::voter : raft::Suffrage::learner});
  }
  own(i).core->change_membership(clock(i), wanted);
}

// ---- A node ----

void World::start(std::size_t i, const story::Sink& sink) {
  Node& node = own(i);
  node.unsynced.clear();
  node.held.clear();
  node.log = node.disk_log;
  node.view = {};
  node.options.incarnation = node.options.incarnation.next();
  const auto lost = [i](const Read& read) { return read.node == id_of(i); };
  reads_.erase(std::remove_if(reads_.begin(), reads_.end(), lost), reads_.end());
  if (sink) {
    story::Record started = record(now_, story::Kind::start, id_of(i));
    started.number = node.options.incarnation.value();
    sink(started);
  }
  node.core.emplace(node.options, initial_state(node.disk_hard_state, node.disk_log, left_.voters),
                    clock(i));
  drain(i, sink);
}

void World::hear(const Flight& flight, const story::Sink& sink) {
  const std::size_t i = static_cast<std::size_t>(flight.to.value()) - 1;
  if (sink) {
    sink(story::record_of(now_, story::Kind::delivered, flight.to, flight.from, *flight.message));
  }
  const std::uint64_t from = flight.from.value();
  own(i).core->step(clock(i), {flight.from, raft::Uuid{from, from}}, *flight.message);
  drain(i, sink);
}

void World::send(std::size_t i, NodeId to, raft::Message message, const story::Sink& sink) {
  if (sink) sink(story::record_of(now_, story::Kind::sent, id_of(i), to, message));
  Flight flight;
  flight.from = id_of(i);
  flight.to = to;
  flight.print.add(flight.from.value() * 16 + to.value());
  raft::add_message(message, flight.print);
  flight.message = std::make_shared<const raft::Message>(std::move(message));
  flights_.push_back(std::move(flight));
}

/// own(i) has been called: the node is this world's alone.
void World::drain(std::size_t i, const story::Sink& sink) {
  Node& node = *nodes_[i];
  raft::Ready ready;
  while (node.core->take_ready(ready)) act(i, ready, sink);
}

void World::act(std::size_t i, raft::Ready& ready, const story::Sink& sink) {
  Node& node = *nodes_[i];
  if (sink) {
    for (const raft::Event& event : ready.events) {
      if (const auto told = story::record_of(now_, event)) sink(*told);
    }
  }
  if (ready.lease) node.view = *ready.lease;
  if (ready.persist.truncate_from) {
    node.log.resize(static_cast<std::size_t>(ready.persist.truncate_from->value()) - 1);
  }
  node.log.insert(node.log.end(), ready.persist.entries.begin(), ready.persist.entries.end());
  for (raft::OutgoingMessage& m : ready.messages) send(i, m.to, std::move(m.message), sink);
  for (const raft::AppendIntent& intent : ready.intents) fill(i, intent, sink);
  for (raft::HeldMessage& m : ready.held) node.held.push_back(std::move(m));
  if (ready.commit > Index(0)) committed(i, ready.commit);
  for (const raft::ReadAnswer& answer : ready.reads) {
    const auto found = std::find_if(reads_.begin(), reads_.end(), [&answer](const Read& read) {
      return read.number == answer.read;
    });
    if (found == reads_.end()) continue;
    if (answer.index && *answer.index < found->least) {
      fail("stale read: node " + std::to_string(i + 1) + " answers at index " +
           std::to_string(answer.index->value()) + ", though " +
           std::to_string(found->least.value()) + " was committed before the read arrived");
    }
    reads_.erase(found);
  }
  if (ready.persist.empty()) return;
  node.unsynced.push_back(std::move(ready.persist));
  if (!left_.slow_disk) persist(i, sink);
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
    m.entries.push_back(node.log[static_cast<std::size_t>(k.value()) - 1]);
    bytes += m.entries.back().payload.size();
  }
  send(i, intent.to, std::move(m), sink);
  node.core->filled(clock(i), intent, intent.last, bytes);
}

void World::persist(std::size_t i, const story::Sink& sink) {
  Node& node = *nodes_[i];
  while (!node.unsynced.empty()) {
    const raft::PersistBatch batch = std::move(node.unsynced.front());
    node.unsynced.pop_front();
    if (batch.hard_state) node.disk_hard_state = *batch.hard_state;
    if (batch.truncate_from) {
      node.disk_log.resize(static_cast<std::size_t>(batch.truncate_from->value()) - 1);
    }
    node.disk_log.insert(node.disk_log.end(), batch.entries.begin(), batch.entries.end());
    node.core->persisted(clock(i), batch.id);
    std::vector<raft::HeldMessage> waiting;
    for (raft::HeldMessage& m : node.held) {
      if (m.after <= batch.id) {
        send(i, m.to, std::move(m.message), sink);
      } else {
        waiting.push_back(std::move(m));
      }
    }
    node.held.swap(waiting);
  }
}

// ---- What no state may show ----

void World::fail(const std::string& what) {
  if (violation_.empty()) violation_ = what;
}

void World::committed(std::size_t i, Index index) {
  const raft::Log& log = at(i).core->log();
  for (Index k = log.base().index.next(); k <= index; k = k.next()) {
    const Term term = log.term_at(k).value_or(Term(0));
    if (k > Index(ledger_.size())) {
      ledger_.push_back(term);
    } else if (ledger_[static_cast<std::size_t>(k.value()) - 1] != term) {
      fail("two committed prefixes: entry " + std::to_string(k.value()) + " of term " +
           std::to_string(term.value()) + " at node " + std::to_string(i + 1) +
           ", where another term's was committed");
    }
  }
}

void World::check() {
  std::optional<std::size_t> holder;
  for (std::size_t i = 0; i < kNodes; ++i) {
    const Node& node = at(i);
    const std::string name = "node " + std::to_string(i + 1);
    const std::size_t term = static_cast<std::size_t>(node.core->term().value());
    if (node.core->role() == raft::Role::leader && term < leaders_.size()) {
      if (leaders_[term] == raft::kNobody) leaders_[term] = id_of(i);
      if (leaders_[term] != id_of(i)) {
        fail("two leaders of term " + std::to_string(term) + ": " + name + " and node " +
             std::to_string(leaders_[term].value()));
      }
    }
    if (node.view.end <= clock(i).holder) continue;
    if (holder) fail("two valid leases: node " + std::to_string(*holder + 1) + " and " + name);
    holder = i;
    if (!ledger_.empty() && ledger_.back() > node.view.term) {
      fail("the lease of " + name + " is valid, and term " +
           std::to_string(ledger_.back().value()) + " has committed an entry");
    }
    if (node.view.commit < Index(ledger_.size())) {
      fail("the lease of " + name + " is valid at index " +
           std::to_string(node.view.commit.value()) + ", though " + std::to_string(ledger_.size()) +
           " are committed");
    }
    if (!left_.readers_only) check_promises(i);
  }
}

/// A valid lease stands on a quorum of promises that are live and would survive a crash now.
void World::check_promises(std::size_t holder) {
  const raft::Core& leader = *at(holder).core;
  const auto promised = [this, holder](NodeId id) -> std::optional<int> {
    const auto i = static_cast<std::size_t>(id.value()) - 1;
    if (i == holder) return 1;
    const Node& node = at(i);
    const raft::StoredPromise& stored = node.disk_hard_state.promise;
    const bool kept = node.core->promise().live(clock(i).promise) &&
                      node.core->hard_state().promise.holder == id_of(holder) &&
                      stored.holder == id_of(holder);
    return kept ? std::optional<int>(1) : std::nullopt;
  };
  const raft::Membership& known = leader.log().membership_at(leader.commit_index());
  if (raft::quorum_value<int>(leader.membership(), promised) ||
      raft::quorum_value<int>(known, promised)) {
    return;
  }
  fail("the lease of node " + std::to_string(holder + 1) +
       " is valid, but no quorum of live promises covers it");
}

raft::Fingerprint World::fingerprint() const {
  raft::Fingerprint print;
  print.add(rates_);
  for (const std::uint8_t left : {left_.time, left_.restarts, left_.duplicates, left_.proposals,
                                  left_.reads, left_.transfers, left_.changes}) {
    print.add(left);
  }
  print.add(left_.drift ? 1 : 0);
  for (std::size_t i = 0; i < kNodes; ++i) {
    const Node& node = at(i);
    raft::add_core(*node.core, clock(i), print);
    const raft::Now now = clock(i);
    print.add(node.view.end <= now.holder
                  ? 0
                  : static_cast<std::uint64_t>((node.view.end - now.holder).count()));
    print.add(node.view.term.value());
    print.add(node.options.incarnation.value());
    print.add(node.disk_log.size());
    for (const raft::Entry& entry : node.disk_log) raft::add_entry(entry, print);
    raft::add_hard_state(node.disk_hard_state, print);
    print.add(node.unsynced.size());
    for (const raft::PersistBatch& batch : node.unsynced) {
      print.add(batch.hard_state ? 1 : 0);
      if (batch.hard_state) raft::add_hard_state(*batch.hard_state, print);
      print.add(batch.truncate_from ? batch.truncate_from->value() : 0);
      for (const raft::Entry& entry : batch.entries) raft::add_entry(entry, print);
    }
    print.add(node.held.size());
    for (const raft::HeldMessage& m : node.held) {
      print.add(node.unsynced.empty() || m.after < node.unsynced.front().id
                    ? 0
                    : m.after - node.unsynced.front().id + 1);
      print.add(m.to.value());
      raft::add_message(m.message, print);
    }
  }
  // What is on its way is a set: its order plays no role.
  raft::Fingerprint sum{0, 0};
  for (const Flight& flight : flights_) {
    sum.high += flight.print.high;
    sum.low += flight.print.low;
  }
  print.add(sum.high);
  print.add(sum.low);
  for (const Read& read : reads_) {
    print.add(read.number);
    print.add(read.node.value() * 1000 + read.least.value());
  }
  print.add(ledger_.size());
  for (const Term term : ledger_) print.add(term.value());
  for (const NodeId leader : leaders_) print.add(leader.value());
  return print;
}

}  // namespace leasehold::explore
