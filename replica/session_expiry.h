// Decides when a leader may end a session because it was idle for too long.
#pragma once

#include <leasehold/grant/expiry_tracker.h>
#include <leasehold/raft/types.h>
#include <leasehold/replica/session_table.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace leasehold::replica {

/// Measures how long the sessions of a table are idle, on one clock: the leader's. The leader
/// proposes a command for each session that is due, and SessionTable::expire() checks it again; no
/// other part decides. A new leader, and a new process, give every session its whole time again.
class SessionExpiry {
 public:
  /// A session to close, if nothing has happened since.
  struct Idle {
    SessionId id;
    std::uint64_t activity = 0;
  };

  /// `idle_max`: above zero.
  explicit SessionExpiry(lease::Duration idle_max) : idle_max_(idle_max) {}

  /// Call it regularly, at least four times within idle_max. `leads_in`: the term in which this
  /// process leads at `now`, or none. `sessions`: in the order of their ids. A session that is due
  /// is named at each call until it is gone, the longest idle first: propose nothing while earlier
  /// proposals are under way, or a slow group gets ever more of them.
  std::vector<Idle> look(raft::PromiseInstant now, std::optional<raft::Term> leads_in,
                         const std::vector<SessionTable::Session>& sessions);

 private:
  lease::Duration idle_max_;
  std::optional<raft::Term> term_;
  grant::ExpiryTracker tracker_;
};

}  // namespace leasehold::replica
