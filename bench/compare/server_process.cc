#include <leasehold/base/random.h>
#include <leasehold/bench/compare/server_process.h>
#include <leasehold/bench/socket.h>

#include <fmt/format.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <utility>

namespace leasehold::bench {
namespace {

constexpr int kPortFirst = 20000;
constexpr std::uint64_t kPortCount = 12000;
constexpr int kPortTries = 1000;
constexpr std::chrono::milliseconds kReapPause{2};
constexpr std::size_t kLogLines = 5;

bool is_unused(int port) {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.open()) return false;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

/// In the child, until it becomes the server. Nothing here allocates.
[[noreturn]] void become_server(char* const* words, int log, pid_t parent) {
  // A group of its own: the terminal's Ctrl-C is for the measurement, which then ends all of them.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = open("/dev/null", O_RDONLY);
  if (null >= 0) dup2(null, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execv(words[0], words);
  const char text[] = "cannot start the program\n";
  static_cast<void>(!write(STDERR_FILENO, text, sizeof text - 1));
  _exit(127);
}

std::uint64_t cpu_of(pid_t pid) {
  clockid_t clock{};
  timespec used{};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<std::uint64_t>(used.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(used.tv_nsec);
}

void add_children(pid_t pid, std::vector<pid_t>& into) {
  std::error_code ignored;
  const std::filesystem::path tasks = fmt::format("/proc/{}/task", pid);
  for (const auto& task : std::filesystem::directory_iterator(tasks, ignored)) {
    std::ifstream children(task.path() / "children");
    for (pid_t child = 0; children >> child;) into.push_back(child);
  }
}

}  // namespace

std::string program_in_path(const std::string& name) {
  const char* const folders = std::getenv("PATH");
  std::string left = folders == nullptr ? "" : folders;
  while (!left.empty()) {
    const std::size_t colon = left.find(':');
    const std::string candidate = fmt::format("{}/{}", left.substr(0, colon), name);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
    left = colon == std::string::npos ? "" : left.substr(colon + 1);
  }
  return "";
}

Result<std::vector<int>> unused_ports(std::size_t count) {
  const auto time = std::chrono::steady_clock::now().time_since_epoch().count();
  Random random(static_cast<std::uint64_t>(time) ^ static_cast<std::uint64_t>(getpid()) << 32U);
  std::set<int> chosen;
  for (int tries = 0; tries < kPortTries && chosen.size() < count; ++tries) {
    const int port = kPortFirst + static_cast<int>(random.below(kPortCount));
    if (is_unused(port)) chosen.insert(port);
  }
  if (chosen.size() == count) return std::vector<int>(chosen.begin(), chosen.end());
  return Error{ErrorCode::unavailable, "no free ports on 127.0.0.1: is the loopback interface up?"};
}

Result<ServerProcess> ServerProcess::start(const std::vector<std::string>& words,
                                           const std::string& log) {
  const Descriptor file(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file.open()) return system_error(log);
  std::vector<std::string> texts = words;
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) become_server(arguments.data(), file.get(), parent);
  if (child < 0) return system_error("cannot start " + words.front());
  setpgid(child, child);
  return ServerProcess(child, log);
}

ServerProcess::ServerProcess(ServerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), log_(std::move(other.log_)) {}

ServerProcess::~ServerProcess() {
  if (pid_ < 0) return;
  kill(-pid_, SIGKILL);
  reap(0);
}

bool ServerProcess::reap(int options) {
  if (pid_ < 0) return true;
  pid_t ended = 0;
  do {
    ended = waitpid(pid_, nullptr, options);
  } while (ended < 0 && errno == EINTR);
  if (ended == 0) return false;
  pid_ = -1;
  return true;
}

bool ServerProcess::running() {
  return !reap(WNOHANG);
}

void ServerProcess::end() const {
  if (pid_ > 0) kill(pid_, SIGTERM);
}

void ServerProcess::wait(std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!reap(WNOHANG)) {
    if (std::chrono::steady_clock::now() >= deadline) {
      kill(-pid_, SIGKILL);
      reap(0);
      return;
    }
    std::this_thread::sleep_for(kReapPause);
  }
}

std::uint64_t ServerProcess::cpu_ns() const {
  if (pid_ < 0) return 0;
  std::vector<pid_t> family = {pid_};
  for (std::size_t i = 0; i < family.size(); ++i) add_children(pid_t{family[i]}, family);
  std::uint64_t sum = 0;
  for (const pid_t pid : family) sum += cpu_of(pid);
  return sum;
}

std::string end_of_log(const std::string& path) {
  std::ifstream file(path);
  std::deque<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(line.substr(0, 300));
    if (lines.size() > kLogLines) lines.pop_front();
  }
  std::string text;
  for (const std::string& line : lines) text += "\n  " + line;
  return text.empty() ? " (its log is empty)" : text;
}

}  // namespace leasehold::bench
