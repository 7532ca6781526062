// A key that exists while this process lives.
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

/// Registers a service, or anything else whose liveness others want to know: a key with a value,
/// which goes when this process ends, dies or is out of reach for its time to live. A watcher sees
/// which it was: `deleted` or `revoked` if the process ended, `expired` if it failed
/// (docs/watch.md). A key that went although the process lives comes back by itself.
///
/// Its own thread maintains it. Thread-safe, except for the destructor.
class Registration {
 public:
  enum class State : std::uint8_t {
    registering,  ///< not yet, or no longer: the group is not reached, or had ended it
    registered,   ///< it was, and its lease is not over
  };

  struct Options {
    /// For the lease: `name` and `wait` are not used, and there are no `terms`.
    LeaseHolder::Options lease;
    /// Unique to this instance, below the common prefix of the service: "services/web/7".
    std::string key;
    /// For example its address.
    std::string value;
    /// Called for each change, on the thread of the registration; it is quick, and does not call
    /// the registration. `why` is empty, or the reason.
    std::function<void(State, const std::string& why)> changed = [](State, const std::string&) {};
  };

  /// Returns at once; changed() is called when the key exists. Errors: invalid_argument. The
  /// services and `clock` outlive it and are used by it alone: it calls them from threads.
  static Result<std::unique_ptr<Registration>> begin(LeaseService& leases, KeyService& keys,
                                                     const lease::Clock& clock, Options options);
  /// Deletes the key, if the group is reached.
  ~Registration();
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  State state() const { return state_.load(std::memory_order_acquire); }
  /// Watchers see the new value, if it differs.
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
  /// value_ was not written yet.
  bool changed_value_ = true;
  bool stopping_ = false;
  std::string told_;  ///< of the thread
  std::thread thread_;
};

}  // namespace leasehold::client
