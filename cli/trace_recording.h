// Records the protocol of a running group: one conversation for each server, at the same time.
#pragma once

#include <leasehold/client/resp_client.h>
#include <leasehold/story/cluster_trace.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::cli {

/// Begins with the constructor. A node that dies and comes back has a part for each of its
/// processes. One thread, beside those that it starts.
class TraceRecording {
 public:
  TraceRecording(const std::vector<std::string>& servers, std::chrono::milliseconds span);
  /// Calls finish().
  ~TraceRecording();
  TraceRecording(const TraceRecording&) = delete;
  TraceRecording& operator=(const TraceRecording&) = delete;

  /// Every conversation has ended.
  bool over() const { return running_ == 0; }
  std::size_t recording() const { return recording_; }  ///< nodes, at this moment
  std::size_t records() const { return records_; }      ///< so far
  /// Ends the recordings of the nodes before their time.
  void stop();
  /// Waits until every conversation has ended, which takes seconds at most behind stop() or the
  /// time. What was recorded, and what is missing; without a part if no node recorded.
  story::ClusterTrace finish();

 private:
  using Clock = std::chrono::steady_clock;
  struct Conversation {
    std::string server;
    std::vector<story::TracePart> parts;
    std::string trouble;  ///< the newest; empty while a part is recorded
    std::thread thread;
  };

  void run(Conversation& own);
  bool record(Conversation& own, client::RespClient& client);
  bool take(story::TracePart& part, client::RespClient& client, const std::string& id);
  bool take_records(story::TracePart& part, const client::RespValue& records);
  bool wait(std::chrono::milliseconds span);
  bool stopped() const;

  const std::chrono::milliseconds span_;
  const Clock::time_point deadline_;
  std::atomic<std::size_t> running_{0};
  std::atomic<std::size_t> recording_{0};
  std::atomic<std::size_t> records_{0};
  mutable std::mutex mutex_;
  std::condition_variable wakes_;
  bool stopped_ = false;  ///< under mutex_
  std::vector<std::unique_ptr<Conversation>> all_;
};

}  // namespace leasehold::cli
