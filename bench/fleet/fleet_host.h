// A host of a fleet: its process, the promises that it shares with others, and its replicas.
#pragma once

#include <leasehold/bench/fleet/plan.h>
#include <leasehold/raft/core.h>
#include <leasehold/raft/process_promises.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::bench {

class Fleet;

/// What is on its way between two processes: of a group, or of none.
struct Letter {
  std::uint32_t group = 0;
  std::uint64_t life = 0;  ///< the sender's incarnation
  std::variant<raft::Message, raft::ProcessBeat, raft::ProcessBeatReply> what;
};

class FleetHost {
 public:
  FleetHost(Fleet& fleet, std::size_t number);

  /// Before start().
  void add_group(std::uint32_t group, const raft::Membership& membership);
  void start(Duration now);
  void kill();
  bool up() const { return up_; }
  std::uint64_t life() const { return life_; }
  void slow_down(unsigned times) { slowness_ = times; }

  void arrive(std::size_t from, std::vector<Letter> letters);
  void ended(std::size_t other, std::uint64_t life);
  void synced();
  /// All that has arrived and all timers that are due.
  void turn(Duration now);
  /// Whether the lease of a group that this host leads is valid.
  bool holds_lease(std::uint32_t group, Duration now) const;

 private:
  struct Replica {
    std::uint32_t group = 0;
    raft::CoreOptions options;
    std::optional<raft::Core> core;
    raft::Membership membership;
    /// What the disk has: all entries are those of new leaders.
    raft::HardState hard_state;
    std::vector<raft::TermRun> runs;
    raft::Index last;
    std::vector<raft::HeldMessage> held;
    raft::ReadyId durable;
    raft::LeaseState view;
    raft::PromiseInstant due = raft::PromiseInstant::never();
    raft::LeaseClassId lease_class = raft::kNoClass;
    std::optional<raft::Uuid> bound_to;
    bool leads = false;
  };
  /// Of a replica, or of the promises.
  struct Written {
    std::size_t replica = 0;
    raft::PersistBatch batch{};
    std::vector<raft::RememberedSupport> remember{};
    std::uint64_t write = 0;
  };
  struct Hands;
  using Timer = std::pair<raft::PromiseInstant, std::size_t>;

  raft::Peer peer(std::size_t host, std::uint64_t life) const;
  void take(std::size_t from, const Letter& letter, raft::Now now);
  void take_written(raft::Now now);
  void drain(std::size_t replica, raft::Now now);
  void after_input(std::size_t replica);
  void note_election(const Replica& replica);
  void carry_out_promises(raft::Now now);
  bool carry_out_once(raft::Now now);
  void moved(std::size_t replica, raft::Now now);
  void look(std::size_t replica, raft::Now now);
  void fire_timers(raft::Now now);
  void fill(std::size_t replica, const raft::AppendIntent& intent, raft::Now now);
  void put(std::size_t to, Letter letter);
  void write_out(Duration leaves);
  void plan_next(Duration now);
  void settle(raft::Now now);

  Fleet& fleet_;
  const std::size_t number_;
  std::uint64_t life_ = 0;
  bool up_ = false;
  unsigned slowness_ = 1;
  Duration busy_until_{0};
  std::optional<raft::ProcessPromises> promises_;
  std::vector<raft::RememberedSupport> remembered_;
  std::vector<Replica> replicas_;
  std::unordered_map<std::uint32_t, std::size_t> by_group_;
  std::vector<std::pair<std::size_t, std::vector<Letter>>> inbox_;
  std::vector<std::pair<std::size_t, std::uint64_t>> deaths_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  // As replica::ProcessDriver has them.
  std::set<std::size_t> leading_;
  std::set<std::size_t> busy_;
  std::map<raft::LeaseClassId, std::set<std::size_t>> resting_;
  std::map<raft::Uuid, std::set<std::size_t>> bound_;
  bool acknowledged_ = false;
  bool returned_ = false;
  /// What this turn sends, by host.
  std::map<std::size_t, std::vector<Letter>> outbox_;
  std::size_t handled_ = 0;  ///< messages in this turn
  bool syncing_ = false;
  std::vector<Written> writing_;  ///< with the sync that runs
  std::vector<Written> waiting_;
  std::vector<Written> written_;  ///< durable, and not said to the cores yet
  raft::Ready ready_;
};

}  // namespace leasehold::bench
