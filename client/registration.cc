#include <leasehold/client/registration.h>

#include <utility>

namespace leasehold::client {
namespace {

using lease::Duration;

/// Longest single wait, as in LeaseHolder.
constexpr Duration kLook = std::chrono::milliseconds(50);
/// Behind what went wrong.
constexpr Duration kAgain = std::chrono::milliseconds(200);

bool may_pass(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::timed_out ||
         code == ErrorCode::in_use || code == ErrorCode::not_found;
}

}  // namespace

Result<std::unique_ptr<Registration>> Registration::begin(LeaseService& leases, KeyService& keys,
                                                          const lease::Clock& clock,
                                                          Options options) {
  if (options.key.empty() || options.lease.holder.empty()) {
    return Error{ErrorCode::invalid_argument,
                 "a registration needs a key and a unique name of its holder"};
  }
  if (options.lease.terms != grant::LeaseTerms{}) {
    return Error{ErrorCode::invalid_argument,
                 "the lease of what is registered has no grace period, no soft limit and no delay"};
  }
  if (auto valid = options.lease.timing.validate(); !valid) return valid.error();
  return std::unique_ptr<Registration>(new Registration(leases, keys, clock, std::move(options)));
}

Registration::Registration(LeaseService& leases, KeyService& keys, const lease::Clock& clock,
                           Options options)
    : leases_(leases),
      keys_(keys),
      clock_(clock),
      options_(std::move(options)),
      value_(options_.value) {
  thread_ = std::thread([this] { run(); });
}

Registration::~Registration() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    woken_.notify_all();
  }
  thread_.join();
}

void Registration::set_value(std::string value) {
  const std::lock_guard lock(mutex_);
  changed_value_ = changed_value_ || value != value_;
  value_ = std::move(value);
  woken_.notify_all();
}

void Registration::run() {
  while (!stopping()) {
    const auto kept = keep();
    if (kept) continue;
    tell(State::registering, kept.error().message);
    // It will be refused again; but limits change, and meanwhile the reason can be read.
    pause(may_pass(kept.error().code) ? kAgain : 10 * kAgain);
  }
}

/// From a lease to its end.
Result<void> Registration::keep() {
  LeaseHolder::Options own = options_.lease;
  own.name = "registration " + options_.lease.holder;
  own.wait = Duration(0);
  own.give_up = [this] { return stopping(); };
  auto lease = LeaseHolder::acquire(leases_, clock_, own);
  if (!lease) return lease.error();
  {
    const std::lock_guard lock(mutex_);
    changed_value_ = true;
  }
  LeaseHolder& held = *lease.value();
  while (held.state() == LeaseHolder::State::held && !stopping()) {
    bool put_now = false;
    {
      std::unique_lock lock(mutex_);
      if (!changed_value_) woken_.wait_for(lock, kLook);
      put_now = changed_value_ && !stopping_;
    }
    if (!put_now) continue;
    if (auto done = put(held); !done && !may_pass(done.error().code)) return done;
  }
  if (stopping()) return {};
  return Error{ErrorCode::not_found, held.state() == LeaseHolder::State::lost
                                         ? "the group ended the lease"
                                         : "the lease could not be renewed in time"};
}

Result<void> Registration::put(LeaseHolder& lease) {
  std::string value;
  {
    const std::lock_guard lock(mutex_);
    value = value_;
    changed_value_ = false;
  }
  auto done = keys_.put(options_.key, value, lease.id(), options_.lease.timing.max_round_trip);
  if (done) {
    tell(State::registered, "");
    return done;
  }
  {
    const std::lock_guard lock(mutex_);
    changed_value_ = true;
  }
  pause(kAgain);
  return done;
}

/// Shorter if it is to stop.
void Registration::pause(Duration span) {
  std::unique_lock lock(mutex_);
  woken_.wait_for(lock, span, [this] { return stopping_; });
}

bool Registration::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void Registration::tell(State state, const std::string& why) {
  if (state_.exchange(state, std::memory_order_acq_rel) == state && why == told_) return;
  told_ = why;
  options_.changed(state, why);
}

}  // namespace leasehold::client
