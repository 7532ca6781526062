#include <leasehold/bench/floors/child.h>

#include <leasehold/bench/socket.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <iostream>
#include <utility>

namespace leasehold::bench {
namespace {

constexpr std::string_view kListening = "listening ";

[[noreturn]] void run_child(const std::function<Result<void>()>& serve, int output) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(output, STDOUT_FILENO);
  const auto served = serve();
  if (!served) std::cerr << served.error().message << std::endl;
  std::cout.flush();
  _exit(served ? 0 : 1);
}

/// Up to the end of the line or of the file.
std::string read_line(int fd) {
  std::string line;
  char letter = 0;
  while (line.size() < 4096 && read(fd, &letter, 1) == 1 && letter != '\n') line += letter;
  return line;
}

}  // namespace

Result<Child> Child::start(const std::function<Result<void>()>& serve) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return system_error("pipe");
  const Descriptor from(ends[0]);
  Descriptor into(ends[1]);
  std::cout.flush();
  const pid_t pid = fork();
  if (pid < 0) return system_error("fork");
  if (pid == 0) run_child(serve, into.get());
  into = Descriptor();
  const std::string line = read_line(from.get());
  if (line.rfind(kListening, 0) != 0) {
    Child(pid, "").wait();
    return Error{ErrorCode::stopped, "a child process ended before it listened"};
  }
  return Child(pid, line.substr(kListening.size()));
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), address_(std::move(other.address_)) {}

Child::~Child() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Child::wait() {
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace leasehold::bench
