// The systems that are compared, each started here on loopback with its data in a folder.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/bench/compare/plan.h>
#include <leasehold/bench/compare/server_process.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace leasehold::bench {

/// What a system says of itself at one instant.
struct SystemState {
  std::string leader;             ///< who leads, and in which term; of one server: nothing
  std::uint64_t lease_reads = 0;  ///< of Leasehold's leader: reads by its lease so far
  std::string version;
};

/// One thread. Its processes end with it.
class RunningSystem {
 public:
  /// Starts its processes; ready() says when they serve. Errors: not_found (it is not installed;
  /// the message names the Debian package), io, unavailable.
  static Result<RunningSystem> start(System system, const CompareOptions& options,
                                     const std::string& folder);

  /// Until all members follow one leader. `ended`: whether the user wants an end. Errors: stopped,
  /// unavailable (with the end of a log).
  Result<void> wait_ready(const std::function<bool()>& ended);
  /// Errors: unavailable.
  Result<SystemState> state() const;
  std::uint64_t cpu_ns() const;
  const std::vector<std::string>& addresses() const { return addresses_; }
  System system() const { return system_; }
  /// Asks all processes to end; stop() waits for that.
  void end();
  void stop();

 private:
  RunningSystem(System system, std::vector<std::string> addresses)
      : system_(system), addresses_(std::move(addresses)) {}
  Result<SystemState> leasehold_state() const;
  Result<SystemState> etcd_state() const;
  Result<SystemState> redis_state() const;

  System system_;
  std::vector<std::string> addresses_;
  std::vector<ServerProcess> processes_;
};

/// The package of Debian that has it; empty: this program itself.
std::string package_of(System system);
/// "three nodes of etcd".
std::string description_of(System system);
/// The program of a peer; empty: it is not installed.
std::string program_of(System system, const CompareOptions& options);

}  // namespace leasehold::bench
