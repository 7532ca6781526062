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

/// Holds one lease, by name, from its grant to its end. A thread of its own renews it, so work
/// under the lease starves no renewal. What is done under the lease asks first:
///
///     auto holder = LeaseHolder::acquire(service, clock, {.name = "printer"});
///     while (auto work = holder.value()->begin()) print(page, holder.value()->token());
///
/// A holder can be stopped between its look and its act, for longer than the lease lasts: no clock
/// helps then. Whoever is written to has to see the token (docs/leases.md, "Fencing").
///
/// The lease is over for the holder at its deadline, which counts from when the last renewal that
/// was answered was sent, less drift and margin (grant/holder_timing.h). With a grace period it is
/// not yet over then: what is under way has to stop all the same, and may go on when a renewal has
/// given the lease back, with the same id and token (grant/held_lease.h). Thread-safe, but for
/// drain(), release() and the destructor: one thread ends it.
class LeaseHolder {
 public:
  using State = grant::HeldLease::State;

  struct Options {
    /// What nobody else may hold at the same time.
    std::string name;
    /// Who holds it, as others see it. It has to be this holder's alone, since a grant whose answer
    /// was lost is recognised by it. Up to 255 bytes.
    std::string holder;
    grant::HolderTiming timing;
    /// With a grace period a holder that was too late may have the lease back. The group refuses
    /// what does not go together.
    grant::LeaseTerms terms{};
    /// Of the jitter; any number that others do not have.
    std::uint64_t seed = 0;
    /// How long the name may be another's, or the group not to be reached.
    lease::Duration wait{0};
    /// Asked while it waits; true: give up.
    std::function<bool()> give_up = [] { return false; };
  };
  /// Errors: in_use (still held at the end of `wait`; the message says by whom), unavailable and
  /// timed_out (the group was not reached), stopped (give_up), and what the service refuses for
  /// good. Of a grant of which nobody knows whether it was made the lease may be there, for its
  /// time to live. `service` and `clock` outlive the holder.
  static Result<std::unique_ptr<LeaseHolder>> acquire(LeaseService& service,
                                                      const lease::Clock& clock, Options options);
  /// release(), unless it was called. But a lease that was too late is left to end by time while
  /// what was done under it may still be stopping: for its margin, and always with a grace period
  /// that has not given it back, or a lock delay. Who knows that all has stopped calls release().
  ~LeaseHolder();
  LeaseHolder(const LeaseHolder&) = delete;
  LeaseHolder& operator=(const LeaseHolder&) = delete;

  grant::LeaseId id() const { return granted_.id; }
  /// For every write to whatever the lease protects.
  grant::FencingToken token() const { return granted_.token; }

  /// Whether what is under way may go on. One clock read; any thread. Never true behind the
  /// deadline(), and so not in the grace period; but true again behind that, if the lease was given
  /// back.
  bool may_act() const;
  /// Until when, on the holder's clock, if no further renewal succeeds and the group does not end
  /// it. The margin behind it is for stopping. In the grace period it lies in the past.
  lease::HolderInstant deadline() const;
  /// When the lease may have ended at the group, if it does by time, or by a soft limit.
  lease::HolderInstant end() const;

  /// Something that is done under the lease; drain() waits for its end. Ends before the holder.
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
  /// None: the lease is over, or about to be given up. Nothing new may begin. While a renewal is
  /// tried again, and in the grace period, it waits for what comes of that: nobody knows then
  /// whether the group has ended the lease meanwhile.
  std::optional<Work> begin();

  /// How it stands: held, in_grace (not renewed in time, and still tried), expired (not renewed in
  /// time, for good), lost (ended at the group) or released.
  State state();
  /// Waits until it is over, at most for `timeout`: then it is held still, or in_grace, which is no
  /// end.
  State wait_end(lease::Duration timeout);

  /// Lets nothing new begin, waits until everything that was begun has ended or the deadline has
  /// passed, and releases it: the order in which a planned end costs the next holder no time and
  /// nobody's work is done twice. False: some of it was still under way at the deadline; then the
  /// lease is left to end by time, so that the work has the margin to stop in. It waits for no
  /// grace period, since nobody wants the lease back: in it, or at the deadline, the lease is
  /// expired.
  bool drain();
  /// Ends the lease at the group at once, also in the grace period, if that is to be reached; else
  /// it ends there by time.
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
