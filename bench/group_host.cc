// group_host: one host of many groups, driven by lines on its standard input (bench/groups.py).
// Each group is a counter.
#include <leasehold/bench/histogram.h>
#include <leasehold/bench/workload.h>
#include <leasehold/node/host.h>
#include <leasehold/node/system_clock.h>

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <future>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::bench {
namespace {

using namespace std::chrono_literals;

constexpr lease::Duration kCallTimeout = 10s;

struct Options {
  std::uint64_t id = 0;
  std::vector<std::string> hosts;
  std::string listen;
  std::string dir;
  std::uint64_t groups = 1;
  std::string deputy;
};

/// Any command adds one.
class Counter final : public replica::StateMachine {
 public:
  raft::Index durable_index() const override { return raft::Index(0); }  // in memory
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands, raft::Index) override {
    value_.fetch_add(commands.size(), std::memory_order_release);
    return std::vector<Bytes>(commands.size());
  }
  std::uint64_t value() const { return value_.load(std::memory_order_acquire); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// A group, as this host runs it.
struct Replica {
  std::unique_ptr<Counter> counter;
  node::Group* group = nullptr;
};

/// Writes of this host's clients, each of which has one under way: a closed loop.
class Writers {
 public:
  Writers(std::size_t bytes, std::chrono::milliseconds duration)
      : command_(std::string(bytes, 'w')),
        end_(monotonic_ns() + static_cast<std::uint64_t>(duration / 1ns)) {}

  void begin(node::Group& group) {
    {
      const std::lock_guard lock(mutex_);
      ++running_;
    }
    write(group);
  }
  /// Waits until all have ended.
  std::string result() {
    std::unique_lock lock(mutex_);
    over_.wait(lock, [this] { return running_ == 0; });
    return fmt::format(R"({{"failed":{},"latency":{}}})", failed_, latency_.to_json());
  }

 private:
  void write(node::Group& group) {
    const std::uint64_t began = monotonic_ns();
    group.propose(command_, kCallTimeout, [this, began, &group](const auto& result) {
      const bool over = ended(result.status == replica::ProposeStatus::committed, began);
      if (!over) write(group);
    });
  }
  /// Whether the client stops. It may be the last touch: result() returns behind it.
  bool ended(bool committed, std::uint64_t began) {
    const std::uint64_t now = monotonic_ns();
    const std::lock_guard lock(mutex_);
    if (committed) {
      latency_.record(now - began);
      if (now < end_) return false;
    } else {
      ++failed_;
    }
    if (--running_ == 0) over_.notify_all();
    return true;
  }

  const Bytes command_;
  const std::uint64_t end_;
  std::mutex mutex_;
  std::condition_variable over_;
  // Under mutex_.
  std::size_t running_ = 0;
  std::uint64_t failed_ = 0;
  Histogram latency_;
};

class GroupHost {
 public:
  Result<void> open(const Options& options);
  /// The answer to one line, as JSON.
  Result<std::string> answer(const std::string& line);

 private:
  bool leased(const Replica& replica) const {
    return replica.group->lease_view().look(clock_).valid();
  }
  std::string status();
  std::string write(std::size_t clients, std::size_t groups, std::uint64_t duration_ms,
                    std::size_t bytes);
  Result<std::string> read(std::size_t blocks, std::size_t calls, bool spread);

  node::SystemClock clock_;
  replica::Observer observer_;
  std::vector<Replica> replicas_;
  std::unique_ptr<node::Host> host_;
};

Result<void> GroupHost::open(const Options& options) {
  node::HostOptions host;
  host.id = raft::NodeId(options.id);
  host.data_dir = options.dir;
  host.listen = options.listen;
  host.deputy = options.deputy;
  for (std::size_t i = 0; i < options.hosts.size(); ++i) {
    host.hosts.push_back({raft::NodeId(i + 1), options.hosts[i]});
  }
  auto opened = node::Host::open(host, clock_, observer_);
  if (!opened) return opened.error();
  host_ = std::move(opened).value();
  for (std::uint64_t group = 1; group <= options.groups; ++group) {
    node::GroupOptions one;
    one.group = raft::GroupId(group);
    one.replica = host.id;
    for (const node::Peer& peer : host.hosts) one.members.push_back({peer.id, peer.id});
    // Each host leads its share, again soon after it has been away.
    one.preferred_leaders = {raft::NodeId(1 + group % options.hosts.size())};
    one.preference_settle = 1s;
    Replica replica{std::make_unique<Counter>(), nullptr};
    auto running = host_->open_group(one, *replica.counter, observer_);
    if (!running) return running.error();
    replica.group = running.value();
    replicas_.push_back(std::move(replica));
  }
  // Answered when all groups take part: open_group() does not wait for that.
  static_cast<void>(status());
  return {};
}

std::string GroupHost::status() {
  std::promise<node::HostStatus> promise;
  host_->status([&promise](node::HostStatus status) { promise.set_value(std::move(status)); });
  const node::HostStatus status = promise.get_future().get();
  std::uint64_t leases = 0;
  std::uint64_t terms = 0;
  for (const Replica& replica : replicas_) {
    const replica::LeaseLook look = replica.group->lease_view().look(clock_);
    if (!look.valid()) continue;
    ++leases;
    terms += look.state.term.value();
  }
  return fmt::format(R"({{"leased":{},"terms":{},"led":{},"at_rest":{},"messages":{},"syncs":{}}})",
                     leases, terms, status.led, status.at_rest, status.messages_sent, status.syncs);
}

/// `clients` in all, spread over the first `groups`; here those of the groups that this host leads.
std::string GroupHost::write(std::size_t clients, std::size_t groups, std::uint64_t duration_ms,
                             std::size_t bytes) {
  Writers writers(bytes, std::chrono::milliseconds(duration_ms));
  for (std::size_t client = 0; client < clients; ++client) {
    const Replica& replica = replicas_[client % groups];
    if (leased(replica)) writers.begin(*replica.group);
  }
  return writers.result();
}

/// Blocks of lease reads: the mean of each, in picoseconds. Of one group that is led here, another
/// in each block; `spread`: of all those in turn.
Result<std::string> GroupHost::read(std::size_t blocks, std::size_t calls, bool spread) {
  std::vector<const Replica*> led;
  for (const Replica& replica : replicas_) {
    if (leased(replica)) led.push_back(&replica);
  }
  std::string means;
  std::uint64_t sum = 0;
  for (std::size_t block = 0; !led.empty() && block < blocks; ++block) {
    const std::uint64_t began = monotonic_ns();
    for (std::size_t call = 0; call < calls; ++call) {
      const Replica& replica = *led[(spread ? block * calls + call : block) % led.size()];
      if (!replica.group->read_point(raft::ReadMode::lease, kCallTimeout).index) {
        return Error{ErrorCode::unavailable, "a lease read was refused"};
      }
      sum += replica.counter->value();
    }
    means += fmt::format("{}{}", block == 0 ? "" : ",", (monotonic_ns() - began) * 1000 / calls);
  }
  return fmt::format(R"({{"groups":{},"sum":{},"picoseconds":[{}]}})", led.size(), sum, means);
}

Result<std::string> GroupHost::answer(const std::string& line) {
  const Error wrong{ErrorCode::invalid_argument, "not a request: " + line};
  std::istringstream words(line);
  std::string what;
  words >> what;
  if (what == "status") return status();
  if (what == "write") {
    std::size_t clients = 0;
    std::size_t groups = 0;
    std::uint64_t duration_ms = 0;
    std::size_t bytes = 0;
    if (!(words >> clients >> groups >> duration_ms >> bytes)) return wrong;
    if (groups == 0 || groups > replicas_.size()) return wrong;
    return write(clients, groups, duration_ms, bytes);
  }
  std::size_t blocks = 0;
  std::size_t calls = 0;
  std::string which;
  if (what != "read" || !(words >> blocks >> calls >> which) || calls == 0) return wrong;
  return read(blocks, calls, which == "spread");
}

int run(const Options& options) {
  const std::uint64_t began = monotonic_ns();
  GroupHost host;
  if (const auto opened = host.open(options); !opened) {
    std::cerr << "group_host: " << opened.error().message << "\n";
    return 1;
  }
  std::cout << fmt::format(R"({{"opened_ms":{}}})", (monotonic_ns() - began) / 1'000'000)
            << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
    const Result<std::string> answer = host.answer(line);
    if (!answer) {
      std::cerr << "group_host: " << answer.error().message << "\n";
      return 1;
    }
    std::cout << answer.value() << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace leasehold::bench

int main(int argc, char** argv) {
  leasehold::bench::Options options;
  CLI::App app(
      "One host of many groups, each of them a counter. It prints a line when they are open, and "
      "answers the lines \"status\", \"write CLIENTS GROUPS MILLISECONDS BYTES\" and \"read BLOCKS "
      "CALLS one|spread\" by a line of JSON each, until its input ends.");
  app.add_option("--id", options.id, "This host's number")->required()->check(CLI::PositiveNumber);
  app.add_option("--hosts", options.hosts, "host:port of all hosts, in the order of their numbers")
      ->required()
      ->delimiter(',');
  app.add_option("--listen", options.listen, "host:port to listen at; default: this host's own");
  app.add_option("--dir", options.dir, "The host's folder")->required();
  app.add_option("--groups", options.groups, "Groups, each with a replica at each host")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--deputy", options.deputy, "The deputy's program; default: none runs");
  CLI11_PARSE(app, argc, argv);
  return leasehold::bench::run(options);
}
