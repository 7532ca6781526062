// A few bare cores in one room: messages, disks and time move only when a test says so.
#pragma once

#include <leasehold/raft/core.h>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::raft::test {

struct Envelope {
  NodeId from;
  NodeId to;
  Message message;
};

/// One core with its disk and what it has told the world.
struct Replica {
  std::unique_ptr<Core> core;
  CoreOptions options;
  bool up = true;
  /// What a crash leaves.
  HardState disk_hard_state;
  std::vector<Entry> disk_log;
  /// Everything that was handed to storage, durable or not.
  std::vector<Entry> log;
  std::deque<PersistBatch> unsynced;
  std::deque<HeldMessage> held;
  /// When false, batches wait for Group::sync().
  bool auto_sync = true;
  std::vector<ReadAnswer> reads;
  std::vector<Event> events;
  LeaseState view;
  Index applied;
};

class Group {
 public:
  explicit Group(int size, lease::Timing timing = {}, std::uint64_t seed = 1,
                 Duration commit_news_delay = Duration(0));

  Core& core(int id) { return *replica(id).core; }
  Replica& replica(int id) { return replicas_.at(NodeId(static_cast<std::uint64_t>(id))); }

  Now now() const { return now_; }
  /// Moves every clock by `step` in one jump, and ticks nobody.
  void jump(Duration step);
  /// Lets time pass: ticks fall when they are due, messages arrive at once.
  void run(Duration span);
  /// Delivers everything that is on its way, and what follows from it, without letting time pass.
  void settle();
  /// Until somebody leads and has committed an entry of its term. Returns its number.
  int elect();
  /// Makes `id` campaign as soon as it may, nobody else: the others are cut off from their ticks.
  void tick(int id);

  /// Messages that a test keeps back or throws away: called for each; false drops it.
  std::function<bool(const Envelope&)> filter = [](const Envelope&) { return true; };
  void step(int from, int to, Message message);
  void cut(int a, int b);
  void isolate(int id);
  void heal() { cut_.clear(); }
  std::deque<Envelope>& in_flight() { return in_flight_; }

  void sync(int id);
  void crash(int id);
  void restart(int id);

  std::optional<LogId> propose(int id, std::string payload);
  /// Asks, settles, and returns the answer if there is one.
  std::optional<ReadAnswer> read(int id, ReadMode mode);
  void ask(int id, std::uint64_t read, ReadMode mode);
  /// Acts on what the core has to say.
  void drain(int id);

 private:
  void fill(Replica& replica, const AppendIntent& intent);
  void persist(Replica& replica, const PersistBatch& batch);
  void release(Replica& replica, ReadyId durable);
  void send(NodeId from, NodeId to, Message message);
  Membership membership_;
  std::map<NodeId, Replica> replicas_;
  std::set<std::pair<NodeId, NodeId>> cut_;
  std::deque<Envelope> in_flight_;
  Now now_;
  std::uint64_t next_read_ = 1;
};

inline Duration ms(std::int64_t n) {
  return std::chrono::milliseconds(n);
}

/// The events of one kind, in order.
template <class T>
std::vector<T> events_of(const Replica& replica) {
  std::vector<T> found;
  for (const Event& event : replica.events) {
    if (const T* what = std::get_if<T>(&event.what)) found.push_back(*what);
  }
  return found;
}

}  // namespace leasehold::raft::test
