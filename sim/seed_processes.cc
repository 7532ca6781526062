#include <leasehold/sim/report/summary.h>
#include <leasehold/sim/seed_processes.h>
#include <leasehold/sim/simulator.h>

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace leasehold::sim {
namespace {

/// For the verdict on the history of a process that died.
constexpr unsigned kJudgeSeconds = 20;

std::uint64_t number_of(const std::string& text) {
  return std::strtoull(text.c_str(), nullptr, 10);
}

// What a child writes to its parent, one line per message:
//
//   "seed N": about to run it.
//   "done N …numbers…": the report.
//   "text …": a line of the story of the last report's violation, which "done" announces.

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
    for (const std::string& event : g_running->trace_tail()) {
      text += fmt::format("trace {}\n", event);
    }
    write_all(g_output, std::exchange(text, ""));
    // An assertion is not inside the allocator, so this may allocate; should it hang, it ends.
    alarm(kJudgeSeconds);
    const std::string wrong = g_running->judge_history();
    if (!wrong.empty()) text += fmt::format("broken {}\n", wrong);
  }
  write_all(g_output, text + "aborted\n");
  _exit(4);
}

[[noreturn]] void run_child(const SeedRange& seeds, const SimOptions& options, std::uint64_t from,
                            int output) {
  g_output = output;
  std::signal(SIGABRT, report_abort);
  for (std::uint64_t seed = from; seed <= seeds.last; seed += seeds.jobs) {
    write_all(output, fmt::format("seed {}\n", seed));
    Simulator simulator(seed, options);
    g_running = &simulator;
    const SeedReport report = simulator.run();
    g_running = nullptr;
    write_all(output, encode(report));
  }
  _exit(0);
}

}  // namespace

void SeedProcesses::run() {
  for (std::uint64_t j = 0; j < seeds_.jobs && seeds_.first + j <= seeds_.last; ++j) {
    start(seeds_.first + j);
  }
  while (!children_.empty() && !ports_.stopped()) listen();
  for (const Child& child : children_) {
    kill(child.pid, SIGKILL);
    waitpid(child.pid, nullptr, 0);
    close(child.input);
  }
}

void SeedProcesses::start(std::uint64_t from) {
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
    run_child(seeds_, options_, from, pipes[1]);
  }
  close(pipes[1]);
  Child child;
  child.pid = pid;
  child.input = pipes[0];
  children_.push_back(std::move(child));
}

void SeedProcesses::listen() {
  std::vector<pollfd> files;
  for (const Child& child : children_) files.push_back({child.input, POLLIN, 0});
  if (poll(files.data(), static_cast<nfds_t>(files.size()), -1) < 0) return;
  for (std::size_t i = files.size(); i-- > 0;) {
    if (files[i].revents != 0) read_from(i);
  }
}

void SeedProcesses::read_from(std::size_t which) {
  char bytes[65536];
  const ssize_t n = read(children_[which].input, bytes, sizeof bytes);
  if (n > 0) {
    Child& child = children_[which];
    child.buffer.append(bytes, static_cast<std::size_t>(n));
    for (std::size_t end = child.buffer.find('\n'); end != std::string::npos && !ports_.stopped();
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
  const std::uint64_t next = child.seed + seeds_.jobs;
  if (!ports_.stopped() && next <= seeds_.last) start(next);
}

/// The child died in a seed: a failed assertion, whose text is on standard error.
void SeedProcesses::crashed(const Child& child) const {
  SeedReport report;
  report.seed = child.seed;
  Violation found;
  found.oracle = "assertion";
  found.story = "the process died; its message stands above";
  if (options_.lease_oracles_only) {
    // An assertion is not an oracle of the lease. Judge what the clients had seen by then.
    if (child.broken.empty()) {
      ports_.died();
      return;
    }
    found.oracle = "linearizability";
    found.story = child.broken + "; then the process died of an assertion";
  }
  found.trace_tail = child.trace;
  report.violation = std::move(found);
  ports_.report(report);
}

void SeedProcesses::on_line(Child& child, const std::string& line) const {
  const std::size_t space = line.find(' ');
  const std::string word = line.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
  if (word == "seed") {
    child.seed = number_of(rest);
    child.trace.clear();
    child.broken.clear();
  } else if (word == "done") {
    const SeedReport report = decode_numbers(rest);
    if (report.violation) {
      child.report = report;
    } else {
      ports_.report(report);
    }
  } else if (word == "broken") {
    child.broken = rest;
  } else if (word == "trace" && !child.report) {
    child.trace.push_back(rest);
  } else if (child.report && child.report->violation) {
    Violation& found = *child.report->violation;
    if (word == "oracle") found.oracle = rest;
    if (word == "at") {
      found.at = TrueInstant(Duration(static_cast<std::int64_t>(number_of(rest))));
    }
    if (word == "story") found.story = rest;
    if (word == "trace") found.trace_tail.push_back(rest);
    if (word == "end") {
      ports_.report(*child.report);
      child.report.reset();
    }
  }
}

}  // namespace leasehold::sim
