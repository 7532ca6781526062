// Three short stories about a lease that a client holds, with the library's holder on one side and,
// on the other, the smallest store that grants leases: one process, no replication, so that all of
// it fits here. A group of `leasehold serve` nodes grants in the same words.
//
//   1. The contract of a renewal: the holder's own deadline comes before the store's.
//   2. The pause: a holder that slept through its lease writes, and its token is too old.
//   3. The margin: what was begun in time may end too late. With a margin of zero two hold at once.
//
// It ends with status 0 if everything went as told.
#include <leasehold/client/lease_holder.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

using namespace std::chrono_literals;
using leasehold::Error;
using leasehold::ErrorCode;
using leasehold::Result;
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

/// One lease a name, by the clock of the store; and a value that remembers the largest token.
class Store final : public client::LeaseService {
 public:
  explicit Store(const lease::Clock& clock) : clock_(clock) {}

  Result<Granted> grant(const Request& request, lease::Duration /*timeout*/) override {
    const std::lock_guard lock(mutex_);
    // Not only "is there a holder": an expired one blocks no client.
    if (const Held* held = alive(request.name)) {
      return Error{ErrorCode::in_use, "held by " + held->who};
    }
    const Granted granted{grant::LeaseId(next_), grant::FencingToken(next_), request.ttl};
    ++next_;
    held_[request.name] = {granted, request.holder, clock_.holder_now() + request.ttl};
    return granted;
  }
  Result<Found> find(const std::string& name, lease::Duration /*timeout*/) override {
    const std::lock_guard lock(mutex_);
    const Held* held = alive(name);
    if (held == nullptr) return Error{ErrorCode::not_found, "nobody holds it"};
    return Found{held->granted, held->who};
  }
  Result<lease::Duration> renew(grant::LeaseId id, lease::Duration /*timeout*/) override {
    const std::lock_guard lock(mutex_);
    if (cut_off_) return Error{ErrorCode::unavailable, "out of reach"};
    for (auto& [name, held] : held_) {
      // The id, not the holder's name: a renewal of an earlier grant must not extend a later one.
      if (held.granted.id != id || alive(name) == nullptr) continue;
      held.expires = clock_.holder_now() + held.granted.ttl;
      return held.granted.ttl;  // a duration: no instant of one clock means anything on another
    }
    return Error{ErrorCode::not_found, "there is no such lease"};
  }
  Result<void> revoke(grant::LeaseId id, lease::Duration /*timeout*/) override {
    const std::lock_guard lock(mutex_);
    std::erase_if(held_, [id](const auto& one) { return one.second.granted.id == id; });
    return {};
  }

  /// From here on, no renewal arrives.
  void cut_off(bool cut_off) {
    const std::lock_guard lock(mutex_);
    cut_off_ = cut_off;
  }
  /// False: a larger token has written.
  bool write(grant::FencingToken token, const std::string& value) {
    const std::lock_guard lock(mutex_);
    if (!grant::fence_passes(highest_, token)) return false;
    highest_ = token;
    value_ = value;
    return true;
  }
  std::string value() const {
    const std::lock_guard lock(mutex_);
    return value_;
  }
  lease::HolderInstant expires(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    return held_.at(name).expires;
  }

 private:
  struct Held {
    Granted granted;
    std::string who;
    lease::HolderInstant expires;
  };
  const Held* alive(const std::string& name) const {
    const auto found = held_.find(name);
    if (found == held_.end() || found->second.expires <= clock_.holder_now()) return nullptr;
    return &found->second;
  }

  const lease::Clock& clock_;
  mutable std::mutex mutex_;
  std::map<std::string, Held> held_;
  std::uint64_t next_ = 33;
  grant::FencingToken highest_{0};
  std::string value_;
  bool cut_off_ = false;
};

/// Says what is so, and ends the program if it is not.
void expect(bool holds, const char* what) {
  std::printf("  %s %s\n", holds ? "yes:" : "NO: ", what);
  if (!holds) std::exit(1);
}

double seconds(lease::Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

client::LeaseHolder::Options options_of(const std::string& who, lease::Duration margin) {
  client::LeaseHolder::Options options;
  options.name = "printer";
  options.holder = who;
  options.timing.ttl = 1s;
  options.timing.max_clock_drift_ppm = 0;  // both sides go by one clock here
  options.timing.max_round_trip = 20ms;
  options.timing.margin = margin;
  options.timing.renewal = 200ms;
  options.wait = 5s;
  return options;
}

std::unique_ptr<client::LeaseHolder> acquire(Store& store, const lease::Clock& clock,
                                             const std::string& who, lease::Duration margin) {
  auto held = client::LeaseHolder::acquire(store, clock, options_of(who, margin));
  if (!held) {
    std::printf("  %s: %s\n", who.c_str(), held.error().message.c_str());
    std::exit(1);
  }
  return std::move(held).value();
}

void contract(const lease::Clock& clock) {
  std::printf("1. The contract of a renewal: a lease of 1 s, renewed every 0.2 s, margin 0.3 s\n");
  Store store(clock);
  const auto held = acquire(store, clock, "node A", 300ms);
  std::this_thread::sleep_for(1500ms);
  expect(held->may_act(), "it is held after 1.5 s, since it was renewed meanwhile");
  store.cut_off(true);
  const auto state = held->wait_end(5s);
  expect(state == client::LeaseHolder::State::expired, "cut off, it expires");
  expect(!held->may_act(), "the holder acts no more");
  const lease::Duration left = store.expires("printer") - clock.holder_now();
  std::printf("  the store would have kept it for %.2f s more\n", seconds(left));
  expect(left > 0s, "so nobody else had it before: that is what the margin is for");
}

void pause(const lease::Clock& clock) {
  std::printf(
      "2. The pause: the first holder sleeps past its time to live, and looks at nothing\n");
  Store store(clock);
  const auto first = acquire(store, clock, "client 1", 300ms);
  expect(store.write(first->token(), "v1"), "client 1 writes with its token");
  store.cut_off(true);
  const auto second = acquire(store, clock, "client 2", 300ms);
  std::printf("  tokens: %llu, and %llu for client 2\n",
              static_cast<unsigned long long>(first->token().value()),
              static_cast<unsigned long long>(second->token().value()));
  expect(store.write(second->token(), "v2"), "client 2 holds it now, and writes");
  expect(!store.write(first->token(), "v1 again"), "the late write of client 1 is refused");
  expect(store.value() == "v2", "the value is that of client 2");
}

/// How long after the end of its lease at the store a holder still acts, whose acts take 70 ms and
/// which looks before each.
lease::Duration acts_too_long(const lease::Clock& clock, lease::Duration margin) {
  Store store(clock);
  const auto held = acquire(store, clock, "node A", margin);
  store.cut_off(true);
  const lease::HolderInstant expires = store.expires("printer");
  while (held->may_act()) std::this_thread::sleep_for(70ms);
  return clock.holder_now() - expires;
}

void margin(const lease::Clock& clock) {
  std::printf("3. The margin: each act takes 70 ms, and the holder looks before each\n");
  const lease::Duration with = acts_too_long(clock, 200ms);
  std::printf("  with a margin of 0.2 s the last act ends %.3f s before the lease\n",
              seconds(-with));
  expect(with < 0s, "nobody acts when the next one may hold it");
  const lease::Duration without = acts_too_long(clock, 0ms);
  std::printf("  without one it ends %.3f s after it\n", seconds(without));
  expect(without > 0s, "two would act at once");
}

int main() {
  const BootClock clock;
  contract(clock);
  pause(clock);
  margin(clock);
  return 0;
}
