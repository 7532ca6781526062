// Clients: they write unique values and read, on any node, and note what they saw.
#pragma once

#include <leasehold/check/history.h>
#include <leasehold/replica/driver.h>
#include <leasehold/sim/judge/ledger.h>
#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace leasehold::sim {

using check::Operation;
using check::OperationKind;

/// The workload. Clients sit outside the machines and note true time. Some reads go through the
/// driver (by lease, quorum or log, at leaders and followers); some are served off the ordering
/// thread exactly as production serves them: copy the published view, then read the clock, then
/// the state machine once it has applied that far, with pauses between any two of these steps.
///
/// The history that they note goes to the checker. Judges at once, by the name that a violation
/// carries:
///   read_index              the index for a read is below what was committed when it arrived
///   read_in_order           the index for a read in the order of the log is below what any node
///                           showed when it arrived
class Clients {
 public:
  Clients(World& world, std::vector<SimNode*> nodes, const Ledger& ledger);

  void start();
  /// Writes and reads at `node`, again and again, until one of each has completed.
  void probe(SimNode& node, std::function<void()> done);
  /// The process of `node` died: what waits for it will never get an answer.
  void node_died(const SimNode& node);
  /// A write of `key` has just completed at `written_at`: watchers may look.
  void watch(const SimNode& written_at, std::uint64_t key);

  /// Everything that the checker has to explain.
  std::vector<Operation> history() const;
  /// The values of writes that certainly never happened.
  std::vector<std::uint64_t> refused_values() const;
  const OperationCounts& counts() const { return counts_; }
  /// Writes that may or may not have happened.
  std::uint64_t unknown() const;

 private:
  enum class Outcome : std::uint8_t { pending, done, refused, unknown };
  /// One operation that was tried once.
  struct Attempt {
    Operation operation;
    SimNode* node = nullptr;
    std::uint64_t life = 0;
    Outcome outcome = Outcome::pending;
    int answers = 0;
    bool in_order = false;             ///< a read that waits for LeaseState::sent_commit
    raft::Index committed;             ///< when a read arrived
    raft::Index applied;               ///< then, at its node
    raft::Index shown;                 ///< then, at the node that had applied most
    std::uint64_t* counter = nullptr;  ///< the count that rises when it is done
    /// Called when it ends, in any way.
    std::function<void(bool done)> then;
  };
  using Ticket = std::size_t;

  void next_operation(std::uint64_t client);
  void think(std::uint64_t client);
  SimNode& draw_other(const SimNode& node);
  std::uint64_t draw_key() { return random_.below(world_.plan.workload.keys); }
  void run(std::uint64_t client, SimNode& node, OperationKind kind, std::uint64_t key,
           std::function<void(bool)> then);
  void arrive(Ticket ticket);
  void write(Ticket ticket);
  void read_by_driver(Ticket ticket, raft::ReadMode mode);
  void read_off_thread(Ticket ticket);
  void check_clock(Ticket ticket, raft::LeaseState state);
  void wait_and_read(Ticket ticket, raft::Index index);
  void on_read(Ticket ticket, const replica::ReadResult& result, std::uint64_t& counter);
  void check_index(const Attempt& attempt, raft::Index index);
  void read_machine(Ticket ticket, raft::Index index);
  void on_proposed(Ticket ticket, const replica::ProposeResult& result);
  void finish(Ticket ticket, Outcome outcome);
  const char* basis_of(const Attempt& attempt) const;
  /// On a thread of the attempt's process, maybe after a pause.
  void step(Ticket ticket, EventQueue::Action action);
  bool answered_twice(Ticket ticket);
  raft::PromiseInstant draw_deadline(const SimNode& node);
  void probe_again(SimNode* node, OperationKind kind, std::function<void()> done);

  World& world_;
  std::vector<SimNode*> nodes_;
  const Ledger& ledger_;
  Random random_;
  std::uint64_t next_value_ = 1;
  std::vector<Attempt> attempts_;
  OperationCounts counts_;
  /// Reads of watchers that have not ended.
  std::uint64_t watching_ = 0;
};

}  // namespace leasehold::sim
