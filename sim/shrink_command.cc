#include <leasehold/sim/shrink_command.h>
#include <leasehold/sim/simulator.h>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace leasehold::sim {
namespace {

/// Each takes a tenth of a second.
constexpr std::uint64_t kAttemptsMax = 1'000;
constexpr std::uint64_t kProgressEvery = 20;

[[noreturn]] void run_child(std::uint64_t seed, const SimOptions& options, int output) {
  // The text of a failed assertion was printed before.
  const int nowhere = open("/dev/null", O_WRONLY);
  if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
  const SeedReport report = run_seed(seed, options);
  std::string text = "nothing";
  if (report.violation) {
    text = fmt::format("{} {} {}", report.violation->oracle,
                       report.violation->at.since_origin().count(), report.triggered);
  }
  const ssize_t written = write(output, text.data(), text.size());
  _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 3);
}

std::string read_all(int input) {
  std::string text;
  char bytes[512];
  for (ssize_t n = 0; (n = read(input, bytes, sizeof bytes)) > 0;) {
    text.append(bytes, static_cast<std::size_t>(n));
  }
  return text;
}

}  // namespace

std::optional<Finding> find_in_child(std::uint64_t seed, const SimOptions& options) {
  int pipes[2];
  if (pipe(pipes) != 0) {
    std::perror("leasehold sim: pipe");
    std::exit(2);
  }
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid < 0) {
    std::perror("leasehold sim: fork");
    std::exit(2);
  }
  if (pid == 0) {
    close(pipes[0]);
    run_child(seed, options, pipes[1]);
  }
  close(pipes[1]);
  const std::string text = read_all(pipes[0]);
  close(pipes[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  Finding found;
  // It died: how many faults it had seen by then is not known, and all may have been needed.
  if (text.empty()) return Finding{"assertion", TrueInstant() + options.chaos, kFaultsUnknown};
  if (text == "nothing") return std::nullopt;
  std::istringstream in(text);
  std::int64_t at = 0;
  in >> found.oracle >> at >> found.triggered;
  found.at = TrueInstant() + Duration(at);
  return found;
}

std::optional<Shrunk> shrink_seed(std::uint64_t seed, const SimOptions& options, bool quiet) {
  const std::optional<Finding> found = find_in_child(seed, options);
  if (!found) return std::nullopt;
  const auto attempt = [&](const Reduction& reduction) {
    SimOptions reduced = options;
    reduced.reduction = reduction;
    return find_in_child(seed, reduced);
  };
  const auto progress = [quiet](const Shrunk& best) {
    if (quiet || best.attempts % kProgressEvery != 0) return;
    std::fprintf(stderr, "%llu runs; %s at %.3f s, %llu faults\n",
                 static_cast<unsigned long long>(best.attempts), best.finding.oracle.c_str(),
                 static_cast<double>(best.finding.at.since_origin().count()) / 1e9,
                 static_cast<unsigned long long>(faults_left(best)));
  };
  return shrink(options.reduction, *found, kAttemptsMax, attempt, progress);
}

}  // namespace leasehold::sim
