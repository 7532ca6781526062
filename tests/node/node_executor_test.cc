// Nodes on the thread of their program: NodeOptions::io_context.
#include <leasehold/tests/node/node_fixture.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>

#include <set>
#include <vector>

namespace leasehold::node {
namespace {

using namespace std::chrono_literals;

/// On which threads it was called.
class ThreadObserver final : public replica::Observer {
 public:
  void on_change(const replica::Change&) override { called(); }
  void on_notice(const std::string&) override { called(); }
  std::set<std::thread::id> threads() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return threads_;
  }

 private:
  void called() {
    const std::lock_guard<std::mutex> lock(mutex_);
    threads_.insert(std::this_thread::get_id());
  }
  mutable std::mutex mutex_;
  std::set<std::thread::id> threads_;
};

class NodeExecutorTest : public ::testing::Test {
 protected:
  NodeExecutorTest() {
    const auto ports = free_ports(3);
    for (std::uint64_t id = 1; id <= 3; ++id) {
      peers_.push_back({raft::NodeId(id), "127.0.0.1:" + std::to_string(ports[id - 1])});
    }
  }
  void open_all() {
    for (std::size_t at = 0; at < 3; ++at) {
      NodeOptions options;
      options.id = peers_[at].id;
      options.data_dir = folder_.path("node" + std::to_string(at + 1));
      options.peers = peers_;
      options.io_context = &io_;
      auto opened = Node::open(options, machines_[at], clock_, observer_);
      ASSERT_TRUE(opened.ok()) << opened.error().message;
      nodes_[at] = std::move(opened).value();
    }
  }
  /// Runs the nodes on this thread until `done` is, for as long as a test may wait.
  bool run_until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!done() && std::chrono::steady_clock::now() < end) io_.run_one_for(100ms);
    return done();
  }

  TemporaryFolder folder_;
  std::vector<Peer> peers_;
  SystemClock clock_;
  ThreadObserver observer_;
  ListMachine machines_[3];
  /// Ends behind the nodes.
  asio::io_context io_;
  std::unique_ptr<Node> nodes_[3];
};

TEST_F(NodeExecutorTest, ThreeNodesShareTheThreadOfTheirProgram) {
  open_all();
  std::optional<replica::ProposeResult> written;
  nodes_[0]->propose(Bytes(std::string("x")), kLong,
                     [&written](replica::ProposeResult result) { written = std::move(result); });
  ASSERT_TRUE(run_until([&] {
    return machines_[0].list().size() == 1 && machines_[1].list().size() == 1 &&
           machines_[2].list().size() == 1;
  }));
  std::optional<replica::ReadResult> read;
  std::thread::id completed;
  nodes_[1]->read(raft::ReadMode::lease, kLong, [&](replica::ReadResult result) {
    read = result;
    completed = std::this_thread::get_id();
  });
  ASSERT_TRUE(run_until([&] { return read.has_value(); }));
  EXPECT_TRUE(read->index.has_value());
  EXPECT_EQ(completed, std::this_thread::get_id());
  for (auto& node : nodes_) node.reset();
  // Completed on the applier's thread, which has ended.
  ASSERT_TRUE(written.has_value());
  EXPECT_EQ(written->status, replica::ProposeStatus::committed);
  EXPECT_EQ(observer_.threads(), std::set<std::thread::id>{std::this_thread::get_id()});
}

// The io_context goes on, and what a node has left in its queue does nothing.
TEST_F(NodeExecutorTest, AnIoContextOutlivesTheNodesThatRanOnIt) {
  for (int round = 0; round < 5; ++round) {
    open_all();
    // Posted, and never waited for: its wake-up is in the queue when the node ends.
    std::vector<replica::ProposeStatus> ends;
    std::mutex mutex;
    for (auto& node : nodes_) {
      node->propose(Bytes(std::string("x")), kLong, [&](const replica::ProposeResult& result) {
        const std::lock_guard<std::mutex> lock(mutex);
        ends.push_back(result.status);
      });
    }
    for (int step = 0; step < 20 * round; ++step) io_.run_one_for(1ms);
    for (auto& node : nodes_) node->stop();
    EXPECT_EQ(ends.size(), 3U);
    for (auto& node : nodes_) node.reset();
    while (io_.poll_one() > 0) {
    }
    bool ran = false;
    io_.restart();
    asio::post(io_, [&ran] { ran = true; });
    io_.run();
    EXPECT_TRUE(ran);
    io_.restart();
  }
}

// As a server does it: one thread runs the io_context, and stops the nodes there.
TEST_F(NodeExecutorTest, AThreadOfTheProgramRunsThem) {
  open_all();
  auto work = asio::make_work_guard(io_);
  std::thread runs([this] { io_.run(); });
  EXPECT_EQ(nodes_[0]->propose_and_wait(Bytes(std::string("x")), kLong).status,
            replica::ProposeStatus::committed);
  EXPECT_TRUE(nodes_[2]->read_point(raft::ReadMode::lease, kLong).index.has_value());
  std::promise<void> stopped;
  asio::post(io_, [&] {
    for (auto& node : nodes_) node->stop();
    stopped.set_value();
  });
  stopped.get_future().wait();
  EXPECT_EQ(nodes_[0]->propose_and_wait(Bytes(std::string("y")), kLong).status,
            replica::ProposeStatus::dropped);
  work.reset();
  runs.join();
}

}  // namespace
}  // namespace leasehold::node
