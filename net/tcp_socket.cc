#include <leasehold/net/tcp_socket.h>

#include <fmt/format.h>

#include <asio/post.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <utility>

namespace leasehold::net {

PeerSocket of_tcp(asio::ip::tcp::socket socket) {
  asio::error_code error;
  const asio::ip::tcp::endpoint remote = socket.remote_endpoint(error);
  std::string address;
  bool loopback = false;
  if (!error) {
    const asio::ip::address other = remote.address();
    const std::string host = other.to_string();
    address = other.is_v6() ? fmt::format("[{}]:{}", host, remote.port())
                            : fmt::format("{}:{}", host, remote.port());
    const bool mapped = other.is_v6() && other.to_v6().is_v4_mapped();
    loopback = mapped ? asio::ip::make_address_v4(asio::ip::v4_mapped, other.to_v6()).is_loopback()
                      : other.is_loopback();
  }
  return {std::move(socket), std::move(address), loopback};
}

Result<PeerSocket> StreamDoor::adopt(const PeerStream& stream) {
  int type = 0;
  int family = 0;
  socklen_t size = sizeof type;
  const bool known = ::getsockopt(stream.socket, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
                     ::getsockopt(stream.socket, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0;
  sockaddr_storage other{};
  socklen_t other_size = sizeof other;
  if (!known || type != SOCK_STREAM ||
      ::getpeername(stream.socket, reinterpret_cast<sockaddr*>(&other), &other_size) != 0) {
    if (stream.socket >= 0) ::close(stream.socket);
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the stream with {} is no connected socket of type SOCK_STREAM: "
                             "PeerStreams has to give one",
                             stream.other)};
  }
  PeerSocket adopted{asio::generic::stream_protocol::socket(*io_), stream.other};
  adopted.proved = proves_peers_;
  asio::error_code error;
  adopted.socket.assign(asio::generic::stream_protocol(family, 0), stream.socket, error);
  if (!error) return adopted;
  ::close(stream.socket);
  return Error{ErrorCode::io,
               fmt::format("the stream with {} cannot be used: {}", stream.other, error.message())};
}

void StreamDoor::pass(Result<PeerStream> stream, std::function<void(Result<PeerSocket>)> done) {
  const std::lock_guard lock(mutex_);
  if (io_ == nullptr) {
    if (stream.ok() && stream.value().socket >= 0) ::close(stream.value().socket);
    return;
  }
  // Held by a pointer: a handler of asio may be copied, and a socket may not.
  auto adopted = std::make_shared<Result<PeerSocket>>(
      stream.ok() ? adopt(stream.value()) : Result<PeerSocket>(stream.error()));
  asio::post(*io_, [adopted, done = std::move(done)] { done(std::move(*adopted)); });
}

void StreamDoor::close() {
  const std::lock_guard lock(mutex_);
  io_ = nullptr;
}

}  // namespace leasehold::net
