// Threads that work for many: what one line is given is done one after the other, on any of them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::node {

class WorkPool {
 public:
  using Task = std::function<void()>;

  /// Of one user. Bounded by what its user gives it.
  class Line {
   public:
    /// The pool outlives it.
    explicit Line(WorkPool& pool) : pool_(pool) {}
    ~Line() { leave(); }
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;

    /// Any thread.
    void add(Task task);
    /// Forgets what has not begun, and waits for the end of the task that runs. Nothing is added
    /// behind it. Idempotent. Not from a task.
    void leave();

   private:
    friend class WorkPool;
    WorkPool& pool_;
    /// Read without the mutex between two tasks.
    std::atomic<bool> left_{false};
    // Under the pool's mutex.
    std::vector<Task> tasks_;
    bool ready_ = false;  ///< it stands in the pool's list
    bool runs_ = false;
  };

  /// `name`: of each thread, at most 15 characters. `niceness`: from 0 (normal) to 19.
  WorkPool(const std::string& name, std::size_t threads, int niceness = 0);
  /// All lines have left.
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  /// Until release() a thread that sleeps is not woken for each task that is added, but for many at
  /// once. One thread calls both.
  void hold();
  void release();

 private:
  void run(int niceness);
  void wake(std::size_t lines);

  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable rests_;  ///< a line has
  // Under mutex_.
  std::deque<Line*> ready_;
  bool held_ = false;
  std::size_t unannounced_ = 0;  ///< lines that became ready while held_ was set
  bool stopping_ = false;

  std::vector<std::thread> threads_;
};

}  // namespace leasehold::node
