#include <leasehold/base/assert.h>
#include <leasehold/node/node_work_pool.h>

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace leasehold::node {
namespace {

/// Lines that wait for release(): few enough that the threads begin while a long turn goes on.
constexpr std::size_t kUnannouncedMax = 32;

}  // namespace

WorkPool::WorkPool(const std::string& name, std::size_t threads, int niceness) {
  LEASEHOLD_ASSERT(threads > 0);
  for (std::size_t i = 0; i < threads; ++i) {
    threads_.emplace_back([this, niceness] { run(niceness); });
    pthread_setname_np(threads_.back().native_handle(), name.c_str());
  }
}

WorkPool::~WorkPool() {
  {
    const std::lock_guard lock(mutex_);
    LEASEHOLD_ASSERT(ready_.empty());
    stopping_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkPool::hold() {
  const std::lock_guard lock(mutex_);
  held_ = true;
}

void WorkPool::release() {
  std::size_t lines = 0;
  {
    const std::lock_guard lock(mutex_);
    held_ = false;
    lines = std::exchange(unannounced_, 0);
  }
  wake(lines);
}

void WorkPool::wake(std::size_t lines) {
  if (lines == 1) work_.notify_one();
  if (lines > 1) work_.notify_all();
}

void WorkPool::Line::add(Task task) {
  std::size_t lines = 0;
  {
    const std::lock_guard lock(pool_.mutex_);
    if (left_) return;
    tasks_.push_back(std::move(task));
    if (ready_ || runs_) return;
    ready_ = true;
    pool_.ready_.push_back(this);
    ++pool_.unannounced_;
    if (pool_.held_ && pool_.unannounced_ < kUnannouncedMax) return;
    lines = std::exchange(pool_.unannounced_, 0);
  }
  pool_.wake(lines);
}

void WorkPool::Line::leave() {
  std::vector<Task> forgotten;
  std::unique_lock lock(pool_.mutex_);
  left_ = true;
  forgotten.swap(tasks_);
  if (std::exchange(ready_, false)) {
    pool_.ready_.erase(std::find(pool_.ready_.begin(), pool_.ready_.end(), this));
  }
  pool_.rests_.wait(lock, [this] { return !runs_; });
}

void WorkPool::run(int niceness) {
  // On Linux this affects this thread alone. A hint: everything works without it.
  if (niceness > 0) static_cast<void>(::setpriority(PRIO_PROCESS, 0, niceness));
  std::vector<Task> tasks;
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return stopping_ || !ready_.empty(); });
    if (ready_.empty()) return;
    Line& line = *ready_.front();
    ready_.pop_front();
    line.ready_ = false;
    line.runs_ = true;
    tasks.swap(line.tasks_);
    lock.unlock();
    for (Task& task : tasks) {
      if (!line.left_) task();
    }
    tasks.clear();
    lock.lock();
    line.runs_ = false;
    // Behind the lines that have waited meanwhile.
    if (!line.tasks_.empty()) {
      line.ready_ = true;
      ready_.push_back(&line);
    }
    // The last touch: the one that waits may destroy the line.
    rests_.notify_all();
  }
}

}  // namespace leasehold::node
