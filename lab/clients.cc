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
/// So many operations of one group have numbers of their own.
constexpr std::uint64_t kNumbers = 1'000'000'000;

const char* mode_name(raft::ReadMode mode) {
  if (mode == raft::ReadMode::log) return "log";
  return mode == raft::ReadMode::lease ? "lease" : "quorum";
}

const char* basis_name(raft::ReadBasis basis) {
  if (basis == raft::ReadBasis::lease) return "lease";
  return basis == raft::ReadBasis::quorum ? "quorum" : "leader";
}

}  // namespace

Clients::Clients(sim::World& world, std::vector<Place> places, story::Sink sink)
    : world_(world), places_(std::move(places)), sink_(std::move(sink)) {}

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
  for (const Place& place : places_) {
    if (place.leads()) read(place, raft::ReadMode::lease);
  }
  world_.queue.after(period, [this, period] { read_at_leaders(period); });
}

void Clients::write_at_leader(Duration period) {
  if (const Place* leader = newest_leader(places_); leader != nullptr) write(*leader);
  world_.queue.after(period, [this, period] { write_at_leader(period); });
}

// ---- Operations ----

Record Clients::record(const Operation& operation, Kind kind, Ticket ticket) const {
  Record record;
  record.at = world_.queue.now().since_origin();
  record.kind = kind;
  record.node = operation.place->id();
  const raft::GroupId group = operation.place->group();
  if (group != sim::kFirstGroup) record.group = group;
  record.number = ticket + 1 + (group.value() - 1) * kNumbers;
  return record;
}

Clients::Ticket Clients::begin(const Place& place, bool writes, raft::ReadMode mode) {
  const Ticket ticket = operations_.size();
  Operation operation;
  operation.place = &place;
  operation.asked = world_.queue.now().since_origin();
  operation.life = place.node().life();
  operation.writes = writes;
  operation.mode = mode;
  if (writes) operation.value = ++last_value_;
  operation.answered = answered_;
  world_.trace.add(sim::TraceKind::invoked, place.id().value(), place.group().value(),
                   writes ? 1 : 0, kKey, operation.value);
  Record told = record(operation, writes ? Kind::write : Kind::asked, ticket);
  told.what = writes ? "asked" : mode_name(mode);
  if (writes) told.text = fmt::format("x = {}", operation.value);
  sink_(told);
  operations_.push_back(operation);
  return ticket;
}

void Clients::write(const Place& place) {
  const Ticket ticket = begin(place, true, raft::ReadMode::lease);
  if (!place.up()) return end(ticket, "refused");
  replica::Propose propose;
  propose.command =
      RegisterMachine::encode({RegisterMachine::Kind::set, kKey, operations_[ticket].value});
  propose.deadline = place.node().clock().now().promise + kPatience;
  propose.done = [this, ticket](const replica::ProposeResult& result) {
    operations_[ticket].index = result.id.index;
    if (result.status == replica::ProposeStatus::committed) return end(ticket, "");
    end(ticket, result.status == replica::ProposeStatus::dropped ? "refused" : "unknown");
  };
  place.post(std::move(propose));
}

void Clients::read(const Place& place, raft::ReadMode mode) {
  const Ticket ticket = begin(place, false, mode);
  if (!place.up()) return end(ticket, "refused");
  // On a thread of the process, which may stand still.
  sim::SimNode& node = place.node();
  node.run_in_process(node.life(), [this, ticket] {
    const bool by_lease = operations_[ticket].mode == raft::ReadMode::lease;
    if (!by_lease || !read_off_thread(ticket)) read_by_driver(ticket);
  });
}

/// False: there is no valid lease.
bool Clients::read_off_thread(Ticket ticket) {
  Operation& operation = operations_[ticket];
  const Place& place = *operation.place;
  const auto index = place.view().readable_index(place.node().clock());
  if (!index) return false;
  operation.basis = "off_thread";
  operation.index = *index;
  if (place.view().applied() >= *index) {
    serve(ticket);
  } else {
    wait_applied(ticket, *index);
  }
  return true;
}

void Clients::wait_applied(Ticket ticket, raft::Index index) {
  replica::WaitApplied wait;
  wait.index = index;
  const Place& place = *operations_[ticket].place;
  wait.deadline = place.node().clock().now().promise + kPatience;
  wait.done = [this, ticket](const replica::ReadResult& result) {
    if (!result.index) return end(ticket, "refused");
    serve(ticket);
  };
  place.post(std::move(wait));
}

void Clients::read_by_driver(Ticket ticket) {
  const Operation& operation = operations_[ticket];
  replica::Read read;
  read.mode = operation.mode;
  read.deadline = operation.place->node().clock().now().promise + kPatience;
  read.done = [this, ticket](const replica::ReadResult& result) { on_read(ticket, result); };
  operation.place->post(std::move(read));
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
  end(ticket, "", operations_[ticket].place->value());
}

void Clients::end(Ticket ticket, const char* failure, std::uint64_t value) {
  Operation& operation = operations_[ticket];
  if (std::exchange(operation.ended, true)) return;
  const std::string failed = failure;
  const std::uint64_t outcome = failed.empty() ? 0 : failed == "refused" ? 1 : 2;
  const Place& place = *operation.place;
  world_.trace.add(sim::TraceKind::returned, place.id().value(), place.group().value(), outcome,
                   kKey, value);
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
  const bool stale = failed.empty() && place.applied() < operation.answered;
  if (stale) told.why = "stale";
  sink_(told);
  if (!stale) return;
  world_.fail(kStaleRead,
              fmt::format("node {} returned x = {}, and a newer write had been answered before the "
                          "read began",
                          place.id().value(), value));
}

void Clients::node_died(const sim::SimNode& node) {
  for (Ticket ticket = 0; ticket < operations_.size(); ++ticket) {
    const Operation& operation = operations_[ticket];
    if (&operation.place->node() == &node && !operation.ended) {
      end(ticket, operation.writes ? "unknown" : "refused");
    }
  }
}

}  // namespace leasehold::lab
