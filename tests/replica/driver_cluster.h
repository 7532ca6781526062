// Drivers that are wired together, on one clock that stands until the test moves it.
#pragma once

#include <leasehold/base/assert.h>
#include <leasehold/tests/replica/driver_rig.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::replica::testing {

/// Nodes 1 .. size, all voters.
inline raft::Membership members(std::uint64_t size) {
  raft::Membership membership;
  for (std::uint64_t id = 1; id <= size; ++id) {
    membership.members.push_back(
        {raft::NodeId(id), raft::Uuid{id, id}, "127.0.0.1:" + std::to_string(7000 + id)});
    membership.voters.push_back(raft::NodeId(id));
  }
  return membership;
}

/// Rigs on one true clock. settle() moves disks, links and state machines until all are idle.
class Cluster {
 public:
  /// `spare` nodes more are no members: their logs are empty, and they know nobody.
  explicit Cluster(std::uint64_t size, DriverOptions options = {}, std::uint64_t spare = 0)
      : membership_(members(size)) {
    for (std::uint64_t id = 1; id <= size + spare; ++id) {
      options_.push_back(options);
      options_.back().core.group = raft::GroupId(1);
      options_.back().core.id = raft::NodeId(id);
      options_.back().core.uuid = raft::Uuid{id, id};
      options_.back().core.incarnation = raft::Incarnation(1);
      options_.back().core.seed = id;
      const raft::Membership known = id <= size ? membership_ : raft::Membership{};
      rigs_.push_back(std::make_unique<Rig>(options_.back(), known, now()));
    }
  }

  lease::Now now() const {
    return {lease::HolderInstant(true_time_), lease::PromiseInstant(true_time_)};
  }
  raft::PromiseInstant in(lease::Duration d) const { return now().promise + d; }
  Rig& node(std::uint64_t id) { return *rigs_.at(id - 1); }

  /// A new process on the same disk, with nothing applied but what was made durable.
  void restart(std::uint64_t id) {
    DriverOptions& options = options_.at(id - 1);
    options.core.incarnation = options.core.incarnation.next();
    Disk disk = node(id).disk();
    rigs_.at(id - 1) = std::make_unique<Rig>(options, membership_, now(), std::move(disk));
  }

  /// A first process on an empty disk under the number of another, which knows nobody.
  Rig& replace(std::uint64_t id, raft::Uuid uuid) {
    DriverOptions& options = options_.at(id - 1);
    options.core.uuid = uuid;
    options.core.incarnation = raft::Incarnation(1);
    rigs_.at(id - 1) = std::make_unique<Rig>(options, raft::Membership{}, now());
    return node(id);
  }

  /// Asked for each message whether it is lost.
  std::function<bool(raft::NodeId from, const Rig::Sent& sent)> lose;
  /// While it says so, what the snapshots of a node were asked for is not answered.
  std::function<bool(Rig& rig)> hold_snapshots;
  /// While it says so, the state machine of a node ends no call.
  std::function<bool(Rig& rig)> hold_applies;

  void cut(std::uint64_t id) { cut_.insert(raft::NodeId(id)); }
  void heal() { cut_.clear(); }

  void settle() {
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& rig : rigs_) {
        while (rig->writes_waiting() > 0) {
          rig->finish_writes(now(), rig->writes_waiting());
          moved = true;
        }
        while (!rig->reads().empty()) {
          rig->finish_reads(now());
          moved = true;
        }
        while (rig->applies_waiting() > 0 && !(hold_applies && hold_applies(*rig))) {
          rig->finish_apply(now());
          moved = true;
        }
        while (rig->snapshots().waiting() && !(hold_snapshots && hold_snapshots(*rig))) {
          rig->finish_snapshots(now());
          moved = true;
        }
        for (Rig::Sent& sent : rig->take_sent()) {
          moved = true;
          if (cut_.count(rig->id()) != 0 || cut_.count(sent.to) != 0) continue;
          if (lose && lose(rig->id(), sent)) continue;
          node(sent.to.value()).handle(now(), PeerMessageReceived{rig->peer(), sent.message});
        }
      }
    }
  }

  void advance(lease::Duration d) {
    const lease::Duration end = true_time_ + d;
    while (true_time_ < end) {
      true_time_ = std::min(end, true_time_ + milliseconds(5));
      for (auto& rig : rigs_) {
        if (rig->driver().next_deadline() <= now().promise) rig->handle(now(), Tick{});
      }
      settle();
    }
  }

  /// Lets time pass until `condition` holds; gives up after a simulated minute.
  bool advance_until(const std::function<bool()>& condition) {
    for (int step = 0; step < 12'000; ++step) {
      if (condition()) return true;
      advance(milliseconds(5));
    }
    return false;
  }

  /// The leader of the highest term, once there is one and it shows a lease.
  Rig& await_leader() {
    Rig* leader = nullptr;
    const bool found = advance_until([this, &leader] {
      leader = nullptr;
      for (auto& rig : rigs_) {
        if (cut_.count(rig->id()) == 0 && rig->leads() &&
            rig->driver().core().lease_end() > now().holder) {
          leader = rig.get();
        }
      }
      return leader != nullptr;
    });
    LEASEHOLD_ASSERT(found);
    return *leader;
  }

 private:
  lease::Duration true_time_{milliseconds(1000)};
  raft::Membership membership_;
  std::vector<DriverOptions> options_;
  std::vector<std::unique_ptr<Rig>> rigs_;
  std::set<raft::NodeId> cut_;
};

/// Counts the calls of one completion and keeps the last result.
template <class Value>
struct Answer {
  int calls = 0;
  Value value;
  std::function<void(Value)> completion() {
    return [this](Value given) {
      ++calls;
      value = std::move(given);
    };
  }
};

/// Longer than what any call should take.
inline constexpr lease::Duration kLong = std::chrono::seconds(30);

inline Propose propose(Cluster& cluster, std::string command, Answer<ProposeResult>& answer,
                       lease::Duration timeout = kLong) {
  return {Bytes(std::move(command)), cluster.in(timeout), answer.completion()};
}

inline Read read(Cluster& cluster, raft::ReadMode mode, Answer<ReadResult>& answer,
                 lease::Duration timeout = kLong) {
  return {mode, cluster.in(timeout), answer.completion()};
}

}  // namespace leasehold::replica::testing
