// How other threads reach the node's thread: one lock, and one wake-up for everything that arrives
// while the thread is busy.
#pragma once

#include <leasehold/base/assert.h>
#include <leasehold/replica/driver.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace leasehold::node {

/// What a caller, or a thread of the node, has for the driver of one group; group 0: for the
/// promises that all groups share.
struct Posted {
  raft::GroupId group;
  replica::Event event;
};

/// Events for the drivers and tasks for the node's thread. Its size is bounded by what the node's
/// callers can submit, and the storage complete, in one turn of that thread: the driver enforces
/// replica::Limits when it takes them.
class Mailbox {
 public:
  using Task = std::function<void()>;
  enum class Added : std::uint8_t {
    first,   ///< the caller has to wake the node's thread
    behind,  ///< a turn of the node's thread will take it anyway
    closed,  ///< refused and left untouched: the node has stopped
  };
  /// Whether an event is worth a wake-up of its own.
  enum class Haste : std::uint8_t {
    now,
    when_awaited,  ///< only while set_awaiting(true); else the next turn takes it along
  };

  Added add(raft::GroupId group, replica::Event& event, Haste haste = Haste::now) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return Added::closed;
    const bool follows = !events_.empty() && events_.back().group == group;
    replica::Persisted* last =
        follows ? std::get_if<replica::Persisted>(&events_.back().event) : nullptr;
    const replica::Persisted* next = std::get_if<replica::Persisted>(&event);
    if (last != nullptr && next != nullptr) {
      last->id = next->id;  // the newer one covers the older
    } else {
      events_.push_back({group, std::move(event)});
    }
    return haste == Haste::now || awaiting_ ? added() : Added::behind;
  }
  /// All of them for one turn.
  Added add(raft::GroupId group, std::vector<replica::Event>& events) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return Added::closed;
    for (replica::Event& event : events) events_.push_back({group, std::move(event)});
    return added();
  }
  Added add(Task& task) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return Added::closed;
    tasks_.push_back(std::move(task));
    return added();
  }
  /// A group enters: before every event and task that comes behind it. Not when it is closed.
  Added admit(Task admission) {
    const std::lock_guard<std::mutex> lock(mutex_);
    LEASEHOLD_ASSERT(!closed_);
    admissions_.push_back(std::move(admission));
    return added();
  }

  /// Appends everything to what the vectors hold already. The admissions come first, for the
  /// events and tasks may need their groups. Node's thread.
  void take(std::vector<Task>& admissions, std::vector<Posted>& events, std::vector<Task>& tasks) {
    const std::lock_guard<std::mutex> lock(mutex_);
    awaited_ = false;
    for (Task& admission : admissions_) admissions.push_back(std::move(admission));
    admissions_.clear();
    if (events.empty()) {
      events.swap(events_);
    } else {
      for (Posted& event : events_) events.push_back(std::move(event));
      events_.clear();
    }
    for (Task& task : tasks_) tasks.push_back(std::move(task));
    tasks_.clear();
  }
  /// Whether events of Haste::when_awaited need a turn of their own from now on. True: one that
  /// came before is still here, and the caller has to start the turn. Node's thread.
  bool set_awaiting(bool awaiting) {
    const std::lock_guard<std::mutex> lock(mutex_);
    awaiting_ = awaiting;
    return awaiting && !events_.empty() && !std::exchange(awaited_, true);
  }
  /// Refuses everything after this.
  void close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }

 private:
  Added added() { return std::exchange(awaited_, true) ? Added::behind : Added::first; }

  std::mutex mutex_;
  std::vector<Task> admissions_;
  std::vector<Posted> events_;
  std::vector<Task> tasks_;
  /// A wake-up is on its way.
  bool awaited_ = false;
  /// See set_awaiting().
  bool awaiting_ = false;
  bool closed_ = false;
};

}  // namespace leasehold::node
