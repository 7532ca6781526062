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
  Process process{};  ///< that sent it
};

/// What a state machine is: everything that was applied, the first entry first.
using Machine = std::vector<Entry>;

/// A snapshot on its way to a peer.
struct Sending {
  SnapshotIntent intent;
  SnapshotId id;
  Membership membership;
  /// Of the chunk that is out; it is sent again with each tick until it is answered.
  std::uint64_t offset = 0;
};

/// A snapshot on its way from the leader.
struct Arriving {
  SnapshotId id;
  std::uint64_t offset = 0;
};

/// One core with its disk and its outputs.
struct Replica {
  std::unique_ptr<Core> core;
  CoreOptions options;
  bool up = true;
  /// What a crash leaves. The entries begin behind the base.
  HardState disk_hard_state;
  LogBase disk_base;
  std::vector<Entry> disk_log;
  Machine disk_machine;
  /// Complete and not installed.
  std::optional<SnapshotId> disk_snapshot;
  /// Everything that storage got, durable or not.
  Index base;
  std::vector<Entry> log;
  std::deque<PersistBatch> unsynced;
  std::deque<HeldMessage> held;
  /// When false, batches wait for Group::sync().
  bool auto_sync = true;
  /// When false, the core does not hear of what is applied.
  bool says_applied = true;
  std::vector<ReadAnswer> reads;
  std::vector<Event> events;
  LeaseState view;
  std::vector<Release> releases;
  Index applied;
  Machine machine;
  /// Intents that no sending has taken: all of them while Group::sends_snapshots is off.
  std::vector<SnapshotIntent> intents;
  std::map<NodeId, Sending> sendings;
  std::optional<Arriving> arriving;
  std::vector<SnapshotId> installed;

  const Entry& entry(Index index) const { return log.at(index.value() - base.value() - 1); }
};

class Group {
 public:
  /// The members of `witnesses` are those.
  explicit Group(int size, lease::Timing timing = {}, std::uint64_t seed = 1,
                 Duration commit_news_delay = Duration(0), const std::vector<int>& witnesses = {});

  virtual ~Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  Core& core(int id) { return *replica(id).core; }
  Replica& replica(int id) { return replicas_.at(NodeId(static_cast<std::uint64_t>(id))); }

  Now now() const { return now_; }
  /// Moves every clock by `step` in one jump, without a tick.
  void jump(Duration step);
  /// Lets time pass: ticks fall when they are due, messages arrive at once.
  void run(Duration span);
  /// Delivers everything that is on its way, and what follows from it, without letting time pass.
  void settle();
  /// Runs until a node leads and has committed an entry of its term. Returns its number.
  int elect();
  /// Adds a node that is not a member yet: its log is empty, and it knows no members. Members are
  /// "nodeN" under the uuid {N, N}.
  void add(int id, bool witness = false);
  /// Makes `id` campaign as soon as it may, and no other node: the others get no ticks.
  void tick(int id);

  /// Messages that a test keeps back or throws away: called for each; false drops it.
  std::function<bool(const Envelope&)> filter = [](const Envelope&) { return true; };
  void step(int from, int to, Message message);
  void step(const Peer& from, int to, Message message);
  void cut(int a, int b);
  void isolate(int id);
  void heal() { cut_.clear(); }
  std::deque<Envelope>& in_flight() { return in_flight_; }
  const std::deque<Envelope>& in_flight() const { return in_flight_; }
  /// The one that the group was formed with.
  const Membership& membership() const { return membership_; }

  /// Makes the state machine durable and cuts the log up to and including `to`.
  void cut_log(int id, Index to);
  /// Each snapshot has this many bytes, and each chunk one.
  static constexpr std::uint64_t kSnapshotBytes = 3;
  /// Off: the intents wait in Replica::intents for send_snapshot().
  bool sends_snapshots = true;
  /// Takes a snapshot of what `id` has applied and sends its first chunk.
  void send_snapshot(int id, const SnapshotIntent& intent);
  /// What `id` has applied, under an id by which any replica can install it.
  SnapshotId take_snapshot(int id) { return add_snapshot(replica(id).machine); }
  SnapshotId add_snapshot(Machine machine);
  /// A chunk as the leader `from` would send it now. Asserts that the intent is open.
  SnapshotChunk chunk(int from, const Sending& sending);

  void sync(int id);
  /// One batch only.
  void sync_one(int id);
  void crash(int id);
  void restart(int id);
  /// `to` learns that the present process of `id` has ended.
  void notice(int id, int to);
  Peer peer_of(int id);

  std::optional<LogId> propose(int id, std::string payload);
  std::variant<LogId, ChangeRefused> change(int id, const WantedMembers& wanted);
  std::variant<LogId, SettingsRefused> change_settings(int id, const GroupSettings& wanted);
  /// Starts the node again with other numbers of its own.
  void restart(int id, const lease::Timing& timing);
  /// Asks, settles, and returns the answer if there is one.
  std::optional<ReadAnswer> read(int id, ReadMode mode);
  void ask(int id, std::uint64_t read, ReadMode mode);
  /// Carries out the effects of the core.
  void drain(int id);

 protected:
  /// What its processes have promised one another.
  virtual PromiseInstant next_end() const { return PromiseInstant::never(); }
  virtual void look_at_ends() {}

 private:
  void fill(Replica& replica, const AppendIntent& intent);
  void persist(Replica& replica, const PersistBatch& batch);
  void release(Replica& replica, ReadyId durable);
  void send(NodeId from, NodeId to, Message message);
  void store(Replica& replica, const ReceivedChunk& received);
  void answered(Replica& replica, NodeId from, const SnapshotReply& reply);
  void apply(Replica& replica, Index to);
  void install(Replica& replica, const SnapshotId& id);
  void start(Replica& replica);
  CoreOptions options(NodeId id) const;

  lease::Timing timing_;
  std::uint64_t seed_;
  Duration commit_news_delay_;
  Membership membership_;
  std::map<NodeId, Replica> replicas_;
  std::set<std::pair<NodeId, NodeId>> cut_;
  std::deque<Envelope> in_flight_;
  Now now_;
  std::uint64_t next_read_ = 1;
  /// Of every snapshot that was ever taken, by its tag.
  std::map<std::uint64_t, Machine> snapshots_;
  std::uint64_t next_tag_ = 1;
};

/// Member `id` as it stands in the membership of every Group, or under another uuid.
inline WantedMember voter(std::uint64_t id, std::uint64_t uuid = 0) {
  if (uuid == 0) uuid = id;
  return {NodeId(id), Uuid{uuid, uuid}, "node" + std::to_string(id), Suffrage::voter};
}
inline WantedMember learner(std::uint64_t id, std::uint64_t uuid = 0) {
  WantedMember member = voter(id, uuid);
  member.suffrage = Suffrage::learner;
  return member;
}

/// The identity that member `id` of a Group shows.
inline Peer peer(NodeId id) {
  return {id, Uuid{id.value(), id.value()}};
}

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
