// The thread that checks passwords. Each check is slow, so they wait for each other, and only so
// many.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace leasehold::server {

/// Tasks that wait or run. Each connection has one at most.
inline constexpr std::size_t kPasswordTasksMax = 64;

/// Any thread.
class PasswordQueue {
 public:
  PasswordQueue() = default;
  ~PasswordQueue() { stop(); }
  PasswordQueue(const PasswordQueue&) = delete;
  PasswordQueue& operator=(const PasswordQueue&) = delete;

  /// Runs the task on the thread, which the first task starts. False: too many wait, or it was
  /// stopped; then the task does not run.
  bool post(std::function<void()> task);
  /// Ends the thread after the task at hand; those that wait never run. Idempotent.
  void stop();
  /// For tests: tasks run inside of post().
  void run_at_once() { at_once_ = true; }

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::size_t running_ = 0;
  bool stopped_ = false;
  bool at_once_ = false;
  std::thread thread_;
};

}  // namespace leasehold::server
