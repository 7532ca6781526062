// A lease that this process holds, renews, and knows when to stop believing in.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/client/lease_service.h>
#include <leasehold/grant/held_lease.h>
#include <leasehold/grant/holder_timing.h>
#include <leasehold/lease/clock.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace leasehold::client {

/// Holds one lease, by name, from its grant to its end. Its own thread renews it, so work under the
/// lease cannot delay a renewal. Ask before each piece of work under the lease:
///
///     auto holder = LeaseHolder::acquire(service, clock, {.name = "printer"});
///     while (auto work = holder.value()->begin()) print(page, holder.value()->token());
///
/// A holder can be stopped between its check and its act, for longer than the lease lasts: no clock
/// helps then. The written resource has to check the token (docs/leases.md, "Fencing").
///
/// For the holder the lease is over at its deadline, which counts from the send of the last
/// answered renewal, less drift and margin (grant/holder_timing.h). With a grace period it is not
/// yet over then: work under way has to stop all the same, and may continue when a renewal has
/// restored the lease, with the same id and token (grant/held_lease.h). Thread-safe, except for
/// drain(), release() and the destructor: one thread ends it.
class LeaseHolder {
 public:
  using State = grant::HeldLease::State;

  struct Options {
    /// The name that no other client may hold at the same time.
    std::string name;
    /// The holder's name, as others see it. It has to be unique: a grant whose answer was lost is
    /// recognised by it. Up to 255 bytes.
    std::string holder;
    grant::HolderTiming timing;
    /// With a grace period a late holder may get the lease back. The group refuses terms that
    /// exclude each other.
    grant::LeaseTerms terms{};
    /// Seed of the jitter; any number that others do not have.
    std::uint64_t seed = 0;
    /// How long to wait while another client has the name, or the group is not reached.
    lease::Duration wait{0};
    /// Called while it waits; true: give up. It may be called again after that.
    std::function<bool()> give_up = [] { return false; };
  };
  /// Errors: in_use (still held at the end of `wait`; the message names the holder), unavailable
  /// and timed_out (the group was not reached), stopped (give_up), and requests that the service
  /// will always refuse. After a grant of unknown outcome the lease may exist, for its time to
  /// live. `service` and `clock` outlive the holder.
  static Result<std::unique_ptr<LeaseHolder>> acquire(LeaseService& service,
                                                      const lease::Clock& clock,
                                                      const Options& options);
  /// release(), unless it was called. But a late lease is left to end by time while work under it
  /// may still be stopping: for its margin, and always with a lock delay or a grace period that has
  /// not restored it. If you know that all work has stopped, call release().
  ~LeaseHolder();
  LeaseHolder(const LeaseHolder&) = delete;
  LeaseHolder& operator=(const LeaseHolder&) = delete;

  grant::LeaseId id() const { return granted_.id; }
  /// For every write to the resource that the lease protects.
  grant::FencingToken token() const { return granted_.token; }

  /// Whether work under way may continue. One clock read; any thread. Never true after the
  /// deadline(), and so not in the grace period; but true again if a renewal restored the lease.
  bool may_act() const;
  /// Until when, on the holder's clock, if no further renewal succeeds and the group does not end
  /// it. The margin after it is for stopping. In the grace period it lies in the past.
  lease::HolderInstant deadline() const;
  /// When the lease may have ended at the group, if it does by time, or by a soft limit.
  lease::HolderInstant end() const;

  /// Work under the lease; drain() waits for its end. Ends before the holder.
  class Work {
   public:
    Work(Work&& other) noexcept : holder_(other.holder_) { other.holder_ = nullptr; }
    Work& operator=(Work&&) = delete;
    ~Work();

   private:
    friend class LeaseHolder;
    explicit Work(LeaseHolder& holder) : holder_(&holder) {}
    LeaseHolder* holder_;
  };
  /// None: the lease is over, or about to be given up. No new work may begin. While a renewal is
  /// tried again, and in the grace period, it waits for the outcome: until then the group may have
  /// ended the lease.
  std::optional<Work> begin();

  /// held, in_grace (not renewed in time, and still tried), expired (not renewed in time, over),
  /// lost (ended at the group) or released.
  State state();
  /// Waits until it is over, at most for `timeout`: then it is still held, or in_grace, which is no
  /// end.
  State wait_end(lease::Duration timeout);

  /// Refuses new work, waits until all work has ended or the deadline has passed, and releases the
  /// lease: in this order a planned end costs the next holder no time and no work is done twice.
  /// False: some work was still under way at the deadline; then the lease is left to end by time,
  /// so that the work has the margin to stop in. It waits for no grace period, since the holder
  /// does not want the lease back: in it, or at the deadline, the lease is expired.
  bool drain();
  /// Ends the lease at the group at once, also in the grace period, if the group is reached;
  /// otherwise it ends there by time.
  Result<void> release();

 private:
  LeaseHolder(LeaseService& service, const lease::Clock& clock, const Options& options,
              const LeaseService::Granted& granted, lease::HolderInstant sent);

  void keep_renewing();
  void renew_once(std::unique_lock<std::mutex>& lock);
  void publish();
  void stop_renewing();
  bool stands_in_the_way();

  LeaseService& service_;
  const lease::Clock& clock_;
  const grant::HolderTiming timing_;
  const LeaseService::Granted granted_;
  const bool delays_;  ///< its lock delay

  mutable std::mutex mutex_;
  /// The lease has ended, work has ended, or the thread has to.
  std::condition_variable changed_;
  grant::HeldLease lease_;
  std::size_t working_ = 0;
  bool draining_ = false;
  bool stopping_ = false;
  /// release() was called. An expired lease stays expired.
  bool released_ = false;
  /// Nanoseconds: the deadline of lease_ while it is held, else earliest().
  std::atomic<std::int64_t> may_act_until_;
  std::thread thread_;
};

}  // namespace leasehold::client
