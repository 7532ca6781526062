#include <leasehold/bench/socket.h>
#include <leasehold/tls/stream.h>

#include <fmt/format.h>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace leasehold::bench {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<Addresses> resolve(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) {
    return Error{ErrorCode::invalid_argument, fmt::format("`{}` is not host:port", address)};
  }
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int status = getaddrinfo(address.substr(0, colon).c_str(),
                                 address.substr(colon + 1).c_str(), &hints, &found);
  if (status != 0) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("`{}`: {}", address, gai_strerror(status))};
  }
  return Addresses(found, &freeaddrinfo);
}

void set_option(int fd, int level, int option) {
  const int on = 1;
  // Without it a measurement would show delays of 40 ms, so a failure here is obvious.
  static_cast<void>(setsockopt(fd, level, option, &on, sizeof on));
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = std::exchange(other.fd_, -1);
    stream_ = std::move(other.stream_);
  }
  return *this;
}

Result<void> Descriptor::begin_tls(const std::shared_ptr<const tls::Context>& context,
                                   const std::string& host) {
  stream_ = std::make_shared<tls::Stream>(context, tls::Stream::Side::dialled, fd_);
  if (!host.empty()) stream_->expect_server(host);
  // The socket blocks, so one step is all of it.
  if (stream_->handshake().state == tls::Stream::State::done) return {};
  return Error{ErrorCode::unavailable, "no TLS connection: " + stream_->problem()};
}

Error system_error(const std::string& what) {
  return Error{ErrorCode::io, fmt::format("{}: {}", what, std::strerror(errno))};
}

Result<Descriptor> connect_tcp(const std::string& address, std::uint64_t timeout_ms) {
  auto found = resolve(address);
  if (!found) return found.error();
  const addrinfo& first = *found.value();
  Descriptor socket(::socket(first.ai_family, first.ai_socktype | SOCK_CLOEXEC, 0));
  if (!socket.open()) return system_error("socket");
  if (timeout_ms > 0) {
    const timeval timeout = {static_cast<time_t>(timeout_ms / 1000),
                             static_cast<suseconds_t>(timeout_ms % 1000 * 1000)};
    for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
      if (setsockopt(socket.get(), SOL_SOCKET, option, &timeout, sizeof timeout) != 0) {
        return system_error("setsockopt");
      }
    }
  }
  if (connect(socket.get(), first.ai_addr, first.ai_addrlen) != 0) {
    return system_error("connect to " + address);
  }
  set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY);
  return socket;
}

Result<Descriptor> listen_tcp(const std::string& address) {
  auto found = resolve(address);
  if (!found) return found.error();
  const addrinfo& first = *found.value();
  Descriptor socket(::socket(first.ai_family, first.ai_socktype | SOCK_CLOEXEC, 0));
  if (!socket.open()) return system_error("socket");
  set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR);
  if (bind(socket.get(), first.ai_addr, first.ai_addrlen) != 0 ||
      listen(socket.get(), SOMAXCONN) != 0) {
    return system_error("listen on " + address);
  }
  return socket;
}

Result<Descriptor> accept_tcp(const Descriptor& listener) {
  Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.open()) return system_error("accept");
  set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY);
  return socket;
}

Result<void> write_all(const Descriptor& socket, std::string_view bytes) {
  while (socket.stream() != nullptr && !bytes.empty()) {
    const tls::Stream::Step step = socket.stream()->write(bytes);
    if (step.state != tls::Stream::State::done) {
      return Error{ErrorCode::io, "TLS: " + socket.stream()->problem()};
    }
    bytes.remove_prefix(step.bytes);
  }
  while (!bytes.empty()) {
    const ssize_t written = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (written < 0) {
      if (errno == EINTR) continue;
      return system_error("send");
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<std::size_t> read_some(const Descriptor& socket, char* into, std::size_t capacity) {
  if (socket.stream() != nullptr) {
    const tls::Stream::Step step = socket.stream()->read(into, capacity);
    if (step.state == tls::Stream::State::done) return step.bytes;
    return Error{ErrorCode::stopped, "the other side ended TLS: " + socket.stream()->problem()};
  }
  for (;;) {
    const ssize_t got = recv(socket.get(), into, capacity, 0);
    if (got > 0) return static_cast<std::size_t>(got);
    if (got == 0 || errno == ECONNRESET) {
      return Error{ErrorCode::stopped, "the other side closed the connection"};
    }
    if (errno != EINTR) return system_error("recv");
  }
}

}  // namespace leasehold::bench
