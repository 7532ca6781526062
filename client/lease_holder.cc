#include <leasehold/client/lease_holder.h>

#include <algorithm>
#include <utility>

namespace leasehold::client {
namespace {

using grant::HeldLease;
using lease::Duration;
using lease::HolderInstant;
using Granted = LeaseService::Granted;

/// Longest single wait: the waits of the standard library do not count the time that the machine
/// was asleep, and the lease does.
constexpr Duration kLook = std::chrono::milliseconds(50);
/// Between two questions whether the name is free.
constexpr Duration kAskAgain = std::chrono::milliseconds(100);

bool may_pass(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::timed_out ||
         code == ErrorCode::in_use;
}

/// Gets the lease of one name, asking until it is free.
class Acquisition {
 public:
  struct Taken : Granted {
    HolderInstant sent;
  };

  Acquisition(LeaseService& service, const lease::Clock& clock, const LeaseHolder::Options& options)
      : service_(service),
        clock_(clock),
        options_(options),
        random_(options.seed),
        give_up_at_(clock.holder_now() + options.wait) {}

  Result<Taken> run() {
    for (;;) {
      auto taken = ask();
      if (taken || !may_pass(taken.error().code)) return taken;
      const bool told = options_.give_up();
      if (told || clock_.holder_now() >= give_up_at_) {
        if (unsure_) give_back();
        if (told) return Error{ErrorCode::stopped, "given up: " + taken.error().message};
        return taken;
      }
      pause();
    }
  }

 private:
  Duration timeout() const { return options_.timing.max_round_trip; }

  Result<Taken> ask() {
    const HolderInstant sent = clock_.holder_now();
    auto granted = service_.grant(
        {options_.name, options_.holder, options_.timing.ttl, options_.terms}, timeout());
    if (granted) return in_time(Taken{granted.value(), sent});
    if (granted.error().code == ErrorCode::timed_out) unsure_ = true;
    if (granted.error().code == ErrorCode::in_use && unsure_) return recognise(granted.error());
    return granted.error();
  }

  /// If the process slept between question and answer, it may not act under this lease: it asks
  /// again, and recognises its own lease.
  Result<Taken> in_time(const Taken& taken) {
    if (clock_.holder_now() < taken.sent + options_.timing.usable(taken.ttl)) return taken;
    unsure_ = true;
    return Error{ErrorCode::timed_out, "the answer to the grant came too late to act on it"};
  }

  /// An answer was lost, and the name is held now: by this very holder?
  Result<Taken> recognise(const Error& held) {
    const auto found = service_.find(options_.name, timeout());
    if (!found) return found.error().code == ErrorCode::not_found ? held : found.error();
    if (found.value().holder != options_.holder) return held;
    // It is not known how much of its time is over: a renewal makes it known.
    const Granted& granted = found.value();
    Taken taken{granted, clock_.holder_now()};
    const auto renewed = service_.renew(taken.id, timeout());
    if (!renewed) return renewed.error().code == ErrorCode::not_found ? held : renewed.error();
    taken.ttl = renewed.value();
    return in_time(taken);
  }

  /// A grant may have been made whose answer was lost: no work was done under it, so it is revoked,
  /// and others need not wait for its end.
  void give_back() {
    const auto found = service_.find(options_.name, timeout());
    if (!found || found.value().holder != options_.holder) return;
    // Else it ends by time.
    static_cast<void>(service_.revoke(found.value().id, timeout()));
  }

  /// With jitter, since all clients that wait for one name wait for the same moment.
  void pause() {
    const std::int64_t longest = kAskAgain.count();
    std::this_thread::sleep_for(Duration(random_.between(longest / 2, longest + 1)));
  }

  LeaseService& service_;
  const lease::Clock& clock_;
  const LeaseHolder::Options& options_;
  Random random_;
  const HolderInstant give_up_at_;
  /// A grant was sent and not answered in time.
  bool unsure_ = false;
};

}  // namespace

Result<std::unique_ptr<LeaseHolder>> LeaseHolder::acquire(LeaseService& service,
                                                          const lease::Clock& clock,
                                                          const Options& options) {
  if (auto valid = options.timing.validate(); !valid) return valid.error();
  if (options.name.empty() || options.holder.empty()) {
    return Error{ErrorCode::invalid_argument,
                 "a lease needs a name and a unique name of its holder"};
  }
  const auto taken = Acquisition(service, clock, options).run();
  if (!taken) return taken.error();
  return std::unique_ptr<LeaseHolder>(
      new LeaseHolder(service, clock, options, taken.value(), taken.value().sent));
}

LeaseHolder::LeaseHolder(LeaseService& service, const lease::Clock& clock, const Options& options,
                         const Granted& granted, HolderInstant sent)
    : service_(service),
      clock_(clock),
      timing_(options.timing),
      granted_(granted),
      delays_(options.terms.delay > options.terms.delay.zero()),
      lease_(options.timing, granted.ttl, sent, options.seed, options.terms.grace),
      may_act_until_(HolderInstant::earliest().since_origin().count()) {
  publish();
  thread_ = std::thread([this] { keep_renewing(); });
}

LeaseHolder::~LeaseHolder() {
  // Who wanted to know how it ended has called it before.
  if (stands_in_the_way()) static_cast<void>(release());
  stop_renewing();
}

/// Whether the lease keeps the next client waiting for nothing. Work under a lease that ended by
/// time has the margin to stop, and then the lock delay, if there is one: it is not known whether
/// it has stopped.
bool LeaseHolder::stands_in_the_way() {
  const std::lock_guard lock(mutex_);
  const HolderInstant now = clock_.holder_now();
  return lease_.look(now) == State::held || (!delays_ && now >= lease_.end());
}

bool LeaseHolder::may_act() const {
  const HolderInstant until(Duration(may_act_until_.load(std::memory_order_acquire)));
  return clock_.holder_now() < until;
}

HolderInstant LeaseHolder::deadline() const {
  const std::lock_guard lock(mutex_);
  return lease_.deadline();
}

HolderInstant LeaseHolder::end() const {
  const std::lock_guard lock(mutex_);
  return lease_.end();
}

std::optional<LeaseHolder::Work> LeaseHolder::begin() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const HolderInstant now = clock_.holder_now();
    const State state = lease_.look(now);
    if (draining_ || HeldLease::is_over(state)) return std::nullopt;
    if (state == State::held && !lease_.in_doubt()) {
      ++working_;
      return Work(*this);
    }
    changed_.wait_for(lock, std::min(lease_.stays_until() - now, kLook));
  }
}

LeaseHolder::Work::~Work() {
  if (holder_ == nullptr) return;
  const std::lock_guard lock(holder_->mutex_);
  if (--holder_->working_ == 0) holder_->changed_.notify_all();
}

LeaseHolder::State LeaseHolder::state() {
  const std::lock_guard lock(mutex_);
  return lease_.look(clock_.holder_now());
}

LeaseHolder::State LeaseHolder::wait_end(Duration timeout) {
  std::unique_lock lock(mutex_);
  const HolderInstant until = clock_.holder_now() + timeout;
  for (;;) {
    const HolderInstant now = clock_.holder_now();
    const State state = lease_.look(now);
    if (HeldLease::is_over(state) || now >= until) return state;
    changed_.wait_for(lock, std::min({until - now, lease_.stays_until() - now, kLook}));
  }
}

bool LeaseHolder::drain() {
  bool finished = false;
  {
    std::unique_lock lock(mutex_);
    draining_ = true;
    lease_.forgo_grace();
    for (;;) {
      const HolderInstant now = clock_.holder_now();
      finished = working_ == 0;
      if (finished || lease_.look(now) != State::held) break;
      changed_.wait_for(lock, std::min(lease_.deadline() - now, kLook));
    }
  }
  if (finished) {
    static_cast<void>(release());
  } else {
    // Work that is under way has the margin to stop: no other client may get the lease before that.
    stop_renewing();
  }
  return finished;
}

Result<void> LeaseHolder::release() {
  stop_renewing();
  {
    const std::lock_guard lock(mutex_);
    draining_ = true;
    // Also of an expired one the group may still think that it is held.
    const State state = lease_.look(clock_.holder_now());
    if (state == State::lost || std::exchange(released_, true)) return {};
    lease_.released();
    publish();
    changed_.notify_all();
  }
  auto revoked = service_.revoke(granted_.id, timing_.max_round_trip);
  if (!revoked && revoked.error().code == ErrorCode::not_found) return {};
  return revoked;
}

void LeaseHolder::stop_renewing() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

/// Under the lock, or before another thread can see this object.
void LeaseHolder::publish() {
  const bool held = lease_.look(clock_.holder_now()) == State::held;
  const HolderInstant until = held ? lease_.deadline() : HolderInstant::earliest();
  may_act_until_.store(until.since_origin().count(), std::memory_order_release);
}

void LeaseHolder::keep_renewing() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const HolderInstant now = clock_.holder_now();
    if (stopping_ || HeldLease::is_over(lease_.look(now))) break;
    if (now >= lease_.next_renewal()) {
      renew_once(lock);
    } else {
      const HolderInstant next = std::min(lease_.next_renewal(), lease_.stays_until());
      changed_.wait_for(lock, std::min(next - now, kLook));
    }
  }
  publish();
  changed_.notify_all();
}

void LeaseHolder::renew_once(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  const HolderInstant sent = clock_.holder_now();
  const auto renewed = service_.renew(granted_.id, timing_.max_round_trip);
  lock.lock();
  if (renewed) {
    lease_.renewed(sent, renewed.value(), clock_.holder_now());
  } else if (renewed.error().code == ErrorCode::not_found) {
    lease_.lost();
  } else {
    lease_.failed(clock_.holder_now());
  }
  publish();
  changed_.notify_all();
}

}  // namespace leasehold::client
