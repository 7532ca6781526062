#include <leasehold/base/assert.h>
#include <leasehold/lab/lab.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

namespace leasehold::lab {
namespace {

using sim::TrueInstant;
using std::chrono::microseconds;
using std::chrono::milliseconds;

/// A leap is a clock that runs very fast for this time: a million parts per million are one of it.
constexpr Duration kLeap = milliseconds(1);

/// Good machines and links: what goes wrong is up to the visitor.
sim::Plan plan_of(const Visit& visit) {
  sim::Plan plan;
  plan.seed = visit.seed;
  plan.nodes.resize(static_cast<std::size_t>(visit.all()));
  plan.founders = static_cast<std::size_t>(visit.nodes);
  for (sim::NodePlan& node : plan.nodes) {
    node.timing = visit.timing;
    node.apply_min = microseconds(1);
    node.apply_max = microseconds(50);
    node.sync_max = milliseconds(2);
  }
  plan.settings.agreed = true;
  plan.settings.first = {visit.timing, true};
  plan.link.delay_min = visit.delay * 3 / 5;
  plan.link.delay_max = visit.delay * 7 / 5;
  plan.disk.sync_min = microseconds(200);
  plan.disk.sync_max = milliseconds(2);
  plan.drift_ppm_max = visit.timing.max_clock_drift_ppm;
  if (visit.groups > 1) {
    plan.beats.shared = true;
    plan.beats.side_groups = visit.groups - 1;
    plan.beats.side_steady = true;
  }
  // The visitor may break what the settings rely upon, and sees what comes of it.
  plan.drift_unbounded = true;
  return plan;
}

sim::SimOptions options_for(std::vector<story::Record>& records) {
  sim::SimOptions options;
  options.trace_tail = 0;
  // A message of a group has its number from its sending on.
  options.record = [&records, sent = std::map<raft::NodeId, std::uint64_t>()](
                       const story::Record& record) mutable {
    records.push_back(record);
    const bool beat = record.what.starts_with("beat");
    if (record.kind == story::Kind::sent && !beat) records.back().number = ++sent[record.node];
  };
  return options;
}

std::vector<sim::SimNode*> pointers_to(const std::vector<std::unique_ptr<sim::SimNode>>& nodes) {
  std::vector<sim::SimNode*> all;
  all.reserve(nodes.size());
  for (const std::unique_ptr<sim::SimNode>& node : nodes) all.push_back(node.get());
  return all;
}

/// What the step asks for, as seen by a node that knows of `newest`. What is wrong with it, the
/// core says.
raft::WantedMembers wanted_by(const Step& step, const raft::Membership& newest) {
  raft::WantedMembers wanted;
  for (const raft::Member& member : newest.members) {
    const bool votes = std::binary_search(newest.voters.begin(), newest.voters.end(), member.id) ||
                       (member.id == step.node && step.verb == Verb::promote);
    if (member.id == step.node && step.verb == Verb::remove) continue;
    wanted.push_back({member.id, member.uuid, member.address,
                      votes ? raft::Suffrage::voter : raft::Suffrage::learner});
  }
  if (newest.find(step.node) != nullptr || step.verb == Verb::remove) return wanted;
  wanted.push_back({step.node, sim::uuid_of(step.node), fmt::format("node-{}:1", step.node.value()),
                    step.verb == Verb::promote ? raft::Suffrage::voter : raft::Suffrage::learner});
  return wanted;
}

std::string group_text(const raft::Membership& group) {
  std::vector<std::uint64_t> voters;
  std::vector<std::uint64_t> outgoing;
  std::vector<std::uint64_t> learners;
  for (const raft::NodeId id : group.voters) voters.push_back(id.value());
  for (const raft::NodeId id : group.outgoing_voters) outgoing.push_back(id.value());
  for (const raft::Member& member : group.members) {
    if (!group.is_voter(member.id)) learners.push_back(member.id.value());
  }
  std::string text = fmt::format("voters {}", fmt::join(voters, ","));
  if (!outgoing.empty()) text += fmt::format(" outgoing {}", fmt::join(outgoing, ","));
  if (!learners.empty()) text += fmt::format(" learners {}", fmt::join(learners, ","));
  return text;
}

}  // namespace

Lab::Lab(const Visit& visit)
    : visit_(visit),
      world_(plan_of(visit), options_for(records_)),
      oracles_(world_),
      network_(world_),
      durable_(visit.all()),
      rates_(visit.all()),
      group_(sim::founding_membership(world_.plan)) {
  for (std::uint64_t i = 1; i <= visit.all(); ++i) {
    nodes_.push_back(std::make_unique<sim::SimNode>(world_, oracles_, network_, raft::NodeId(i)));
  }
  all_ = pointers_to(nodes_);
  first_ = places_of(all_, sim::kFirstGroup);
  oracles_.watch(all_);
  world_.recorder->watch(visit.seed, all_);
  network_.keep_flights();
  network_.set_deliver([this](raft::NodeId to, const raft::Peer& from, wire::PeerMessage& message) {
    at(to).receive(from, message);
  });
  for (std::uint64_t group = 1; group <= visit.groups; ++group) {
    clients_.push_back(std::make_unique<Clients>(world_, places_of(all_, raft::GroupId(group)),
                                                 world_.options.record));
  }
  for (sim::SimNode* node : all_) {
    node->set_on_death([this, node](bool machine) {
      for (const auto& clients : clients_) clients->node_died(*node);
      if (visit_.known_deaths != 0 && !machine) tell_end(*node);
    });
    node->set_rates(0, 0);
    node->start();
  }
  clients_.front()->start(visit.reads, visit.writes);
}

Lab::~Lab() = default;

std::vector<story::Record> Lab::take_records() {
  return std::exchange(records_, {});
}

void Lab::mark(const char* what, raft::NodeId node, raft::Index index, std::string text) {
  story::Record record;
  record.at = now();
  record.kind = story::Kind::mark;
  record.node = node;
  record.index = index;
  record.what = what;
  record.text = std::move(text);
  records_.push_back(std::move(record));
}

// ---- Time ----

// Between two steps of one instant everything that is due happens: so it does not matter whether a
// step was known from the start or came when its instant had been run.
void Lab::run(Duration end) {
  LEASEHOLD_ASSERT(end >= now());
  while (next_step_ < visit_.steps.size() && visit_.steps[next_step_].at <= end) {
    const Step step = visit_.steps[next_step_++];
    run_queue(step.at);
    carry_out(step);
    run_queue(step.at);
  }
  run_queue(end);
}

Result<void> Lab::add(const Step& step) {
  if (step.at < now() || (!visit_.steps.empty() && step.at < visit_.steps.back().at)) {
    return Error{ErrorCode::invalid_argument, "a step in the past: replay the visit without it"};
  }
  if (visit_.steps.size() == Visit::kStepsMax) {
    return Error{ErrorCode::overloaded,
                 fmt::format("a visit has at most {} steps", Visit::kStepsMax)};
  }
  if (step.at == now() && is_about_message(step.verb)) {
    if (const auto flight = flight_of(step); !flight) return flight.error();
  }
  visit_.steps.push_back(step);
  if (step.at == now()) run(step.at);
  return {};
}

void Lab::run_queue(Duration end) {
  while (!world_.failed() && world_.queue.run_next(TrueInstant(end))) after_step();
  if (!world_.failed()) return;
  // Only the time goes on.
  const std::size_t told = records_.size();
  while (world_.queue.run_next(TrueInstant(end))) {
  }
  records_.resize(told);
}

void Lab::after_step() {
  oracles_.after_step();
  for (const std::unique_ptr<sim::SimNode>& node : nodes_) {
    raft::Index& known = durable_[node->id().value() - 1];
    if (!node->up()) {
      known = raft::Index();
      continue;
    }
    const raft::Index durable = node->running().durable_index();
    if (std::exchange(known, durable) < durable) mark("durable", node->id(), durable, "");
  }
  tell_group();
  if (world_.failed()) tell_finding();
}

void Lab::tell_group() {
  const Place* place = newest_leader(first_);
  if (place == nullptr) return;
  const sim::SimNode* leader = &place->node();
  const raft::Index index = leader->running().present_core()->log().membership_index();
  const std::pair<raft::Term, raft::Index> group_at(leader->running().term(), index);
  if (group_at == std::exchange(group_at_, group_at)) return;
  const raft::Membership& group = leader->running().membership();
  if (group == group_) return;
  group_ = group;
  mark("group", leader->id(), index, group_text(group));
}

void Lab::tell_finding() {
  const sim::Violation& found = *world_.violation;
  if (told_.insert(found.oracle).second) {
    mark("violation", raft::kNobody, raft::Index(), found.story);
    records_.back().why = found.oracle;
    if (violation_.empty()) violation_ = fmt::format("{}: {}", found.oracle, found.story);
  }
  if (sim::is_lease_oracle(found.oracle) || found.oracle == kStaleRead) world_.violation.reset();
}

// ---- Steps ----

void Lab::carry_out(const Step& step) {
  if (world_.failed()) return;
  if (!act(step)) mark("unused", step.node, raft::Index(), verb_name(step.verb));
  after_step();
}

bool Lab::act(const Step& step) {
  sim::SimNode& node = at(step.node);
  switch (step.verb) {
    case Verb::cut: {
      const bool there = set_link(step.node, step.peer, false);
      return set_link(step.peer, step.node, false) || there;
    }
    case Verb::one_way: return set_link(step.node, step.peer, false);
    case Verb::join: {
      const bool there = set_link(step.node, step.peer, true);
      return set_link(step.peer, step.node, true) || there;
    }
    case Verb::alone: return set_links(step.node, false);
    case Verb::reunite: return set_links(step.node, true);
    case Verb::drift:
      rates_[step.node.value() - 1] = step.amount;
      node.set_rates(step.amount, step.amount);
      return true;
    case Verb::jump: leap(node, step.amount); return true;
    case Verb::write: clients_of(step.group).write(step.node); return true;
    case Verb::read: clients_of(step.group).read(step.node, step.mode); return true;
    case Verb::add:
    case Verb::promote:
    case Verb::remove: change_members(step); return true;
    case Verb::drop:
    case Verb::delay:
    case Verb::twice: act_on_message(step); return true;
    case Verb::restart:
      if (node.up() || node.suspended()) return false;
      node.start();
      return true;
    default: return node.up() && act_on_process(step, node);
  }
}

bool Lab::act_on_process(const Step& step, sim::SimNode& node) {
  const Duration length = milliseconds(step.amount);
  switch (step.verb) {
    case Verb::kill: node.crash(false); return true;
    case Verb::power: lose_power(node); return true;
    case Verb::pause: node.pause(length, false); return true;
    case Verb::resume: node.wake(); return true;
    case Verb::suspend:
      if (node.suspended()) return false;
      node.suspend(length);
      return true;
    case Verb::slow: node.disk().stall_next(length); return true;
    case Verb::transfer: return transfer(step);
    default: LEASEHOLD_UNREACHABLE();
  }
}

void Lab::leap(sim::SimNode& node, std::int64_t length_ms) {
  const std::int64_t rate = length_ms * 1'000'000;
  const std::size_t place = node.id().value() - 1;
  node.set_rates(rates_[place] + rate, rates_[place] + rate);
  world_.queue.after(kLeap, [this, &node, place] { node.set_rates(rates_[place], rates_[place]); });
}

void Lab::lose_power(sim::SimNode& node) {
  world_.plan.disk.loses_unsynced = true;
  node.crash(true);
  world_.plan.disk.loses_unsynced = false;
}

bool Lab::transfer(const Step& step) {
  const Place place(at(step.node), step.group);
  if (!place.leads()) return false;
  replica::TransferLeadership event;
  event.to = step.peer;
  event.deadline = place.node().clock().now().promise + std::chrono::seconds(3);
  event.done = [](const replica::TransferResult&) {};
  place.post(std::move(event));
  return true;
}

void Lab::change_members(const Step& step) {
  const Place* leader = newest_leader(first_);
  sim::SimNode* asked = leader == nullptr ? nullptr : &leader->node();
  if (step.peer != raft::kNobody) asked = &at(step.peer);
  const std::string what = fmt::format("{} {}", verb_name(step.verb), step.node.value());
  if (asked == nullptr) {
    return mark("refused", step.node, raft::Index(), what + ": nobody leads; ask again");
  }
  if (!asked->up()) {
    return mark("refused", step.node, raft::Index(),
                fmt::format("{}: no process runs at node {}", what, asked->id().value()));
  }
  replica::ChangeMembers event;
  event.wanted = wanted_by(step, asked->running().membership());
  event.deadline = asked->clock().now().promise + std::chrono::seconds(10);
  event.done = [this, step, id = asked->id()](const replica::ChangeResult& result) {
    on_changed(step, id, result);
  };
  asked->post(std::move(event));
}

void Lab::on_changed(const Step& step, raft::NodeId asked, const replica::ChangeResult& result) {
  const bool unknown = result.status == replica::GroupCallStatus::unknown;
  if (!unknown && !result.refused) return;
  const std::string why =
      unknown ? "begun, and not seen to end: the leader lost its place, or the time was over"
              : raft::text_of(*result.refused);
  mark(unknown ? "unknown" : "refused", step.node, raft::Index(),
       fmt::format("{} {}: {}", verb_name(step.verb), step.node.value(), why));
  records_.back().peer = asked;
}

/// The ended process is dead by now, whatever of it is still under way.
void Lab::tell_end(const sim::SimNode& ended) {
  for (const std::unique_ptr<sim::SimNode>& other : nodes_) {
    if (other->id() == ended.id() || network_.blocked(ended.id(), other->id())) continue;
    world_.queue.after(visit_.delay, [this, peer = ended.peer(), to = other.get()] {
      if (!to->up()) return;
      story::Record record;
      record.at = now();
      record.kind = story::Kind::notice;
      record.node = to->id();
      record.peer = peer.id;
      record.number = peer.process.incarnation.value();
      records_.push_back(std::move(record));
      to->post(replica::PeerEnded{peer});
    });
  }
}

/// What is under way on a link that is cut is lost.
bool Lab::set_link(raft::NodeId from, raft::NodeId to, bool whole) {
  if (network_.blocked(from, to) != whole) return false;
  if (whole) {
    network_.unblock(from, to);
  } else {
    network_.block(from, to, 100);
  }
  return true;
}

bool Lab::set_links(raft::NodeId node, bool whole) {
  bool any = false;
  for (const std::unique_ptr<sim::SimNode>& other : nodes_) {
    if (other->id() == node) continue;
    any = set_link(node, other->id(), whole) || any;
    any = set_link(other->id(), node, whole) || any;
  }
  return any;
}

}  // namespace leasehold::lab
