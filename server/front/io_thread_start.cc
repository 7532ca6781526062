// How an io thread begins and ends, and takes tasks of other threads.
#include <leasehold/server/front/io_thread.h>
#include <leasehold/server/front/people_time.h>

#include <pthread.h>

#include <mutex>
#include <thread>
#include <utility>

namespace leasehold::server {
void IoThread::run_busily(lease::Duration busy) {
  while (io.run_one() > 0) {
    if (std::exchange(swept_, false)) continue;
    auto until = fine_now() + busy;
    while (!io.stopped() && fine_now() < until) {
      if (io.poll() > 0) {
        until = fine_now() + busy;
      } else {
        std::this_thread::yield();
      }
    }
  }
}

void IoThread::start() {
  sweep();
  for (std::size_t i = 0; i < groups.all().size(); ++i) {
    news_.push_back(groups.all()[i].store.events().listen([this, i] {
      if (events.of(i).notice()) post([this, i] { look_at_events(i); });
    }));
  }
  if (&back_ != this) {
    thread_ = std::thread([this, busy = state.options.busy_poll] {
      busy > busy.zero() ? run_busily(busy) : static_cast<void>(io.run());
    });
    pthread_setname_np(thread_.native_handle(), "lh-client");
    return;
  }
  // The back thread yields the processor between any two pieces of its work. Otherwise the system
  // lets it run for a slice of a millisecond or two, while the threads of well-behaved clients wait
  // for the processor (tests/process/README.md has the cost).
  thread_ = std::thread([this] {
    while (io.run_one() > 0) std::this_thread::yield();
  });
  pthread_setname_np(thread_.native_handle(), "lh-back");
}

void IoThread::ignore_events() {
  for (std::size_t i = 0; i < news_.size(); ++i) groups.all()[i].store.events().forget(news_[i]);
}

// A part at a time, and connections have their turns between.
void IoThread::look_at_events(std::size_t group) {
  EventHub& hub = events.of(group);
  if (hub.look() && hub.notice()) post([this, group] { look_at_events(group); });
}

void IoThread::join() {
  work_.reset();
  if (thread_.joinable()) thread_.join();
}

void IoThread::post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    if (std::exchange(scheduled_, true)) return;
  }
  asio::post(io, [this] { run_tasks(); });
}

}  // namespace leasehold::server
