// A program that is no node, at the client ports of a group: three workers share one printer by a
// lock with a queue, each is registered while it runs, and a watcher sees them come and go.
//
//   leasehold serve --id 1 --peers 1=127.0.0.1:7101 --listen 127.0.0.1:7201 --data-dir data
//   remote 127.0.0.1:7201
//
// It ends with status 0 if everything went as told.
#include <leasehold/client/key_watch.h>
#include <leasehold/client/queue_lock.h>
#include <leasehold/client/registration.h>
#include <leasehold/client/remote_keys.h>
#include <leasehold/client/remote_leases.h>

#include <chrono>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;
namespace client = leasehold::client;
namespace grant = leasehold::grant;
namespace lease = leasehold::lease;

/// Seconds that count while the machine sleeps. `node/system_clock.h` is the same, for those who
/// link the node.
class BootClock final : public lease::Clock {
 public:
  lease::Now now() const override { return {holder_now(), lease::PromiseInstant(read())}; }
  lease::HolderInstant holder_now() const override { return lease::HolderInstant(read()); }

 private:
  static lease::Duration read() {
    timespec at{};
    clock_gettime(CLOCK_BOOTTIME, &at);
    return std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec);
  }
};

/// What it prints on. The last defence: it takes no page whose token is older than the newest one.
class Printer {
 public:
  bool print(const std::string& page, grant::FencingToken token) {
    const std::lock_guard lock(mutex_);
    if (token < highest_) return false;
    highest_ = token;
    std::printf("printed by token %llu: %s\n", static_cast<unsigned long long>(token.value()),
                page.c_str());
    return true;
  }

 private:
  std::mutex mutex_;
  grant::FencingToken highest_{0};
};

/// Each connection is used by one thread at a time: the lease has one, and the keys have one.
struct Connections {
  explicit Connections(const std::vector<std::string>& servers) : leases(servers), keys(servers) {}
  client::RemoteLeases leases;
  client::RemoteKeys keys;
};

/// False: something went wrong, and it said what.
bool work(const std::vector<std::string>& servers, const BootClock& clock, Printer& printer,
          const std::string& name) {
  Connections of_registration(servers);
  client::Registration::Options alive;
  alive.lease.holder = "worker " + name;
  alive.key = "workers/" + name;
  alive.value = "prints";
  const auto registration =
      client::Registration::begin(of_registration.leases, of_registration.keys, clock, alive);
  if (!registration) return false;
  while (registration.value()->state() != client::Registration::State::registered) {
    std::this_thread::sleep_for(10ms);
  }

  Connections of_lock(servers);
  client::QueueLock::Options options;
  options.lease.name = "printer";
  options.lease.holder = "worker " + name;
  options.lease.wait = 30s;
  const auto lock = client::QueueLock::acquire(of_lock.leases, of_lock.keys, clock, options);
  if (!lock) {
    std::printf("worker %s has no printer: %s\n", name.c_str(), lock.error().message.c_str());
    return false;
  }
  for (int page = 1; page <= 2; ++page) {
    const auto underway = lock.value()->lease().begin();
    if (!underway) return false;  // the lock is over: nothing new begins
    const std::string text = "page " + std::to_string(page) + " of worker " + name;
    if (!printer.print(text, lock.value()->token())) return false;
  }
  return true;
}

int main(int count, char** words) {
  if (count != 2) {
    std::fprintf(stderr, "usage: remote HOST:PORT\n");
    return 2;
  }
  const std::vector<std::string> servers = {words[1]};
  const BootClock clock;

  client::KeyWatch::Options interest;
  interest.servers = servers;
  interest.prefixes = {"workers/"};
  client::KeyWatch watch(interest);
  // A new group has no leader yet.
  while (watch.next_revision() == 0) {
    if (const auto begun = watch.next(100ms); !begun) {
      std::fprintf(stderr, "remote: %s\n", begun.error().message.c_str());
      return 1;
    }
  }

  Printer printer;
  bool good[3] = {};
  std::vector<std::thread> workers;
  for (int i = 0; i < 3; ++i) {
    workers.emplace_back(
        [&, i] { good[i] = work(servers, clock, printer, std::to_string(i + 1)); });
  }
  for (std::thread& worker : workers) worker.join();

  // Each has come, and gone in good order.
  std::map<std::string, std::string> last;
  const auto gone = [&last] {
    std::size_t count = 0;
    for (const auto& [key, event] : last) count += event == "revoked" ? 1 : 0;
    return count == 3;
  };
  while (!gone()) {
    const auto events = watch.next(1s);
    if (!events) return 1;
    for (const client::KeyWatch::Event& event : events.value()) {
      std::printf("%s: %s\n", event.key.c_str(), client::event_name(event.kind));
      last[event.key] = client::event_name(event.kind);
    }
  }
  return good[0] && good[1] && good[2] ? 0 : 1;
}
