// Three nodes of a key-value store in one process, and two jobs of which one runs at a time: the
// lock is a lease of that same store, so there is nothing else to install. In production each
// node is a process on a machine of its own, and each has one job.
//
// It ends with status 0 if the jobs ran one after the other, and the second one began when the
// first one ended and not when its lease would have.
#include <leasehold/client/queue_lock.h>
#include <leasehold/kv/lease_keeper.h>
#include <leasehold/kv/local/lease_timer.h>
#include <leasehold/kv/local/local_keys.h>
#include <leasehold/kv/local/local_leases.h>
#include <leasehold/kv/memory_store.h>
#include <leasehold/node/node.h>
#include <leasehold/node/system_clock.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
namespace client = leasehold::client;
namespace grant = leasehold::grant;
namespace kv = leasehold::kv;
namespace lease = leasehold::lease;
namespace node = leasehold::node;
namespace raft = leasehold::raft;
namespace replica = leasehold::replica;

/// One node with its store, and what times the leases while this node leads.
struct Host {
  Host(int id, const std::string& folder, int port) {
    node::NodeOptions options;
    options.id = raft::NodeId(static_cast<std::uint64_t>(id));
    options.data_dir = folder + "/node" + std::to_string(id);
    for (int peer = 1; peer <= 3; ++peer) {
      options.peers.push_back({raft::NodeId(static_cast<std::uint64_t>(peer)),
                               "127.0.0.1:" + std::to_string(port + peer - 1)});
    }
    auto opened = node::Node::open(options, store, clock, observer);
    if (!opened) {
      std::fprintf(stderr, "node %d: %s\n", id, opened.error().message.c_str());
      std::exit(1);
    }
    replica = std::move(opened).value();
    timer = std::make_unique<kv::LeaseTimer>(*replica, keeper);
  }
  kv::LocalGroup group() { return {*replica, store, keeper}; }

  node::SystemClock clock;
  replica::Observer observer;
  kv::MemoryStore store;
  kv::LeaseKeeper keeper{clock,
                         [this](std::uint64_t cursor) { return store.lease_changes(cursor); }};
  std::unique_ptr<node::Node> replica;
  std::unique_ptr<kv::LeaseTimer> timer;
};

/// What the jobs did, in order.
class Diary {
 public:
  void write(const std::string& line) {
    const std::lock_guard lock(mutex_);
    std::printf("%s\n", line.c_str());
    lines_.push_back(line.substr(0, line.find(' ')));
  }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

bool run_job(Host& host, const std::string& name, Diary& diary) {
  kv::LocalLeases leases(host.group());
  kv::LocalKeys keys(host.group());
  client::QueueLock::Options options;
  options.lease.name = "nightly";
  options.lease.holder = name;
  options.lease.wait = 30s;
  const auto lock = client::QueueLock::acquire(leases, keys, host.clock, options);
  if (!lock) {
    diary.write("failed " + name + ": " + lock.error().message);
    return false;
  }
  diary.write("begins " + name + ", token " + std::to_string(lock.value()->token().value()));
  {
    const auto work = lock.value()->lease().begin();
    if (!work) return false;
    std::this_thread::sleep_for(100ms);  // what the job does
  }
  diary.write("ends " + name);
  return lock.value()->lease().drain();
}

int main(int argc, char** argv) {
  const int port = argc > 1 ? std::atoi(argv[1]) : 7470;  // and the two behind it
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("leasehold_local_" + std::to_string(port)))
          .string();
  std::filesystem::remove_all(folder);
  bool good[2] = {};
  Diary diary;
  const node::SystemClock clock;
  const lease::HolderInstant begun = clock.holder_now();
  {
    std::vector<std::unique_ptr<Host>> hosts;
    for (int id = 1; id <= 3; ++id) hosts.push_back(std::make_unique<Host>(id, folder, port));
    std::thread first([&] { good[0] = run_job(*hosts[0], "one", diary); });
    std::thread second([&] { good[1] = run_job(*hosts[1], "two", diary); });
    first.join();
    second.join();
  }
  std::filesystem::remove_all(folder);
  const lease::Duration took = clock.holder_now() - begun;
  const bool in_turn =
      diary.lines() == std::vector<std::string>{"begins", "ends", "begins", "ends"};
  return good[0] && good[1] && in_turn && took < 8s ? 0 : 1;
}
