// A group that this process serves: the store of its replica here, and what runs for it.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/lease_keeper.h>
#include <leasehold/kv/local/lease_watch.h>
#include <leasehold/kv/rocksdb/rocksdb_store.h>
#include <leasehold/kv/store.h>
#include <leasehold/node/group.h>
#include <leasehold/server/backup.h>
#include <leasehold/server/front/served_groups.h>
#include <leasehold/server/front/server_state.h>
#include <leasehold/server/group_trace.h>
#include <leasehold/server/session_watch.h>
#include <leasehold/server/settings.h>
#include <leasehold/server/state_watch.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace leasehold::server {

/// One thread, the one that serves: first open_store(), then begin(), then look() again and again;
/// at the end interrupt(), and stop() once the replica has stopped.
class GroupService {
 public:
  /// What ends the replica. Any thread.
  using Failed = std::function<void(Error)>;

  /// `number`: of a group among many, from 1 on; 0 if it is alone. `replica`: as which member.
  /// `settings` outlive it.
  GroupService(const ServeSettings& settings, std::size_t number, raft::NodeId replica,
               Failed failed);

  /// It outlives the replica. `cache`: see RocksdbStoreOptions. Errors: those of the store;
  /// invalid_argument: of a witness in the directory of a member with a state.
  Result<replica::StateMachine*> open_store(std::uint64_t cluster_id,
                                            std::shared_ptr<kv::RecordCache> cache);
  /// `group`, the replica of open_store(), and `state` outlive this until stop().
  void begin(node::Group& group, ServerState& state);
  void look();
  void look_at_leases();  ///< a part of look()
  /// While the replica is exchanged: nothing of the old one is left. Errors: those of the store.
  Result<void> empty_store();
  /// Its successor has that number.
  void serve_as(raft::NodeId replica);
  replica::StateMachine& machine() { return *store_; }
  bool is_full() const { return full_.load(); }  ///< its disk: what is committed waits
  /// A full disk would hold the thread that applies.
  void interrupt();
  void stop();

  const kv::Store& store() const { return *store_; }
  /// After begin().
  kv::LeaseKeeper& keeper() { return *keeper_; }
  ServedGroup served();

 private:
  void say_space(bool full);

  const ServeSettings& settings_;
  const std::size_t number_;
  raft::NodeId replica_;
  const std::string data_dir_;  ///< of the group
  const Failed failed_;
  std::unique_ptr<kv::Store> store_;
  kv::RocksdbStore* on_disk_ = nullptr;  ///< the same; null at a witness
  std::atomic<node::Group*> group_{nullptr};
  std::atomic<bool> full_{false};  ///< the store waits for space
  ServerState* state_ = nullptr;
  StateHealth health_;
  std::optional<kv::LeaseKeeper> keeper_;
  std::optional<Backups> backups_;
  std::optional<StateWatch> states_;
  std::optional<SessionWatch> sessions_;
  std::optional<kv::LeaseWatch> leases_;
  std::optional<GroupTrace> trace_;
};

}  // namespace leasehold::server
