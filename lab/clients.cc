#include <leasehold/lab/clients.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace leasehold::lab {
namespace {

using sim::Duration;
using sim::RegisterMachine;
using story::Kind;
using story::Record;

/// On the clock of the node that was asked.
constexpr Duration kPatience = std::chrono::seconds(3);
/// The one register.
constexpr std::uint64_t kKey = 1;
constexpr std::uint64_t kClient = 1;

const char* mode_name(raft::ReadMode mode) {
  if (mode == raft::ReadMode::log) return "log";
  return mode == raft::ReadMode::lease ? "lease" : "quorum";
}

const char* basis_name(raft::ReadBasis basis) {
  if (basis == raft::ReadBasis::lease) return "lease";
  return basis == raft::ReadBasis::quorum ? "quorum" : "leader";
}

}  // namespace

sim::SimNode* newest_leader(const std::vector<sim::SimNode*>& nodes) {
  sim::SimNode* newest = nullptr;
  for (sim::SimNode* node : nodes) {
    if (!node->leads()) continue;
    if (newest == nullptr || node->running().term() > newest->running().term()) newest = node;
  }
  return newest;
}

Clients::Clients(sim::World& world, std::vector<sim::SimNode*> nodes, const sim::Ledger& ledger,
                 story::Sink sink)
    : world_(world), nodes_(std::move(nodes)), ledger_(ledger), sink_(std::move(sink)) {}

// ---- The steady load ----

void Clients::start(Duration reads, Duration writes) {
  if (reads > Duration{0}) {
    world_.queue.after(reads, [this, reads] { read_at_leaders(reads); });
  }
  if (writes > Duration{0}) {
    world_.queue.after(writes, [this, writes] { write_at_leader(writes); });
  }
}

void Clients::read_at_leaders(Duration period) {
  for (sim::SimNode* node : nodes_) {
    if (node->leads()) read(*node, raft::ReadMode::lease);
  }
  world_.queue.after(period, [this, period] { read_at_leaders(period); });
}

void Clients::write_at_leader(Duration period) {
  if (sim::SimNode* leader = newest_leader(nodes_); leader != nullptr) write(*leader);
  world_.queue.after(period, [this, period] { write_at_leader(period); });
}

// ---- Operations ----

Record Clients::record(const Operation& operation, Kind kind, Ticket ticket) const {
  Record record;
  record.at = world_.queue.now().since_origin();
  record.kind = kind;
  record.node = operation.node->id();
  record.number = ticket + 1;
  return record;
}

Clients::Ticket Clients::begin(sim::SimNode& node, bool writes, raft::ReadMode mode) {
  const Ticket ticket = operations_.size();
  Operation operation;
  operation.node = &node;
  operation.asked = world_.queue.now().since_origin();
  operation.life = node.life();
  operation.writes = writes;
  operation.mode = mode;
  if (writes) operation.value = ++last_value_;
  operation.answered = answered_;
  world_.trace.add(sim::TraceKind::invoked, node.id().value(), kClient, writes ? 1 : 0, kKey,
                   operation.value);
  Record told = record(operation, writes ? Kind::write : Kind::asked, ticket);
  told.what = writes ? "asked" : mode_name(mode);
  if (writes) told.text = fmt::format("x = {}", operation.value);
  sink_(told);
  operations_.push_back(operation);
  return ticket;
}

void Clients::write(sim::SimNode& node) {
  const Ticket ticket = begin(node, true, raft::ReadMode::lease);
  if (!node.up()) return end(ticket, "refused");
  replica::Propose propose;
  propose.command =
      RegisterMachine::encode({RegisterMachine::Kind::set, kKey, operations_[ticket].value});
  propose.deadline = node.clock().now().promise + kPatience;
  propose.done = [this, ticket](const replica::ProposeResult& result) {
    operations_[ticket].index = result.id.index;
    if (result.status == replica::ProposeStatus::committed) return end(ticket, "");
    end(ticket, result.status == replica::ProposeStatus::dropped ? "refused" : "unknown");
  };
  node.post(std::move(propose));
}

void Clients::read(sim::SimNode& node, raft::ReadMode mode) {
  const Ticket ticket = begin(node, false, mode);
  if (!node.up()) return end(ticket, "refused");
  // On a thread of the process, which may stand still.
  node.run_in_process(node.life(), [this, ticket] {
    const bool by_lease = operations_[ticket].mode == raft::ReadMode::lease;
    if (!by_lease || !read_off_thread(ticket)) read_by_driver(ticket);
  });
}

/// False: there is no valid lease.
bool Clients::read_off_thread(Ticket ticket) {
  Operation& operation = operations_[ticket];
  const auto index = operation.node->view().readable_index(operation.node->clock());
  if (!index) return false;
  operation.basis = "off_thread";
  operation.index = *index;
  if (operation.node->view().applied() >= *index) {
    serve(ticket);
  } else {
    wait_applied(ticket, *index);
  }
  return true;
}

void Clients::wait_applied(Ticket ticket, raft::Index index) {
  replica::WaitApplied wait;
  wait.index = index;
  wait.deadline = operations_[ticket].node->clock().now().promise + kPatience;
  wait.done = [this, ticket](const replica::ReadResult& result) {
    if (!result.index) return end(ticket, "refused");
    serve(ticket);
  };
  operations_[ticket].node->post(std::move(wait));
}

void Clients::read_by_driver(Ticket ticket) {
  const Operation& operation = operations_[ticket];
  replica::Read read;
  read.mode = operation.mode;
  read.deadline = operation.node->clock().now().promise + kPatience;
  read.done = [this, ticket](const replica::ReadResult& result) { on_read(ticket, result); };
  operation.node->post(std::move(read));
}

void Clients::on_read(Ticket ticket, const replica::ReadResult& result) {
  Operation& operation = operations_[ticket];
  if (!result.index) return end(ticket, "refused");
  const bool log = operation.mode == raft::ReadMode::log;
  operation.basis = log ? "log" : basis_name(result.basis);
  operation.index = *result.index;
  serve(ticket);
}

void Clients::serve(Ticket ticket) {
  const Operation& operation = operations_[ticket];
  end(ticket, "", operation.node->machine().value(kKey));
}

void Clients::end(Ticket ticket, const char* failure, std::uint64_t value) {
  Operation& operation = operations_[ticket];
  if (std::exchange(operation.ended, true)) return;
  const std::string failed = failure;
  const std::uint64_t outcome = failed.empty() ? 0 : failed == "refused" ? 1 : 2;
  world_.trace.add(sim::TraceKind::returned, operation.node->id().value(), kClient, outcome, kKey,
                   value);
  Record told = record(operation, operation.writes ? Kind::write : Kind::read, ticket);
  told.from = operation.asked;
  told.index = operation.index;
  if (operation.writes) {
    told.what = failed.empty() ? "done" : failed;
    told.text = fmt::format("x = {}", operation.value);
    if (failed.empty()) answered_ = std::max(answered_, operation.index);
    return sink_(told);
  }
  told.what = operation.basis;
  told.why = failed;
  if (failed.empty()) told.text = fmt::format("x = {}", value);
  const bool stale = failed.empty() && operation.node->machine().applied() < operation.answered;
  if (stale) told.why = "stale";
  sink_(told);
  if (!stale) return;
  world_.fail(kStaleRead,
              fmt::format("node {} returned x = {}, and a newer write had been answered before the "
                          "read began",
                          operation.node->id().value(), value));
}

void Clients::node_died(const sim::SimNode& node) {
  for (Ticket ticket = 0; ticket < operations_.size(); ++ticket) {
    const Operation& operation = operations_[ticket];
    if (operation.node == &node && !operation.ended) {
      end(ticket, operation.writes ? "unknown" : "refused");
    }
  }
}

}  // namespace leasehold::lab
