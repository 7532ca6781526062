#include <leasehold/cli/access.h>
#include <leasehold/cli/child_process.h>
#include <leasehold/cli/commands.h>
#include <leasehold/cli/ending_signals.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/holder_flags.h>
#include <leasehold/client/queue_lock.h>
#include <leasehold/client/remote_keys.h>
#include <leasehold/client/remote_leases.h>
#include <leasehold/node/system_clock.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

constexpr const char* kLockText = R"(
Takes the lock NAME, which has one holder at a time, and runs COMMAND while it holds the lock.
Clients get the lock in the order in which they asked. COMMAND is stopped before the lock can
end: by SIGTERM when the lock could not be renewed in time, and by SIGKILL when the margin is
nearly over. The environment of COMMAND has LEASEHOLD_LOCK, LEASEHOLD_LEASE and
LEASEHOLD_TOKEN, the fencing token: a store that remembers the largest token and refuses
smaller ones (SET ... TOKEN) is safe even from a command that woke up too late.
All processes that COMMAND starts end with it, and with this process, except those that leave
its process group (setsid, a daemon).

Exit status: that of COMMAND; or 1 another holds the lock, 2 a flag is wrong, 4 the nodes
were not reached, 6 the lock ended, and COMMAND was stopped if it still ran, 126 or 127
COMMAND cannot be run.

Example:
  leasehold lock nightly-backup --servers 10.0.0.1:7201,10.0.0.2:7201 -- ./backup.sh)";

using client::LeaseHolder;
using client::QueueLock;
using lease::Duration;
using lease::HolderInstant;
using std::chrono::milliseconds;

constexpr int kCannotExecute = 126;
constexpr int kNoSuchProgram = 127;
/// How often the lock is looked at, if no signal comes.
constexpr Duration kLook = milliseconds(50);
/// SIGKILL comes this long before the lock can end.
constexpr Duration kKillReserve = milliseconds(100);
/// Time limit of --show.
constexpr Duration kShowTimeout = std::chrono::seconds(5);
constexpr std::int64_t kPermitsMax = 10'000;

struct WantedLock {
  HolderFlags holder;
  QueueLock::Options options;
  std::vector<std::string> words;
  std::vector<std::string> command;
  bool shared = false;
  bool show = false;
  std::optional<std::uint32_t> permits;
};

/// What no single flag can say. The text of an error, or empty.
std::string problem_of(const WantedLock& wanted) {
  if (wanted.words.size() != 1) return "expected the name of one lock";
  if (wanted.show && !wanted.command.empty()) return "--show runs no command";
  if (!wanted.show && wanted.command.empty()) return "the command is missing: write it after --";
  if (wanted.permits && wanted.shared) return "--shared and --permits: choose one";
  return {};
}

/// Runs the command to its end, and sees to it that this comes before that of the lock.
class Execution {
 public:
  Execution(LeaseHolder& lock, ChildProcess& child, const lease::Clock& clock,
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
    // No process that the command left behind may run on without the lock.
    child_.end_all();
    const bool lost = lock_.state() == LeaseHolder::State::lost;
    const bool late = clock_.holder_now() >= lock_.end();
    if (!told_ && !lost && !late) return status;
    // Not earlier: the reader of this output may block it, and the command must not wait for that.
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
int show(const WantedLock& wanted) {
  set_group_of(wanted.options.lease.name);
  client::RemoteKeys keys(wanted.holder.servers, access());
  const auto places = QueueLock::queue(keys, wanted.options.lease.name, kShowTimeout);
  if (!places) return fail("lock", places.error().message, status_of_refusal(places.error()));
  for (const QueueLock::Place& place : places.value()) {
    std::cout << (place.holds ? "holds" : "waits") << "  " << place.kind << "  " << place.holder
              << "  token " << place.token.value() << "\n";
  }
  return 0;
}

int lock_and_run(WantedLock& wanted, const lease::Clock& clock) {
  const EndingSignals signals;
  set_group_of(wanted.options.lease.name);
  client::RemoteLeases leases(wanted.holder.servers, access());
  client::RemoteKeys keys(wanted.holder.servers, access());
  LeaseHolder::Options& options = wanted.options.lease;
  int stopped_by = 0;
  // It is asked more than once, and a signal comes only once.
  options.give_up = [&] {
    if (stopped_by == 0) stopped_by = signals.next_ending(Duration(0));
    return stopped_by > 0;
  };
  const auto lock = QueueLock::acquire(leases, keys, clock, wanted.options);
  if (stopped_by > 0) {
    // What was acquired at this very moment is given back.
    if (lock) static_cast<void>(lock.value()->lease().release());
    return fail("lock", lock ? "given up" : lock.error().message, 128 + stopped_by);
  }
  if (!lock) return fail("lock", lock.error().message, status_of_refusal(lock.error()));
  LeaseHolder& held = lock.value()->lease();
  auto child = ChildProcess::start(
      wanted.command, {{"LEASEHOLD_LOCK", options.name},
                       {"LEASEHOLD_LEASE", std::to_string(held.id().value())},
                       {"LEASEHOLD_TOKEN", std::to_string(lock.value()->token().value())}});
  if (!child) {
    const bool missing = child.error().code == ErrorCode::not_found;
    return fail("lock", child.error().message, missing ? kNoSuchProgram : kCannotExecute);
  }
  const int status = Execution(held, child.value(), clock, signals, options.timing.margin).run();
  if (const auto released = held.release(); !released) {
    std::cerr << "leasehold lock: not released, so others wait until it ends by time: "
              << released.error().message << std::endl;
  }
  return status;
}

int run(WantedLock& wanted) {
  if (const std::string problem = problem_of(wanted); !problem.empty()) {
    return misused("lock", problem);
  }
  const node::SystemClock clock;
  auto options = wanted.holder.options(clock);
  if (!options) return misused("lock", options.error().message);
  wanted.options.lease = std::move(options).value();
  wanted.options.lease.name = wanted.words.front();
  if (wanted.shared) wanted.options.mode = QueueLock::Mode::shared;
  if (wanted.permits) {
    wanted.options.mode = QueueLock::Mode::permits;
    wanted.options.permits = *wanted.permits;
  }
  return wanted.show ? show(wanted) : lock_and_run(wanted, clock);
}

}  // namespace

Run add_lock(Flags& flags) {
  const auto wanted = std::make_shared<WantedLock>();
  flags.add_words(wanted->words,
                  "NAME --servers HOST:PORT,... [OPTIONS] -- COMMAND [ARGUMENT ...]");
  flags.add_rest(wanted->command);
  wanted->holder.add(flags);
  wanted->holder.add_wait(flags);
  flags.add({"--shared", "",
             "Hold it with other shared holders; an exclusive request makes later requests wait"},
            wanted->shared);
  flags.add({"--permits", "N",
             "A semaphore: up to N clients hold it at once. All clients give the same N"},
            [wanted](const std::string& text) -> Result<void> {
              const auto permits = server::parse_integer(text);
              if (!permits || *permits < 1 || *permits > kPermitsMax) {
                return Error{ErrorCode::invalid_argument,
                             fmt::format("expected a number from 1 to {}", kPermitsMax)};
              }
              wanted->permits = static_cast<std::uint32_t>(*permits);
              return {};
            });
  flags.add(
      {"--show", "", "Show the holders and the waiting clients in their order, and run no COMMAND"},
      wanted->show);
  flags.set_footer(kLockText);
  return [wanted] { return run(*wanted); };
}

}  // namespace leasehold::cli
