#include <leasehold/cli/child_process.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace leasehold::cli {
namespace {

/// Gives the terminal to a group. Who is in the background when it asks is stopped, unless the
/// signal for that is blocked.
void give_terminal(pid_t group) {
  sigset_t asked;
  sigset_t before;
  sigemptyset(&asked);
  sigaddset(&asked, SIGTTOU);
  pthread_sigmask(SIG_BLOCK, &asked, &before);
  tcsetpgrp(STDIN_FILENO, group);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

/// Runs in the child, until it becomes another program. Nothing here allocates.
[[noreturn]] void become(char* const* words, char* const* environment, pid_t parent, int told) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have died before.
  if (getppid() != parent) _exit(126);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  execvpe(words[0], words, environment);
  const int why = errno;
  // If even that fails, the exit status shows it.
  static_cast<void>(!write(told, &why, sizeof why));
  _exit(127);
}

/// In a process that does nothing else: waits for the end of its parent, for whatever reason it
/// ends. PR_SET_PDEATHSIG covers only the command, not the processes that the command started.
/// Nothing here allocates.
[[noreturn]] void guard(pid_t group, int parent_alive) {
  // Who kills the parent's group by force does not mean this one.
  setpgid(0, 0);
  char byte = 0;
  while (read(parent_alive, &byte, 1) < 0 && errno == EINTR) {
  }
  kill(-group, SIGKILL);
  _exit(0);
}

void reap(pid_t pid) {
  while (waitpid(pid, nullptr, 0) > 0 || errno == EINTR) {
  }
}

std::vector<std::string> merged(const std::map<std::string, std::string>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (added.count(text.substr(0, text.find('='))) == 0) all.push_back(text);
  }
  for (const auto& [name, value] : added) all.push_back(fmt::format("{}={}", name, value));
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

Error system_error(const std::string& what, int number) {
  return {number == ENOENT ? ErrorCode::not_found : ErrorCode::io,
          fmt::format("{}: {}", what, std::strerror(number))};
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& words,
                                         const std::map<std::string, std::string>& environment) {
  std::vector<std::string> texts = words;
  std::vector<std::string> variables = merged(environment);
  const std::vector<char*> arguments = pointers(texts);
  const std::vector<char*> values = pointers(variables);
  // A process of the group that loses its parent becomes a child of this one: end_all() waits for
  // it.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int told[2];
  if (pipe2(told, O_CLOEXEC) != 0) return system_error("cannot make a pipe", errno);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) become(arguments.data(), values.data(), parent, told[1]);
  const int fork_failed = errno;
  close(told[1]);
  if (pid < 0) {
    close(told[0]);
    return system_error("cannot start a process", fork_failed);
  }
  // In both processes, so that neither uses the group too early.
  setpgid(pid, pid);
  ChildProcess child(pid);
  // The rest of a pipeline shares the terminal.
  if (isatty(STDOUT_FILENO) == 1) child.lend_terminal();
  int why = 0;
  const bool failed = read(told[0], &why, sizeof why) == sizeof why;
  close(told[0]);
  if (failed) return system_error(words.front(), why);
  if (auto guarded = child.set_guard(); !guarded) return guarded.error();
  return child;
}

Result<void> ChildProcess::set_guard() {
  int alive[2];
  if (pipe2(alive, O_CLOEXEC) != 0) return system_error("cannot make a pipe", errno);
  guard_ = fork();
  if (guard_ == 0) {
    close(alive[1]);
    guard(pid_, alive[0]);
  }
  const int fork_failed = errno;
  close(alive[0]);
  alive_ = alive[1];
  if (guard_ < 0) return system_error("cannot start a process", fork_failed);
  return {};
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      guard_(std::exchange(other.guard_, -1)),
      alive_(std::exchange(other.alive_, -1)),
      status_(other.status_),
      stopped_by_(other.stopped_by_),
      has_terminal_(std::exchange(other.has_terminal_, false)) {}

ChildProcess::~ChildProcess() {
  end_all();
  if (has_terminal_) give_terminal(getpgrp());
}

void ChildProcess::end_all() {
  if (pid_ < 0) return;
  signal(SIGKILL);
  reap(-pid_);
  pid_ = -1;
  if (guard_ > 0) {
    kill(guard_, SIGKILL);
    reap(std::exchange(guard_, -1));
  }
  if (alive_ >= 0) close(std::exchange(alive_, -1));
}

void ChildProcess::signal(int number) const {
  // A group without members no longer exists: then there is no process to signal.
  if (pid_ > 0) kill(-pid_, number);
}

std::optional<int> ChildProcess::ended() {
  siginfo_t info{};
  if (!status_ && waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG) == 0 &&
      info.si_pid == pid_) {
    stopped_by_ = info.si_status;
  }
  if (stopped_by_ != 0) go_on();
  info = {};
  // It is not reaped: until then no other group gets the number of this one.
  if (!status_ && waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid == pid_) {
    status_ = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
  }
  return status_;
}

/// Who is in the background and asks for the terminal would only be stopped again.
void ChildProcess::go_on() {
  const bool asks = stopped_by_ == SIGTTIN || stopped_by_ == SIGTTOU;
  if (asks && !lend_terminal()) return;
  stopped_by_ = 0;
  signal(SIGCONT);
}

/// Whether the command has it.
bool ChildProcess::lend_terminal() {
  if (isatty(STDIN_FILENO) != 1) return false;
  if (tcgetpgrp(STDIN_FILENO) == getpgrp()) {
    has_terminal_ = true;
    give_terminal(pid_);
  }
  return tcgetpgrp(STDIN_FILENO) == pid_;
}

}  // namespace leasehold::cli
