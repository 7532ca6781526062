#include <leasehold/node/node_apply_thread.h>

#include <pthread.h>

#include <utility>

namespace leasehold::node {

ApplyThread::ApplyThread(replica::StateMachine& machine, replica::LeaseView& view,
                         replica::Callers& callers, raft::NodeId id, raft::Incarnation incarnation,
                         Install install, Done done)
    : machine_(machine),
      view_(view),
      callers_(callers),
      id_(id),
      incarnation_(incarnation),
      install_(std::move(install)),
      done_(std::move(done)),
      thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), "lh-apply");
}

ApplyThread::~ApplyThread() {
  stop();
}

void ApplyThread::apply(std::vector<raft::Entry> entries) {
  add(std::move(entries));
}

void ApplyThread::install(const raft::SnapshotId& id) {
  add(id);
}

void ApplyThread::add(Call call) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_.push_back(std::move(call));
  }
  changed_.notify_one();
}

void ApplyThread::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

Result<replica::AppliedEntries> ApplyThread::run(const Call& call) {
  if (const auto* entries = std::get_if<std::vector<raft::Entry>>(&call)) {
    return replica::apply_entries(*entries, id_, incarnation_, machine_);
  }
  const raft::SnapshotId& id = std::get<raft::SnapshotId>(call);
  const Result<void> installed = install_(id);
  if (!installed.ok()) return installed.error();
  return replica::AppliedEntries{id.last.index, {}};
}

void ApplyThread::run() {
  std::vector<Call> calls;
  for (;;) {
    calls.clear();
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !calls_.empty(); });
      if (stopping_) return;
      calls.swap(calls_);
    }
    for (const Call& call : calls) {
      Result<replica::AppliedEntries> applied = run(call);
      if (!applied.ok()) return done_(applied.error());
      // The state machine shows the effects before any caller hears of them.
      view_.publish_applied(applied.value().last);
      done_(replica::complete(std::move(applied).value(), callers_));
    }
  }
}

}  // namespace leasehold::node
