// Times the leases of a store while this node leads, and renews them without the log.
#pragma once

#include <leasehold/grant/expiry_tracker.h>
#include <leasehold/kv/command.h>
#include <leasehold/kv/leases.h>
#include <leasehold/lease/clock.h>
#include <leasehold/raft/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::kv {

/// The leader's word on how long leases live. Three rules make it good:
///
/// - It speaks only under the leader lease: callers pass the term of a lease that was valid *after*
///   the request had arrived, and whose commit index is applied, as for a lease read. Another
///   leader begins only when that lease is over, and then gives every lease its whole time; so a
///   renewal here is in time there.
/// - A lease that was named as due is renewed by a command only, as long as the term lasts: the
///   command that ends it may be under way, even when its proposal is said to have failed. In a
///   later term that command has no effect (ExpireLeases).
/// - Its clock stands still in suspend, and is read after the request has arrived and what the
/// store
///   holds was looked at: no lease has less than its time from then on.
///
/// Thread-safe. What a renewal costs is a lock, held for that long, and no entry in the log.
class LeaseKeeper {
 public:
  /// Store::lease_changes().
  using Changes = std::function<Result<LeaseChanges>(std::uint64_t cursor)>;
  /// Both outlive it.
  LeaseKeeper(const lease::Clock& clock, Changes changes)
      : clock_(clock), changes_(std::move(changes)) {}

  /// Leases whose time is over, at most `count`, the oldest first, for ExpireLeases in the term
  /// `leads_in`. Named at each call until they are gone: propose nothing while earlier proposals
  /// are under way. Look often: an expiry is late by as much. `leads_in`: of the leader lease; none
  /// without a valid one. Errors: the store's.
  Result<std::vector<SeenLease>> look(std::optional<raft::Term> leads_in, std::size_t count);

  struct Renewal {
    /// In the order of the ids, their times to live, and none for a lease that there is not.
    std::vector<std::optional<lease::Duration>> ttl;
  };
  /// All of them, or (none) not by this way: propose RenewLeases. There is no lease of a key: what
  /// gives a key its time anew stands in the log. Errors: the store's.
  Result<std::optional<Renewal>> renew(const std::vector<grant::LeaseId>& ids, raft::Term leads_in);

  /// What is left of a lease's time if nothing renews it; may be below 0.
  struct Left {
    std::uint64_t stamp = 0;  ///< of its grant, or its last renewal in the log
    lease::Duration left{0};
    bool leads = false;  ///< the word of the node that leads
  };
  /// At the node that leads, as it will be ended. At any other, at most so much of a key's lease:
  /// it counts from when this node saw the grant or the renewal, which is not before whoever asked
  /// for it began to count. Of any other lease its whole time, since the leader may have renewed it
  /// without a word. None: there is no such lease (any more). Errors: the store's.
  Result<std::optional<Left>> left(grant::LeaseId id);
  /// left() for a command that looks at the time of a key. What is not found was not seen: then all
  /// of the time is taken to be left.
  SeenTime seen(grant::LeaseId id);

 private:
  Result<lease::PromiseInstant> take_in();
  Result<lease::PromiseInstant> enter(raft::Term leads_in);

  const lease::Clock& clock_;
  const Changes changes_;
  std::mutex mutex_;
  std::uint64_t cursor_ = 0;
  std::optional<raft::Term> leads_in_;
  raft::Term newest_;  ///< in which it ever led
  grant::ExpiryTracker tracker_;
};

}  // namespace leasehold::kv
