// A database that keeps its own store and reads it under the lease, on its own threads.
//
// Node::read_point() does in one call what Database::get() does here step by step; a database does
// it by itself when it has its own waiters, its own snapshots, or wants to decide what happens when
// the lease is not there. The order of the steps is what makes the read linearizable:
//
//   1. the read has arrived                    (nothing that was sampled earlier counts)
//   2. copy the LeaseView                      (one consistent copy, no lock)
//   3. then look at the clock                  (a pause between 2 and 3 only makes it stricter)
//   4. wait until `applied` reaches the copy's commit index
//   5. read the own store
//
// Steps 2 and 3 the other way round would be wrong: the thread could sleep between them, and judge
// a fresh lease of another by an old clock.
#include <leasehold/node/node.h>
#include <leasehold/node/system_clock.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using leasehold::Bytes;
namespace lease = leasehold::lease;
namespace node = leasehold::node;
namespace raft = leasehold::raft;
namespace replica = leasehold::replica;

/// The database: its own map, which the log feeds, and its own read path.
class Database final : public replica::StateMachine {
 public:
  /// Where a read was served from, for the counters below.
  enum class Path { lease, lease_after_wait, asked, refused };
  struct Read {
    Path path = Path::refused;
    std::optional<std::string> value;
  };

  // ---- What the log feeds. Called on the node's "lh-apply" thread. ----

  raft::Index durable_index() const override { return raft::Index(0); }  // in memory

  /// A command is "KEY=VALUE". When this returns, readers that arrive later see the effects: the
  /// node publishes `applied` only after it.
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands, raft::Index) override {
    const std::unique_lock lock(mutex_);
    for (const replica::Command& command : commands) {
      const std::size_t equals = command.bytes.find('=');
      if (equals == std::string_view::npos) continue;  // its result below is empty
      rows_[std::string(command.bytes.substr(0, equals))] = command.bytes.substr(equals + 1);
    }
    return std::vector<Bytes>(commands.size());
  }

  // ---- The read path. Any thread. ----

  Read get(node::Node& replica, const std::string& key) const {
    const replica::LeaseView& view = replica.lease_view();
    const raft::LeaseState copy = view.load();                      // 2
    const lease::HolderInstant now = replica.clock().holder_now();  // 3
    if (now < copy.end) {
      if (view.applied() >= copy.commit) return {Path::lease, row(key)};  // 4 and 5: the hot path
      // The lease stands, the apply thread lags. The read is justified at copy.commit whatever
      // happens to the lease from here on, so wait for that index and for nothing else.
      if (!wait_applied(replica, copy.commit)) return {};
      return {Path::lease_after_wait, row(key)};
    }
    // No lease: this is a follower, or a leader that has lost touch. Ask for a read index; the
    // leader gives it by its own lease if it can, else after a round to a quorum.
    std::promise<std::optional<raft::Index>> answer;
    replica.read(raft::ReadMode::lease, 5s,
                 [&answer](const replica::ReadResult& result) { answer.set_value(result.index); });
    if (!answer.get_future().get()) return {};  // nothing was done: try again, or elsewhere
    return {Path::asked, row(key)};
  }

 private:
  static bool wait_applied(node::Node& replica, raft::Index index) {
    std::promise<bool> answer;
    replica.wait_applied(index, 5s, [&answer](const replica::ReadResult& result) {
      answer.set_value(result.index.has_value());
    });
    return answer.get_future().get();
  }
  std::optional<std::string> row(const std::string& key) const {
    const std::shared_lock lock(mutex_);
    const auto found = rows_.find(key);
    if (found == rows_.end()) return std::nullopt;
    return found->second;
  }

  mutable std::shared_mutex mutex_;
  std::map<std::string, std::string> rows_;
};

/// Tells when this node's lease comes and goes. Called on the node's "lh-node" thread.
class Watcher final : public replica::Observer {
 public:
  explicit Watcher(int id) : id_(id) {}
  void on_change(const replica::Change& change) override {
    if (const auto* lease = std::get_if<replica::LeaseChange>(&change); lease && lease->held) {
      std::printf("node %d holds the lease of term %d\n", id_,
                  static_cast<int>(lease->term.value()));
    }
  }

 private:
  int id_;
};

struct Replica {
  explicit Replica(int id) : watcher(id) {}
  Database database;
  Watcher watcher;
  std::unique_ptr<node::Node> node;  // last: it ends before what it uses
};

/// Two readers on their own threads. How many reads the lease alone justified; none: one was wrong.
std::optional<int> read_rows(const Replica& replica) {
  int paths[2][4] = {};
  bool right[2] = {true, true};
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&replica, &mine = paths[r], &good = right[r]] {
      for (int i = 0; i < 200; ++i) {
        const int at = i % 100;
        const auto read = replica.database.get(*replica.node, "row" + std::to_string(at));
        ++mine[static_cast<int>(read.path)];
        if (read.path != Database::Path::refused && read.value != std::to_string(at * at)) {
          good = false;
        }
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  if (!right[0] || !right[1]) return std::nullopt;
  std::printf(
      "400 reads: %d under the lease, %d of those waited, %d asked the leader, %d refused\n",
      paths[0][0] + paths[1][0] + paths[0][1] + paths[1][1], paths[0][1] + paths[1][1],
      paths[0][2] + paths[1][2], paths[0][3] + paths[1][3]);
  return paths[0][0] + paths[1][0];
}

int main(int argc, char** argv) {
  const int port = argc > 1 ? std::atoi(argv[1]) : 7460;  // and the two behind it
  const std::string dir =
      std::filesystem::temp_directory_path() / ("read_point" + std::to_string(port));
  std::filesystem::remove_all(dir);

  const node::SystemClock clock;
  std::vector<std::unique_ptr<Replica>> replicas;
  for (int id = 1; id <= 3; ++id) {
    node::NodeOptions options;
    options.id = raft::NodeId(static_cast<std::uint64_t>(id));
    options.data_dir = dir + "/node" + std::to_string(id);
    for (int p = 1; p <= 3; ++p) {
      options.peers.push_back({raft::NodeId(static_cast<std::uint64_t>(p)),
                               "127.0.0.1:" + std::to_string(port + p - 1)});
    }
    replicas.push_back(std::make_unique<Replica>(id));
    auto opened =
        node::Node::open(options, replicas.back()->database, clock, replicas.back()->watcher);
    if (!opened.ok()) {
      std::fprintf(stderr, "node %d: %s\n", id, opened.error().message.c_str());
      return 1;
    }
    replicas.back()->node = std::move(opened).value();
  }

  // A batch: one hand-over, one append, one disk write; each command has its own outcome.
  std::vector<node::Proposal> batch;
  std::vector<std::promise<replica::ProposeStatus>> outcomes(100);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    batch.push_back({Bytes("row" + std::to_string(i) + "=" + std::to_string(i * i)),
                     [&outcomes, i](const replica::ProposeResult& result) {
                       outcomes[i].set_value(result.status);
                     }});
  }
  replicas[0]->node->propose_batch(std::move(batch), 20s);
  for (auto& outcome : outcomes) {
    if (outcome.get_future().get() != replica::ProposeStatus::committed) return 1;
  }

  int by_lease = 0;
  for (const auto& replica : replicas) {
    const std::optional<int> reads = read_rows(*replica);
    if (!reads) return 1;
    by_lease += *reads;
  }
  for (const auto& replica : replicas) replica->node.reset();
  std::filesystem::remove_all(dir);
  return by_lease > 0 ? 0 : 1;
}
