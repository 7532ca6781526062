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

/// The leader's timing of leases. Three rules make it safe:
///
/// - It answers only under the leader lease: callers pass the term of a lease that was valid
///   *after* the request had arrived, and whose commit index is applied, as for a lease read.
///   Another leader begins only when that lease is over, and then gives every lease its whole time;
///   so a renewal here is in time there.
/// - A lease that was named as due is renewed by a command only, until the term ends: the command
///   that ends it may be under way, even if its proposal has failed. In a later term that command
///   has no effect (ExpireLeases).
/// - Its clock stands still in suspend, and is read after the request has arrived and after reading
///   the store: no lease has less than its time from then on.
///
/// Thread-safe. A renewal costs a short lock, and no entry in the log.
class LeaseKeeper {
 public:
  /// Store::lease_changes().
  using Changes = std::function<Result<LeaseChanges>(std::uint64_t cursor)>;
  /// Both outlive it.
  LeaseKeeper(const lease::Clock& clock, Changes changes)
      : clock_(clock), changes_(std::move(changes)) {}

  /// Leases whose time is over, at most `count`, the oldest first, for ExpireLeases in the term
  /// `leads_in`. Named again until they are gone, after those that are left: propose nothing while
  /// earlier proposals are under way. Call it often: an expiry is late by the time between two
  /// calls. `leads_in`: of the leader lease; none without a valid one. Errors: the store's.
  Result<std::vector<SeenLease>> look(std::optional<raft::Term> leads_in, std::size_t count);

  struct Renewal {
    /// In the order of the ids, their times to live, and none for a lease that does not exist.
    std::vector<std::optional<lease::Duration>> ttl;
  };
  /// Renews all of them, or (none) does nothing: then propose RenewLeases. The lease of a key
  /// counts as missing: only the log gives a key another time. Errors: the store's.
  Result<std::optional<Renewal>> renew(const std::vector<grant::LeaseId>& ids, raft::Term leads_in);

  /// The rest of a lease's time if nothing renews it; may be below 0.
  struct Left {
    std::uint64_t stamp = 0;  ///< of its grant, or its last renewal in the log
    lease::Duration left{0};
    bool leads = false;  ///< this node leads, so the value is the leader's
  };
  /// At the leader, the time after which it will end the lease. At another node, for the lease of a
  /// key, an upper bound: the node counts from when it saw the grant or the renewal, and its client
  /// began to count no later. For any other lease the whole time, since the leader may have renewed
  /// it in memory. None: there is no such lease (any more). Errors: the store's.
  Result<std::optional<Left>> left(grant::LeaseId id);
  /// left() for a command that depends on the time of a key. For a lease that is not found all of
  /// the time counts as left.
  SeenTime seen(grant::LeaseId id);
  /// The leases that it times: those of the store, as of the last call of another function.
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return tracker_.size();
  }

 private:
  Result<lease::PromiseInstant> take_in();
  Result<lease::PromiseInstant> enter(raft::Term leads_in);

  const lease::Clock& clock_;
  const Changes changes_;
  std::mutex mutex_;
  std::uint64_t cursor_ = 0;
  std::optional<raft::Term> leads_in_;
  raft::Term newest_;  ///< the newest term in which it led
  grant::ExpiryTracker tracker_;
};

}  // namespace leasehold::kv
