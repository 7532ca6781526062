// The thread that checks passwords. Each check is slow, so they wait for each other, and only so
// many.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::server {

/// What waits or runs. Each connection has one at most.
inline constexpr std::size_t kPasswordTasksMax = 64;
/// Checks among them: the rest is for changes of users, so that an operator can end what fills the
/// queue.
inline constexpr std::size_t kPasswordChecksMax = 56;
/// Checks for one source (source_of()), and of one user's password; those of all users that do not
/// exist count as one. So who guesses leaves the checks of others their places.
inline constexpr std::size_t kPasswordChecksOfSourceMax = 16;
inline constexpr std::size_t kPasswordChecksOfUserMax = 8;

/// A password as its user has it stored; empty: the user needs none.
using StoredPassword = std::optional<std::string>;

/// One password that a client has sent.
struct PasswordCheck {
  std::string source;
  std::string user;  ///< empty: there is no such user
  /// Checks of the same ones have the same answer: while one waits or runs, the others need no
  /// place. So all connections of a pool are answered by one check.
  std::string what;
  std::function<StoredPassword()> find;      ///< slow; on the queue's thread. None: it is wrong
  std::weak_ptr<const void> asker;           ///< if all who ask have gone, nothing is checked
  std::function<void(StoredPassword)> done;  ///< any thread
};

/// Any thread.
class PasswordQueue {
 public:
  PasswordQueue() = default;
  ~PasswordQueue() { stop(); }
  PasswordQueue(const PasswordQueue&) = delete;
  PasswordQueue& operator=(const PasswordQueue&) = delete;

  /// False: too many wait, or it was stopped; then the check is not made.
  bool check(PasswordCheck check);
  /// Runs the task, a change of a user, on the thread, before the checks that wait. False: as
  /// above.
  bool change(std::function<void()> task);
  /// Ends the thread after what is at hand; what waits never runs. Idempotent.
  void stop();
  /// For tests: all is run inside of the calls above.
  void run_at_once() { at_once_ = true; }

 private:
  struct Asker {
    std::weak_ptr<const void> asker;
    std::function<void(StoredPassword)> done;
  };
  struct Check {
    PasswordCheck first;
    std::vector<Asker> others;
  };

  bool has_place(const PasswordCheck& check) const;
  /// With mutex_, which it lets go while it checks.
  void run_check(std::unique_lock<std::mutex>& lock);
  void run_change(std::unique_lock<std::mutex>& lock);
  void start();
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Check>> checks_;  ///< the one that runs is the first
  std::deque<std::function<void()>> changes_;
  std::size_t running_changes_ = 0;
  bool stopped_ = false;
  bool at_once_ = false;
  std::thread thread_;
};

}  // namespace leasehold::server
