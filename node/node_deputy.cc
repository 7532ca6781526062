#include <leasehold/node/node_deputy.h>
#include <leasehold/storage/descriptor.h>
#include <leasehold/tls/digest.h>
#include <leasehold/wire/notice.h>

#include <fmt/format.h>

#include <asio/ip/address.hpp>
#include <asio/ip/udp.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace leasehold::node {
namespace {

/// Before a deputy that is gone is replaced: the first pause, and the longest if it never lives for
/// long.
constexpr std::chrono::seconds kPause{1};
constexpr std::chrono::seconds kPauseMax{64};
constexpr std::chrono::seconds kLivesLong{10};

Error failed(const std::string& what, int number) {
  const ErrorCode code = number == ENOENT ? ErrorCode::not_found : ErrorCode::io;
  return Error{code, fmt::format("{}: {}", what, std::generic_category().message(number))};
}

/// Deputies that have been let go and may not have ended yet, of all nodes of this process: a few
/// at most, because each call waits for those that have.
void reap(pid_t more) {
  static std::mutex mutex;
  static std::array<pid_t, 16> ended{};
  const std::lock_guard lock(mutex);
  for (pid_t& process : ended) {
    if (process != 0 && ::waitpid(process, nullptr, WNOHANG) != 0) process = 0;
    if (process == 0) process = std::exchange(more, 0);
  }
}

}  // namespace

Deputy::Deputy(asio::io_context& io, std::string program, const raft::Peer& self, Notice say)
    : io_(io),
      program_(std::move(program)),
      say_(std::move(say)),
      self_(self),
      again_(io),
      settled_(io) {}

Deputy::~Deputy() {
  try {
    stop(Ending::silent);
  } catch (const std::exception&) {
    // It ends with this process at the latest.
  }
  tls::wipe(notice_);
}

Result<void> Deputy::start(std::string notice) {
  notice_ = std::move(notice);
  const auto started = spawn();
  if (!started.ok() && started.error().code == ErrorCode::not_found) return started;
  if (!started.ok()) {
    say_(started.error().message);
    again_later();
  }
  inform();
  return {};
}

Result<void> Deputy::spawn() {
  // The deputy waits for the end of this process, also if a program between them started it.
  const int self = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
  if (self < 0) return failed("cannot make a descriptor of this process for the deputy", errno);
  const storage::Descriptor closes_self(self);
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return failed("cannot make a socket for the deputy", errno);
  }
  // Its standard input is the channel, its standard output this process. Nothing else of it is open
  // there.
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, self, STDOUT_FILENO);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO);
  ::posix_spawnattr_init(&attributes);
  // Those by which a supervisor, or a terminal, ends all processes of the node: from the first
  // instruction on they do nothing to the deputy.
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&blocked, signal);
  ::posix_spawnattr_setsigmask(&attributes, &blocked);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  std::string name = program_;
  char* const arguments[] = {name.data(), nullptr};
  char* const environment[] = {nullptr};
  pid_t process = 0;
  const int number =
      ::posix_spawn(&process, program_.c_str(), &actions, &attributes, arguments, environment);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  ::close(ends[1]);
  if (number != 0) {
    ::close(ends[0]);
    return failed("cannot start the deputy " + program_, number);
  }
  process_ = process;
  settled_.expires_after(kLivesLong);
  settled_.async_wait([this, alive = alive_](const asio::error_code& error) {
    if (*alive && !error) pause_ = kPause;
  });
  channel_ = std::make_unique<asio::posix::stream_descriptor>(io_, ends[0]);
  watch();
  return {};
}

void Deputy::set_peers(std::vector<Target> peers) {
  if (peers == peers_) return;
  peers_ = std::move(peers);
  inform();
}

void Deputy::inform() {
  if (!channel_) return;
  std::string peers;
  for (const Target& peer : peers_) {
    asio::error_code error;
    const asio::ip::udp::endpoint at(asio::ip::make_address(peer.at.host, error), peer.at.port);
    if (error) continue;
    wire::NoticeTarget target{};
    std::memcpy(target.address, at.data(), at.size());
    const std::string answer = wire::encode_notice_answer(self_, peer.id);
    std::memcpy(target.answer, answer.data(), answer.size());
    peers.append(reinterpret_cast<const char*>(&target), sizeof(target));
  }
  send('n', notice_);
  send('p', peers);
}

// One that is gone, or that reads nothing any more, is replaced: watch() sees its end.
void Deputy::send(char kind, std::string_view content) {
  std::string message(1, kind);
  message += content;
  const ssize_t sent = ::send(channel_->native_handle(), message.data(), message.size(),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
  const bool stuck = sent < 0 && errno == EAGAIN;
  if (stuck && ::waitpid(process_, nullptr, WNOHANG) == 0) ::kill(process_, SIGKILL);
  tls::wipe(message);
}

void Deputy::watch() {
  // It never says anything: what can be read is its end.
  channel_->async_wait(asio::posix::stream_descriptor::wait_read,
                       [this, alive = alive_](const asio::error_code& error) {
                         if (*alive && !error) lost();
                       });
}

void Deputy::lost() {
  channel_.reset();
  reap(std::exchange(process_, 0));
  settled_.cancel();
  if (restarts_ == 0) say_("the deputy has ended, and is started again");
  again_later();
}

void Deputy::again_later() {
  const std::chrono::seconds pause = std::exchange(pause_, std::min(2 * pause_, kPauseMax));
  again_.expires_after(pause);
  again_.async_wait([this, alive = alive_](const asio::error_code& error) {
    if (!*alive || error) return;
    ++restarts_;
    reap(0);
    const auto started = spawn();
    if (started.ok()) return inform();
    say_(started.error().message);
    again_later();
  });
}

void Deputy::stop(Ending ending) {
  *alive_ = false;
  again_.cancel();
  settled_.cancel();
  if (!channel_) return;
  if (ending == Ending::silent) send('q', {});
  channel_.reset();
  reap(std::exchange(process_, 0));
}

}  // namespace leasehold::node
