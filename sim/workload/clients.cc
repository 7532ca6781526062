#include <leasehold/base/assert.h>
#include <leasehold/sim/workload/clients.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace leasehold::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Some give up early and ask another node.
constexpr Duration kImpatience = std::chrono::milliseconds(500);
constexpr std::uint64_t kProber = 1000;
constexpr std::uint64_t kWatcher = 2000;

}  // namespace

Clients::Clients(World& world, std::vector<SimNode*> nodes, const Ledger& ledger)
    : world_(world),
      nodes_(std::move(nodes)),
      ledger_(ledger),
      random_(random_for(world.plan.seed, 2)) {}

void Clients::start() {
  for (std::uint64_t i = 1; i <= world_.plan.workload.clients; ++i) {
    const Duration delay = draw_duration(random_, Duration{0}, world_.plan.workload.think_max);
    world_.queue.after(delay, [this, i] { next_operation(i); });
  }
}

void Clients::next_operation(std::uint64_t client) {
  SimNode& node = *nodes_[static_cast<std::size_t>(random_.below(nodes_.size()))];
  const bool quiet = world_.quiet_left() > Duration{0};
  const bool read = quiet || random_.below(100) < world_.plan.workload.read_percent;
  const std::uint64_t key = draw_key();
  run(client, node, read ? OperationKind::read : OperationKind::write, key,
      [this, client, &node, read, key](bool done) {
        if (done && !read) watch(node, key);
        think(client);
      });
}

void Clients::think(std::uint64_t client) {
  const Duration pause = draw_duration(random_, Duration{0}, world_.plan.workload.think_max);
  world_.queue.after(pause, [this, client] { next_operation(client); });
}

// A read anywhere after a completed write must not return an older value.
void Clients::watch(const SimNode& written_at, std::uint64_t key) {
  while (watching_ < world_.plan.workload.watchers && random_.chance(2, 3)) {
    ++watching_;
    // After the write in true time, not at the same instant.
    const Duration delay = draw_duration(random_, microseconds(1), microseconds(500));
    world_.queue.after(delay, [this, &written_at, key] {
      run(kWatcher, draw_other(written_at), OperationKind::read, key,
          [this](bool) { --watching_; });
    });
  }
}

SimNode& Clients::draw_other(const SimNode& node) {
  const std::size_t count = nodes_.size();
  const bool deposed = random_.chance(1, 2);
  const std::size_t away = static_cast<std::size_t>(1 + random_.below(count - 1));
  for (SimNode* other : nodes_) {
    if (deposed && other != &node && other->leads()) return *other;
  }
  return *nodes_[(node.id().value() - 1 + away) % count];
}

void Clients::run(std::uint64_t client, SimNode& node, OperationKind kind, std::uint64_t key,
                  std::function<void(bool)> then) {
  const Ticket ticket = attempts_.size();
  Attempt attempt;
  attempt.operation.client = client;
  attempt.operation.key = key;
  attempt.operation.kind = kind;
  if (kind == OperationKind::write) attempt.operation.value = next_value_++;
  attempt.operation.invoked_ns = world_.queue.now().since_origin().count();
  attempt.node = &node;
  attempt.then = std::move(then);
  world_.trace.add(TraceKind::invoked, node.id().value(), client,
                   kind == OperationKind::write ? 1 : 0, attempt.operation.key,
                   attempt.operation.value);
  attempts_.push_back(std::move(attempt));
  // Half of the clients are near the nodes, where intervals are the tightest.
  const bool near = random_.chance(1, 2);
  const Duration way =
      near ? Duration{0} : draw_duration(random_, microseconds(10), milliseconds(2));
  world_.queue.after(way, [this, ticket] { arrive(ticket); });
  const Duration patience = random_.chance(1, 3) ? kImpatience : world_.plan.workload.patience;
  world_.queue.after(patience, [this, ticket] { finish(ticket, Outcome::unknown); });
}

void Clients::arrive(Ticket ticket) {
  Attempt& attempt = attempts_[ticket];
  if (attempt.outcome != Outcome::pending) return;
  if (!attempt.node->up()) {
    // No process listens: it certainly never happened.
    finish(ticket, Outcome::refused);
    return;
  }
  attempt.life = attempt.node->life();
  if (attempt.operation.kind == OperationKind::write) {
    write(ticket);
    return;
  }
  attempt.committed = ledger_.last();
  attempt.applied = attempt.node->view().applied();
  for (const SimNode* node : nodes_) {
    if (!node->up() || node->witness()) continue;
    attempt.shown = std::max(attempt.shown, node->view().applied());
  }
  if (random_.chance(world_.plan.workload.quorum_percent, 100)) {
    read_by_driver(ticket, raft::ReadMode::quorum);
    return;
  }
  const std::uint64_t way = random_.below(8);
  if (way < 5) {
    read_off_thread(ticket);
  } else if (way < 7) {
    read_by_driver(ticket, raft::ReadMode::lease);
  } else {
    read_by_driver(ticket, raft::ReadMode::log);
  }
}

raft::PromiseInstant Clients::draw_deadline(const SimNode& node) {
  const Duration longest =
      world_.healed ? milliseconds(4000) : world_.plan.workload.patience * 2 / 3;
  return node.clock().now().promise + draw_duration(random_, milliseconds(200), longest);
}

// ---- Writes ----

void Clients::write(Ticket ticket) {
  Attempt& attempt = attempts_[ticket];
  replica::Propose propose;
  propose.command = RegisterMachine::encode(
      {RegisterMachine::Kind::set, attempt.operation.key, attempt.operation.value});
  propose.deadline = draw_deadline(*attempt.node);
  propose.done = [this, ticket](const replica::ProposeResult& result) {
    on_proposed(ticket, result);
  };
  attempt.node->post(std::move(propose));
}

void Clients::on_proposed(Ticket ticket, const replica::ProposeResult& result) {
  if (answered_twice(ticket)) return;
  Attempt& attempt = attempts_[ticket];
  if (result.status == replica::ProposeStatus::committed) {
    if (!(result.result == RegisterMachine::encode_number(attempt.operation.value))) {
      world_.fail("wrong_result",
                  "the answer to a write is not its own: " + describe(attempt.operation));
    }
    attempt.counter = &counts_.writes;
    finish(ticket, Outcome::done);
  } else if (result.status == replica::ProposeStatus::dropped) {
    finish(ticket, Outcome::refused);
  } else {
    finish(ticket, Outcome::unknown);
  }
}

// ---- Reads ----

void Clients::read_by_driver(Ticket ticket, raft::ReadMode mode) {
  Attempt& attempt = attempts_[ticket];
  replica::Read read;
  read.mode = mode;
  read.deadline = draw_deadline(*attempt.node);
  read.done = [this, ticket, mode](const replica::ReadResult& result) {
    std::uint64_t* counter = &counts_.reads_log;
    if (mode != raft::ReadMode::log) {
      counter = result.basis == raft::ReadBasis::lease    ? &counts_.reads_lease
                : result.basis == raft::ReadBasis::quorum ? &counts_.reads_quorum
                                                          : &counts_.reads_leader;
    }
    on_read(ticket, result, *counter);
  };
  attempt.node->post(std::move(read));
}

// What a connection's thread does in production. The request has arrived; from here on each step
// may come late.
void Clients::read_off_thread(Ticket ticket) {
  step(ticket, [this, ticket] {
    const Attempt& attempt = attempts_[ticket];
    const raft::LeaseState state = attempt.node->view().load();
    step(ticket, [this, ticket, state] { check_clock(ticket, state); });
  });
}

void Clients::check_clock(Ticket ticket, raft::LeaseState state) {
  Attempt& attempt = attempts_[ticket];
  if (attempt.node->clock().holder_now() >= state.end) {
    read_by_driver(ticket, raft::ReadMode::lease);
    return;
  }
  attempt.counter = &counts_.reads_off_thread;
  // The machine shows its registers in the order of the log.
  attempt.in_order = ticket % 2 == 0;
  const raft::Index index = attempt.in_order ? state.sent_commit : state.commit;
  check_index(attempt, index);
  wait_and_read(ticket, index);
}

void Clients::wait_and_read(Ticket ticket, raft::Index index) {
  Attempt& attempt = attempts_[ticket];
  if (attempt.node->view().applied() >= index) {
    step(ticket, [this, ticket, index] { read_machine(ticket, index); });
    return;
  }
  replica::WaitApplied wait;
  wait.index = index;
  wait.deadline = draw_deadline(*attempt.node);
  wait.done = [this, ticket](const replica::ReadResult& result) {
    on_read(ticket, result, counts_.reads_off_thread);
  };
  attempt.node->post(std::move(wait));
}

void Clients::on_read(Ticket ticket, const replica::ReadResult& result, std::uint64_t& counter) {
  if (answered_twice(ticket)) return;
  if (!result.index) {
    finish(ticket, Outcome::refused);
    return;
  }
  attempts_[ticket].counter = &counter;
  check_index(attempts_[ticket], *result.index);
  step(ticket, [this, ticket, index = *result.index] { read_machine(ticket, index); });
}

// Of any key: what was committed before a read arrived, its index shows. In order: what any node
// showed by then, its index shows, or this node did.
void Clients::check_index(const Attempt& attempt, raft::Index index) {
  if (attempt.in_order) {
    if (std::max(index, attempt.applied) >= attempt.shown) return;
    world_.fail("read_in_order",
                fmt::format("node {} lets a read through at index {}, and another node showed {} "
                            "when it arrived: {}",
                            attempt.node->id().value(), index.value(), attempt.shown.value(),
                            describe(attempt.operation)));
    return;
  }
  if (index >= attempt.committed) return;
  world_.fail("read_index",
              fmt::format("node {} lets a read through at index {}, and {} was committed when it "
                          "arrived: {}",
                          attempt.node->id().value(), index.value(), attempt.committed.value(),
                          describe(attempt.operation)));
}

void Clients::read_machine(Ticket ticket, raft::Index index) {
  Attempt& attempt = attempts_[ticket];
  const RegisterMachine& machine = attempt.node->machine();
  if (machine.applied() < index) {
    world_.fail("read_before_applied",
                fmt::format("node {} lets a read at index {} through, but has applied only {}",
                            attempt.node->id().value(), index.value(), machine.applied().value()));
  }
  attempt.operation.value = machine.value(attempt.operation.key);
  finish(ticket, Outcome::done);
}

// ---- The end of an attempt ----

void Clients::step(Ticket ticket, EventQueue::Action action) {
  const Attempt& attempt = attempts_[ticket];
  SimNode* node = attempt.node;
  const std::uint64_t life = attempt.life;
  const WorkloadPlan& plan = world_.plan.workload;
  const bool pause =
      !world_.healed && plan.reader_pause_ppm > 0 && random_.chance_ppm(plan.reader_pause_ppm);
  if (!pause) {
    node->run_in_process(life, std::move(action));
    return;
  }
  world_.used(FaultClass::reader_pause);
  const Duration length = draw_duration(random_, Duration{0}, plan.reader_pause_max);
  world_.queue.after(length, [node, life, action = std::move(action)]() mutable {
    node->run_in_process(life, std::move(action));
  });
}

bool Clients::answered_twice(Ticket ticket) {
  if (++attempts_[ticket].answers == 1) return false;
  world_.fail("completion",
              "a completion was called twice: " + describe(attempts_[ticket].operation));
  return true;
}

// How a read was justified, in the words of a trace file.
const char* Clients::basis_of(const Attempt& attempt) const {
  if (attempt.counter == &counts_.reads_off_thread) return "off_thread";
  if (attempt.counter == &counts_.reads_lease) return "lease";
  if (attempt.counter == &counts_.reads_quorum) return "quorum";
  if (attempt.counter == &counts_.reads_leader) return "leader";
  return attempt.counter == &counts_.reads_log ? "log" : "";
}

void Clients::finish(Ticket ticket, Outcome outcome) {
  Attempt& attempt = attempts_[ticket];
  if (attempt.outcome != Outcome::pending) return;  // gave up before
  attempt.outcome = outcome;
  Operation& operation = attempt.operation;
  if (outcome == Outcome::done) {
    if (attempt.node->witness()) {
      world_.fail("witness_serves", "a witness has answered: " + describe(operation));
    }
    operation.returned_ns = world_.queue.now().since_origin().count();
    if (operation.client != kProber) ++*attempt.counter;
  }
  if (world_.recorder) {
    world_.recorder->answered(*attempt.node, operation, outcome == Outcome::done,
                              outcome == Outcome::refused, basis_of(attempt));
  }
  world_.trace.add(TraceKind::returned, attempt.node->id().value(), operation.client,
                   static_cast<std::uint64_t>(outcome) - 1, operation.key, operation.value);
  const std::function<void(bool)> then = std::move(attempt.then);
  then(outcome == Outcome::done);
}

void Clients::node_died(const SimNode& node) {
  // Attempts are in the order of their calls, and none lasts longer than the patience.
  const std::int64_t oldest =
      (world_.queue.now() - world_.plan.workload.patience).since_origin().count();
  for (Ticket ticket = attempts_.size(); ticket > 0; --ticket) {
    const Attempt& attempt = attempts_[ticket - 1];
    if (attempt.operation.invoked_ns < oldest) break;
    // One that is still on its way has not arrived in the life that ended.
    if (attempt.node == &node && attempt.life != 0) finish(ticket - 1, Outcome::unknown);
  }
}

std::vector<Operation> Clients::history() const {
  std::vector<Operation> history;
  for (const Attempt& attempt : attempts_) {
    const bool write = attempt.operation.kind == OperationKind::write;
    const bool maybe = attempt.outcome == Outcome::pending || attempt.outcome == Outcome::unknown;
    if (attempt.outcome == Outcome::done || (write && maybe)) history.push_back(attempt.operation);
  }
  return history;
}

std::vector<std::uint64_t> Clients::refused_values() const {
  std::vector<std::uint64_t> values;
  for (const Attempt& attempt : attempts_) {
    const bool write = attempt.operation.kind == OperationKind::write;
    if (write && attempt.outcome == Outcome::refused) values.push_back(attempt.operation.value);
  }
  return values;
}

std::uint64_t Clients::unknown() const {
  std::uint64_t count = 0;
  for (const Attempt& attempt : attempts_) {
    if (attempt.operation.kind == OperationKind::write && attempt.outcome == Outcome::unknown) {
      ++count;
    }
  }
  return count;
}

// ---- Probes ----

void Clients::probe(SimNode& node, std::function<void()> done) {
  probe_again(&node, OperationKind::write, std::move(done));
}

void Clients::probe_again(SimNode* node, OperationKind kind, std::function<void()> done) {
  run(kProber, *node, kind, draw_key(), [this, node, kind, done = std::move(done)](bool completed) {
    if (completed && kind == OperationKind::read) {
      done();
      return;
    }
    const OperationKind next = completed ? OperationKind::read : kind;
    world_.queue.after(milliseconds(50),
                       [this, node, next, done] { probe_again(node, next, done); });
  });
}

}  // namespace leasehold::sim
