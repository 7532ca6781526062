#include <leasehold/server/users/password_queue.h>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace leasehold::server {
namespace {

/// Where processors are few, the threads of connections come first.
constexpr int kHashNiceness = 10;

}  // namespace

bool PasswordQueue::has_place(const PasswordCheck& check) const {
  std::size_t of_source = 0;
  std::size_t of_user = 0;
  for (const auto& one : checks_) {
    if (one->first.source == check.source) ++of_source;
    if (one->first.user == check.user) ++of_user;
  }
  return checks_.size() < kPasswordChecksMax && of_source < kPasswordChecksOfSourceMax &&
         of_user < kPasswordChecksOfUserMax &&
         checks_.size() + changes_.size() + running_changes_ < kPasswordTasksMax;
}

bool PasswordQueue::check(PasswordCheck check) {
  if (at_once_) {
    check.done(check.find());
    return true;
  }
  const std::lock_guard lock(mutex_);
  if (stopped_) return false;
  const auto same = std::find_if(checks_.begin(), checks_.end(), [&check](const auto& one) {
    return !check.what.empty() && one->first.what == check.what;
  });
  if (same != checks_.end()) {
    (*same)->others.push_back({std::move(check.asker), std::move(check.done)});
    return true;
  }
  if (!has_place(check)) return false;
  checks_.push_back(std::make_shared<Check>(Check{std::move(check), {}}));
  start();
  return true;
}

bool PasswordQueue::change(std::function<void()> task) {
  if (at_once_) {
    task();
    return true;
  }
  const std::lock_guard lock(mutex_);
  const std::size_t waiting = checks_.size() + changes_.size() + running_changes_;
  if (stopped_ || waiting >= kPasswordTasksMax) return false;
  changes_.push_back(std::move(task));
  start();
  return true;
}

void PasswordQueue::start() {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_one();
}

void PasswordQueue::run() {
  const auto self = static_cast<id_t>(::syscall(SYS_gettid));
  static_cast<void>(::setpriority(PRIO_PROCESS, self, kHashNiceness));
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopped_ || !checks_.empty() || !changes_.empty(); });
    if (stopped_) return;
    changes_.empty() ? run_check(lock) : run_change(lock);
  }
}

void PasswordQueue::run_change(std::unique_lock<std::mutex>& lock) {
  std::function<void()> task = std::move(changes_.front());
  changes_.pop_front();
  running_changes_ = 1;
  lock.unlock();
  task();
  task = nullptr;
  lock.lock();
  running_changes_ = 0;
}

void PasswordQueue::run_check(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Check> check = checks_.front();
  const bool asked = !check->first.asker.expired() ||
                     std::any_of(check->others.begin(), check->others.end(),
                                 [](const Asker& one) { return !one.asker.expired(); });
  lock.unlock();
  const StoredPassword right = asked ? check->first.find() : std::nullopt;
  lock.lock();
  // All that came meanwhile get the answer. If nothing was checked, there is none for one that came
  // since.
  if (!asked && !check->others.empty() && !check->others.back().asker.expired()) return;
  if (!stopped_) checks_.pop_front();
  lock.unlock();
  check->first.done(right);
  for (const Asker& one : check->others) one.done(right);
  lock.lock();
}

void PasswordQueue::stop() {
  std::deque<std::shared_ptr<Check>> checks;
  std::deque<std::function<void()>> changes;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    checks.swap(checks_);
    changes.swap(changes_);
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace leasehold::server
