// Moves slots between the groups of this process, while this node leads the group that they leave.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/local/slot_agenda.h>
#include <leasehold/kv/local/slot_move.h>
#include <leasehold/kv/slots.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::kv {

/// Each node of groups that share the slots has one. What has to be done is in the states of the
/// groups: a command begins a move (BeginMove), and the node that leads the group from then on does
/// the rest. Slots are copied one move after the other; what is frozen waits for none of them
/// (SlotAgenda). It has a thread that looks, from the constructor to the destructor, and one for
/// each task that is under way.
class SlotMover {
 public:
  struct Options {
    /// How often it looks when nothing has changed, and how soon it tries again what has failed,
    /// at first and at most.
    lease::Duration interval = std::chrono::milliseconds(500);
    lease::Duration retry_min = std::chrono::milliseconds(100);
    lease::Duration retry_max = std::chrono::seconds(10);
    /// Why slots cannot go from a group to another one, by this node: it has no replica of the
    /// other. Groups count from 0. Empty: it has. Slots that are `frozen` are nobody's meanwhile:
    /// it sees to it that a node with both leads. Any thread. May be empty: all replicas are here.
    std::function<std::string(std::size_t from, std::size_t to, bool frozen)> away;
    /// What is worth a line in the log; on the thread that looks. May be empty.
    std::function<void(const std::string&)> notice;
  };

  /// `groups`: all of them, in their order.
  SlotMover(std::vector<std::unique_ptr<LedGroup>> groups, Options options);
  /// Once the groups are stopped, or when the commands that are under way have ended.
  ~SlotMover();
  SlotMover(const SlotMover&) = delete;
  SlotMover& operator=(const SlotMover&) = delete;

  /// Begins nothing more. Any thread.
  void interrupt();

 private:
  /// A task that is under way.
  struct Work {
    SlotTask task;
    std::chrono::steady_clock::time_point begun;
    Result<std::uint64_t> done = std::uint64_t{0};  ///< written before it is in finished_
    std::thread thread;
  };
  using Works = std::list<Work>;

  void run();
  void begin_tasks();
  void start(SlotTask task);
  /// On a thread of its own.
  void work(Works::iterator at);
  void end_finished();
  void end(Work& work);
  std::vector<SlotTask> find() const;
  void say(const std::string& text) const;

  const std::vector<std::unique_ptr<LedGroup>> groups_;
  const Options options_;
  std::vector<MovingGroup*> moving_;  ///< the groups
  std::vector<Slots::Listener> listeners_;
  std::atomic<bool> ending_{false};
  std::mutex mutex_;
  std::condition_variable woken_;
  bool news_ = false;                      ///< under mutex_
  std::vector<Works::iterator> finished_;  ///< under mutex_
  // Of the thread that looks.
  SlotAgenda agenda_;
  Works works_;
  std::thread thread_;
};

}  // namespace leasehold::kv
