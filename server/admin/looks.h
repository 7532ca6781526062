// What the admin port knows of the groups: one look at a time.
#pragma once

#include <leasehold/node/group.h>
#include <leasehold/server/front/served_groups.h>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace leasehold::server {

/// The answers of the groups, in the order of ServedGroups::all().
struct Look {
  /// False: the threads of the groups did not all answer in time, and `statuses` is empty.
  bool answered = false;
  std::vector<node::NodeStatus> statuses;
};

/// Asks the groups, which costs each of their threads a call. So however many ask here, there is
/// one look under way, all that ask meanwhile share it, and a young one is used again. On the
/// thread of `io`, except where a function says otherwise.
class Looks {
 public:
  static constexpr std::chrono::milliseconds kReused{50};
  static constexpr std::chrono::seconds kPatience{2};
  using Done = std::function<void(const Look&)>;

  /// Both outlive it.
  Looks(asio::io_context& io, const ServedGroups& groups);
  /// Calls stop().
  ~Looks();
  Looks(const Looks&) = delete;
  Looks& operator=(const Looks&) = delete;

  /// Calls it once, perhaps inside the call.
  void ask(Done done);
  /// What a group answers from now on goes nowhere. Any thread, once `io` runs no more.
  void stop();

 private:
  /// Shared with the groups, which may answer after the end of this.
  struct UnderWay {
    std::mutex mutex;
    asio::io_context* io = nullptr;  ///< null: nobody waits any more; with mutex
    std::size_t missing = 0;         ///< with mutex
    Look look;                       ///< with mutex, until nothing is missing
  };

  void begin();
  void ended();
  void answer(const Look& look);

  asio::io_context& io_;
  const ServedGroups& groups_;
  asio::steady_timer patience_;
  bool waiting_for_time_ = false;
  std::uint64_t waits_ = 0;
  std::vector<Done> waiting_;
  std::shared_ptr<UnderWay> under_way_;
  Look newest_;
  std::chrono::nanoseconds newest_at_{0};  ///< of the coarse clock
};

}  // namespace leasehold::server
