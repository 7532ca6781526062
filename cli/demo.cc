#include <leasehold/cli/commands.h>
#include <leasehold/cli/demo_latencies.h>
#include <leasehold/cli/demo_replica.h>
#include <leasehold/cli/demo_waits.h>
#include <leasehold/cli/key_command.h>
#include <leasehold/server/commands/report.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace leasehold::cli {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using Milliseconds = std::chrono::duration<double, std::milli>;
using std::chrono::milliseconds;

constexpr std::size_t kNodes = 3;
constexpr milliseconds kLease{1000};
constexpr milliseconds kElectionTimeout{300};
constexpr int kWritesPerNode = 100;
constexpr int kLeaseReads = 5000;
constexpr int kFollowerReads = 500;
constexpr int kTransfers = 9;
/// Before and after each transfer.
constexpr milliseconds kTransferPause{100};
/// No step of the story takes longer on a healthy machine.
constexpr milliseconds kStepTimeout{10000};
constexpr milliseconds kCallTimeout{5000};
constexpr milliseconds kProbeInterval{5};
constexpr milliseconds kPollInterval{5};
constexpr std::size_t kLogTailBytes = 2000;

volatile std::sig_atomic_t interrupted = 0;

/// What ends the story early.
struct Failed {
  std::string why;
};

[[noreturn]] void fail(std::string why) {
  throw Failed{std::move(why)};
}

template <class T>
T must(Result<T> result, const std::string& what) {
  if (!result) fail(fmt::format("{}: {}", what, result.error().message));
  return std::move(result).value();
}
void must(const Result<void>& result, const std::string& what) {
  if (!result) fail(fmt::format("{}: {}", what, result.error().message));
}

/// One line of the story; shown at once, also through a pipe.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::vprintf(format, args);
  va_end(args);
  std::putchar('\n');
  std::fflush(stdout);
}

struct Replica {
  int id = 0;
  std::string address;
  std::vector<std::string> words;
  std::string log;
  ReplicaProcess process;
};

/// A leader that holds the lease, as its status says.
struct Leader {
  std::size_t at = 0;
  std::uint64_t term = 0;
};

class Demo {
 public:
  Demo(std::string program, std::string dir) : program_(std::move(program)), dir_(std::move(dir)) {}

  void run() {
    form();
    write_through_every_node();
    read_at_the_leader();
    read_at_the_followers();
    transfer();
    kill_the_leader();
    read_everything_back();
    restart_the_killed();
    stop();
  }

  /// The ends of the replicas' logs, for a story that went wrong.
  void show_logs() const {
    for (const Replica& replica : replicas_) {
      std::ifstream file(replica.log);
      std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
      if (text.size() > kLogTailBytes) text.erase(0, text.size() - kLogTailBytes);
      std::fprintf(stderr, "--- end of the log of node %d ---\n%s", replica.id, text.c_str());
    }
  }

 private:
  void form() {
    const std::vector<int> ports = must(free_ports(2 * kNodes), "ports");
    std::string peers;
    for (std::size_t i = 0; i < kNodes; ++i) {
      peers += fmt::format("{}{}=127.0.0.1:{}", i == 0 ? "" : ",", i + 1, ports[i]);
    }
    const auto start = Clock::now();
    for (std::size_t i = 0; i < kNodes; ++i) {
      Replica& replica = replicas_[i];
      replica.id = static_cast<int>(i + 1);
      const std::string name = fmt::format("{}/node{}", dir_, replica.id);
      replica.address = fmt::format("127.0.0.1:{}", ports[kNodes + i]);
      replica.log = name + ".log";
      replica.words = {program_,
                       "serve",
                       "--id",
                       std::to_string(replica.id),
                       "--data-dir",
                       name,
                       "--peers",
                       peers,
                       "--listen",
                       replica.address,
                       "--cluster",
                       "demo",
                       "--lease",
                       fmt::format("{}ms", kLease.count()),
                       "--election-timeout",
                       fmt::format("{}ms", kElectionTimeout.count())};
      must(replica.process.start(replica.words, replica.log), "starting a replica");
    }
    leader_ = wait_for_leader({0, 1, 2});
    say("1. Three replicas form a group");
    for (const Replica& replica : replicas_) {
      say("   node %d: pid %d, clients on %s", replica.id, static_cast<int>(replica.process.pid()),
          replica.address.c_str());
    }
    say("   node %d leads term %llu and holds the lease, %.0f ms after the start\n",
        replicas_[leader_.at].id, static_cast<unsigned long long>(leader_.term),
        Milliseconds(Clock::now() - start).count());
  }

  void write_through_every_node() {
    Latencies at_leader, at_followers;
    for (std::size_t i = 0; i < kNodes; ++i) {
      client::RespClient client = connect(i);
      for (int n = 0; n < kWritesPerNode; ++n) {
        const std::string key = fmt::format("node{}:{}", i + 1, n);
        const std::string value = fmt::format("written through node {}", i + 1);
        (i == leader_.at ? at_leader : at_followers).measure([&] {
          expect_ok(client, {"SET", key, value});
        });
        ledger_[key] = value;
      }
    }
    say("2. Writes through every node, each synced to the disks of two before it is acknowledged");
    say("   %d at the leader: %s", kWritesPerNode, at_leader.text().c_str());
    say("   %d at each follower, forwarded: %s\n", kWritesPerNode, at_followers.text().c_str());
  }

  void read_at_the_leader() {
    client::RespClient client = connect(leader_.at);
    const Json before = status(leader_.at);
    Latencies latencies;
    for (int n = 0; n < kLeaseReads; ++n) {
      const std::string key = fmt::format("node1:{}", n % kWritesPerNode);
      latencies.measure([&] { expect_value(client, key, ledger_.at(key)); });
    }
    const Json after = status(leader_.at);
    const auto rise = [&](const char* name) {
      return after.at("reads").at(name).get<long>() - before.at("reads").at(name).get<long>();
    };
    say("3. Linearizable reads");
    say("   %d at the leader: %ld from the lease, %ld fallbacks, %ld log entries: %s", kLeaseReads,
        rise("lease_hits"), rise("lease_fallbacks"),
        after.at("last").get<long>() - before.at("last").get<long>(), latencies.text().c_str());
    if (rise("lease_hits") + rise("lease_waits") + rise("lease_fallbacks") != kLeaseReads) {
      fail("the leader's counters do not add up");
    }
    if (rise("lease_hits") == 0) fail("no read was served from the lease");
  }

  void read_at_the_followers() {
    Latencies latencies;
    for (std::size_t i = 0; i < kNodes; ++i) {
      if (i == leader_.at) continue;
      client::RespClient client = connect(i);
      for (int n = 0; n < kFollowerReads; ++n) {
        const std::string key = fmt::format("node1:{}", n % kWritesPerNode);
        latencies.measure([&] { expect_value(client, key, ledger_.at(key)); });
      }
    }
    say("   %d at each follower, by the leader's read index: %s\n", kFollowerReads,
        latencies.text().c_str());
  }

  /// Transfers the leadership around the group, while clients read and write at every node.
  void transfer() {
    Waits waits("node1:0", ledger_.at("node1:0"));
    std::vector<std::string> addresses;
    for (const Replica& replica : replicas_) addresses.push_back(replica.address);
    must(waits.start(addresses), "connecting");
    Latencies took, reads, writes;
    for (int n = 0; n < kTransfers; ++n) {
      sleep(kTransferPause);
      const std::size_t next = (leader_.at + 1) % kNodes;
      client::RespClient client = connect(leader_.at);
      waits.take();
      took.measure([&] {
        const client::RespValue reply =
            must(client.call({"LEASEHOLD", "TRANSFER", std::to_string(next + 1)}, kCallTimeout),
                 "LEASEHOLD TRANSFER");
        if (reply.kind != client::RespValue::Kind::bulk) fail("no transfer: " + reply.text);
      });
      sleep(kTransferPause);
      const Waits::Longest longest = waits.take();
      reads.add(longest.read_ms * 1000);
      writes.add(longest.write_ms * 1000);
      leader_ = wait_for_leader({next});
    }
    waits.stop();
    if (const std::string problem = waits.problem(); !problem.empty()) fail(problem);
    for (const auto& [key, value] : waits.written()) ledger_[key] = value;
    say("4. The leadership is transferred %d times, while every node is read and written",
        kTransfers);
    say("   a transfer takes %s; node %d leads now", took.spread().c_str(),
        replicas_[leader_.at].id);
    say("   the longest wait of a write: %s; of a read: %s; of %zu requests none was refused\n",
        writes.spread().c_str(), reads.spread().c_str(), waits.requests());
  }

  void kill_the_leader() {
    killed_ = leader_.at;
    Replica& victim = replicas_[killed_];
    std::vector<std::size_t> survivors;
    for (std::size_t i = 0; i < kNodes; ++i) {
      if (i != killed_) survivors.push_back(i);
    }
    std::vector<Probe> probes;
    probes.reserve(survivors.size());
    for (const std::size_t at : survivors) probes.push_back({at, connect(at), {}, {}, {}});
    const auto killed_at = Clock::now();
    victim.process.signal(SIGKILL);
    std::vector<std::thread> threads;
    threads.reserve(probes.size());
    std::atomic<bool> written{false};
    for (Probe& probe : probes) {
      threads.emplace_back([this, &probe, &written] { probe_writes(probe, written); });
    }
    std::optional<Failed> failed;
    Clock::time_point read_at;
    try {
      leader_ = wait_for_leader(survivors);
      read_at = first_lease_read();
    } catch (const Failed& why) {
      failed = why;
      written = true;
    }
    for (std::thread& thread : threads) thread.join();
    if (failed) throw *failed;
    std::optional<Clock::time_point> written_at;
    for (const Probe& probe : probes) {
      if (!probe.failure.empty()) fail(probe.failure);
      for (const std::string& key : probe.acknowledged) ledger_[key] = "probe";
      if (probe.first && (!written_at || *probe.first < *written_at)) written_at = probe.first;
    }
    if (!written_at) fail("no write was acknowledged after the leader was killed");
    victim.process.wait(kStepTimeout).ok();
    say("5. kill -9 of the leader, node %d; node %d leads term %llu now", victim.id,
        replicas_[leader_.at].id, static_cast<unsigned long long>(leader_.term));
    say("   first acknowledged write after %.0f ms, first lease read after %.0f ms",
        Milliseconds(*written_at - killed_at).count(), Milliseconds(read_at - killed_at).count());
    say("   (its deputy told the others; when a machine dies, nothing tells them: lease %lld ms + "
        "election timeout %lld ms)\n",
        static_cast<long long>(kLease.count()), static_cast<long long>(kElectionTimeout.count()));
  }

  /// Writes on a schedule at one survivor, so that the gap is seen to the millisecond.
  struct Probe {
    std::size_t at;
    client::RespClient client;
    std::vector<std::string> acknowledged;
    std::optional<Clock::time_point> first;
    std::string failure;
  };

  void probe_writes(Probe& probe, std::atomic<bool>& written) {
    const auto deadline = Clock::now() + kStepTimeout;
    std::vector<std::string> keys;  // sent; answered in order
    std::size_t answered = 0;
    while ((!written || answered < keys.size()) && !interrupted) {
      if (Clock::now() > deadline) {
        probe.failure = "the new leader did not acknowledge writes in time";
        return;
      }
      if (!written) {
        keys.push_back(fmt::format("probe{}:{}", probe.at + 1, keys.size()));
        if (auto sent = probe.client.send({{"SET", keys.back(), "probe"}}, kCallTimeout); !sent) {
          probe.failure = "a survivor broke the connection: " + sent.error().message;
          return;
        }
      }
      const auto next = Clock::now() + kProbeInterval;
      while (answered < keys.size() && Clock::now() < next) {
        const auto reply = probe.client.reply(kProbeInterval);
        if (!reply && reply.error().code == ErrorCode::timed_out) break;
        if (!reply) {
          probe.failure = "a survivor broke the connection: " + reply.error().message;
          return;
        }
        if (reply.value().kind == client::RespValue::Kind::simple) {
          if (!probe.first) probe.first = Clock::now();
          probe.acknowledged.push_back(keys[answered]);
          written = true;
        }
        ++answered;
      }
      std::this_thread::sleep_until(next);
    }
  }

  /// A GET at the new leader that its own counter shows to have come from the lease.
  Clock::time_point first_lease_read() {
    client::RespClient client = connect(leader_.at);
    const auto deadline = Clock::now() + kStepTimeout;
    for (;;) {
      const Json before = status(leader_.at);
      expect_value(client, "node1:0", ledger_.at("node1:0"));
      const auto read_at = Clock::now();
      const Json after = status(leader_.at);
      const auto hits = [](const Json& status) {
        return status.at("reads").at("lease_hits").get<long>();
      };
      if (hits(after) > hits(before)) return read_at;
      if (read_at > deadline) fail("the new leader did not serve reads from its lease in time");
      pause();
    }
  }

  void read_everything_back() {
    client::RespClient client = connect(leader_.at);
    for (const auto& [key, value] : ledger_) expect_value(client, key, value);
    say("6. All %zu acknowledged writes are read back from the new leader\n", ledger_.size());
  }

  void restart_the_killed() {
    Replica& replica = replicas_[killed_];
    const auto commit = status(leader_.at).at("commit").get<std::uint64_t>();
    const auto start = Clock::now();
    must(replica.process.start(replica.words, replica.log), "restarting a replica");
    const auto deadline = start + kStepTimeout;
    for (;;) {
      const auto fresh = fetch_status(replica.address, kCallTimeout);
      if (fresh && fresh.value().at("applied").get<std::uint64_t>() >= commit) break;
      check_running(killed_);
      if (Clock::now() > deadline) fail("the restarted node did not catch up in time");
      pause();
    }
    const auto caught_up = Clock::now();
    client::RespClient client = connect(killed_);
    for (const auto& [key, value] : ledger_) expect_value(client, key, value);
    say("7. Node %d starts again on its directory: caught up to entry %llu after %.0f ms, and all "
        "writes are read back from it\n",
        replica.id, static_cast<unsigned long long>(commit),
        Milliseconds(caught_up - start).count());
  }

  void stop() {
    for (Replica& replica : replicas_) replica.process.signal(SIGTERM);
    for (Replica& replica : replicas_) {
      const int exit_status = must(replica.process.wait(kStepTimeout), "stopping a replica");
      if (exit_status != 0) {
        fail(fmt::format("node {} ended with status {}", replica.id, exit_status));
      }
    }
    say("8. All three stopped cleanly.");
  }

  Leader wait_for_leader(const std::vector<std::size_t>& among) {
    const auto deadline = Clock::now() + kStepTimeout;
    for (;;) {
      for (const std::size_t at : among) {
        check_running(at);
        const auto fresh = fetch_status(replicas_[at].address, kCallTimeout);
        if (!fresh || fresh.value().at("role") != "leader") continue;
        if (fresh.value().at("lease_left").get<double>() <= 0) continue;
        return {at, fresh.value().at("term").get<std::uint64_t>()};
      }
      if (Clock::now() > deadline) fail("no node became leader with a lease in time");
      pause();
    }
  }

  void check_running(std::size_t at) {
    if (!replicas_[at].process.running()) {
      fail(fmt::format("node {} ended by itself", replicas_[at].id));
    }
  }
  static void sleep(milliseconds span) {
    if (interrupted) fail("interrupted");
    std::this_thread::sleep_for(span);
  }
  static void pause() {
    if (interrupted) fail("interrupted");
    std::this_thread::sleep_for(kPollInterval);
  }
  client::RespClient connect(std::size_t at) {
    return must(client::RespClient::connect(replicas_[at].address, kCallTimeout), "connecting");
  }
  Json status(std::size_t at) {
    return must(fetch_status(replicas_[at].address, kCallTimeout), "asking for the status");
  }
  static void expect_ok(client::RespClient& client, const std::vector<std::string>& words) {
    if (interrupted) fail("interrupted");
    const client::RespValue reply = must(client.call(words, kCallTimeout), words.front());
    if (reply.kind != client::RespValue::Kind::simple)
      fail(fmt::format("{} was refused: {}", words.front(), reply.text));
  }
  static void expect_value(client::RespClient& client, const std::string& key,
                           const std::string& value) {
    if (interrupted) fail("interrupted");
    const client::RespValue reply = must(client.call({"GET", key}, kCallTimeout), "GET");
    if (reply.kind == client::RespValue::Kind::error) fail("GET was refused: " + reply.text);
    if (reply.kind != client::RespValue::Kind::bulk || reply.text != value) {
      fail(fmt::format("the acknowledged write of {} was not read back", key));
    }
  }

  std::string program_;
  std::string dir_;
  std::array<Replica, kNodes> replicas_;
  Leader leader_;
  std::size_t killed_ = 0;
  std::map<std::string, std::string> ledger_;  ///< acknowledged writes
};

/// Tells the story on stdout. Returns 0 when everything in it came true, 1 with a message on stderr
/// otherwise. Leaves no process and, unless `keep` is set, no file behind.
int run_demo(const std::string& called, bool keep) {
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = 1; };
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  const auto program = own_program(called);
  const auto dir = make_temporary_folder("leasehold-demo-");
  if (!program || !dir) {
    std::fprintf(stderr, "leasehold demo: %s\n",
                 (program ? dir.error() : program.error()).message.c_str());
    return 1;
  }
  say("Leasehold %s: a demonstration in %s\n", server::kVersion, dir.value().c_str());
  bool good = false;
  {
    Demo demo(program.value(), dir.value());
    try {
      demo.run();
      good = true;
    } catch (const Failed& failed) {
      std::fflush(stdout);
      std::fprintf(stderr, "leasehold demo failed: %s\n", failed.why.c_str());
      if (!interrupted) demo.show_logs();
    }
  }
  if (!keep) {
    std::error_code ignored;
    std::filesystem::remove_all(dir.value(), ignored);
  }
  return good ? 0 : 1;
}

}  // namespace

Run add_demo(Flags& flags) {
  const auto keep = std::make_shared<bool>(false);
  flags.add({"--keep", "", "Keep the folder with the data and the logs"}, *keep);
  return [keep, called = flags.program()] { return run_demo(called, *keep); };
}

}  // namespace leasehold::cli
