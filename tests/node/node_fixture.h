// Three real nodes in one process: real sockets on loopback, real logs in a temporary folder.
#pragma once

#include <leasehold/base/assert.h>
#include <leasehold/node/node.h>
#include <leasehold/node/system_clock.h>
#include <leasehold/tests/base/temporary_folder.h>
#include <leasehold/tests/node/free_ports.h>

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::node {

/// How long a test waits for what has to happen; reached only when it does not happen.
inline constexpr auto kPatience = std::chrono::seconds(30);

/// Asks until `condition` holds. False: it did not in that time.
inline bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < end) {
    if (condition()) return true;
    std::this_thread::yield();
  }
  return false;
}
inline constexpr lease::Duration kLong = std::chrono::seconds(30);

/// Remembers every command, in order.
class ListMachine : public replica::StateMachine {
 public:
  raft::Index durable_index() const override { return raft::Index(0); }
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands, raft::Index) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Bytes> results;
    for (const replica::Command& command : commands) {
      list_.emplace_back(command.bytes);
      results.emplace_back("done:" + std::string(command.bytes));
    }
    return results;
  }
  std::vector<std::string> list() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return list_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> list_;
};

/// Records the calls that it gets, and the thread of each.
class RecordingObserver : public replica::Observer {
 public:
  void on_change(const replica::Change& change) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    changes_.push_back(change);
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof(name));
    thread_ = name;
  }
  std::vector<replica::Change> changes() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return changes_;
  }
  std::string thread() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return thread_;
  }
  /// The last change of one kind.
  template <class What>
  std::optional<What> last() const {
    std::optional<What> found;
    for (const replica::Change& change : changes()) {
      if (const What* what = std::get_if<What>(&change)) found = *what;
    }
    return found;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<replica::Change> changes_;
  std::string thread_;
};

/// The machine's clocks, of a machine that a test can stop.
class StoppableClock final : public SystemClock {
 public:
  lease::HolderInstant holder_now() const override {
    const lease::HolderInstant at = SystemClock::holder_now();
    return stopped_ ? lease::HolderInstant::never() : at;
  }
  bool disrupted() const override { return stopped_; }
  void machine_was_stopped() { stopped_ = true; }

 private:
  std::atomic<bool> stopped_{false};
};

/// A node, what it needs, and calls that wait for their answer.
struct Replica {
  ListMachine machine;
  StoppableClock clock;
  RecordingObserver observer;
  std::promise<Error> failed;
  std::future<Error> failure = failed.get_future();
  std::unique_ptr<Node> node;

  replica::ProposeResult propose(std::string command, lease::Duration timeout = kLong) {
    auto answer = std::make_shared<std::promise<replica::ProposeResult>>();
    auto future = answer->get_future();
    node->propose(Bytes(std::move(command)), timeout, [answer](replica::ProposeResult result) {
      answer->set_value(std::move(result));
    });
    LEASEHOLD_ASSERT(future.wait_for(kPatience) == std::future_status::ready);
    return future.get();
  }
  replica::ReadResult read(raft::ReadMode mode, lease::Duration timeout = kLong) {
    auto answer = std::make_shared<std::promise<replica::ReadResult>>();
    auto future = answer->get_future();
    node->read(mode, timeout, [answer](replica::ReadResult result) { answer->set_value(result); });
    LEASEHOLD_ASSERT(future.wait_for(kPatience) == std::future_status::ready);
    return future.get();
  }
  NodeStatus status() {
    auto answer = std::make_shared<std::promise<NodeStatus>>();
    auto future = answer->get_future();
    node->status([answer](NodeStatus status) { answer->set_value(std::move(status)); });
    LEASEHOLD_ASSERT(future.wait_for(kPatience) == std::future_status::ready);
    return future.get();
  }
};

class NodeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto ports = free_ports(4);
    for (std::size_t i = 0; i < 3; ++i) {
      peers_.push_back({raft::NodeId(i + 1), address_of(ports[i])});
    }
    spare_address_ = address_of(ports[3]);
    replicas_.resize(4);
  }
  void TearDown() override { replicas_.clear(); }

  NodeOptions options(std::uint64_t id) const {
    NodeOptions options;
    options.id = raft::NodeId(id);
    options.data_dir = dir(id);
    options.peers = peers_;
    options.timing.lease = std::chrono::milliseconds(400);
    options.timing.heartbeat = std::chrono::milliseconds(40);
    options.timing.election_timeout = std::chrono::milliseconds(150);
    return options;
  }
  std::string dir(std::uint64_t id) const { return folder_.path("node" + std::to_string(id)); }
  Result<std::unique_ptr<Node>> open(Replica& replica, NodeOptions options) {
    return Node::open(std::move(options), replica.machine, replica.clock, replica.observer);
  }
  Replica& start(std::uint64_t id) { return start(id, options(id)); }
  Replica& start(std::uint64_t id, NodeOptions options) {
    auto& replica = replicas_.at(id - 1);
    replica = std::make_unique<Replica>();
    auto opened = open(*replica, std::move(options));
    if (!opened.ok()) ADD_FAILURE() << opened.error().message;
    replica->node = std::move(opened).value();
    replica->node->on_failure(
        [&failed = replica->failed](Error error) { failed.set_value(std::move(error)); });
    return *replica;
  }
  void start_all() {
    for (std::uint64_t id = 1; id <= 3; ++id) start(id);
  }
  void stop(std::uint64_t id) { replicas_.at(id - 1).reset(); }
  Replica& replica(std::uint64_t id) { return *replicas_.at(id - 1); }

  /// The number of a running node that holds a lease.
  std::uint64_t await_leader() {
    std::uint64_t leader = 0;
    EXPECT_TRUE(eventually([this, &leader] {
      for (std::uint64_t id = 1; id <= 3; ++id) {
        if (!replicas_[id - 1]) continue;
        Replica& node = replica(id);
        if (node.node->lease_view().readable_index(node.clock)) leader = id;
      }
      return leader != 0;
    }));
    return leader;
  }
  std::uint64_t follower_of(std::uint64_t leader) const { return leader == 1 ? 2 : 1; }

  TemporaryFolder folder_;
  std::vector<Peer> peers_;
  std::string spare_address_;
  std::vector<std::unique_ptr<Replica>> replicas_;
};

}  // namespace leasehold::node
