#include <leasehold/net/tcp_peer_user.h>

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace leasehold::net {

namespace {

struct Question {
  nlmsghdr header{};
  inet_diag_req_v2 request{};
};

/// Puts one end of a connection into the question's words. Returns the family of the other end's
/// socket: that of a mapped address is IPv4.
int fill_end(const sockaddr_storage& end, __be32* address, __be16& port) {
  if (end.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &end, sizeof v4);
    std::memcpy(address, &v4.sin_addr, sizeof v4.sin_addr);
    port = v4.sin_port;
    return AF_INET;
  }
  sockaddr_in6 v6{};
  std::memcpy(&v6, &end, sizeof v6);
  port = v6.sin6_port;
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    std::memcpy(address, &v6.sin6_addr.s6_addr[12], sizeof(in_addr));
    return AF_INET;
  }
  std::memcpy(address, &v6.sin6_addr, sizeof v6.sin6_addr);
  return AF_INET6;
}

/// The kernel's name for the socket at the other end. False: this one is not connected.
bool name_other_end(int socket, Question& question) {
  sockaddr_storage mine{};
  sockaddr_storage theirs{};
  socklen_t size = sizeof mine;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&mine), &size) != 0) return false;
  size = sizeof theirs;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&theirs), &size) != 0) return false;
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.request.sdiag_protocol = IPPROTO_TCP;
  question.request.idiag_states = ~0U;
  question.request.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  question.request.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  question.request.sdiag_family = static_cast<__u8>(
      fill_end(theirs, question.request.id.idiag_src, question.request.id.idiag_sport));
  fill_end(mine, question.request.id.idiag_dst, question.request.id.idiag_dport);
  return true;
}

enum class Answer { same, other, cannot_say };

Answer judge(const char* reply, std::size_t size) {
  nlmsghdr header{};
  if (size < sizeof header) return Answer::other;
  std::memcpy(&header, reply, sizeof header);
  if (header.nlmsg_type == NLMSG_ERROR) {
    nlmsgerr problem{};
    if (size < NLMSG_HDRLEN + sizeof problem) return Answer::other;
    std::memcpy(&problem, reply + NLMSG_HDRLEN, sizeof problem);
    // ENOENT is also the answer of a kernel without the part for TCP; then it cannot be told from a
    // socket that is gone.
    return problem.error == -EOPNOTSUPP || problem.error == -EPROTONOSUPPORT ? Answer::cannot_say
                                                                             : Answer::other;
  }
  inet_diag_msg found{};
  if (header.nlmsg_type != SOCK_DIAG_BY_FAMILY || size < NLMSG_HDRLEN + sizeof found)
    return Answer::other;
  std::memcpy(&found, reply + NLMSG_HDRLEN, sizeof found);
  // Without an inode no process has it any more, and before Linux 6.13 its user then reads as root.
  if (found.idiag_inode == 0) return Answer::other;
  return found.idiag_uid == 0 || found.idiag_uid == ::geteuid() ? Answer::same : Answer::other;
}

Answer ask(Question& question) {
  const int kernel = ::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (kernel < 0) {
    return errno == EAFNOSUPPORT || errno == EPROTONOSUPPORT ? Answer::cannot_say : Answer::other;
  }
  std::array<char, 2048> reply{};
  ssize_t size = ::send(kernel, &question, sizeof question, 0);
  // The kernel has answered when send() returns.
  if (size == static_cast<ssize_t>(sizeof question))
    size = ::recv(kernel, reply.data(), reply.size(), MSG_DONTWAIT);
  ::close(kernel);
  return size < 0 ? Answer::other : judge(reply.data(), static_cast<std::size_t>(size));
}

}  // namespace

bool same_user_at_other_end(int socket) {
  Question question;
  return name_other_end(socket, question) && ask(question) != Answer::other;
}

}  // namespace leasehold::net
