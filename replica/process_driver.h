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
/// events first; what it leaves, and what it adds, is for the drivers; then comes finish(). `now`
/// was sampled after all of these events were in memory.
class ProcessDriver {
 public:
  ProcessDriver(const raft::ProcessOptions& options,
                const std::vector<raft::RememberedSupport>& remembered, net::Transport& transport,
                SupportStore& store, lease::Now now);

  /// For CoreOptions::shared of each of its groups.
  raft::SharedPromises& promises() { return promises_; }
  /// The driver of a group, which has this one's promises and has handled nothing yet.
  void add(Driver& driver);
  /// It is stopped, and about to be destroyed: its members learn that it leads no more.
  void remove(Driver& driver);
  /// See ProcessPromises; the host has to say so.
  void set_healthy(bool healthy) { promises_.set_healthy(healthy); }
  void set_timing(const lease::Timing& timing) { promises_.set_timing(timing); }
  /// Takes what is for the process out of `events`, and puts in what follows for the driver's
  /// group, also from the events of other groups: there may be something where `events` was empty.
  void handle(lease::Now now, const Driver& driver, std::vector<Event>& events);
  /// The drivers have handled their events.
  void finish(lease::Now now);
  /// When a turn of all groups is due: at once while something waits for one of them.
  raft::PromiseInstant next_deadline() const;

 private:
  struct Group {
    Driver* driver;
    /// The newest membership of which it has told the promises.
    raft::LogId membership;
    std::vector<Event> events;
  };

  static void move_events(Group* from, std::vector<Event>& to);
  Group* group_of(const Driver& driver);
  bool take(lease::Now now, const Event& event);
  void take_releases(Group& group);
  void carry_out();
  void meet_members();

  raft::NodeId self_;
  net::Transport& transport_;
  SupportStore& store_;
  raft::ProcessPromises promises_;
  std::vector<Group> groups_;
  /// A group has come or gone since the promises learned the members.
  bool groups_changed_ = false;
  raft::ProcessReady ready_;
};

}  // namespace leasehold::replica
