// A key that stands for as long as this process lives.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/client/key_service.h>
#include <leasehold/client/lease_holder.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace leasehold::client {

/// Registers a service, or whatever else others want to know to be alive: a key with a value, which
/// goes when this process ends, dies or cannot be heard for its time to live. Who watches is told
/// which of the three it was: `deleted` or `revoked` if it ended, `expired` if it failed
/// (docs/watch.md). What went although the process lives comes back by itself.
///
/// A thread of its own keeps it. Thread-safe, but for the destructor.
class Registration {
 public:
  enum class State : std::uint8_t {
    registering,  ///< not yet, or not any more: the group is not reached, or had ended it
    registered,   ///< it was, and its lease is not over
  };

  struct Options {
    /// Of the lease: its name is not asked for, `wait` neither, and it has no `terms`.
    LeaseHolder::Options lease;
    /// This instance's alone, below what the others of the service have: "services/web/7".
    std::string key;
    /// How to reach it, perhaps.
    std::string value;
    /// Hears of each change, on the thread of the registration; quick, and it does not call back.
    /// `why` is empty, or what is the matter.
    std::function<void(State, const std::string& why)> changed = [](State, const std::string&) {};
  };

  /// Returns at once; changed() hears when it stands. Errors: invalid_argument. The services and
  /// `clock` outlive it and are its own: it calls them from threads.
  static Result<std::unique_ptr<Registration>> begin(LeaseService& leases, KeyService& keys,
                                                     const lease::Clock& clock, Options options);
  /// The key goes, if the group is to be reached.
  ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  State state() const { return state_.load(std::memory_order_acquire); }
  /// Whoever watches sees the new value, if it is another one.
  void set_value(std::string value);

 private:
  Registration(LeaseService& leases, KeyService& keys, const lease::Clock& clock, Options options);

  void run();
  Result<void> keep();
  Result<void> put(LeaseHolder& lease);
  void pause(lease::Duration span);
  bool stopping() const;
  void tell(State state, const std::string& why);

  LeaseService& leases_;
  KeyService& keys_;
  const lease::Clock& clock_;
  const Options options_;
  std::atomic<State> state_{State::registering};

  mutable std::mutex mutex_;
  std::condition_variable woken_;
  std::string value_;
  /// value_ is not the one that stands.
  bool changed_value_ = true;
  bool stopping_ = false;
  std::string told_;  ///< of the thread
  std::thread thread_;
};

}  // namespace leasehold::client
