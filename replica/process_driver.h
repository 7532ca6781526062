// Drives the promises that the groups of one process share, as a Driver drives the core of one
// group.
#pragma once

#include <leasehold/net/transport.h>
#include <leasehold/raft/process_promises.h>
#include <leasehold/replica/driver.h>

#include <cstdint>
#include <vector>

namespace leasehold::replica {

/// Where a node remembers for how long it has promised. Durable things go on in order.
class SupportStore {
 public:
  virtual ~SupportStore() = default;
  /// Each replaces what was remembered of its directory. The answer is one SupportsRemembered.
  virtual void remember(std::vector<raft::RememberedSupport> supports, std::uint64_t write) = 0;
};

/// Passive, on the thread of its drivers, and outlives them. In each turn the caller gives it the
/// events first; what it leaves, and what it adds, is for the drivers; then comes finish().
class ProcessDriver {
 public:
  ProcessDriver(const raft::ProcessOptions& options,
                const std::vector<raft::RememberedSupport>& remembered, net::Transport& transport,
                SupportStore& store, lease::Now now);

  /// For CoreOptions::shared of each of its groups.
  raft::SharedPromises& promises() { return promises_; }
  /// The driver of a group, which has this one's promises and has handled nothing yet.
  void add(Driver& driver);
  /// Takes what is for the process out of `events`, and puts what follows for the driver's group in
  /// its place.
  void handle(lease::Now now, const Driver& driver, std::vector<Event>& events);
  /// The drivers have handled their events.
  void finish(lease::Now now);
  raft::PromiseInstant next_deadline() const { return promises_.next_deadline(); }

 private:
  struct Group {
    Driver* driver;
    /// The newest membership of which it has told the promises.
    raft::LogId membership;
    std::vector<Event> events;
  };

  bool take(lease::Now now, const Event& event);
  void carry_out();
  void meet_members();

  raft::NodeId self_;
  net::Transport& transport_;
  SupportStore& store_;
  raft::ProcessPromises promises_;
  std::vector<Group> groups_;
  raft::ProcessReady ready_;
};

}  // namespace leasehold::replica
