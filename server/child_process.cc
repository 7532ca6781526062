#include <leasehold/server/child_process.h>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

namespace leasehold::server {
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

/// In the child, until it is another program. Nothing here allocates.
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
  // If even that fails, the status tells.
  static_cast<void>(!write(told, &why, sizeof why));
  _exit(127);
}

std::vector<std::string> merged(const std::map<std::string, std::string>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (added.count(text.substr(0, text.find('='))) == 0) all.push_back(text);
  }
  for (const auto& [name, value] : added) all.push_back(name + "=" + value);
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
          what + ": " + std::strerror(number)};
}

}  // namespace

Result<ChildProcess> ChildProcess::start(const std::vector<std::string>& words,
                                         const std::map<std::string, std::string>& environment) {
  std::vector<std::string> texts = words;
  std::vector<std::string> variables = merged(environment);
  const std::vector<char*> arguments = pointers(texts);
  const std::vector<char*> values = pointers(variables);
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
  // In both, so that nobody comes too early.
  setpgid(pid, pid);
  ChildProcess child(pid);
  int why = 0;
  const bool failed = read(told[0], &why, sizeof why) == sizeof why;
  close(told[0]);
  if (failed) return system_error(words.front(), why);
  return child;
}

ChildProcess::ChildProcess(pid_t pid) : pid_(pid) {
  has_terminal_ = isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp();
  if (has_terminal_) give_terminal(pid_);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      status_(other.status_),
      has_terminal_(std::exchange(other.has_terminal_, false)) {}

ChildProcess::~ChildProcess() {
  if (pid_ < 0) return;
  if (!status_) {
    signal(SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (has_terminal_) give_terminal(getpgrp());
}

void ChildProcess::signal(int number) const {
  // A group without members is none: then there is nobody to tell.
  kill(-pid_, number);
}

std::optional<int> ChildProcess::ended() {
  int state = 0;
  while (!status_ && waitpid(pid_, &state, WNOHANG | WUNTRACED) == pid_) {
    if (WIFEXITED(state)) status_ = WEXITSTATUS(state);
    if (WIFSIGNALED(state)) status_ = 128 + WTERMSIG(state);
    if (WIFSTOPPED(state)) signal(SIGCONT);
  }
  return status_;
}

}  // namespace leasehold::server
