#include <leasehold/base/assert.h>
#include <leasehold/node/apply.h>
#include <leasehold/node/node_apply_thread.h>

#include <pthread.h>

#include <utility>

namespace leasehold::node {

ApplyThread::ApplyThread(StateMachine& machine, LeaseView& view, raft::NodeId id,
                         raft::Incarnation incarnation, Done done)
    : machine_(machine),
      view_(view),
      id_(id),
      incarnation_(incarnation),
      done_(std::move(done)),
      thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), "lh-apply");
}

ApplyThread::~ApplyThread() {
  stop();
}

void ApplyThread::apply(std::vector<raft::Entry> entries) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_.push_back(std::move(entries));
  }
  changed_.notify_one();
}

void ApplyThread::install(const raft::SnapshotId& /*id*/) {
  LEASEHOLD_UNREACHABLE();  // no snapshot is ever complete: see NoSnapshots
}

void ApplyThread::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ApplyThread::run() {
  std::vector<std::vector<raft::Entry>> calls;
  for (;;) {
    calls.clear();
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !calls_.empty(); });
      if (stopping_) return;
      calls.swap(calls_);
    }
    for (const std::vector<raft::Entry>& entries : calls) {
      Result<Applied> applied = apply_entries(entries, id_, incarnation_, machine_);
      const bool ok = applied.ok();
      // The state machine shows the effects before any reader is told that they are there.
      if (ok) view_.publish_applied(applied.value().last);
      done_(std::move(applied));
      if (!ok) return;
    }
  }
}

}  // namespace leasehold::node
