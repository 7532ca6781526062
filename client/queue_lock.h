// Locks with a queue: a fair lock, a lock of readers and writers, a semaphore.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/client/key_service.h>
#include <leasehold/client/lease_holder.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace leasehold::client {

/// A lock that is given in the order in which it was asked for. Each who asks has a lease of its
/// own, renewed from the beginning, and a key that stands on it: the keys, in the order in which
/// they were made, are the queue. Who dies leaves the queue when its lease ends; who gives up, at
/// once. Each waits for the one before it, so an end wakes one and not all.
///
///     auto lock = QueueLock::acquire(leases, keys, clock, options);
///     while (auto work = lock.value()->lease().begin()) print(page, lock.value()->token());
///
/// It is the lock recipe of ZooKeeper and of etcd, but for two things: the holder knows when to
/// stop (LeaseHolder), and what it protects can refuse who did not (the token).
class QueueLock {
 public:
  enum class Mode : std::uint8_t {
    exclusive,  ///< one holder, and nobody shared beside it
    shared,   ///< any number; a later exclusive one waits for them, and shared ones behind it wait
    permits,  ///< a semaphore: so many hold it at once
  };

  struct Options {
    /// `name` is that of the lock, `holder` has to be this one's alone: up to 240 bytes together.
    /// `wait` counts for all of it: until the group is reached, and until it is this one's turn.
    /// It has no `terms`.
    LeaseHolder::Options lease;
    Mode mode = Mode::exclusive;
    /// Of a semaphore: the same number for all who use it.
    std::uint32_t permits = 1;
  };

  /// Errors: as LeaseHolder::acquire; in_use: others hold it at the end of `wait`, and the message
  /// says who; invalid_argument too: others use the name as another kind of lock. The services and
  /// `clock` outlive the lock; `keys` is used until the lock is acquired, `leases` until its end.
  static Result<std::unique_ptr<QueueLock>> acquire(LeaseService& leases, KeyService& keys,
                                                    const lease::Clock& clock, Options options);

  /// One of those who hold the lock or wait for it.
  struct Place {
    std::string kind;  ///< "exclusive", "shared", "permits/3"
    std::string holder;
    grant::FencingToken token;
    grant::LeaseId lease;
    bool holds = false;
  };
  /// All of them, in their order.
  static Result<std::vector<Place>> queue(KeyService& keys, const std::string& name,
                                          lease::Duration timeout);

  /// Rises from each exclusive holder to the next, and from the shared ones before it to an
  /// exclusive one: for every write to whatever the lock protects. It is the create revision of the
  /// key; leases may be granted in another order, so the token of lease() is not for that. The
  /// holders of a semaphore have different ones, of which none shuts out another.
  grant::FencingToken token() const { return token_; }
  /// By which the lock is held: when to stop, and how to give it up.
  LeaseHolder& lease() { return *lease_; }

 private:
  QueueLock(std::unique_ptr<LeaseHolder> lease, grant::FencingToken token)
      : lease_(std::move(lease)), token_(token) {}

  const std::unique_ptr<LeaseHolder> lease_;
  const grant::FencingToken token_;
};

/// The keys of a lock's queue begin so; behind it the number of a lease. Nobody else may write
/// there.
std::string queue_prefix(const std::string& name);

}  // namespace leasehold::client
