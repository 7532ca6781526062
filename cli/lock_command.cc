#include <leasehold/cli/child_process.h>
#include <leasehold/cli/client_flags.h>
#include <leasehold/cli/ending_signals.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/holder_flags.h>
#include <leasehold/cli/lock_command.h>
#include <leasehold/client/remote_keys.h>
#include <leasehold/client/remote_leases.h>
#include <leasehold/node/system_clock.h>
#include <leasehold/server/front/words.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

namespace leasehold::cli {

const char* const kLockUsage =
    "usage: leasehold lock NAME --servers HOST:PORT,... [FLAGS] -- COMMAND [ARGUMENT ...]\n"
    "Takes the lock NAME, which one holder has at a time, and runs COMMAND while it is held. Who\n"
    "asked first has it first. The command is stopped before the lock can end without it: by\n"
    "SIGTERM when it could not be renewed in time, and by SIGKILL when the margin is nearly over.\n"
    "In its environment it finds LEASEHOLD_LOCK and LEASEHOLD_LEASE, and\n"
    "LEASEHOLD_TOKEN, the fencing token: whoever keeps the largest token that has written, and\n"
    "refuses smaller ones (SET ... TOKEN), is safe even from a command that woke up too late.\n"
    "All that COMMAND starts ends with it, and with this process, but for what leaves its group\n"
    "(setsid, a daemon).\n"
    "Exit status: that of COMMAND; or 1 the lock is another's, 2 a flag is wrong, 4 the nodes\n"
    "were not reached, 6 the lock was over, and COMMAND stopped if it still ran, 126 or 127\n"
    "COMMAND cannot be run.\n"
    "  --wait DURATION                how long it may be another's (default: for ever)\n"
    "  --shared                       with others that are shared; later exclusive ones wait, and\n"
    "                                 shared ones behind those\n"
    "  --permits N                    a semaphore: N hold it at once. The same N for all\n"
    "  --show                         who holds it and who waits, in their order; no COMMAND\n"
    "Example: leasehold lock nightly-backup --servers 10.0.0.1:7201,10.0.0.2:7201 -- ./backup.sh\n";

namespace {

using client::LeaseHolder;
using client::QueueLock;
using lease::Duration;
using lease::HolderInstant;
using std::chrono::milliseconds;

constexpr int kCannotExecute = 126;
constexpr int kNoSuchProgram = 127;
/// How often the lock is looked at, if no signal comes.
constexpr Duration kLook = milliseconds(50);
/// SIGKILL comes so long before the lock can end.
constexpr Duration kKillReserve = milliseconds(100);
/// Of --show.
constexpr Duration kShowTimeout = std::chrono::seconds(5);
constexpr std::int64_t kPermitsMax = 10'000;

int fail(const std::string& text, int status) {
  std::cerr << "leasehold lock: " << text << std::endl;
  return status;
}

struct Wanted {
  std::vector<std::string> servers;
  QueueLock::Options options;
  std::vector<std::string> command;
  bool show = false;
};

Error wrong(std::string text) {
  return {ErrorCode::invalid_argument, std::move(text)};
}

Result<Wanted> parse(const std::vector<std::string>& given, const lease::Clock& clock) {
  std::vector<std::string_view> valued = holder_flag_names();
  valued.emplace_back("--permits");
  const auto flags = ClientFlags::parse(given, valued, {"--shared", "--show"});
  if (!flags) return flags.error();
  if (flags.value().words().size() != 1) return wrong("expected the name of one lock");
  auto holder = holder_flags(flags.value(), clock);
  if (!holder) return holder.error();
  Wanted wanted;
  wanted.show = flags.value().has("--show");
  wanted.command = flags.value().rest();
  if (wanted.show && !wanted.command.empty()) return wrong("--show runs no command");
  if (!wanted.show && wanted.command.empty()) {
    return wrong("the command is missing; it stands behind --");
  }
  wanted.servers = holder.value().servers;
  wanted.options.lease = holder.value().options;
  wanted.options.lease.name = flags.value().words().front();
  if (flags.value().has("--shared")) wanted.options.mode = QueueLock::Mode::shared;
  if (!flags.value().has("--permits")) return wanted;
  const auto permits = server::parse_integer(flags.value().text("--permits"));
  if (!permits || *permits < 1 || *permits > kPermitsMax) {
    return wrong("--permits: expected a number from 1 to " + std::to_string(kPermitsMax));
  }
  if (flags.value().has("--shared")) return wrong("--shared and --permits: choose one");
  wanted.options.mode = QueueLock::Mode::permits;
  wanted.options.permits = static_cast<std::uint32_t>(*permits);
  return wanted;
}

/// Runs the command to its end, and sees to it that this comes before that of the lock.
class Run {
 public:
  Run(LeaseHolder& lock, ChildProcess& child, const lease::Clock& clock,
      const EndingSignals& signals, Duration margin)
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
  const EndingSignals& signals_;
  const Duration reserve_;
  bool told_ = false;
};

/// One line each: "holds  exclusive  host:4711:...  token 7".
int show(const Wanted& wanted) {
  client::RemoteKeys keys(wanted.servers);
  const auto places = QueueLock::queue(keys, wanted.options.lease.name, kShowTimeout);
  if (!places) return fail(places.error().message, status_of_refusal(places.error()));
  for (const QueueLock::Place& place : places.value()) {
    std::cout << (place.holds ? "holds" : "waits") << "  " << place.kind << "  " << place.holder
              << "  token " << place.token.value() << "\n";
  }
  return 0;
}

int lock_and_run(Wanted wanted, const lease::Clock& clock) {
  const EndingSignals signals;
  client::RemoteLeases leases(wanted.servers);
  client::RemoteKeys keys(wanted.servers);
  LeaseHolder::Options& options = wanted.options.lease;
  int stopped_by = 0;
  options.give_up = [&] {
    stopped_by = signals.next_ending(Duration(0));
    return stopped_by > 0;
  };
  const auto lock = QueueLock::acquire(leases, keys, clock, wanted.options);
  if (stopped_by > 0) return fail(lock.error().message, 128 + stopped_by);
  if (!lock) return fail(lock.error().message, status_of_refusal(lock.error()));
  LeaseHolder& held = lock.value()->lease();
  auto child = ChildProcess::start(
      wanted.command, {{"LEASEHOLD_LOCK", options.name},
                       {"LEASEHOLD_LEASE", std::to_string(held.id().value())},
                       {"LEASEHOLD_TOKEN", std::to_string(lock.value()->token().value())}});
  if (!child) {
    const bool missing = child.error().code == ErrorCode::not_found;
    return fail(child.error().message, missing ? kNoSuchProgram : kCannotExecute);
  }
  const int status = Run(held, child.value(), clock, signals, options.timing.margin).run();
  if (const auto released = held.release(); !released) {
    std::cerr << "leasehold lock: not released, so others wait until it ends by time: "
              << released.error().message << std::endl;
  }
  return status;
}

}  // namespace

int run_lock_command(const std::vector<std::string>& arguments) {
  if (wants_help(arguments)) {
    std::cout << kLockUsage << kHolderUsage;
    return 0;
  }
  const node::SystemClock clock;
  auto wanted = parse(arguments, clock);
  if (!wanted) return fail(wanted.error().message + "\n" + kLockUsage + kHolderUsage, kUsage);
  if (wanted.value().show) return show(wanted.value());
  return lock_and_run(std::move(wanted).value(), clock);
}

}  // namespace leasehold::cli
