// Moves slots between the groups of this process, while this node leads the group that they leave.
#pragma once

#include <leasehold/kv/lease_keeper.h>
#include <leasehold/kv/local/slot_jobs.h>
#include <leasehold/kv/store.h>
#include <leasehold/node/group.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::kv {

/// Each node of groups that share the slots has one. What has to be done is in the states of the
/// groups: a command begins a move (BeginMove), and the node that leads the group from then on does
/// the rest, one move after the other. It has a thread, from the constructor to the destructor.
class SlotMover {
 public:
  /// Of one replica here; all outlive the SlotMover.
  struct Replica {
    node::Group& group;
    const Store& store;
    LeaseKeeper& keeper;
  };
  struct Options {
    /// Of a command, and of the wait until a store is new enough.
    lease::Duration timeout = std::chrono::seconds(5);
    /// How often it looks when nothing has changed, and how soon it tries again what has failed,
    /// at first and at most.
    lease::Duration interval = std::chrono::milliseconds(500);
    lease::Duration retry_min = std::chrono::milliseconds(100);
    lease::Duration retry_max = std::chrono::seconds(10);
    /// What is worth a line in the log; on the thread. May be empty.
    std::function<void(const std::string&)> notice;
  };

  /// `replicas`: of all groups, in their order.
  SlotMover(std::vector<Replica> replicas, Options options);
  /// Once the groups are stopped, or when the command that is under way has ended.
  ~SlotMover();
  SlotMover(const SlotMover&) = delete;
  SlotMover& operator=(const SlotMover&) = delete;

  /// Begins nothing more. Any thread.
  void interrupt();

 private:
  class Side;
  /// A move, whatever the number of its attempts.
  using Which = std::pair<std::size_t, std::uint32_t>;
  struct Failures {
    std::string said;
    lease::Duration pause{0};
    std::chrono::steady_clock::time_point not_before;
  };

  void run();
  /// Whether to look again at once.
  bool look();
  bool leads(std::size_t group) const;
  /// Whether something was done.
  bool work(std::size_t group, const SlotJob& job);
  void note_failure(Failures& failures, const SlotJob& job, std::size_t group, const Error& error);
  void say(const std::string& text) const;

  const std::vector<Replica> replicas_;
  const Options options_;
  std::vector<std::unique_ptr<Side>> sides_;
  std::vector<MovingGroup*> groups_;  ///< the same
  std::vector<Slots::Listener> listeners_;
  std::atomic<bool> ending_{false};
  std::mutex mutex_;
  std::condition_variable woken_;
  bool news_ = false;  ///< under mutex_
  /// By the first slot. Of the thread.
  std::map<Which, Failures> failures_;
  std::thread thread_;
};

}  // namespace leasehold::kv
