#include <leasehold/server/users/password_queue.h>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

namespace leasehold::server {
namespace {

/// Where processors are few, the threads of connections come first.
constexpr int kHashNiceness = 10;

}  // namespace

bool PasswordQueue::post(std::function<void()> task) {
  if (at_once_) {
    task();
    return true;
  }
  const std::lock_guard lock(mutex_);
  if (stopped_ || tasks_.size() + running_ >= kPasswordTasksMax) return false;
  tasks_.push_back(std::move(task));
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_one();
  return true;
}

void PasswordQueue::run() {
  const auto self = static_cast<id_t>(::syscall(SYS_gettid));
  static_cast<void>(::setpriority(PRIO_PROCESS, self, kHashNiceness));
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopped_ || !tasks_.empty(); });
    if (stopped_) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    running_ = 1;
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
    running_ = 0;
  }
}

void PasswordQueue::stop() {
  std::deque<std::function<void()>> left;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    left.swap(tasks_);
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace leasehold::server
