// The clients of the lab: what a visitor reads and writes, and a steady load.
#pragma once

#include <leasehold/lab/place.h>
#include <leasehold/raft/types.h>
#include <leasehold/replica/calls.h>
#include <leasehold/sim/world/sim_node.h>
#include <leasehold/sim/world/world.h>
#include <leasehold/story/record.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace leasehold::lab {

/// The oracle of Clients.
inline constexpr const char* kStaleRead = "stale_read";

/// Of one group. They stand beside the machines and note true time. All use one register, and every
/// write has a value of its own. A read by lease is served as a connection's thread serves it in
/// production: copy the lease view, then read the clock, then the state machine; without a valid
/// lease the driver is asked.
///
/// Tells the sink a record when an operation begins (asked, or write with `asked`) and when it
/// ends, both with its number, which no other operation of a visit has. A read's record says how it
/// was justified, and in `text` what it returned. Judges, by the name that the violation carries:
///   stale_read   a read began after a write was answered, and returned an older value
class Clients {
 public:
  /// `places`: those of the group, by node.
  Clients(sim::World& world, std::vector<Place> places, story::Sink sink);

  /// The steady load: a read at each node that believes that it leads, every `reads`; a write at
  /// the newest leader every `writes`. Zero: none.
  void start(sim::Duration reads, sim::Duration writes);
  void write(raft::NodeId node) { write(at(node)); }
  void read(raft::NodeId node, raft::ReadMode mode) { read(at(node), mode); }
  /// The process died: what waits for it gets no answer.
  void node_died(const sim::SimNode& node);

 private:
  struct Operation {
    const Place* place = nullptr;
    sim::Duration asked{0};
    std::uint64_t life = 0;
    bool writes = false;
    bool ended = false;
    raft::ReadMode mode = raft::ReadMode::lease;
    const char* basis = "";
    std::uint64_t value = 0;  ///< of a write
    /// Of a read: the newest write that was answered before it began.
    raft::Index answered;
    raft::Index index;
  };
  using Ticket = std::size_t;

  const Place& at(raft::NodeId node) const { return places_[node.value() - 1]; }
  void write(const Place& place);
  void read(const Place& place, raft::ReadMode mode);
  Ticket begin(const Place& place, bool writes, raft::ReadMode mode);
  void read_at_leaders(sim::Duration period);
  void write_at_leader(sim::Duration period);
  bool read_off_thread(Ticket ticket);
  void read_by_driver(Ticket ticket);
  void wait_applied(Ticket ticket, raft::Index index);
  void on_read(Ticket ticket, const replica::ReadResult& result);
  void serve(Ticket ticket);
  void end(Ticket ticket, const char* failure, std::uint64_t value = 0);
  story::Record record(const Operation& operation, story::Kind kind, Ticket ticket) const;

  sim::World& world_;
  const std::vector<Place> places_;
  story::Sink sink_;
  std::vector<Operation> operations_;
  std::uint64_t last_value_ = 0;
  /// Of the writes that were answered, the newest in the order of the log.
  raft::Index answered_;
};

}  // namespace leasehold::lab
