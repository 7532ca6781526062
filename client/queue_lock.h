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

/// A lock that clients get in the order of their requests. Each client has a lease, renewed from
/// the beginning, and a key that is attached to it: the keys, in the order of their creation, are
/// the queue. A client that dies leaves the queue when its lease ends; one that gives up, at once.
/// Each waits for the one before it, so an end wakes one and not all.
///
///     auto lock = QueueLock::acquire(leases, keys, clock, options);
///     while (auto work = lock.value()->lease().begin()) print(page, lock.value()->token());
///
/// It is the lock recipe of ZooKeeper and of etcd with two additions: the holder knows when to stop
/// (LeaseHolder), and the protected resource can refuse a holder that did not (the token).
class QueueLock {
 public:
  enum class Mode : std::uint8_t {
    exclusive,  ///< one holder, and no shared one beside it
    shared,   ///< any number; a later exclusive one waits for them, and shared ones behind it wait
    permits,  ///< a semaphore: this many hold it at once
  };

  struct Options {
    /// `name` is that of the lock, `holder` has to be unique: up to 240 bytes together. `wait`
    /// covers all of it: until the group is reached, and until it is this client's turn. It has no
    /// `terms`.
    LeaseHolder::Options lease;
    Mode mode = Mode::exclusive;
    /// Of a semaphore: the same number for all its clients.
    std::uint32_t permits = 1;
  };

  /// Errors: as LeaseHolder::acquire; in_use: others hold it at the end of `wait`, and the message
  /// names them; invalid_argument too: others use the name as another kind of lock. The services
  /// and `clock` outlive the lock; `keys` is used until the lock is acquired, `leases` until its
  /// end.
  static Result<std::unique_ptr<QueueLock>> acquire(LeaseService& leases, KeyService& keys,
                                                    const lease::Clock& clock,
                                                    const Options& options);

  /// A client that holds the lock or waits for it.
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
  /// exclusive one: for every write to the resource that the lock protects. It is the create
  /// revision of the key; leases may be granted in another order, so do not use the token of
  /// lease(). The holders of a semaphore have different ones, and none excludes another.
  grant::FencingToken token() const { return token_; }
  /// The lease of the lock: when to stop, and how to give it up.
  LeaseHolder& lease() { return *lease_; }

 private:
  QueueLock(std::unique_ptr<LeaseHolder> lease, grant::FencingToken token)
      : lease_(std::move(lease)), token_(token) {}

  const std::unique_ptr<LeaseHolder> lease_;
  const grant::FencingToken token_;
};

/// The prefix of the keys of a lock's queue; the number of a lease follows. No other program may
/// write there.
std::string queue_prefix(const std::string& name);

}  // namespace leasehold::client
