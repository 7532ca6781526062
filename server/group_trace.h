// Records the protocol of one group's replica here, one recording at a time.
#pragma once

#include <leasehold/node/group.h>
#include <leasehold/server/front/trace_calls.h>
#include <leasehold/server/trace_recorder.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

namespace leasehold::server {

/// Any thread. What it offers is TraceCalls.
class GroupTrace {
 public:
  /// `group` outlives it.
  explicit GroupTrace(node::Group& group) : group_(group) {}

  void start(lease::Duration span, std::function<void(Result<TraceBegun>)> done);
  Result<TraceTaken> next(std::uint64_t id);
  Result<void> stop(std::uint64_t id);
  /// Call it from time to time: lets go what nobody asks for.
  void look();
  TraceCalls calls();

 private:
  Result<TraceBegun> begin(lease::Duration span, const node::NodeStatus& status);
  std::shared_ptr<TraceRecorder> find(std::uint64_t id);

  node::Group& group_;
  std::mutex mutex_;
  // Under mutex_.
  std::shared_ptr<TraceRecorder> recorder_;  ///< null: nothing was recorded lately
  std::uint64_t id_ = 0;                     ///< of recorder_
};

}  // namespace leasehold::server
