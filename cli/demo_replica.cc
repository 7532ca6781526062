#include <leasehold/base/random.h>
#include <leasehold/cli/demo_replica.h>

#include <fmt/format.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>

namespace leasehold::cli {
namespace {

/// Below the ports that Linux hands out by itself (32768 and up).
constexpr int kFirstPort = 20000;
constexpr int kPorts = 12000;
constexpr int kPortTries = 1000;
constexpr auto kReapInterval = std::chrono::milliseconds(2);

bool can_bind(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool bound = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return bound;
}

/// In the child: never returns.
[[noreturn]] void become(const std::vector<std::string>& words, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent died before the line above
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  const char message[] = "cannot start the program\n";
  if (write(STDERR_FILENO, message, sizeof(message) - 1) < 0) _exit(126);
  _exit(127);
}

}  // namespace

Result<std::string> own_program(const std::string& argv0) {
  std::string path(4096, '\0');
  const ssize_t size = readlink("/proc/self/exe", path.data(), path.size());
  if (size > 0) return path.substr(0, static_cast<std::size_t>(size));
  if (argv0.find('/') != std::string::npos) return argv0;
  const char* folders = std::getenv("PATH");
  std::string left = folders == nullptr ? "" : folders;
  while (!left.empty()) {
    const std::size_t colon = left.find(':');
    const std::string candidate = fmt::format("{}/{}", left.substr(0, colon), argv0);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    left = colon == std::string::npos ? "" : left.substr(colon + 1);
  }
  return Error{ErrorCode::not_found,
               "cannot find this program's own file: start it by its full path"};
}

Result<std::vector<int>> free_ports(std::size_t count) {
  const auto time = std::chrono::steady_clock::now().time_since_epoch().count();
  Random random(static_cast<std::uint64_t>(time) ^ static_cast<std::uint64_t>(getpid()) << 32U);
  std::set<int> chosen;
  for (int tries = 0; tries < kPortTries && chosen.size() < count; ++tries) {
    const int port = kFirstPort + static_cast<int>(random.below(kPorts));
    if (can_bind(port)) chosen.insert(port);
  }
  if (chosen.size() < count) {
    return Error{ErrorCode::unavailable,
                 "no free ports on 127.0.0.1: is the loopback interface up?"};
  }
  return std::vector<int>(chosen.begin(), chosen.end());
}

Result<std::string> make_temporary_folder(const std::string& prefix) {
  const char* parent = std::getenv("TMPDIR");
  std::string path =
      fmt::format("{}/{}XXXXXX", parent == nullptr || *parent == '\0' ? "/tmp" : parent, prefix);
  if (mkdtemp(path.data()) == nullptr) {
    return Error{ErrorCode::io,
                 fmt::format("cannot make a folder like {}: {}. Set TMPDIR to a writable folder",
                             path, std::strerror(errno))};
  }
  return path;
}

ReplicaProcess::~ReplicaProcess() {
  if (!running()) return;
  signal(SIGKILL);
  reap(0);
}

Result<void> ReplicaProcess::start(const std::vector<std::string>& words, const std::string& log) {
  const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) {
    return Error{ErrorCode::io, fmt::format("cannot write {}: {}", log, std::strerror(errno))};
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) become(words, fd, parent);
  close(fd);
  if (child < 0) {
    return Error{ErrorCode::io, std::string("cannot start a process: ") + std::strerror(errno)};
  }
  pid_ = child;
  running_ = true;
  return {};
}

bool ReplicaProcess::reap(int options) {
  if (!running_) return true;
  int status = 0;
  if (waitpid(pid_, &status, options) != pid_) return false;
  running_ = false;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

bool ReplicaProcess::running() {
  return running_ && !reap(WNOHANG);
}

void ReplicaProcess::signal(int number) const {
  if (running_) kill(pid_, number);
}

Result<int> ReplicaProcess::wait(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!reap(WNOHANG)) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return Error{ErrorCode::timed_out, "the process did not end in time"};
    }
    std::this_thread::sleep_for(kReapInterval);
  }
  return status_;
}

}  // namespace leasehold::cli
