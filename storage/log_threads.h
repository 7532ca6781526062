// The threads of a log: one writes what waits for the disk, of all groups, with one sync; one
// reads.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/storage/pending.h>
#include <leasehold/storage/segment_log.h>
#include <leasehold/storage/segment_store.h>
#include <leasehold/storage/storage.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::storage {

/// Any thread, except where something else is said.
class LogThreads {
 public:
  LogThreads(const SegmentLogOptions& options, std::unique_ptr<SegmentStore> store);
  /// Makes durable what waits, unless the log has failed, and answers reads with `stopped`.
  ~LogThreads();
  LogThreads(const LogThreads&) = delete;
  LogThreads& operator=(const LogThreads&) = delete;

  SegmentStore& store() { return *store_; }
  const SegmentLogOptions& options() const { return options_; }
  /// Once, by one thread.
  void start();
  bool started() const { return writer_.joinable(); }
  /// The completions of the group go to `sink` from now on: also, at once, what the others have
  /// been told of the disk.
  void enter(raft::GroupId group, StorageSink& sink);
  /// What the group has given to persist() is durable, or the log has failed, and its read that was
  /// under way is answered. No more completions.
  void leave(raft::GroupId group);
  /// The writer's thread calls `sink` with the number of a write of what the process remembers, as
  /// soon as that is durable.
  void set_process_sink(std::function<void(std::uint64_t write)> sink);

  void persist(std::shared_ptr<const Pending> pending);
  /// Between the two the writer waits for more of what is given to persist(), up to a bound: a sync
  /// costs the same for one batch as for many. One thread calls both; flush() releases, too.
  void hold();
  void release();
  /// What persist() has taken is durable on return. Errors: io, invalid_argument.
  Result<void> flush();
  /// persist(), and durable on return. Before start() too. Errors: io, invalid_argument.
  Result<void> write_now(std::shared_ptr<const Pending> pending);
  void read(raft::GroupId group, const ReadRequest& request);
  /// What persist() has taken, and how much of that is durable.
  std::pair<std::uint64_t, std::uint64_t> progress();
  /// As Storage::behind(), of all groups.
  bool behind() const { return behind_.load(std::memory_order_relaxed); }

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Waiting = std::vector<std::shared_ptr<const Pending>>;
  struct Read {
    raft::GroupId group;
    ReadRequest request;
  };

  bool has_to_write() const;
  void write_loop();
  Waiting next_to_write();
  bool write_waiting(Waiting& waiting);
  bool rest();
  bool idle();
  void written(std::size_t count, std::size_t bytes);
  void look_behind();
  void fail(Error error);
  void deliver_failure();
  void deliver_persisted(const Waiting& waiting);
  void deliver_space(bool full);
  void deliver_read(raft::GroupId group, std::uint64_t token,
                    Result<std::vector<raft::Entry>> entries);
  template <class Answer>
  void answer_next(Lock& lock, const Answer& answer_to);
  void read_loop();
  Result<std::vector<raft::Entry>> answer(const Read& read);

  const SegmentLogOptions options_;
  std::unique_ptr<SegmentStore> store_;

  /// Held while a sink is called, so that nothing is persisted after failed(), and nobody is called
  /// behind leave(). Taken before mutex_.
  std::mutex delivery_;
  // Under delivery_.
  std::map<raft::GroupId, StorageSink*> sinks_;
  std::function<void(std::uint64_t)> process_sink_;
  bool failure_delivered_ = false;
  bool full_ = false;

  std::mutex mutex_;
  std::condition_variable write_wanted_;
  std::condition_variable written_;
  std::condition_variable answered_;  ///< a read
  std::condition_variable read_wanted_;
  // Under mutex_.
  PendingList pending_;  ///< what is being written stands in front
  std::size_t pending_bytes_ = 0;
  /// Written under mutex_.
  std::atomic<bool> behind_{false};
  std::uint64_t enqueued_ = 0;
  std::uint64_t finished_ = 0;  ///< of them
  bool held_ = false;           ///< more is about to come
  std::deque<Read> reads_;
  std::optional<raft::GroupId> reading_;  ///< whose read is under way
  std::optional<Error> failure_;
  bool stopping_ = false;

  std::thread writer_;
  std::thread reader_;
};

}  // namespace leasehold::storage
