// Witnesses keep the log, and serve no client.
#pragma once

#include <leasehold/raft/message.h>
#include <leasehold/sim/judge/ledger.h>

#include <optional>

namespace leasehold::sim {

/// Judges, by the names that a violation carries:
///   witness_serves          a witness holds a lease (leader_lease_oracle.h), has appended a
///   command
///                           while it led, or has answered a client
///   witness_told            a witness learned that it may cut what a full member lacks and the
///                           leader still has
class WitnessOracle {
 public:
  WitnessOracle(World& world, const Ledger& ledger) : world_(world), ledger_(ledger) {}

  /// `leader`: of the entry's term, if it is known.
  void on_committed(const raft::Entry& entry, std::optional<raft::NodeId> leader);
  void on_send(const SimNode& leader, raft::NodeId to, const raft::Message& message);

 private:
  World& world_;
  const Ledger& ledger_;
};

}  // namespace leasehold::sim
