// Drives the promises that the groups of one process share, as a Driver drives the core of one
// group.
#pragma once

#include <leasehold/net/transport.h>
#include <leasehold/raft/process_promises.h>
#include <leasehold/replica/driver.h>
#include <leasehold/replica/lease_ends.h>
#include <leasehold/replica/places.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
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
/// events first, one by one; what it leaves, and what it adds, is for the drivers; then comes
/// finish(). `now` was sampled after all of these events were in memory.
///
/// What a turn costs depends on the groups that take part in it, not on how many there are.
class ProcessDriver {
 public:
  /// What follows for a group, also from the events of other groups and of none.
  struct Follows {
    Driver* driver;
    Event event;
  };

  ProcessDriver(const raft::ProcessOptions& options,
                const std::vector<raft::RememberedSupport>& remembered, net::Transport& transport,
                SupportStore& store, lease::Now now);

  /// For CoreOptions::shared of each of its groups.
  raft::SharedPromises& promises() { return promises_; }
  /// The driver of a group, which has this one's promises and has handled nothing yet. `places`,
  /// which lasts as long as the driver and knows its membership already: where its replicas are;
  /// null: at the hosts of the same numbers. The driver needs a turn at once.
  void add(Driver& driver, const Places* places = nullptr);
  /// It is stopped, and about to be destroyed: its members learn that it leads no more.
  void remove(Driver& driver);
  /// Places::host_of() knows more hosts than before.
  void hosts_changed();
  /// See ProcessPromises; the host has to say so.
  void set_healthy(bool healthy) {
    promises_.set_healthy(healthy);
    carry_out();
  }
  void set_timing(const lease::Timing& timing) { promises_.set_timing(timing); }
  /// Whether the event is for the process alone. Else it is for its driver, too. An end of a
  /// process (PeerEnded) names it as the host that it is.
  bool take(lease::Now now, const Event& event);
  /// Of take() and finish() since the last call. Each is for its driver in this turn, or in the
  /// next one.
  std::vector<Follows> take_follows();
  /// The driver has handled its events of this turn.
  void handled(const Driver& driver);
  /// All drivers of this turn have.
  void finish(lease::Now now);
  /// The last of its life: all drivers have stopped and been handled(). Their members learn of it
  /// now, not with the next beat.
  void stop(lease::Now now);
  /// When a turn is due: at once while something follows for a driver.
  raft::PromiseInstant next_deadline() const;

 private:
  using Host = std::pair<raft::NodeId, raft::Uuid>;
  struct Group {
    Driver* driver;
    const Places* places;
    /// The newest membership that counts in members_.
    raft::LogId membership;
    std::vector<Host> members;
    /// Of its core, as of its last turn.
    raft::LeaseClassId lease_class{};
    std::optional<raft::Uuid> bound_to{};
  };

  Group& group_of(const Driver& driver);
  void note_election(const Driver& driver);
  void note_rest(Group& group, raft::LeaseClassId lease_class,
                 const std::optional<raft::Uuid>& bound_to);
  void forget_classes();
  void wake(const std::set<raft::GroupId>& groups);
  void take_releases(const Group& group);
  void carry_out();
  void follow(const Group& group, Event event) {
    follows_.push_back({group.driver, std::move(event)});
  }
  void count_members(Group& group);
  void discount(Group& group);
  void meet_members();

  raft::NodeId self_;
  net::Transport& transport_;
  SupportStore& store_;
  raft::ProcessPromises promises_;
  std::map<raft::GroupId, Group> groups_;
  /// Those of groups_ that lead, and of them those that do not rest.
  std::set<raft::GroupId> leading_;
  std::set<raft::GroupId> busy_;
  /// Those whose lease rests on each class, and those whose promise is bound to each holder: they
  /// have no deadline of their own meanwhile. Invariant: no set is empty.
  std::map<raft::LeaseClassId, std::set<raft::GroupId>> resting_;
  std::map<raft::Uuid, std::set<raft::GroupId>> bound_;
  LeaseEnds ends_;
  /// With how many groups it shares each. Invariant: of groups_, none is 0.
  std::map<Host, std::size_t> members_;
  /// The promises do not know the keys of members_ yet.
  bool members_changed_ = false;
  std::vector<Follows> follows_;
  /// See raft::ProcessReady.
  bool acknowledged_ = false;
  bool returned_ = false;
  raft::ProcessReady ready_;
};

}  // namespace leasehold::replica
