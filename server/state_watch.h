// Whether this node's state is the group's: it takes part in comparisons, reads its own disk in the
// background, and stops serving when it is the odd one.
#pragma once

#include <leasehold/kv/rocksdb/rocksdb_store.h>
#include <leasehold/node/group.h>
#include <leasehold/server/front/server_state.h>
#include <leasehold/server/front/state_health.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace leasehold::server {

/// See docs/decisions/0020. look() is called in turns, on one thread; the scrub has a thread of its
/// own, with a low priority. Its proposals may outlive it.
class StateWatch {
 public:
  struct Options {
    raft::NodeId id;
    std::string log_dir;  ///< empty: another group of this process reads the log back
    std::string rebuild;  ///< the flags by which `leasehold rebuild` finds the state
    lease::Duration compare_interval{};  ///< zero: never
    lease::Duration scrub_interval{};    ///< everything is read once in it; zero: never
    lease::Duration timeout{};           ///< of a proposal
  };

  /// All of them outlive it.
  StateWatch(node::Group& node, kv::RocksdbStore& store, StateHealth& health, ServerState& state,
             Options options);
  ~StateWatch();
  StateWatch(const StateWatch&) = delete;
  StateWatch& operator=(const StateWatch&) = delete;

  void look();
  /// Ends the scrub. Idempotent.
  void stop();

 private:
  /// What completions and callbacks leave here.
  struct Shared {
    std::mutex mutex;
    std::vector<raft::NodeId> voters;  ///< that keep a state
    std::atomic<std::uint64_t> reported{0};
  };

  void look_at_trust();
  void compare(raft::PromiseInstant now);
  void report();
  void judge();
  void stand_down(const std::string& why);
  void warn(const std::string& text);
  Result<void> propose(
      const kv::Command& command, std::function<void(bool committed)> done = [](bool) {});

  void run_scrubs();
  void scrub();
  void scrub_files();
  void damaged(const kv::Scrubbed& found);
  bool pause(lease::Duration duration);
  bool pause_after(std::uint64_t bytes, std::uint64_t pace, std::chrono::nanoseconds began);
  std::uint64_t pace() const;

  node::Group& node_;
  kv::RocksdbStore& store_;
  StateHealth& health_;
  ServerState& state_;
  const Options options_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  raft::PromiseInstant next_compare_;
  raft::PromiseInstant next_judgement_;
  raft::Index compared_;  ///< the newest index that this node has a sum of
  bool stood_down_ = false;
  std::string warned_;

  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace leasehold::server
