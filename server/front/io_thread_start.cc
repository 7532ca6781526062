// How an io thread begins and ends, and takes tasks of other threads.
#include <leasehold/server/front/io_thread.h>

#include <mutex>
#include <thread>
#include <utility>

namespace leasehold::server {

void IoThread::start() {
  sweep();
  news_ = store.events().listen([this] {
    if (events.notice()) post([this] { look_at_events(); });
  });
  if (&back_ != this) {
    thread_ = std::thread([this] { io.run(); });
    return;
  }
  // The back thread yields the processor between any two pieces of its work. Otherwise the system
  // lets it run for a slice of a millisecond or two, while the threads of well-behaved clients wait
  // for the processor (tests/process/README.md has the cost).
  thread_ = std::thread([this] {
    while (io.run_one() > 0) std::this_thread::yield();
  });
}

void IoThread::ignore_events() {
  store.events().forget(news_);
}

// A part at a time, and connections have their turns between.
void IoThread::look_at_events() {
  if (events.look() && events.notice()) post([this] { look_at_events(); });
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
