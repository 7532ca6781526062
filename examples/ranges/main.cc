// RocksDB, replicated: ranges are read under the lease, and an index elsewhere follows the log.
//
//   ranges [PORT]      three ports in a row (default 7401)
//
// The three nodes run in one process here; in yours each has its own.
#include "store.h"

#include <leasehold/node/node.h>
#include <leasehold/node/system_clock.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using leasehold::Bytes;
namespace node = leasehold::node;
namespace raft = leasehold::raft;
namespace replica = leasehold::replica;

namespace {

constexpr std::size_t kNodes = 3;
constexpr int kOrders = 1000;

struct Replica {
  std::unique_ptr<Store> store;
  std::unique_ptr<node::Node> node;
};

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "ranges: %s\n", why.c_str());
  std::exit(1);
}

void open(Replica& replica, std::size_t number, const std::string& folder, int port,
          const node::SystemClock& clock, replica::Observer& observer) {
  node::NodeOptions options;
  options.id = raft::NodeId(number);
  options.data_dir = folder + "/node" + std::to_string(number);
  options.limits.log_tail_bytes = 16U << 10U;  // small: here one that was away gets a snapshot
  options.limits.log_cut_bytes = 16U << 10U;
  for (std::size_t peer = 1; peer <= kNodes; ++peer) {
    const int at = port + static_cast<int>(peer) - 1;
    options.peers.push_back({raft::NodeId(peer), "127.0.0.1:" + std::to_string(at)});
  }
  auto store = Store::open(folder + "/store" + std::to_string(number));
  if (!store.ok()) fail(store.error().message);
  replica.store = std::move(store).value();
  auto opened = node::Node::open(options, *replica.store, clock, observer);
  if (!opened.ok()) fail(opened.error().message);
  replica.node = std::move(opened).value();
}

std::string order(int number) {
  std::string key = std::to_string(number);
  key.insert(0, 6 - key.size(), '0');
  return "order/" + key;
}

void write(Replica& through, const Bytes& command) {
  const auto done = through.node->propose_and_wait(command, 20s);
  if (done.status != replica::ProposeStatus::committed) fail("a command was not committed");
  if (done.result.view() != "ok") fail(std::string(done.result.view()));
}

/// Many at once: they share appends and syncs.
void write_orders(Replica& through, int first, int end) {
  std::vector<std::future<bool>> all;
  for (int number = first; number < end; ++number) {
    auto done = std::make_shared<std::promise<bool>>();
    all.push_back(done->get_future());
    through.node->propose(put(order(number), "item " + std::to_string(number)), 20s,
                          [done](const replica::ProposeResult& result) {
                            done->set_value(result.status == replica::ProposeStatus::committed);
                          });
  }
  for (std::future<bool>& one : all) {
    if (!one.get()) fail("a command was not committed");
  }
}

/// Linearizable: the read point first, then this thread's own look at RocksDB.
std::size_t count(Replica& at, const std::string& first, const std::string& end) {
  const auto read = at.node->read_point(raft::ReadMode::lease, 20s);
  if (!read.index) fail("no read point");
  return at.store->range(first, end, 2 * kOrders).size();
}

/// What an index, or a cache, in another system does: it sees every command once, in order.
class Follower {
 public:
  /// From now on it has a place in the log, which keeps what it has not read.
  explicit Follower(node::Node& at) : at_(at) {
    from_.reader = 1;
    read();
  }
  std::size_t until(std::size_t commands) {
    while (seen_ < commands) read();
    from_.leaves = true;  // or the log would be kept for it for another while
    at_.read_log(from_, 0s, [](const leasehold::Result<replica::LogPart>&) {});
    return seen_;
  }

 private:
  void read() {
    std::promise<leasehold::Result<replica::LogPart>> answer;
    at_.read_log(from_, 20s, [&answer](leasehold::Result<replica::LogPart> part) {
      answer.set_value(std::move(part));
    });
    const auto part = answer.get_future().get();
    if (!part.ok()) fail(part.error().message);
    if (part.value().cut) fail("the log was cut although the reader has a place in it");
    seen_ += part.value().commands.size();
    from_.index = part.value().next;
  }

  node::Node& at_;
  replica::LogReadFrom from_;
  std::size_t seen_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const int port = argc > 1 ? std::atoi(argv[1]) : 7401;
  std::string folder = (std::filesystem::temp_directory_path() / "ranges-XXXXXX").string();
  if (port <= 0 || port > 65533 || mkdtemp(folder.data()) == nullptr) fail("no port, or no folder");
  const node::SystemClock clock;
  replica::Observer observer;
  std::array<Replica, kNodes> replicas;
  for (std::size_t i = 0; i < kNodes; ++i) {
    open(replicas[i], i + 1, folder, port, clock, observer);
  }

  write(replicas[0], put("customer/7", "Ada"));
  Follower follower(*replicas[1].node);
  auto index = std::async(std::launch::async, [&] { return follower.until(2 + kOrders / 2); });
  write_orders(replicas[0], 0, kOrders / 2);
  write(replicas[0], remove_range(order(100), order(200)));
  std::printf("an index has followed %zu commands\n", index.get());
  for (Replica& one : replicas) {
    std::printf("orders 50 to 249: %zu\n", count(one, order(50), order(250)));
    if (count(one, order(50), order(250)) != 100) fail("a range is wrong");
  }

  // One is away while the log moves on, and comes back by a snapshot: a table of RocksDB.
  replicas[2].node.reset();
  replicas[2].store.reset();
  write_orders(replicas[0], kOrders / 2, kOrders);
  for (int i = 0; i < 2; ++i) {
    std::promise<void> cut;
    replicas[static_cast<std::size_t>(i)].node->cut_log([&cut](const auto&) { cut.set_value(); });
    cut.get_future().get();
  }
  open(replicas[2], 3, folder, port, clock, observer);
  const std::size_t orders = count(replicas[2], order(0), order(kOrders));
  std::promise<node::NodeStatus> status;
  replicas[2].node->status([&status](node::NodeStatus now) { status.set_value(std::move(now)); });
  const std::uint64_t snapshots = status.get_future().get().counters.snapshots_installed;
  std::printf("node 3 is back by %llu snapshot, and has %zu orders\n",
              static_cast<unsigned long long>(snapshots), orders);
  if (snapshots != 1 || orders != kOrders - 100) fail("node 3 is not what the others are");
  for (Replica& one : replicas) {
    one.node.reset();
    one.store.reset();
  }
  std::filesystem::remove_all(folder);
}
