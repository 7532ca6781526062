// A thousand counters, each in a group of its own, on three hosts.
//
//   sharded [PORT [GROUPS]]      three ports in a row (default 7301), and 1000 groups
//
// The three hosts run in one process here; in yours each has its own. A host has one listener, one
// log and a fixed number of threads, however many groups it runs. A group that nobody writes to
// sends nothing, and its leader still answers reads by its lease.
#include <leasehold/node/host.h>
#include <leasehold/node/system_clock.h>
#include <leasehold/replica/observer.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
using leasehold::Bytes;
namespace node = leasehold::node;
namespace raft = leasehold::raft;
namespace replica = leasehold::replica;

namespace {

constexpr std::uint64_t kHosts = 3;

/// One replica of one counter. Any command adds one.
class Counter final : public replica::StateMachine {
 public:
  raft::Index durable_index() const override { return raft::Index(0); }  // in memory
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands, raft::Index) override {
    const std::lock_guard lock(mutex_);
    value_ += commands.size();
    return std::vector<Bytes>(commands.size());
  }
  std::uint64_t value() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }

 private:
  mutable std::mutex mutex_;
  std::uint64_t value_ = 0;
};

/// A host, and its replica of each counter.
struct Machine {
  std::vector<std::unique_ptr<Counter>> counters;
  std::vector<node::Group*> groups;
  std::unique_ptr<node::Host> host;
};

[[noreturn]] void fail(const leasehold::Error& error) {
  std::fprintf(stderr, "sharded: %s\n", error.message.c_str());
  std::exit(1);
}

void open(Machine& machine, std::uint64_t id, const std::string& folder, std::uint64_t port,
          std::uint64_t groups, const node::SystemClock& clock, replica::Observer& observer) {
  node::HostOptions options;
  options.id = raft::NodeId(id);
  options.data_dir = folder + "/host" + std::to_string(id);
  for (std::uint64_t host = 1; host <= kHosts; ++host) {
    options.hosts.push_back({raft::NodeId(host), "127.0.0.1:" + std::to_string(port + host - 1)});
  }
  auto host = node::Host::open(options, clock, observer);
  if (!host.ok()) fail(host.error());
  machine.host = std::move(host).value();
  for (std::uint64_t group = 1; group <= groups; ++group) {
    node::GroupOptions one;
    one.group = raft::GroupId(group);
    one.replica = raft::NodeId(id);  // numbers are of the group: here each host has the same in all
    for (std::uint64_t member = 1; member <= kHosts; ++member) {
      one.members.push_back({raft::NodeId(member), raft::NodeId(member)});
    }
    machine.counters.push_back(std::make_unique<Counter>());
    auto opened = machine.host->open_group(one, *machine.counters.back(), observer);
    if (!opened.ok()) fail(opened.error());
    machine.groups.push_back(opened.value());
  }
}

/// The replica that may read by a lease; null: none at the moment.
Machine* leader_of(std::array<Machine, kHosts>& machines, std::size_t group,
                   const node::SystemClock& clock) {
  for (Machine& machine : machines) {
    if (!machine.host) continue;
    if (machine.groups[group]->lease_view().readable_index(clock)) return &machine;
  }
  return nullptr;
}

/// How long it takes until every group has a lease.
std::chrono::milliseconds until_led(std::array<Machine, kHosts>& machines, std::size_t groups,
                                    const node::SystemClock& clock) {
  const auto begin = clock.holder_now();
  for (std::size_t group = 0; group < groups; ++group) {
    while (leader_of(machines, group, clock) == nullptr) std::this_thread::sleep_for(1ms);
  }
  return std::chrono::duration_cast<std::chrono::milliseconds>(clock.holder_now() - begin);
}

node::HostStatus status_of(node::Host& host) {
  std::promise<node::HostStatus> answer;
  host.status([&answer](node::HostStatus status) { answer.set_value(std::move(status)); });
  return answer.get_future().get();
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t port = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 7301;
  const std::size_t groups = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1000;
  if (port == 0 || port > 65533 || groups == 0) {
    std::fprintf(stderr, "usage: sharded [PORT [GROUPS]]\n");
    return 2;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "sharded-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror("sharded: mkdtemp");
    return 1;
  }
  const node::SystemClock clock;
  replica::Observer observer;
  std::array<Machine, kHosts> machines;
  const auto begin = clock.holder_now();
  for (std::uint64_t id = 1; id <= kHosts; ++id) {
    open(machines[id - 1], id, folder, port, groups, clock, observer);
  }
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(clock.holder_now() - begin);
  std::printf("%zu groups opened on each host in %lld ms\n", groups,
              static_cast<long long>(took.count()));
  std::printf("each has a leader with a lease %lld ms later\n",
              static_cast<long long>(until_led(machines, groups, clock).count()));

  // One write to each, from any host.
  std::vector<std::future<bool>> written;
  for (std::size_t group = 0; group < groups; ++group) {
    auto done = std::make_shared<std::promise<bool>>();
    written.push_back(done->get_future());
    machines[group % kHosts].groups[group]->propose(
        Bytes("+1"), 30s, [done](const replica::ProposeResult& result) {
          done->set_value(result.status == replica::ProposeStatus::committed);
        });
  }
  std::size_t committed = 0;
  for (std::future<bool>& one : written) committed += one.get() ? 1 : 0;
  std::printf("%zu writes committed\n", committed);

  // At rest nothing is sent for a group. Its leader reads by its lease, without asking anybody.
  std::this_thread::sleep_for(3s);
  const std::uint64_t before = status_of(*machines[0].host).messages_sent;
  std::this_thread::sleep_for(1s);
  const node::HostStatus rests = status_of(*machines[0].host);
  std::printf("host 1 leads %llu groups, %llu of them at rest, and sends %llu messages a second\n",
              static_cast<unsigned long long>(rests.led),
              static_cast<unsigned long long>(rests.at_rest),
              static_cast<unsigned long long>(rests.messages_sent - before));
  std::uint64_t sum = 0;
  for (std::size_t group = 0; group < groups; ++group) {
    Machine* const leader = leader_of(machines, group, clock);
    if (leader == nullptr) continue;
    const auto read = leader->groups[group]->read_point(raft::ReadMode::lease, 5s);
    if (read.index) sum += leader->counters[group]->value();
  }
  std::printf("the counters add up to %llu\n", static_cast<unsigned long long>(sum));

  machines[2].host.reset();
  std::printf("host 3 has ended; each group has a lease again %lld ms later\n",
              static_cast<long long>(until_led(machines, groups, clock).count()));
  for (Machine& machine : machines) machine.host.reset();
  std::filesystem::remove_all(folder);
  return sum == committed && committed == groups ? 0 : 1;
}
