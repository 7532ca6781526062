#include <leasehold/base/assert.h>
#include <leasehold/storage/log_threads.h>

#include <fmt/format.h>

#include <algorithm>

namespace leasehold::storage {
namespace {

/// Batches that wait for release(): with so many the writer begins, and the disk works while the
/// rest of them is made.
constexpr std::size_t kHeldMax = 256;

}  // namespace

LogThreads::LogThreads(const SegmentLogOptions& options, std::unique_ptr<SegmentStore> store)
    : options_(options), store_(std::move(store)) {}

LogThreads::~LogThreads() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  write_wanted_.notify_all();
  read_wanted_.notify_all();
  if (writer_.joinable()) writer_.join();
  store_->stop();
  if (reader_.joinable()) reader_.join();
}

void LogThreads::start() {
  LEASEHOLD_ASSERT(!started());
  store_->start({[this](bool full) { deliver_space(full); },
                 [this](Error error) { fail(std::move(error)); }});
  writer_ = std::thread([this] { write_loop(); });
  reader_ = std::thread([this] { read_loop(); });
}

void LogThreads::enter(raft::GroupId group, StorageSink& sink) {
  const std::lock_guard delivering(delivery_);
  const bool added = sinks_.emplace(group, &sink).second;
  LEASEHOLD_ASSERT(added);
  if (full_) sink.space(true);
  if (!failure_delivered_) return;
  const Lock lock(mutex_);
  sink.failed(*failure_);
}

void LogThreads::leave(raft::GroupId group) {
  {
    Lock lock(mutex_);
    const std::uint64_t until = enqueued_;
    written_.wait(lock, [&] { return finished_ >= until || failure_; });
  }
  std::vector<std::uint64_t> tokens;
  {
    Lock lock(mutex_);
    for (const Read& read : reads_) {
      if (read.group == group) tokens.push_back(read.request.token);
    }
    std::erase_if(reads_, [group](const Read& read) { return read.group == group; });
    // Its answer must not reach another replica of the group, which may be opened next.
    answered_.wait(lock, [&] { return reading_ != group; });
  }
  for (const std::uint64_t token : tokens) {
    deliver_read(group, token, Error{ErrorCode::stopped, "the log has stopped"});
  }
  const std::lock_guard delivering(delivery_);
  sinks_.erase(group);
}

std::pair<std::uint64_t, std::uint64_t> LogThreads::progress() {
  const Lock lock(mutex_);
  return {enqueued_, finished_};
}

void LogThreads::set_process_sink(std::function<void(std::uint64_t)> sink) {
  const std::lock_guard delivering(delivery_);
  process_sink_ = std::move(sink);
}

// Writing.

void LogThreads::persist(std::shared_ptr<const Pending> pending) {
  bool fits = false;
  bool waits = false;
  {
    const Lock lock(mutex_);
    if (failure_) return;
    pending_bytes_ += pending->bytes;
    pending_.push_back(std::move(pending));
    ++enqueued_;
    fits = pending_bytes_ <= options_.queue_bytes_max;
    look_behind();
    waits = !has_to_write();
  }
  if (fits) {
    if (waits) return;
    // Without the lock, or the writer would wake up to wait for it.
    write_wanted_.notify_one();
    return;
  }
  fail(Error{ErrorCode::overloaded,
             fmt::format("the log in {}: more than {} bytes wait for the disk, which does not keep "
                         "up: check the disk",
                         store_->path(), options_.queue_bytes_max)});
}

void LogThreads::hold() {
  const Lock lock(mutex_);
  held_ = true;
}

void LogThreads::release() {
  {
    const Lock lock(mutex_);
    held_ = false;
    if (pending_.empty()) return;
  }
  write_wanted_.notify_one();
}

/// Under mutex_.
bool LogThreads::has_to_write() const {
  return !pending_.empty() && (!held_ || pending_.size() >= kHeldMax);
}

Result<void> LogThreads::write_now(std::shared_ptr<const Pending> pending) {
  if (!started()) {
    auto done = store_->append(merge({std::move(pending)}));
    return done ? store_->rest() : done;
  }
  persist(std::move(pending));
  return flush();
}

Result<void> LogThreads::flush() {
  release();
  Lock lock(mutex_);
  const std::uint64_t until = enqueued_;
  written_.wait(lock, [&] { return finished_ >= until || failure_; });
  return failure_ ? Result<void>(*failure_) : Result<void>();
}

/// Waits for work. Empty: there is none and there will be none.
LogThreads::Waiting LogThreads::next_to_write() {
  Waiting waiting;
  Lock lock(mutex_);
  write_wanted_.wait(lock, [this] { return has_to_write() || stopping_ || failure_; });
  if (failure_) return waiting;
  if (pending_.empty()) return waiting;
  const std::size_t bytes_max =
      std::min(options_.sync_bytes_max, store_->write_bytes_max(pending_.front()->bytes));
  std::size_t bytes = 0;
  for (const auto& pending : pending_) {
    bytes += pending->bytes;
    if (!waiting.empty() && bytes > bytes_max) break;
    waiting.push_back(pending);
  }
  return waiting;
}

void LogThreads::write_loop() {
  for (;;) {
    Waiting waiting = next_to_write();
    if (waiting.empty()) return;
    if (!write_waiting(waiting) || (idle() && !rest())) {
      deliver_failure();
      return;
    }
  }
}

/// False: the log has failed.
bool LogThreads::write_waiting(Waiting& waiting) {
  auto done = store_->append(merge(waiting));
  if (!done && done.error().code == kNoSpace && waiting.size() > 1) {
    // The disk was not known to be full when the write was made. Now it is: writes that follow
    // fit, if they can.
    waiting.resize(1);
    done = store_->append(merge(waiting));
  }
  if (!done) {
    fail(Error{final_code(done.error().code), done.error().message});
    return false;
  }
  std::size_t bytes = 0;
  for (const auto& pending : waiting) bytes += pending->bytes;
  written(waiting.size(), bytes);
  deliver_persisted(waiting);
  const auto moved = store_->move_front();
  if (moved || moved.error().code == kNoSpace) return true;
  fail(moved.error());
  return false;
}

/// There is nothing to write for now. False: the log has failed.
bool LogThreads::rest() {
  for (;;) {
    const auto moved = store_->move_front();
    if (!moved && moved.error().code != kNoSpace) {
      fail(moved.error());
      return false;
    }
    if (!moved || !moved.value()) break;
    if (!idle()) return true;
  }
  auto rested = store_->rest();
  if (rested) return true;
  fail(rested.error());
  return false;
}

bool LogThreads::idle() {
  const Lock lock(mutex_);
  return pending_.empty() && !failure_;
}

void LogThreads::written(std::size_t count, std::size_t bytes) {
  const Lock lock(mutex_);
  if (failure_) return;  // the queue is empty already
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(count));
  pending_bytes_ -= bytes;
  look_behind();
}

/// Under mutex_.
void LogThreads::look_behind() {
  behind_.store(pending_bytes_ > options_.queue_bytes_max / 2, std::memory_order_relaxed);
}

void LogThreads::fail(Error error) {
  {
    const Lock lock(mutex_);
    if (failure_) return;
    failure_ = std::move(error);
    pending_.clear();
    pending_bytes_ = 0;
  }
  write_wanted_.notify_all();
  written_.notify_all();
  read_wanted_.notify_all();
}

void LogThreads::deliver_failure() {
  const std::lock_guard delivering(delivery_);
  if (failure_delivered_) return;
  failure_delivered_ = true;
  std::optional<Error> failure;
  {
    const Lock lock(mutex_);
    failure = failure_;
  }
  for (const auto& [group, sink] : sinks_) sink->failed(*failure);
}

void LogThreads::deliver_persisted(const Waiting& waiting) {
  const std::lock_guard delivering(delivery_);
  {
    const Lock lock(mutex_);
    if (failure_) return;
  }
  // Of a log whose foundation was laid: 0.
  std::map<raft::GroupId, raft::ReadyId> newest;
  std::optional<std::uint64_t> process;
  for (const auto& pending : waiting) {
    if (pending->process && pending->process_write > 0) {
      process = pending->process_write;
    } else if (pending->foundation || pending->batch.id != raft::ReadyId()) {
      newest[pending->group] = pending->batch.id;
    }
  }
  for (const auto& [group, id] : newest) {
    const auto sink = sinks_.find(group);
    if (sink != sinks_.end()) sink->second->persisted(id);
  }
  if (process && process_sink_) process_sink_(*process);
  {
    const Lock lock(mutex_);
    finished_ += waiting.size();
  }
  written_.notify_all();
}

void LogThreads::deliver_space(bool full) {
  const std::lock_guard delivering(delivery_);
  {
    const Lock lock(mutex_);
    if (failure_) return;
  }
  full_ = full;
  for (const auto& [group, sink] : sinks_) sink->space(full);
}

// Reading.

void LogThreads::read(raft::GroupId group, const ReadRequest& request) {
  LEASEHOLD_ASSERT(request.first <= request.last);
  {
    const Lock lock(mutex_);
    if (reads_.size() < options_.reads_max) {
      reads_.push_back({group, request});
      read_wanted_.notify_one();
      return;
    }
  }
  deliver_read(group, request.token,
               Error{ErrorCode::overloaded, "too many reads of the log are waiting"});
}

void LogThreads::deliver_read(raft::GroupId group, std::uint64_t token,
                              Result<std::vector<raft::Entry>> entries) {
  const std::lock_guard delivering(delivery_);
  const auto sink = sinks_.find(group);
  if (sink != sinks_.end()) sink->second->entries_read(token, std::move(entries));
}

template <class Answer>
void LogThreads::answer_next(Lock& lock, const Answer& answer_to) {
  const Read read = reads_.front();
  reads_.pop_front();
  reading_ = read.group;
  lock.unlock();
  deliver_read(read.group, read.request.token, answer_to(read));
  lock.lock();
  reading_.reset();
  answered_.notify_all();
}

void LogThreads::read_loop() {
  Lock lock(mutex_);
  for (;;) {
    read_wanted_.wait(lock, [this] { return !reads_.empty() || stopping_ || failure_; });
    if (failure_ || stopping_) break;
    answer_next(lock, [this](const Read& read) { return answer(read); });
  }
  // The writer may hang in the disk: a failure that another thread found is delivered here.
  if (failure_) {
    lock.unlock();
    deliver_failure();
    lock.lock();
  }
  for (;;) {
    read_wanted_.wait(lock, [this] { return !reads_.empty() || stopping_; });
    if (reads_.empty()) return;
    answer_next(lock, [](const Read&) { return Error{ErrorCode::stopped, "the log has stopped"}; });
  }
}

Result<std::vector<raft::Entry>> LogThreads::answer(const Read& read) {
  const ReadRequest& request = read.request;
  PendingList pending;
  ReadPlan plan;
  // Entries from `touched` on come from the pending batches, or are gone; those up to `base` are
  // gone, too.
  raft::Index touched = request.last.next();
  raft::Index base;
  {
    // Each batch is in one of the two, or in both with the same content.
    const Lock lock(mutex_);
    std::copy_if(pending_.begin(), pending_.end(), std::back_inserter(pending),
                 [&read](const auto& at) { return at->group == read.group && !at->process; });
    for (const auto& at : pending) {
      if (at->batch.reset) base = at->batch.reset->id.index;
      if (at->batch.reset) touched = base.next();
      if (const auto lowest = at->lowest()) touched = std::min(touched, *lowest);
      if (at->batch.cut) base = at->batch.cut->id.index;
    }
    if (request.first > base && request.first < touched) {
      plan = store_->plan(read.group, request.first, touched.prev(), request.bytes_max);
    }
  }
  Collector out(request);
  if (auto collected = store_->read(plan, out); !collected) return collected.error();
  while (out.next() > base && out.next() >= touched && !out.full()) {
    const raft::Entry* found = nullptr;
    for (auto batch = pending.rbegin(); batch != pending.rend() && found == nullptr; ++batch) {
      found = (*batch)->find(out.next());
      const auto& truncated = (*batch)->batch.truncate_from;
      if ((truncated && *truncated <= out.next()) || (*batch)->batch.reset) break;
    }
    if (found == nullptr) break;
    out.add(*found);
  }
  return out.finish();
}

}  // namespace leasehold::storage
