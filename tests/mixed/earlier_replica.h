// A replica of release 0.1 in a simulation of this code.
#pragma once

#include <leasehold/sim/world/running_replica.h>

namespace leasehold::mixed {

/// For SimOptions::earlier. Its driver, its core and its codec are those of release 0.1: what it
/// sends is encoded by that codec and decoded by ours, and the other way round. Disk, state machine
/// and snapshot files are the simulator's: their formats are judged by directories of that release
/// (tests/process/golden_directory.py).
std::unique_ptr<sim::RunningReplica> make_earlier(const replica::DriverOptions& options,
                                                  raft::InitialState initial,
                                                  const sim::RunningReplica::Ports& ports,
                                                  lease::Now now);

}  // namespace leasehold::mixed
