// A replicated state machine of your own: three nodes of Leasehold in one process, over TCP on the
// loopback interface, with their logs on disk. A real program runs one node per machine.
#include <leasehold/node/node.h>
#include <leasehold/node/system_clock.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>

using namespace std::chrono_literals;
using namespace leasehold;

/// What is replicated: named counters. A command is "NAME AMOUNT", its result the new total.
class Counters final : public replica::StateMachine {
 public:
  /// All in memory: after a restart the log is applied from its beginning.
  raft::Index durable_index() const override { return raft::Index(0); }

  /// Deterministic: the same commands in the same order on every node. A bad command has a result
  /// that says so; throwing or skipping would tear the replicas apart.
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands, raft::Index) override {
    const std::lock_guard lock(mutex_);
    std::vector<Bytes> results;
    for (const replica::Command& command : commands) {
      char name[32] = "";
      long amount = 0;
      if (std::sscanf(std::string(command.bytes).c_str(), "%31s %ld", name, &amount) != 2) {
        results.emplace_back("error: say NAME AMOUNT");
        continue;
      }
      results.emplace_back(std::to_string(totals_[name] += amount));
    }
    return results;
  }
  /// Reads run on any thread, while apply() runs.
  long total(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = totals_.find(name);
    return found == totals_.end() ? 0 : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, long> totals_;
};

int main(int argc, char** argv) {
  const int port = argc > 1 ? std::atoi(argv[1]) : 7450;  // and the two behind it
  const std::string dir = std::filesystem::temp_directory_path() / ("embed" + std::to_string(port));
  std::filesystem::remove_all(dir);

  node::SystemClock clock;
  replica::Observer quiet;  // override its methods to follow leadership, lease and members
  Counters counters[3];
  std::unique_ptr<node::Node> nodes[3];
  for (int i = 0; i < 3; ++i) {
    node::NodeOptions options;
    options.id = raft::NodeId(i + 1);
    options.data_dir = dir + "/node" + std::to_string(i + 1);
    for (int p = 0; p < 3; ++p) {
      options.peers.push_back({raft::NodeId(p + 1), "127.0.0.1:" + std::to_string(port + p)});
    }
    auto opened = node::Node::open(options, counters[i], clock, quiet);
    if (!opened.ok()) {
      std::fprintf(stderr, "node %d: %s\n", i + 1, opened.error().message.c_str());
      return 1;
    }
    nodes[i] = std::move(opened).value();
  }

  // Any node takes commands; the first waits until the three have met and elected a leader.
  for (int i = 0; i < 3; ++i) {
    const replica::ProposeResult added = nodes[i]->propose_and_wait(Bytes("apples 5"), 20s);
    if (added.status != replica::ProposeStatus::committed) return 1;
    std::printf("through node %d: apples are %s\n", i + 1,
                std::string(added.result.view()).c_str());
  }

  // Any node serves linearizable reads: first the read point, then our own memory.
  const char* const why[] = {"by its lease", "by a quorum", "by the leader's word"};
  for (int i = 0; i < 3; ++i) {
    const replica::ReadResult read = nodes[i]->read_point(raft::ReadMode::lease, 20s);
    if (!read.index || counters[i].total("apples") != 15) return 1;
    std::printf("node %d reads %ld apples, %s\n", i + 1, counters[i].total("apples"),
                why[static_cast<int>(read.basis)]);
  }
  for (auto& node : nodes) node.reset();
  std::filesystem::remove_all(dir);
}
