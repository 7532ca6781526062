// leasehold-deputy: waits for the end of the process that started it, and tells the peers of that
// process at once. It knows nothing of what it sends: the node gives it the datagram and where to.
//
// It is started by the node, with a descriptor of the node's process (pidfd) as its standard output
// and a socket (SOCK_SEQPACKET) as its standard input. Each message on that is one of these, by its
// first byte; a later one takes the place of an earlier one:
//
//   n BYTES                what to send
//   p PEER...              where to: wire::NoticeTarget, one after the other
//   q                      end: the node stops in good order, and nobody has to be told
//
// How it knows: the descriptor becomes readable when the kernel has ended the process with all its
// threads, however that came. A process that is stopped, or that writes a core dump, has not ended.
//
// One thread, no allocation after the start, and nothing but the C library, so that it costs no
// memory worth mentioning and nothing of the node's code runs in it.

#include <leasehold/wire/notice_form.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

using leasehold::wire::kAnswerBytes;
using leasehold::wire::NoticeTarget;

constexpr int kChannel = STDIN_FILENO;
constexpr int kProcess = STDOUT_FILENO;
constexpr std::size_t kPeersMax = 256;
constexpr std::size_t kDatagramMax = 512;
/// Which are closed one by one where the kernel has no call for it.
constexpr int kFilesMax = 65'536;
/// Pauses behind the sends to a peer that has not answered: the first, and how many of them, each
/// twice as long as the one before. A second in all: a supervisor may wait for the end of
/// all processes of the node before it starts it again.
constexpr int kFirstPauseMs = 4;
constexpr int kSends = 8;
/// For the end of a process that has stopped its node.
constexpr int kGraceMs = 10'000;

struct Deputy {
  char notice[kDatagramMax] = {};
  std::size_t notice_bytes = 0;
  NoticeTarget peers[kPeersMax] = {};
  std::size_t peer_count = 0;
  bool told[kPeersMax] = {};
};

static_assert(sizeof(sockaddr_in6) == leasehold::wire::kAddressBytes);

socklen_t size_of(const sockaddr_storage& address) {
  return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

enum class Heard { message, good_order, closed };

/// One message of the node, if there is one.
Heard hear(Deputy& deputy) {
  static char buffer[1 + sizeof(deputy.peers)];
  const ssize_t count = recv(kChannel, buffer, sizeof(buffer), MSG_DONTWAIT);
  if (count < 0) return errno == EAGAIN || errno == EINTR ? Heard::message : Heard::closed;
  if (count == 0) return Heard::closed;
  const auto bytes = static_cast<std::size_t>(count) - 1;
  const char* const content = buffer + 1;
  switch (buffer[0]) {
    case 'q': return Heard::good_order;
    case 'n':
      if (bytes > sizeof(deputy.notice)) break;
      std::memcpy(deputy.notice, content, bytes);
      deputy.notice_bytes = bytes;
      break;
    case 'p':
      deputy.peer_count = bytes / sizeof(NoticeTarget);
      std::memcpy(deputy.peers, content, deputy.peer_count * sizeof(NoticeTarget));
      break;
    default: break;
  }
  // The secret is kept in one place.
  explicit_bzero(buffer, sizeof(buffer));
  return Heard::message;
}

/// Marks the peer whose answer came in. It says who it is: it may answer from another address.
void take_answer(int socket, Deputy& deputy) {
  char answer[kAnswerBytes + 1];
  if (recv(socket, answer, sizeof(answer), MSG_DONTWAIT) != static_cast<ssize_t>(kAnswerBytes)) {
    return;
  }
  for (std::size_t i = 0; i < deputy.peer_count; ++i) {
    const NoticeTarget& peer = deputy.peers[i];
    if (std::memcmp(answer, peer.answer, kAnswerBytes) == 0) deputy.told[i] = true;
  }
}

void tell_peers(Deputy& deputy) {
  const int families[] = {AF_INET, AF_INET6};
  pollfd sockets[2] = {};
  for (int i = 0; i < 2; ++i) {
    sockets[i] = {socket(families[i], SOCK_DGRAM | SOCK_CLOEXEC, 0), POLLIN, 0};
  }
  int pause = kFirstPauseMs;
  for (int send = 0; send < kSends; ++send, pause *= 2) {
    bool all = true;
    for (std::size_t i = 0; i < deputy.peer_count; ++i) {
      if (deputy.told[i]) continue;
      all = false;
      sockaddr_storage to{};
      std::memcpy(&to, deputy.peers[i].address, sizeof(deputy.peers[i].address));
      const int by = sockets[to.ss_family == AF_INET6 ? 1 : 0].fd;
      if (by >= 0) {
        // A failure is a lost datagram.
        (void)sendto(by, deputy.notice, deputy.notice_bytes, 0,
                     reinterpret_cast<const sockaddr*>(&to), size_of(to));
      }
    }
    if (all) return;
    for (int waited = 0; waited < pause;) {
      const int step = pause - waited < kFirstPauseMs ? pause - waited : kFirstPauseMs;
      if (poll(sockets, 2, step) > 0) {
        for (int i = 0; i < 2; ++i) {
          if ((sockets[i].revents & POLLIN) != 0) take_answer(sockets[i].fd, deputy);
        }
      }
      waited += step;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  (void)argv;
  if (argc != 1 || isatty(STDIN_FILENO) != 0) {
    std::fprintf(stderr, "leasehold-deputy is started by a node, and does nothing by itself\n");
    return 2;
  }
  // Nothing of the node may be open here: it would not end with the node.
  if (close_range(STDERR_FILENO, ~0U, 0) != 0) {
    for (int file = STDERR_FILENO; file < kFilesMax; ++file) close(file);
  }
  // What ends the node's process group must not end the deputy before it has told the peers.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  // Any other file may be readable at any time, and would be taken for the end of the process.
  if (syscall(SYS_pidfd_send_signal, kProcess, 0, nullptr, 0) != 0 && errno == EBADF) return 3;

  static Deputy deputy;
  pollfd waits[2] = {{kChannel, POLLIN, 0}, {kProcess, POLLIN, 0}};
  for (;;) {
    const int ready = poll(waits, 2, waits[0].fd < 0 ? kGraceMs : -1);
    if (ready == 0 || (ready < 0 && errno != EINTR)) return 0;
    if (ready < 0) continue;
    if (waits[0].revents != 0) {
      const Heard heard = hear(deputy);
      if (heard == Heard::good_order) return 0;
      // The process has ended, or has stopped its node and may be about to; the other descriptor
      // says which.
      if (heard == Heard::closed) waits[0].fd = -1;
    }
    if (waits[1].revents != 0) break;
  }
  // What the node had said before it ended.
  for (Heard heard = Heard::message; heard == Heard::message && waits[0].fd >= 0;) {
    const ssize_t more = recv(kChannel, nullptr, 0, MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC);
    if (more <= 0) break;
    heard = hear(deputy);
    if (heard == Heard::good_order) return 0;
  }
  if (deputy.notice_bytes > 0) tell_peers(deputy);
  explicit_bzero(&deputy, sizeof(deputy));
  return 0;
}
