// The replicas of this process: one that is alone in it, or those of many groups.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/local/slot_mover.h>
#include <leasehold/kv/rocksdb/record_cache.h>
#include <leasehold/lease/clock.h>
#include <leasehold/node/group.h>
#include <leasehold/node/host.h>
#include <leasehold/node/node.h>
#include <leasehold/server/failure.h>
#include <leasehold/server/front/served_groups.h>
#include <leasehold/server/front/server_state.h>
#include <leasehold/server/group_places.h>
#include <leasehold/server/group_service.h>
#include <leasehold/server/log_observer.h>
#include <leasehold/server/own_replicas.h>
#include <leasehold/server/removals.h>
#include <leasehold/server/replica_seat.h>
#include <leasehold/server/settings.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::server {

/// One thread, except for what drain() calls.
class Replicas {
 public:
  /// What drain() comes to, of all groups.
  struct Drained {
    std::size_t groups = 0;
    std::size_t incomplete = 0;   ///< whose time was over
    std::size_t waiting = 0;      ///< calls
    std::size_t transferred = 0;  ///< leaderships
    std::size_t led_here = 0;     ///< of which this node is still the leader
    node::DrainResult home;
  };

  /// Opens the stores and the replicas. `options` is settings.node with what the process adds to
  /// it. All outlive it. Errors: those of node::Node::open(), node::Host::open() and of the stores.
  static Result<std::unique_ptr<Replicas>> open(const ServeSettings& settings,
                                                const node::NodeOptions& options,
                                                const lease::Clock& clock, Failure& failure);
  /// Calls stop().
  ~Replicas();
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  /// `state` outlives stop().
  void begin(ServerState& state);
  /// After begin().
  ServedGroups served();
  /// Of the first group.
  node::Group& home() { return *all_.front()->group; }
  const EventCounts& events() const { return events_; }
  const std::atomic<bool>& leader_known() const { return all_.front()->observer.leader_known(); }

  /// What the stores share; null: nothing.
  std::shared_ptr<const kv::RecordCache> read_cache() const { return cache_; }

  /// Call it from time to time.
  void look();
  /// The part of it that has to be prompt.
  void look_at_leases();
  Result<void> set_peer_security(const net::PeerSecurity& security);
  /// This node knows the node from now on, and at its next starts, so that it may have replicas
  /// here; or it knows its new address. Any thread. Errors: invalid_argument: no address, or this
  /// node has one group; io.
  Result<void> add_host(const node::Peer& host);
  /// Somebody says which nodes have a replica of a group; from 1 on. Any thread. Errors:
  /// invalid_argument.
  Result<void> hear_place(std::size_t group, const std::vector<raft::NodeId>& nodes);
  /// Of all groups; `done` is called once, on any thread.
  void drain(lease::Duration timeout, const std::function<void(const Drained&)>& done);
  /// Ends them, and then what runs for them. Idempotent.
  void stop();

 private:
  /// Of a group, at an address that stays.
  struct One {
    One(const ServeSettings& settings, std::size_t number, raft::NodeId first,
        GroupService::Failed failed, std::string prefix, LogObserver::Named named,
        EventCounts& counts)
        : observer(std::move(prefix), std::move(named), &counts, std::max<std::size_t>(number, 1)),
          service(settings, number, first, std::move(failed)),
          replica(first) {}

    LogObserver observer;
    GroupService service;
    std::atomic<raft::NodeId> replica;  ///< its number in the group
    ReplicaSeat seat;                   ///< of a group of many
    node::Group* group = nullptr;
  };

  Replicas(raft::NodeId self, const ServeSettings& settings, Failure& failure);
  Result<void> open_alone(const ServeSettings& settings, const node::NodeOptions& options,
                          const lease::Clock& clock);
  Result<void> open_many(const ServeSettings& settings, const node::NodeOptions& options,
                         const lease::Clock& clock);

  void group_failed(std::size_t number, Error error);
  void end_in_time();
  void note_hosts(const std::vector<node::Peer>& named);
  void note_members(std::size_t number, const raft::Membership& membership);
  Result<void> find_places(const ServeSettings& settings, const node::NodeOptions& options);
  Result<void> drop_restored_elsewhere(const ServeSettings& settings,
                                       const node::NodeOptions& options);
  void aim_places();
  void meet_members();
  Result<void> replace_removed();
  void replace_one();
  Result<void> replace(std::size_t number);
  void note_own();

  const raft::NodeId self_;
  const std::string data_dir_;
  Failure& failure_;
  std::mutex hosts_mutex_;  ///< held while files are written
  /// Beside those of the settings. Under hosts_mutex_.
  std::vector<node::Peer> added_hosts_;
  std::mutex members_mutex_;
  /// This node and all that it knows. Under members_mutex_.
  std::set<raft::NodeId> known_;
  /// Members of a group that it does not know. Under members_mutex_.
  std::vector<node::Peer> unknown_;
  /// Groups that have added this node, as that replica; and those that have removed it. Under
  /// members_mutex_.
  std::vector<std::pair<std::size_t, raft::NodeId>> added_;
  std::vector<std::size_t> removed_;
  /// The replica of the first group, if it has become a member lately. Under members_mutex_.
  std::optional<raft::NodeId> home_member_;
  const ServeSettings* settings_ = nullptr;     ///< of many groups
  const node::NodeOptions* options_ = nullptr;  ///< of many groups
  /// Groups whose removed replica could not be exchanged: the next start does it.
  std::set<std::size_t> stuck_;
  std::optional<OwnReplicas> own_;       ///< of many groups
  std::unique_ptr<GroupPlaces> places_;  ///< of many groups
  /// Why the process ends at that time: group 1 has removed this node. Under members_mutex_.
  std::optional<Error> end_;
  std::chrono::nanoseconds end_at_{0};  ///< of the coarse clock; under members_mutex_
  ServerState* state_ = nullptr;        ///< under members_mutex_
  Removals removals_;
  EventCounts events_;
  std::vector<std::unique_ptr<One>> all_;
  std::shared_ptr<kv::RecordCache> cache_;  ///< null: there is none
  LogObserver of_host_;
  // One of them.
  std::unique_ptr<node::Node> node_;
  std::unique_ptr<node::Host> host_;
  std::optional<kv::SlotMover> mover_;  ///< of many groups
};

}  // namespace leasehold::server
