// A replicated SQLite: one process is one replica, and every replica answers SQL.
//
//   sqlite_node [--log-tail BYTES] [--deputy PROGRAM] ID FOLDER HOST:PORT HOST:PORT HOST:PORT
//
// The addresses are those of all replicas, in the order of their numbers. A replica that needs more
// of the log than its tail gets a copy of the database. Each line of the input is SQL. What only
// reads is executed here, on the thread that asks, once the lease (or the leader's word) says that
// it is linearizable; everything else goes through the log. The answer is a line "ok ROWS rows,
// CHANGES changed" and so many rows, or a line that begins with "error: ". `.status` says who
// leads, `.time N SQL` how long a read takes with the lease and without. The end of the input ends
// the replica. With leasehold-deputy the others learn at once that this process has died.
#include <leasehold/node/node.h>
#include <leasehold/node/system_clock.h>

#include "database.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

using namespace std::chrono_literals;
namespace node = leasehold::node;
namespace raft = leasehold::raft;
namespace replica = leasehold::replica;

namespace {

constexpr auto kTimeout = 10s;

std::string write(node::Node& replica, const std::string& sql) {
  const replica::ProposeResult done =
      replica.propose_and_wait(leasehold::Bytes(std::string(sql)), kTimeout);
  switch (done.status) {
    case replica::ProposeStatus::committed: return std::string(done.result.view());
    case replica::ProposeStatus::dropped: return "error: not executed: no leader, try again\n";
    case replica::ProposeStatus::unknown: break;
  }
  return "error: unknown: it may still be executed\n";
}

std::string read(node::Node& replica, const Reader& reader, const std::string& sql) {
  if (!replica.read_point(raft::ReadMode::lease, kTimeout).index) {
    return "error: not executed: no leader, try again\n";
  }
  const auto rows = reader.query(sql);
  return rows.ok() ? rows.value() : "error: " + rows.error().message + "\n";
}

std::string status(node::Node& replica) {
  std::promise<node::NodeStatus> answer;
  replica.status([&answer](node::NodeStatus status) { answer.set_value(std::move(status)); });
  const node::NodeStatus now = answer.get_future().get();
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(now.lease_left);
  return "ok term " + std::to_string(now.term.value()) + ", leader " +
         std::to_string(now.leader.value()) + ", applied " + std::to_string(now.applied.value()) +
         ", lease " + std::to_string(left.count()) + " ms, copies received " +
         std::to_string(now.counters.snapshots_installed) + "\n";
}

/// "N SQL": the median of N reads with the lease, and of as many without, in turn.
std::string time_reads(node::Node& replica, const Reader& reader, const std::string& words) {
  char* sql = nullptr;
  const std::size_t count = std::strtoul(words.c_str(), &sql, 10);
  if (count == 0 || count > 1'000'000 || !reader.reads(sql))
    return "error: say .time N SELECT ...\n";
  std::vector<std::chrono::nanoseconds> with, without;
  for (std::size_t i = 0; i < count; ++i) {
    const auto begin = replica.clock().holder_now();
    const std::string answer = read(replica, reader, sql);
    const auto middle = replica.clock().holder_now();
    if (answer.compare(0, 3, "ok ") != 0) return answer;
    static_cast<void>(reader.query(sql));
    without.push_back(replica.clock().holder_now() - middle);
    with.push_back(middle - begin);
  }
  const auto median = [](std::vector<std::chrono::nanoseconds>& times) {
    std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2),
                     times.end());
    return std::to_string(times[times.size() / 2].count());
  };
  return "ok " + median(with) + " ns with the lease, " + median(without) + " ns without\n";
}

std::string answer(node::Node& replica, const Reader& reader, const std::string& line) {
  if (line == ".status") return status(replica);
  if (line.compare(0, 6, ".time ") == 0) return time_reads(replica, reader, line.substr(6));
  if (line.front() == '.') return "error: say .status, .time N SELECT ..., or SQL\n";
  return reader.reads(line) ? read(replica, reader, line) : write(replica, line);
}

int fail(const leasehold::Error& error) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, error.message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  node::NodeOptions options;
  for (; argc > 2 && argv[1][0] == '-'; argc -= 2, argv += 2) {
    const std::string flag = argv[1];
    if (flag == "--log-tail") {
      options.limits.log_tail_bytes = options.limits.log_cut_bytes =
          std::max(std::strtoull(argv[2], nullptr, 10), 1ULL);
    } else if (flag == "--deputy") {
      options.deputy = argv[2];
    } else {
      break;
    }
  }
  const std::uint64_t id = argc > 3 ? std::strtoull(argv[1], nullptr, 10) : 0;
  if (id == 0 || id > static_cast<std::uint64_t>(argc - 3)) {
    std::fprintf(stderr,
                 "usage: %s [--log-tail BYTES] [--deputy PROGRAM] ID FOLDER HOST:PORT ...\n"
                 "  ID         the number of this replica, from 1\n"
                 "  HOST:PORT  where each replica listens for the others, by number\n"
                 "  PROGRAM    leasehold-deputy: the others learn at once that this one has died\n",
                 program_invocation_short_name);
    return 2;
  }
  options.id = raft::NodeId(id);
  options.data_dir = std::string(argv[2]) + "/node";
  for (int i = 3; i < argc; ++i) {
    options.peers.push_back({raft::NodeId(static_cast<std::uint64_t>(i - 2)), argv[i]});
  }
  const std::string folder = std::string(argv[2]) + "/database";
  const node::SystemClock clock;
  replica::Observer observer;
  std::unique_ptr<Database> database;
  // Only behind the lock of the folder: two processes must not execute the same commands.
  const auto open = [&]() -> leasehold::Result<replica::StateMachine*> {
    auto opened = Database::open(folder);
    if (!opened.ok()) return opened.error();
    database = std::move(opened).value();
    return database.get();
  };
  auto opened = node::Node::open(options, open, clock, observer);
  if (!opened.ok()) return fail(opened.error());
  const std::unique_ptr<node::Node> replica = std::move(opened).value();
  replica->on_failure([](const leasehold::Error& error) { std::_Exit(fail(error)); });
  const auto reader = Reader::open(folder);
  if (!reader.ok()) return fail(reader.error());

  std::string line;
  while (std::getline(std::cin, line)) {
    if (!line.empty()) std::cout << answer(*replica, reader.value(), line) << std::flush;
  }
  // Another one leads before this one ends, so that nobody waits for the end of its lease.
  std::promise<void> drained;
  replica->drain(kTimeout, [&drained](const node::DrainResult&) { drained.set_value(); });
  drained.get_future().wait();
  replica->stop();
  return 0;
}
