// When a leader may say that a session has been idle for too long.
#pragma once

#include <leasehold/grant/expiry_tracker.h>
#include <leasehold/raft/types.h>
#include <leasehold/replica/session_table.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace leasehold::replica {

/// Watches the sessions of a table by one clock: that of the process that leads. What it says is
/// due is proposed as a command, which SessionTable::expire() judges again; nobody else decides.
/// A leader that has just begun, and a process that has just started, gives every session its whole
/// time anew.
class SessionExpiry {
 public:
  /// How one session is to be closed, if nothing has happened since.
  struct Idle {
    SessionId id;
    std::uint64_t activity = 0;
  };

  /// `idle_max`: above zero.
  explicit SessionExpiry(lease::Duration idle_max) : idle_max_(idle_max) {}

  /// Look now and then, at least four times within idle_max. `leads_in`: the term in which this
  /// process leads at `now`, or none. `sessions`: in the order of their ids. A session that is due
  /// is named at each look until it is gone, the longest idle first: propose nothing while earlier
  /// proposals are under way, or a slow group is buried under them.
  std::vector<Idle> look(raft::PromiseInstant now, std::optional<raft::Term> leads_in,
                         const std::vector<SessionTable::Session>& sessions);

 private:
  lease::Duration idle_max_;
  std::optional<raft::Term> term_;
  grant::ExpiryTracker tracker_;
};

}  // namespace leasehold::replica
