// The one thread of a process that runs its connections, and the drivers of its groups in turn; and
// the doors through which other threads reach it. Not an interface for users.
#pragma once

#include <leasehold/lease/clock.h>
#include <leasehold/net/tcp_transport.h>
#include <leasehold/node/node_end_notices.h>
#include <leasehold/node/node_mailbox.h>
#include <leasehold/node/node_status.h>
#include <leasehold/node/node_work_pool.h>
#include <leasehold/replica/observer.h>
#include <leasehold/replica/process_driver.h>
#include <leasehold/storage/shared_log.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::node {

class GroupShell;

/// What a turn costs depends on the groups for which something has come, or is due.
///
/// Life: connect() and share(), add() → listen() → run() → stop(). Until run() one thread calls
/// everything, and the groups' files may be read meanwhile.
///
/// "Its thread" is one of its own, or the one that runs the caller's io_context (Options::io). Then
/// everything up to run(), and stop(), is called on that thread, or while none runs it.
class Loop {
 public:
  struct Options {
    std::string deputy;        ///< NodeOptions::deputy
    std::size_t appliers = 1;  ///< threads that call state machines
    const char* name = "lh-node";
    asio::io_context* io = nullptr;  ///< NodeOptions::io_context
  };

  Loop(const Options& options, const lease::Clock& clock, replica::Observer& observer);
  /// Behind stop(), if it runs.
  ~Loop() = default;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  /// What is to be asked of other nodes, besides messages, is in `policy`, which outlives this.
  void connect(net::TcpOptions tcp, const net::TcpCallbacks& policy);
  /// Errors: those of TcpTransport::start().
  Result<void> listen();
  /// The groups share their promises and their log from now on.
  /// `healthy`: see ProcessDriver::set_healthy(); asked in each turn.
  void share(std::unique_ptr<replica::ProcessDriver> process, storage::SharedLog& log,
             std::function<bool(lease::Now)> healthy) {
    process_ = std::move(process);
    log_ = &log;
    healthy_ = std::move(healthy);
  }
  void run();
  /// Ends every group, the connections and the threads, then calls `last`: no other thread runs a
  /// task meanwhile. Idempotent. Not on these threads.
  void stop(const std::function<void()>& last = [] {});

  // Any thread.

  const lease::Clock& clock() const { return clock_; }
  void post(raft::GroupId group, replica::Event event, Mailbox::Haste haste = Mailbox::Haste::now);
  void post(raft::GroupId group, std::vector<replica::Event> events);
  /// A task runs even if the loop has ended: then at once.
  void post_task(Mailbox::Task task);
  /// `admission` add()s a group, before the loop looks at anything that is posted behind this. Not
  /// while it stops.
  void admit(Mailbox::Task admission);
  WorkPool& appliers() { return appliers_; }
  WorkPool& snapshots() { return snapshots_; }

  // Its thread.

  /// Of this turn; outside one the clock's. The drivers of a turn share it.
  lease::Now now() const { return turn_now_ ? *turn_now_ : clock_.now(); }
  /// The group's turns begin. It is removed before it ends.
  void add(GroupShell& group);
  void remove(GroupShell& group);
  /// The driver of a group that was added has been made: see ProcessDriver::add().
  void began(GroupShell& group);
  /// A turn for the group, as soon as this one is over.
  void schedule(GroupShell& group);
  void say(const std::string& line) { observer_.on_notice(line); }
  replica::ProcessDriver* process() { return process_.get(); }
  net::TcpTransport& transport() { return *transport_; }
  const net::TcpTransport& transport() const { return *transport_; }
  bool stopping() const { return stopping_; }
  /// A peer was refused, or refuses this node.
  void note(const net::Rejection& rejection);
  /// What is of the process, and of none of its groups.
  void describe(NodeStatus& status) const;
  /// The process of a host has ended, and all before it in its directory.
  void ended(const raft::Peer& host);

 private:
  void wake();
  void turn();
  void run_turns(lease::Now now);
  void schedule_turn();
  void dispatch(lease::Now now);
  void give(raft::GroupId group, replica::Event event);
  void look_at_deadlines(lease::Now now);
  void note_due(GroupShell& group);
  void arm_timer(lease::Now now);
  void received(const raft::Peer& from, wire::PeerMessage&& message);
  void met(const wire::Hello& hello);
  void stop_on_loop();

  const lease::Clock& clock_;
  replica::Observer& observer_;
  Mailbox mailbox_;
  WorkPool appliers_;
  WorkPool snapshots_;

  /// Null: it runs on the caller's.
  const std::unique_ptr<asio::io_context> own_io_;
  asio::io_context& io_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  asio::steady_timer timer_;
  /// On the caller's io_context: what is queued there when this has ended finds a null pointer.
  /// Its thread. Null: the queue ends with this.
  const std::shared_ptr<Loop*> here_;
  /// Before run() nothing is queued: the thread of the caller's io_context must not come between.
  std::atomic<bool> runs_{false};
  /// What timer_ is set to; never() when it is not set. It may be earlier than what is due: then a
  /// turn finds nothing to do and sets it again, which is cheaper than moving it with each turn.
  raft::PromiseInstant armed_for_ = raft::PromiseInstant::never();

  std::unique_ptr<net::TcpTransport> transport_;
  EndNotices notices_of_ends_;
  const char* name_;
  /// Null: each group has promises of its own.
  std::unique_ptr<replica::ProcessDriver> process_;
  storage::SharedLog* log_ = nullptr;  ///< null: the group has a log of its own
  std::function<bool(lease::Now)> healthy_;
  LastRefusal refusal_;
  RefusalLines refusal_lines_;

  struct Seat {
    GroupShell* group;
    raft::PromiseInstant due = raft::PromiseInstant::never();
    bool scheduled = false;
    bool awaits = false;  ///< what is applied
  };
  std::map<raft::GroupId, Seat> seats_;
  /// Of seats_, those that have one.
  std::set<std::pair<raft::PromiseInstant, raft::GroupId>> due_;
  std::vector<raft::GroupId> scheduled_;  ///< for the next turn
  std::vector<raft::GroupId> turns_;      ///< in this one
  std::size_t awaiting_ = 0;              ///< seats that await

  /// In the order in which they came.
  std::vector<Posted> arrivals_;
  std::vector<Mailbox::Task> admissions_;
  std::vector<Mailbox::Task> tasks_;
  bool turn_scheduled_ = false;
  std::optional<lease::Now> turn_now_;
  /// What a turn takes up is still being gathered.
  bool gathering_ = false;
  bool stopping_ = false;

  std::once_flag stopped_once_;
  /// Held while the loop ends, and by each task that runs on its caller's thread after that. Such a
  /// task may post another one.
  std::recursive_mutex ending_;
  std::thread thread_;
};

}  // namespace leasehold::node
