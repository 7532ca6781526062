#include <leasehold/sim/workload/session_clients.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

namespace leasehold::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Verdict = replica::SessionTable::Verdict;
using Kind = RegisterMachine::Kind;

/// In traces.
constexpr std::uint64_t kFirstClient = 3001;
/// Some ask another node while the first may yet answer.
constexpr Duration kPatienceMin = milliseconds(300);
constexpr Duration kPatienceMax = std::chrono::seconds(6);

}  // namespace

SessionClients::SessionClients(World& world, std::vector<SimNode*> nodes, Oracles& oracles,
                               std::function<void(const SimNode&, std::uint64_t)> on_written)
    : world_(world),
      nodes_(std::move(nodes)),
      oracles_(oracles),
      on_written_(std::move(on_written)),
      random_(random_for(world.plan.seed, 14)),
      clients_(static_cast<std::size_t>(world.plan.sessions.clients)) {}

void SessionClients::start() {
  for (std::size_t client = 0; client < clients_.size(); ++client) turn_later(client);
}

// ---- What a client does next ----

void SessionClients::turn_later(std::size_t client) {
  const SessionPlan& plan = world_.plan.sessions;
  // Each write asks for a turn when it begins and when it ends: in hours they would pile up.
  if (world_.options.long_life && clients_[client].turn_waits) return;
  clients_[client].turn_waits = true;
  Duration pause = draw_duration(random_, Duration{0}, plan.think_max);
  // Now and then it is long enough for the session to be gone.
  const bool sleeps = clients_[client].outstanding.empty() && random_.chance(1, 16);
  const Duration longest = std::min(2 * plan.idle_max, Duration(std::chrono::seconds(6)));
  if (sleeps) pause += draw_duration(random_, Duration{0}, longest);
  world_.queue.after(pause, [this, client] { turn(client); });
}

void SessionClients::turn(std::size_t client) {
  Client& of = clients_[client];
  of.turn_waits = false;
  if (world_.healed || of.opening) return;
  if (const Duration quiet = world_.all_quiet_left(); quiet > Duration{0}) {
    of.turn_waits = true;
    return world_.queue.after(quiet, [this, client] { turn(client); });
  }
  if (of.session == replica::SessionId(0)) {
    open(client);
    return;
  }
  if (!may_begin(of)) return;
  begin_write(client);
  // Further ones begin while this one is under way, as many as may be.
  if (may_begin(of)) turn_later(client);
}

/// The oldest may wait long: the others must not get too far ahead of it.
bool SessionClients::may_begin(const Client& client) const {
  return client.outstanding.size() < world_.plan.sessions.outstanding_max &&
         client.last_sequence + 1 - answered_below(client) < replica::kSessionWindow;
}

void SessionClients::open(std::size_t client) {
  clients_[client].opening = true;
  Attempt attempt;
  attempt.client = client;
  attempt.node = &draw_node(0);
  RegisterMachine::Command command;
  command.kind = Kind::open;
  command.value = ++last_value_;
  launch(attempt, RegisterMachine::encode(command));
}

void SessionClients::begin_write(std::size_t client) {
  Client& of = clients_[client];
  const Ticket ticket = writes_.size();
  Write write;
  write.client = client;
  write.session = of.session;
  write.sequence = ++of.last_sequence;
  write.operation.client = kFirstClient + client;
  write.operation.kind = check::OperationKind::write;
  write.operation.key = random_.below(world_.plan.workload.keys);
  write.operation.value = ++last_value_;
  write.operation.invoked_ns = world_.queue.now().since_origin().count();
  of.outstanding.push_back(ticket);
  writes_.push_back(write);
  send(ticket);
}

/// Another node than the last one. Once the faults have ended, in turn: some are no members.
SimNode& SessionClients::draw_node(std::uint64_t last) {
  const std::uint64_t count = nodes_.size();
  if (last == 0) return *nodes_[static_cast<std::size_t>(random_.below(count))];
  const std::uint64_t further = world_.healed ? 1 : 1 + random_.below(count - 1);
  return *nodes_[static_cast<std::size_t>((last - 1 + further) % count)];
}

std::uint64_t SessionClients::answered_below(const Client& client) const {
  if (client.outstanding.empty()) return client.last_sequence + 1;
  return writes_[client.outstanding.front()].sequence;
}

// ---- Sends ----

void SessionClients::send(Ticket ticket) {
  // Repeating at once would only add to the overload.
  const bool twice = random_.chance(world_.plan.sessions.double_percent, 100);
  const std::uint64_t copies = twice && writes_[ticket].sends < 4 ? 2 : 1;
  for (std::uint64_t i = 0; i < copies; ++i) {
    Write& write = writes_[ticket];
    if (write.outcome != Outcome::pending) return;
    SimNode& node = draw_node(write.last_node);
    write.last_node = node.id().value();
    if (write.sends++ > 0) ++counts_.repetitions;
    ++write.waits_for;
    world_.trace.add(TraceKind::invoked, node.id().value(), write.operation.client, 1,
                     write.operation.key, write.operation.value);
    Attempt attempt;
    attempt.client = write.client;
    attempt.write = ticket;
    attempt.node = &node;
    RegisterMachine::Command command;
    command.kind = Kind::once;
    command.key = write.operation.key;
    command.value = write.operation.value;
    command.session = write.session;
    command.sequence = write.sequence;
    command.answered_below = answered_below(clients_[write.client]);
    launch(attempt, RegisterMachine::encode(command));
  }
}

void SessionClients::launch(Attempt attempt, Bytes command) {
  const Ticket ticket = attempts_.size();
  attempt.launched = world_.queue.now();
  attempts_.push_back(attempt);
  const bool near = random_.chance(1, 2);
  const Duration way =
      near ? Duration{0} : draw_duration(random_, microseconds(10), milliseconds(2));
  world_.queue.after(way,
                     [this, ticket, command = std::move(command)] { arrive(ticket, command); });
  // Some ask another node while the first may yet answer; after many sends, hardly any do.
  const std::uint64_t sends = attempt.write ? writes_[*attempt.write].sends : 4;
  const Duration shortest = std::min(kPatienceMax, static_cast<int>(sends) * kPatienceMin);
  const Duration longest = random_.chance(1, 2) ? Duration(milliseconds(2000)) : kPatienceMax;
  const Duration patience = world_.healed
                                ? Duration(milliseconds(1200))
                                : draw_duration(random_, shortest, std::max(shortest, longest));
  world_.queue.after(patience, [this, ticket] { end(ticket, false); });
}

void SessionClients::arrive(Ticket ticket, const Bytes& command) {
  Attempt& attempt = attempts_[ticket];
  if (attempt.ended) return;
  if (!attempt.node->up()) {
    end(ticket, true);
    return;
  }
  attempt.life = attempt.node->life();
  const Duration longest = world_.healed ? Duration(milliseconds(1000)) : kPatienceMax;
  replica::Propose propose;
  propose.command = command;
  propose.repeatable = attempt.write.has_value();
  propose.deadline =
      attempt.node->clock().now().promise + draw_duration(random_, milliseconds(200), longest);
  propose.done = [this, ticket](const replica::ProposeResult& result) {
    on_result(ticket, result);
  };
  attempt.node->post(std::move(propose));
}

void SessionClients::node_died(const SimNode& node) {
  const TrueInstant now = world_.queue.now();
  for (Ticket ticket = attempts_.size(); ticket > 0; --ticket) {
    const Attempt& attempt = attempts_[ticket - 1];
    if (now - attempt.launched > kPatienceMax) break;
    // One that is still on its way has not arrived in the life that ended.
    if (attempt.node == &node && attempt.life != 0) end(ticket - 1, false);
  }
}

// ---- Answers ----

void SessionClients::on_result(Ticket ticket, const replica::ProposeResult& result) {
  Attempt& attempt = attempts_[ticket];
  if (std::exchange(attempt.answered, true)) {
    world_.fail("completion", fmt::format("a completion was called twice: client {}",
                                          kFirstClient + attempt.client));
    return;
  }
  if (result.status != replica::ProposeStatus::committed) {
    end(ticket, result.status == replica::ProposeStatus::dropped);
    return;
  }
  if (!attempt.write) {
    on_opened(ticket, result);
    return;
  }
  const auto answer = RegisterMachine::decode_answer(result.result.view());
  if (!answer) {
    world_.fail("wrong_result", "the answer to a write in a session is none");
    return;
  }
  on_answer(ticket, *answer);
}

void SessionClients::on_opened(Ticket ticket, const replica::ProposeResult& result) {
  Attempt& attempt = attempts_[ticket];
  // A client that does not listen any more has opened a session that no client knows.
  if (attempt.ended) return;
  attempt.ended = true;
  Client& client = clients_[attempt.client];
  client.opening = false;
  client.session =
      replica::SessionId(RegisterMachine::decode_number(result.result.view()).value_or(0));
  client.last_sequence = 0;
  if (client.session != replica::SessionId(0)) ++counts_.opened;
  turn_later(attempt.client);
}

// The answer is judged even if the client does not listen any more.
void SessionClients::on_answer(Ticket ticket, const RegisterMachine::Answer& answer) {
  Attempt& attempt = attempts_[ticket];
  const Write write = writes_[*attempt.write];
  const std::string what = describe(write.operation);
  switch (answer.verdict) {
    case Verdict::execute:
    case Verdict::repeated:
      if (answer.value != write.operation.value) {
        world_.fail("wrong_result", "the answer to a write is not its own: " + what);
      }
      oracles_.sessions().check_executed(write.operation.value, answer.executed_at);
      break;
    case Verdict::answered:
      // A repetition that came late.
      if (write.outcome == Outcome::pending) {
        world_.fail("session_answer",
                    "a reply says that the client has the answer already: " + what);
      }
      break;
    case Verdict::no_session: oracles_.sessions().check_no_session(write.session); break;
    case Verdict::result_gone:
    case Verdict::too_far_ahead:
      world_.fail(
          "session_answer",
          "a reply says that the result was not kept, or that the client is too far ahead: " +
              what);
      break;
  }
  if (attempt.ended) return;
  attempt.ended = true;
  --writes_[*attempt.write].waits_for;
  if (write.outcome != Outcome::pending) return;
  if (answer.verdict == Verdict::no_session) {
    session_is_gone(attempt.client);
  } else {
    complete(*attempt.write, *attempt.node, answer.verdict == Verdict::repeated);
  }
}

void SessionClients::complete(Ticket ticket, const SimNode& node, bool repeated) {
  Write& write = writes_[ticket];
  write.operation.returned_ns = world_.queue.now().since_origin().count();
  ++counts_.writes;
  if (repeated) ++counts_.repeated;
  const std::uint64_t key = write.operation.key;
  const std::size_t client = write.client;
  close(ticket, node, Outcome::done);
  on_written_(node, key);
  turn_later(client);
}

void SessionClients::session_is_gone(std::size_t client) {
  Client& of = clients_[client];
  while (!of.outstanding.empty()) {
    const Ticket ticket = of.outstanding.back();
    ++counts_.given_up;
    close(ticket, *nodes_[static_cast<std::size_t>(writes_[ticket].last_node - 1)],
          Outcome::unknown);
  }
  of.session = replica::SessionId(0);
  turn_later(client);
}

void SessionClients::close(Ticket ticket, const SimNode& node, Outcome outcome) {
  Write& write = writes_[ticket];
  write.outcome = outcome;
  std::vector<Ticket>& outstanding = clients_[write.client].outstanding;
  outstanding.erase(std::find(outstanding.begin(), outstanding.end(), ticket));
  const Operation& operation = write.operation;
  if (world_.recorder) {
    world_.recorder->answered(node, operation, outcome == Outcome::done,
                              outcome == Outcome::refused, "");
  }
  world_.trace.add(TraceKind::returned, node.id().value(), operation.client,
                   static_cast<std::uint64_t>(outcome) - 1, operation.key, operation.value);
}

void SessionClients::end(Ticket ticket, bool dropped) {
  Attempt& attempt = attempts_[ticket];
  if (attempt.ended) return;
  attempt.ended = true;
  if (!attempt.write) {
    clients_[attempt.client].opening = false;
    turn_later(attempt.client);
    return;
  }
  Write& write = writes_[*attempt.write];
  --write.waits_for;
  if (write.outcome != Outcome::pending) return;
  if (dropped && write.sends == 1 && !world_.healed && random_.chance(1, 8)) {
    const std::size_t client = write.client;
    close(*attempt.write, *attempt.node, Outcome::refused);
    turn_later(client);
    return;
  }
  if (write.waits_for == 0) repeat(*attempt.write);
}

void SessionClients::repeat(Ticket ticket) {
  if (std::exchange(writes_[ticket].repeats, true)) return;
  const Duration longest = world_.healed ? milliseconds(50) : milliseconds(400);
  world_.queue.after(draw_duration(random_, Duration{0}, longest), [this, ticket] {
    writes_[ticket].repeats = false;
    if (writes_[ticket].outcome == Outcome::pending) send(ticket);
  });
}

// ---- For the verdict ----

std::size_t SessionClients::unanswered() const {
  std::size_t count = 0;
  for (const Client& client : clients_) count += client.outstanding.size();
  return count;
}

std::vector<check::Operation> SessionClients::history() const {
  std::vector<check::Operation> history;
  for (const Write& write : writes_) {
    if (write.outcome != Outcome::refused) history.push_back(write.operation);
  }
  return history;
}

std::vector<std::uint64_t> SessionClients::refused_values() const {
  std::vector<std::uint64_t> values;
  for (const Write& write : writes_) {
    if (write.outcome == Outcome::refused) values.push_back(write.operation.value);
  }
  return values;
}

}  // namespace leasehold::sim
