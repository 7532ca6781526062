#include <leasehold/sim/plan/reduction.h>
#include <leasehold/sim/report/summary.h>
#include <leasehold/sim/shrink_command.h>
#include <leasehold/sim/sim_command.h>
#include <leasehold/sim/simulator.h>
#include <leasehold/story/telling.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <utility>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace leasehold::sim {

const char* const kSimUsage =
    "usage: leasehold sim [--seed N | --seeds A..B] [options]\n"
    "  --seed N            run one seed; the same as --seeds N..N\n"
    "  --seeds A..B        run the seeds A to B, both included (default 1..100)\n"
    "  --jobs N            processes to share the seeds among (default 1, at most 64)\n"
    "  --trace-hash        print the hash of each seed's trace, and of all together\n"
    "  --drift-ppm N       every clock runs at exactly +N or -N parts per million while the nodes\n"
    "                      trust in 100000: above that an oracle has to notice\n"
    "  --partition SHAPE   one partition a seed, and nothing else that goes wrong: one-way,\n"
    "                      bridge, ring, chain or majority; a stable leader has to come of it in\n"
    "                      time\n"
    "  --hours N           each seed is N hours of a cluster's life: a fault every ten seconds, a\n"
    "                      leader change a minute, two operations of clients a second\n"
    "  --leases            most of what is done is done with leases of clients: thousands of\n"
    "                      grants, renewals, expiries and revocations a seed\n"
    "  --tail N            lines of what happened to print with a finding (default 40)\n"
    "  --lease-oracles     only the oracles of the lease and the linearizability checker speak\n"
    "  --shrink            leave out of the seed whatever its finding does not need, and print\n"
    "                      the options of what is left: a minute or two; with --story it is told,\n"
    "                      too\n"
    "  --without WORDS     without these fault classes (as in the summary), sessions, leases,\n"
    "                      key_locks or watchers, with commas between\n"
    "  --clients N         so many clients at most\n"
    "  --only NUMBERS      of the faults that are triggered only these: 3,7-9, or none\n"
    "  --variant N         another order of the same kinds of faults\n"
    "  --keep-going        do not stop at the first finding; report every seed's\n"
    "  --quiet             no progress line\n";

namespace {

constexpr std::uint64_t kJobsMax = 64;
/// For the verdict on the history of a process that died.
constexpr unsigned kJudgeSeconds = 20;
constexpr std::uint64_t kHoursMax = 24 * 366;
constexpr std::uint64_t kTailMax = 10'000'000;

struct Arguments {
  std::uint64_t first = 1;
  std::uint64_t last = 100;
  std::uint64_t jobs = 1;
  bool trace_hash = false;
  bool keep_going = false;
  bool shrink = false;
  bool quiet = false;
  SimOptions sim;
  story::TellingOptions telling;
};

std::optional<std::uint64_t> parse_number(const std::string& text) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  std::uint64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return number;
}

/// "A..B" or "A".
bool parse_range(const std::string& text, Arguments& arguments) {
  const std::size_t dots = text.find("..");
  const auto first = parse_number(text.substr(0, dots));
  const auto last = dots == std::string::npos ? first : parse_number(text.substr(dots + 2));
  if (!first || !last || *first > *last) return false;
  arguments.first = *first;
  arguments.last = *last;
  return true;
}

/// Options with a value. False: the value is wrong.
bool set_value(const std::string& name, const std::string& value, Arguments& arguments) {
  if (name == "--seed" || name == "--seeds") return parse_range(value, arguments);
  if (name == "--partition") {
    arguments.sim.shape = partition_shape_of(value);
    return arguments.sim.shape.has_value();
  }
  if (name == "--without" || name == "--clients" || name == "--only" || name == "--variant") {
    return take_reduction(name, value, arguments.sim.reduction);
  }
  const auto number = parse_number(value);
  if (!number) return false;
  if (name == "--jobs") {
    arguments.jobs = *number;
    return *number >= 1 && *number <= kJobsMax;
  }
  if (name == "--tail") {
    arguments.sim.trace_tail = static_cast<std::size_t>(*number);
    return *number <= kTailMax;
  }
  if (name == "--hours") {
    arguments.sim.long_life = true;
    arguments.sim.chaos = std::chrono::hours(*number);
    return *number >= 1 && *number <= kHoursMax;
  }
  arguments.sim.drift_ppm = static_cast<std::int64_t>(*number);
  return *number < 1'000'000;
}

/// Returns what is wrong; empty if nothing is.
std::string parse(const std::vector<std::string>& given, Arguments& arguments) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string& name = given[i];
    if (const auto wrong = story::take_telling_option(given, i, arguments.telling)) {
      if (!wrong->empty()) return *wrong;
    } else if (name == "--trace-hash") {
      arguments.trace_hash = true;
    } else if (name == "--lease-oracles") {
      arguments.sim.lease_oracles_only = true;
    } else if (name == "--leases") {
      arguments.sim.lease_work = true;
    } else if (name == "--shrink") {
      arguments.shrink = true;
    } else if (name == "--keep-going") {
      arguments.keep_going = true;
    } else if (name == "--quiet") {
      arguments.quiet = true;
    } else if (name == "--seed" || name == "--seeds" || name == "--jobs" || name == "--drift-ppm" ||
               name == "--tail" || name == "--partition" || name == "--hours" ||
               name == "--without" || name == "--clients" || name == "--only" ||
               name == "--variant") {
      if (i + 1 == given.size()) return name + " needs a value";
      const std::string& value = given[++i];
      if (!set_value(name, value, arguments)) return name + " does not take `" + value + "`";
    } else {
      return "unknown option `" + name + "`";
    }
  }
  if (arguments.telling.wanted() && arguments.first != arguments.last) {
    return "--story and --trace are about one seed: give --seed N";
  }
  if (arguments.shrink && arguments.first != arguments.last) {
    return "--shrink is about one seed: give --seed N";
  }
  if (arguments.sim.shape && arguments.sim.long_life) {
    return "--partition and --hours are two kinds of simulation: give one of them";
  }
  if (arguments.sim.lease_work && (arguments.sim.shape || arguments.sim.long_life)) {
    return "--leases is a kind of simulation of its own: give it without --partition and --hours";
  }
  if (arguments.sim.lease_work && arguments.sim.reduction.no_leases) {
    return "--leases and --without leases contradict each other: give one of them";
  }
  return "";
}

// ---- What a child tells its parent: one line per message ----

/// "seed N": about to run it.
/// "done N …numbers…": the report.
/// "text …": a line of the story of the last report's violation, which "done" announces.

std::string encode(const SeedReport& report) {
  std::ostringstream line;
  line << "done " << encode_numbers(report) << '\n';
  if (!report.violation) return line.str();
  const Violation& found = *report.violation;
  line << "oracle " << found.oracle << '\n'
       << "at " << found.at.since_origin().count() << '\n'
       << "story " << found.story << '\n';
  for (const std::string& event : found.trace_tail) line << "trace " << event << '\n';
  line << "end\n";
  return line.str();
}

void write_all(int file, const std::string& text) {
  std::size_t sent = 0;
  while (sent < text.size()) {
    const ssize_t n = write(file, text.data() + sent, text.size() - sent);
    if (n <= 0) _exit(3);  // the parent is gone
    sent += static_cast<std::size_t>(n);
  }
}

/// For the handler alone: a failed assertion ends the child, and the trace says what led to it.
/// Only children set it; each runs one simulation at a time on one thread.
const Simulator* g_running = nullptr;
int g_output = -1;

extern "C" void report_abort(int) {
  std::string text;
  if (g_running != nullptr) {
    for (const std::string& event : g_running->trace_tail()) text += "trace " + event + "\n";
    write_all(g_output, std::exchange(text, ""));
    // An assertion is not inside the allocator, so this may allocate; should it hang, it ends.
    alarm(kJudgeSeconds);
    const std::string wrong = g_running->judge_history();
    if (!wrong.empty()) text += "broken " + wrong + "\n";
  }
  write_all(g_output, text + "aborted\n");
  _exit(4);
}

[[noreturn]] void run_child(const Arguments& arguments, std::uint64_t from, int output) {
  g_output = output;
  std::signal(SIGABRT, report_abort);
  for (std::uint64_t seed = from; seed <= arguments.last; seed += arguments.jobs) {
    write_all(output, "seed " + std::to_string(seed) + "\n");
    Simulator simulator(seed, arguments.sim);
    g_running = &simulator;
    const SeedReport report = simulator.run();
    g_running = nullptr;
    write_all(output, encode(report));
  }
  _exit(0);
}

// ---- The parent ----

struct Child {
  pid_t pid = -1;
  int input = -1;
  std::string buffer;
  std::uint64_t seed = 0;            ///< the one it is at
  std::optional<SeedReport> report;  ///< a violation whose story is still coming
  std::vector<std::string> trace;    ///< of a failed assertion
  std::string broken;                ///< what was wrong with its clients' history
};

class Command {
 public:
  explicit Command(Arguments arguments) : arguments_(std::move(arguments)) {}

  int run() {
    if (arguments_.shrink) return shrink_one();
    if (arguments_.telling.wanted()) return tell_one();
    for (std::uint64_t j = 0; j < arguments_.jobs && arguments_.first + j <= arguments_.last; ++j) {
      start(arguments_.first + j);
    }
    while (!children_.empty() && !stopped()) listen();
    for (const Child& child : children_) {
      kill(child.pid, SIGKILL);
      waitpid(child.pid, nullptr, 0);
      close(child.input);
    }
    summarize();
    return findings_ == 0 ? 0 : 1;
  }

 private:
  /// Prints what the seed's finding needs, and tells it if that is wanted.
  int shrink_one() {
    const auto shrunk = shrink_seed(arguments_.first, arguments_.sim, arguments_.quiet);
    if (!shrunk) {
      std::printf("seed %llu finds nothing: there is nothing to shrink\n",
                  number(arguments_.first));
      return 0;
    }
    arguments_.sim.reduction = shrunk->reduction;
    std::printf("SHRUNK seed %llu oracle %s at %s, %llu faults triggered, after %llu runs\n",
                number(arguments_.first), shrunk->finding.oracle.c_str(),
                format_instant(shrunk->finding.at).c_str(), number(faults_left(*shrunk)),
                number(shrunk->attempts));
    print_again(arguments_.first);
    if (arguments_.telling.wanted()) tell_one();
    return 1;
  }

  /// One seed in this process, told while it runs. If an assertion fails the story ends there.
  int tell_one() {
    story::Telling telling(arguments_.telling);
    Result<void> told = telling.open();
    if (told) {
      SimOptions options = arguments_.sim;
      options.record = [&telling](const story::Record& record) { telling.take(record); };
      const SeedReport report = run_seed(arguments_.first, options);
      told = telling.finish();
      on_report(report);
    }
    if (!told) {
      std::fprintf(stderr, "leasehold sim: %s\n", told.error().message.c_str());
      return 2;
    }
    summarize();
    return findings_ == 0 ? 0 : 1;
  }

  bool stopped() const { return findings_ > 0 && !arguments_.keep_going; }

  void start(std::uint64_t from) {
    int pipes[2];
    if (pipe(pipes) != 0) {
      std::perror("leasehold sim: pipe");
      std::exit(2);
    }
    std::fflush(stdout);
    const pid_t pid = fork();
    if (pid < 0) {
      std::perror("leasehold sim: fork");
      std::exit(2);
    }
    if (pid == 0) {
      close(pipes[0]);
      run_child(arguments_, from, pipes[1]);
    }
    close(pipes[1]);
    Child child;
    child.pid = pid;
    child.input = pipes[0];
    children_.push_back(std::move(child));
  }

  void listen() {
    std::vector<pollfd> files;
    for (const Child& child : children_) files.push_back({child.input, POLLIN, 0});
    if (poll(files.data(), static_cast<nfds_t>(files.size()), -1) < 0) return;
    for (std::size_t i = files.size(); i-- > 0;) {
      if (files[i].revents != 0) read_from(i);
    }
  }

  void read_from(std::size_t which) {
    char bytes[65536];
    const ssize_t n = read(children_[which].input, bytes, sizeof bytes);
    if (n > 0) {
      Child& child = children_[which];
      child.buffer.append(bytes, static_cast<std::size_t>(n));
      for (std::size_t end = child.buffer.find('\n'); end != std::string::npos && !stopped();
           end = child.buffer.find('\n')) {
        const std::string line = child.buffer.substr(0, end);
        child.buffer.erase(0, end + 1);
        on_line(child, line);
      }
      return;
    }
    const Child child = children_[which];
    children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(which));
    close(child.input);
    int status = 0;
    waitpid(child.pid, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    crashed(child);
    const std::uint64_t next = child.seed + arguments_.jobs;
    if (!stopped() && next <= arguments_.last) start(next);
  }

  /// The child died in a seed: a failed assertion, whose text stands on standard error.
  void crashed(const Child& child) {
    SeedReport report;
    report.seed = child.seed;
    Violation found;
    found.oracle = "assertion";
    found.story = "the process died; its message stands above";
    if (arguments_.sim.lease_oracles_only) {
      // An assertion is no oracle of the lease. What the clients had seen by then is judged.
      if (child.broken.empty()) {
        ++died_;
        return;
      }
      found.oracle = "linearizability";
      found.story = child.broken + "; then the process died of an assertion";
    }
    found.trace_tail = child.trace;
    report.violation = std::move(found);
    on_report(report);
  }

  void on_line(Child& child, const std::string& line) {
    const std::size_t space = line.find(' ');
    const std::string word = line.substr(0, space);
    const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
    if (word == "seed") {
      child.seed = parse_number(rest).value_or(0);
      child.trace.clear();
      child.broken.clear();
    } else if (word == "done") {
      const SeedReport report = decode_numbers(rest);
      if (report.violation) {
        child.report = report;
      } else {
        on_report(report);
      }
    } else if (word == "broken") {
      child.broken = rest;
    } else if (word == "trace" && !child.report) {
      child.trace.push_back(rest);
    } else if (child.report && child.report->violation) {
      Violation& found = *child.report->violation;
      if (word == "oracle") found.oracle = rest;
      if (word == "at") {
        found.at = TrueInstant(Duration(static_cast<std::int64_t>(parse_number(rest).value_or(0))));
      }
      if (word == "story") found.story = rest;
      if (word == "trace") found.trace_tail.push_back(rest);
      if (word == "end") {
        on_report(*child.report);
        child.report.reset();
      }
    }
  }

  void on_report(const SeedReport& report) {
    if (stopped()) return;
    ++seeds_;
    summary_.add(report);
    if (arguments_.trace_hash) {
      std::printf("seed %llu trace %016llx\n", number(report.seed), number(report.trace_hash));
      // Each seed counts by its number, so that the order in which the jobs finish does not.
      std::uint64_t mixed = (report.trace_hash ^ report.seed) * 0x9e3779b97f4a7c15U;
      mixed ^= mixed >> 32;
      hash_ += mixed * 0xd6e8feb86659fd93U;
    }
    if (report.violation) {
      ++findings_;
      tell(report);
    } else if (const std::string missing = missing_coverage(report, arguments_.sim);
               !missing.empty()) {
      ++findings_;
      std::printf("FOUND seed %llu oracle coverage: the seed lacks %s\n", number(report.seed),
                  missing.c_str());
    }
    if (!arguments_.quiet && seeds_ % 100 == 0) {
      std::fprintf(stderr, "%llu of %llu seeds, %llu findings\n", number(seeds_),
                   number(arguments_.last - arguments_.first + 1), number(findings_));
    }
  }

  static unsigned long long number(std::uint64_t n) { return n; }

  void tell(const SeedReport& report) {
    const Violation& found = *report.violation;
    std::printf("FOUND seed %llu oracle %s at %s\n  %s\n", number(report.seed),
                found.oracle.c_str(), format_instant(found.at).c_str(), found.story.c_str());
    std::printf("  faults:");
    for (std::size_t i = 0; i < kFaultClasses; ++i) {
      const auto fault = static_cast<FaultClass>(i);
      if (report.faults.has(fault)) std::printf(" %s", fault_class_name(fault));
    }
    std::printf("\n  what happened before (true time):\n");
    for (const std::string& line : found.trace_tail) std::printf("    %s\n", line.c_str());
    print_again(report.seed);
  }

  void print_again(std::uint64_t seed) const {
    std::printf(
        "  again: leasehold sim --seed %llu%s%s%s%s%s%s%s\n", number(seed),
        arguments_.sim.shape ? " --partition " : "",
        arguments_.sim.shape ? partition_shape_name(*arguments_.sim.shape) : "",
        arguments_.sim.long_life
            ? (" --hours " + std::to_string(arguments_.sim.chaos / std::chrono::hours(1))).c_str()
            : "",
        arguments_.sim.drift_ppm
            ? (" --drift-ppm " + std::to_string(*arguments_.sim.drift_ppm)).c_str()
            : "",
        arguments_.sim.lease_work ? " --leases" : "",
        arguments_.sim.lease_oracles_only ? " --lease-oracles" : "",
        options_of(arguments_.sim.reduction).c_str());
  }

  void summarize() {
    summary_.print(findings_, died_, arguments_.sim);
    if (arguments_.trace_hash) std::printf("combined trace hash %016llx\n", number(hash_));
  }

  Arguments arguments_;
  std::vector<Child> children_;
  std::uint64_t seeds_ = 0;
  std::uint64_t findings_ = 0;
  std::uint64_t died_ = 0;  ///< seeds that an assertion ended, where assertions do not count
  std::uint64_t hash_ = 0;
  Summary summary_;
};

}  // namespace

int run_sim_command(const std::vector<std::string>& given) {
  Arguments arguments;
  for (const std::string& name : given) {
    if (name != "--help" && name != "-h") continue;
    std::printf("%s%s", kSimUsage, story::kTellingUsage);
    return 0;
  }
  const std::string wrong = parse(given, arguments);
  if (!wrong.empty()) {
    std::fprintf(stderr, "leasehold sim: %s\n%s%s", wrong.c_str(), kSimUsage, story::kTellingUsage);
    return 2;
  }
  return Command(std::move(arguments)).run();
}

}  // namespace leasehold::sim
