#include <leasehold/holder/lease_holder.h>
#include <leasehold/node/system_clock.h>
#include <leasehold/server/child_process.h>
#include <leasehold/server/client_flags.h>
#include <leasehold/server/client_leader.h>
#include <leasehold/server/client_lock.h>
#include <leasehold/server/duration.h>
#include <leasehold/server/exit_status.h>
#include <leasehold/server/remote_leases.h>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

namespace leasehold::server {

const char* const kLockUsage =
    "usage: leasehold lock NAME --servers HOST:PORT,... [FLAGS] -- COMMAND [ARGUMENT ...]\n"
    "Takes the lock NAME, which one holder has at a time, and runs COMMAND while it is held. The\n"
    "command is stopped before the lock can end without it: by SIGTERM when it could not be "
    "renewed\n"
    "in time, and by SIGKILL when the margin is nearly over. In its environment it finds\n"
    "LEASEHOLD_TOKEN, the fencing token: whoever keeps the largest token that has written, and\n"
    "refuses smaller ones (SET ... TOKEN), is safe even from a command that woke up too late.\n"
    "  --servers HOST:PORT,...        client addresses of the nodes\n"
    "  --wait DURATION                how long the lock may be another's (default: for ever)\n"
    "  --holder TEXT                  who holds it, as others see it (default: the host);\n"
    "                                 the number of the process is added\n"
    "  --ttl DURATION                 how long the lock outlives its holder (default 10s)\n"
    "  --margin DURATION              how long the command may take to stop (default 1s)\n"
    "  --renew DURATION               how often to renew (default: a third of what can be used)\n"
    "  --max-round-trip DURATION      the longest that a healthy renewal takes (default 500ms)\n"
    "  --max-clock-drift FRACTION     how wrong the clocks may go (default 0.1)\n"
    "All that COMMAND starts ends with it, and with this process, but for what leaves its group\n"
    "(setsid, a daemon).\n"
    "Exit status: that of COMMAND; or 1 the lock is another's, 2 a flag is wrong, 4 the nodes "
    "were\n"
    "not reached, 6 the lock was over, and COMMAND stopped if it still ran, 126 or 127 COMMAND\n"
    "cannot be run.\n"
    "Example: leasehold lock nightly-backup --servers 10.0.0.1:7201,10.0.0.2:7201 --wait 0s -- "
    "./backup.sh\n";

namespace {

using holder::LeaseHolder;
using lease::Duration;
using lease::HolderInstant;
using std::chrono::milliseconds;

constexpr int kCannotExecute = 126;
constexpr int kNoSuchProgram = 127;
/// How often the lock is looked at, if no signal comes.
constexpr Duration kLook = milliseconds(50);
/// SIGKILL comes so long before the lock can end.
constexpr Duration kKillReserve = milliseconds(100);
/// No command is stopped in less.
constexpr Duration kMarginMin = milliseconds(10);
/// "For ever", in durations that can still be added to an instant.
constexpr Duration kForEver = std::chrono::hours(24 * 365);

int fail(const std::string& text, int status) {
  std::cerr << "leasehold lock: " << text << std::endl;
  return status;
}

struct Wanted {
  std::vector<std::string> servers;
  std::vector<std::string> command;
  LeaseHolder::Options options;
};

Error wrong(std::string text) {
  return {ErrorCode::invalid_argument, std::move(text)};
}

std::string host_name() {
  char host[200] = "localhost";
  gethostname(host, sizeof host - 1);
  return host;
}

/// What no other holder has, though two may give the same text: the process, and when it began by
/// the clock that counts. A grant whose answer was lost is recognised by it.
std::string own_name(const std::string& text, const lease::Clock& clock) {
  return text + ":" + std::to_string(getpid()) + ":" +
         std::to_string(clock.holder_now().since_origin().count());
}

Result<lease::HolderTiming> timing_of(const ClientFlags& flags) {
  lease::HolderTiming timing;
  const auto ttl = flags.duration("--ttl", timing.ttl);
  if (!ttl) return ttl.error();
  const auto margin = flags.duration("--margin", timing.margin);
  if (!margin) return margin.error();
  if (margin.value() < kMarginMin) return wrong("--margin: a command needs 10ms to stop, or more");
  const auto trip = flags.duration("--max-round-trip", timing.max_round_trip);
  if (!trip) return trip.error();
  timing.ttl = ttl.value();
  timing.margin = margin.value();
  timing.max_round_trip = trip.value();
  if (flags.has("--max-clock-drift")) {
    const auto ppm = parse_scaled(flags.text("--max-clock-drift"), 1'000'000);
    // What is larger might not fit the sums below.
    if (!ppm || *ppm > 500'000) {
      return wrong("--max-clock-drift: expected a fraction like 0.1, at most 0.5");
    }
    timing.max_clock_drift_ppm = *ppm;
  }
  const auto renewal = flags.duration("--renew", std::max(timing.usable() / 3, Duration(1)));
  if (!renewal) return renewal.error();
  timing.renewal = renewal.value();
  if (auto valid = timing.validate(); !valid) return valid.error();
  return timing;
}

Result<Wanted> parse(const std::vector<std::string>& given, const lease::Clock& clock) {
  const auto flags = ClientFlags::parse(given,
                                        {"--servers", "--wait", "--holder", "--ttl", "--margin",
                                         "--renew", "--max-round-trip", "--max-clock-drift"},
                                        {});
  if (!flags) return flags.error();
  Wanted wanted;
  wanted.servers = split_servers(flags.value().text("--servers"));
  wanted.command = flags.value().rest();
  if (flags.value().words().size() != 1) return wrong("expected the name of one lock");
  if (wanted.servers.empty()) return wrong("--servers is missing");
  if (wanted.command.empty()) return wrong("the command is missing; it stands behind --");
  wanted.options.name = flags.value().words().front();
  wanted.options.holder =
      own_name(flags.value().has("--holder") ? flags.value().text("--holder") : host_name(), clock);
  const auto timing = timing_of(flags.value());
  if (!timing) return timing.error();
  wanted.options.timing = timing.value();
  const auto wait = flags.value().duration("--wait", kForEver);
  if (!wait) return wait.error();
  wanted.options.wait = wait.value();
  wanted.options.seed =
      std::hash<std::string>()(wanted.options.holder) ^ std::hash<std::string>()(host_name());
  return wanted;
}

/// Signals that come to this process, taken one by one.
class Signals {
 public:
  /// In the first thread, before there are others: they inherit it.
  Signals() {
    // A parent that waits for no children may have left it ignored; then nobody could.
    std::signal(SIGCHLD, SIG_DFL);
    sigemptyset(&set_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) {
      // As nohup and a shell without job control leave them: they would come if they were blocked.
      if (!is_ignored(number)) sigaddset(&set_, number);
    }
    sigset_t blocked = set_;
    // Nobody takes these: whoever is stopped by the terminal cannot stop a command in time.
    for (const int number : {SIGTSTP, SIGTTIN, SIGTTOU}) sigaddset(&blocked, number);
    pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
  }
  /// 0: none came in time.
  int next(Duration wait) const {
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(wait);
    const timespec time{whole.count(), (wait - whole).count()};
    const int number = sigtimedwait(&set_, nullptr, &time);
    return number > 0 ? number : 0;
  }

 private:
  static bool is_ignored(int number) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    return action.sa_handler == SIG_IGN;
  }

  sigset_t set_;
};

/// Runs the command to its end, and sees to it that this comes before that of the lock.
class Run {
 public:
  Run(LeaseHolder& lock, ChildProcess& child, const lease::Clock& clock, const Signals& signals,
      Duration margin)
      : lock_(lock),
        child_(child),
        clock_(clock),
        signals_(signals),
        reserve_(std::min(kKillReserve, margin / 2)) {}

  int run() {
    for (;;) {
      if (const auto status = child_.ended()) return finish(*status);
      const int signal = signals_.next(look());
      if (signal > 0 && signal != SIGCHLD) child_.signal(signal);
    }
  }

 private:
  int finish(int status) {
    // Nothing that the command left behind goes on without the lock.
    child_.end_all();
    const bool lost = lock_.state() == LeaseHolder::State::lost;
    const bool late = clock_.holder_now() >= lock_.end();
    if (!told_ && !lost && !late) return status;
    // Not before: whoever reads this may let it wait, and the command must not.
    std::cerr << "leasehold lock: "
              << (lost ? "the lock was ended at the nodes, and may be another's"
                       : "the lock could not be renewed in time")
              << (told_ ? "; the command was stopped" : "; the command had run until then")
              << std::endl;
    return kLockLost;
  }

  /// Does what is due. Returns how long nothing else is.
  Duration look() {
    const LeaseHolder::State state = lock_.state();
    const HolderInstant now = clock_.holder_now();
    if (state == LeaseHolder::State::held) {
      return std::clamp(lock_.deadline() - now, Duration(0), kLook);
    }
    if (!told_) {
      told_ = true;
      child_.signal(SIGTERM);
      // One that is stopped could not act on it.
      child_.signal(SIGCONT);
    }
    const HolderInstant kill_at = lock_.end() - reserve_;
    if (state != LeaseHolder::State::lost && now < kill_at) return std::min(kill_at - now, kLook);
    child_.signal(SIGKILL);
    return kLook;
  }

  LeaseHolder& lock_;
  ChildProcess& child_;
  const lease::Clock& clock_;
  const Signals& signals_;
  const Duration reserve_;
  bool told_ = false;
};

int status_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::invalid_argument: return kUsage;
    case ErrorCode::in_use: return kNo;
    default: return kNotExecuted;
  }
}

int lock_and_run(Wanted wanted, const lease::Clock& clock) {
  const Signals signals;
  RemoteLeases leases(wanted.servers);
  int stopped_by = 0;
  wanted.options.give_up = [&] {
    // Children that this process was started with may end meanwhile.
    do stopped_by = signals.next(Duration(0));
    while (stopped_by == SIGCHLD);
    return stopped_by > 0;
  };
  const auto lock = LeaseHolder::acquire(leases, clock, wanted.options);
  if (stopped_by > 0) return fail(lock.error().message, 128 + stopped_by);
  if (!lock) return fail(lock.error().message, status_of(lock.error()));
  LeaseHolder& held = *lock.value();
  auto child = ChildProcess::start(wanted.command,
                                   {{"LEASEHOLD_LOCK", wanted.options.name},
                                    {"LEASEHOLD_LEASE", std::to_string(held.id().value())},
                                    {"LEASEHOLD_TOKEN", std::to_string(held.token().value())}});
  if (!child) {
    const bool missing = child.error().code == ErrorCode::not_found;
    return fail(child.error().message, missing ? kNoSuchProgram : kCannotExecute);
  }
  const int status = Run(held, child.value(), clock, signals, wanted.options.timing.margin).run();
  if (const auto released = held.release(); !released) {
    std::cerr << "leasehold lock: not released, so others wait until it ends by time: "
              << released.error().message << std::endl;
  }
  return status;
}

}  // namespace

int run_lock_command(const std::vector<std::string>& arguments) {
  if (wants_help(arguments)) {
    std::cout << kLockUsage;
    return 0;
  }
  const node::SystemClock clock;
  auto wanted = parse(arguments, clock);
  if (!wanted) return fail(wanted.error().message + "\n" + kLockUsage, kUsage);
  return lock_and_run(std::move(wanted).value(), clock);
}

}  // namespace leasehold::server
