#include <leasehold/client/resp_client.h>
#include <leasehold/tls/stream.h>

#include <fmt/format.h>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

namespace leasehold::client {
namespace {

using Clock = std::chrono::steady_clock;
using Timeout = RespClient::Timeout;

constexpr std::size_t kReadBytes = 64U << 10U;
constexpr std::int64_t kReplyItemsMax = 1 << 20;
/// A type, a length, a simple string or an error.
constexpr std::size_t kLineBytesMax = 64U << 10U;

constexpr const char* kClosed =
    "the server closed the connection: it ended, or this is not its port for clients (serve "
    "--listen)";

Error broken(const char* what, int code) {
  return {ErrorCode::unavailable, fmt::format("{}: {}", what, std::strerror(code))};
}

/// An array of bulk strings.
void append_command(std::string& out, const std::vector<std::string>& words) {
  out += "*" + std::to_string(words.size()) + "\r\n";
  for (const std::string& word : words) {
    out += "$" + std::to_string(word.size()) + "\r\n" + word + "\r\n";
  }
}

/// Waits until the socket is ready for `events` or the deadline passes.
Result<void> wait_ready(int socket, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return Error{ErrorCode::timed_out, "no answer within the time limit"};
    pollfd waiting{socket, events, 0};
    const int ready = poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return broken("cannot wait for the connection", errno);
  }
}

/// Waits for what a step of TLS needs. Errors: that of the step, if it needs nothing; timed_out.
Result<void> wait_for(tls::Stream::State state, const tls::Stream& stream, int socket,
                      Clock::time_point deadline) {
  switch (state) {
    case tls::Stream::State::done: return {};
    case tls::Stream::State::wants_read: return wait_ready(socket, POLLIN, deadline);
    case tls::Stream::State::wants_write: return wait_ready(socket, POLLOUT, deadline);
    case tls::Stream::State::ended: return Error{ErrorCode::unavailable, kClosed};
    case tls::Stream::State::failed: break;
  }
  return Error{ErrorCode::unavailable, stream.problem()};
}

/// Without the brackets of an IPv6 address.
std::string host_of(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return host;
}

Result<std::unique_ptr<addrinfo, void (*)(addrinfo*)>> resolve(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) {
    return Error{
        ErrorCode::invalid_argument,
        fmt::format("'{}' is not an address: write host:port, as in 127.0.0.1:7201", address)};
  }
  const std::string host = host_of(address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found);
  if (code != 0) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("cannot resolve '{}': {}", address, gai_strerror(code))};
  }
  return std::unique_ptr<addrinfo, void (*)(addrinfo*)>(found, freeaddrinfo);
}

Error malformed(const char* why) {
  return {ErrorCode::malformed, std::string("the server's reply is no RESP: ") + why};
}

Result<std::size_t> parse_value(std::string_view bytes, RespValue& value, int depth) {
  const std::size_t end = bytes.find("\r\n");
  if (end == std::string_view::npos) {
    if (bytes.size() > kLineBytesMax) return malformed("a line without end");
    return std::size_t{0};
  }
  const std::string_view line = bytes.substr(1, end - 1);
  std::size_t at = end + 2;
  std::int64_t number = 0;
  const auto parsed = std::from_chars(line.data(), line.data() + line.size(), number);
  const bool numeric =
      !line.empty() && parsed.ec == std::errc() && parsed.ptr == line.data() + line.size();
  value = RespValue();
  switch (bytes.front()) {
    case '+':
    case '-':
      value.kind = bytes.front() == '+' ? RespValue::Kind::simple : RespValue::Kind::error;
      value.text = std::string(line);
      return at;
    case '_': return at;
    case ':':
      if (!numeric) return malformed("a wrong number");
      value.kind = RespValue::Kind::integer;
      value.integer = number;
      return at;
    case '$': {
      if (!numeric || number < -1 || number > static_cast<std::int64_t>(kReplyBytesMax)) {
        return malformed("a bad length");
      }
      if (number < 0) return at;
      const auto size = static_cast<std::size_t>(number);
      if (bytes.size() < at + size + 2) return std::size_t{0};
      if (bytes.substr(at + size, 2) != "\r\n") return malformed("a string longer than announced");
      value.kind = RespValue::Kind::bulk;
      value.text = std::string(bytes.substr(at, size));
      return at + size + 2;
    }
    case '*':
    case '>':
    case '%': {
      if (!numeric || number < -1 || number > kReplyItemsMax) return malformed("a bad length");
      if (number < 0) return at;
      if (depth == kReplyDepthMax) return malformed("nested too deeply");
      value.kind = bytes.front() == '>' ? RespValue::Kind::push : RespValue::Kind::array;
      const std::int64_t count = bytes.front() == '%' ? 2 * number : number;
      for (std::int64_t i = 0; i < count; ++i) {
        if (at == bytes.size()) return std::size_t{0};
        RespValue item;
        const auto length = parse_value(bytes.substr(at), item, depth + 1);
        if (!length || length.value() == 0) return length;
        value.items.push_back(std::move(item));
        at += length.value();
      }
      return at;
    }
    default: return malformed("an unknown type");
  }
}

/// Of this process.
Login& own_login() {
  static Login login;
  return login;
}

/// Says who the client is, if it is to be somebody.
Result<RespClient> logged_in(RespClient client, Clock::time_point deadline) {
  const Login& login = own_login();
  if (login.user.empty() && login.password.empty()) return client;
  const std::string user = login.user.empty() ? "default" : login.user;
  const auto left = std::chrono::ceil<Timeout>(deadline - Clock::now());
  const auto reply = client.call({"AUTH", user, login.password}, std::max(left, Timeout(1)));
  if (!reply) return reply.error();
  if (reply.value().kind != RespValue::Kind::error) return client;
  const ErrorCode code =
      reply.value().not_executed() ? ErrorCode::unavailable : ErrorCode::invalid_argument;
  return Error{code, fmt::format("the server refuses user {}: {}", user, reply.value().text)};
}

/// A server of an earlier version has one group, and that has every key. After any other error the
/// connection is in the first group of many: then two clients may lock one name in two groups.
bool knows_no_groups(const RespValue& error) {
  return error.is_error("ERR") && error.text.find("unknown") != std::string::npos;
}

/// What `client` says behind this is about the group that `access` names.
Result<RespClient> in_its_group(Result<RespClient> client, const Access& access,
                                Clock::time_point deadline) {
  const bool by_number = access.group() != 0;
  if (!client || (!by_number && access.key_of_group().empty())) return client;
  std::vector<std::string> words = {"LEASEHOLD", "GROUP"};
  if (by_number) {
    words.push_back(std::to_string(access.group()));
  } else {
    words.insert(words.end(), {"KEY", access.key_of_group()});
  }
  const auto left = std::chrono::ceil<Timeout>(deadline - Clock::now());
  const auto reply = client.value().call(words, std::max(left, Timeout(1)));
  if (!reply) return reply.error();
  const RespValue& answer = reply.value();
  if (answer.kind != RespValue::Kind::error) return client;
  if (!by_number && knows_no_groups(answer)) return client;
  const ErrorCode code =
      answer.not_executed() ? ErrorCode::unavailable : ErrorCode::invalid_argument;
  if (by_number && answer.is_error("ERR")) {
    return Error{code, fmt::format("the server has no group {}: {}", access.group(), answer.text)};
  }
  return Error{code, fmt::format("the server does not select the group: {}", answer.text)};
}

}  // namespace

const Login& RespClient::login() {
  return own_login();
}

void RespClient::log_in_as(Login login) {
  own_login() = std::move(login);
}

Result<std::size_t> parse_reply(std::string_view bytes, RespValue& value) {
  if (bytes.empty()) return std::size_t{0};
  return parse_value(bytes, value, 0);
}

Result<RespClient> RespClient::connect(const std::string& address, Timeout timeout,
                                       const Access& access) {
  const auto deadline = Clock::now() + timeout;
  const auto found = resolve(address);
  if (!found) return found.error();
  Error last{ErrorCode::unavailable, "no address"};
  for (const addrinfo* info = found.value().get(); info != nullptr; info = info->ai_next) {
    const int fd =
        socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, info->ai_protocol);
    if (fd < 0) return broken("cannot make a socket", errno);
    RespClient client(fd);
    const int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (::connect(fd, info->ai_addr, info->ai_addrlen) != 0 && errno != EINPROGRESS) {
      last = broken("cannot connect", errno);
      continue;
    }
    if (auto ready = wait_ready(fd, POLLOUT, deadline); !ready) return ready.error();
    int code = 0;
    socklen_t size = sizeof(code);
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &size);
    if (code == 0) {
      if (auto begun = client.begin_tls(address, access, deadline); !begun) return begun.error();
      return in_its_group(logged_in(std::move(client), deadline), access, deadline);
    }
    last = broken("cannot connect", code);
  }
  return last;
}

Result<void> RespClient::begin_tls(const std::string& address, const Access& access,
                                   Clock::time_point deadline) {
  if (access.tls() == nullptr) return {};
  stream_ = std::make_unique<tls::Stream>(access.tls(), tls::Stream::Side::dialled, socket_);
  stream_->expect_server(host_of(address));
  while (!stream_->established()) {
    const tls::Stream::State state = stream_->handshake().state;
    auto ready = wait_for(state, *stream_, socket_, deadline);
    if (ready) continue;
    if (state != tls::Stream::State::ended) return ready;
    return Error{ErrorCode::unavailable,
                 "the server ended the TLS handshake: does its port speak TLS, and does it accept "
                 "this client's certificate?"};
  }
  return {};
}

RespClient::RespClient(int socket) : socket_(socket) {}
RespClient::~RespClient() {
  if (stream_) stream_->shut_down();
  if (socket_ >= 0) close(socket_);
}
RespClient::RespClient(RespClient&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      stream_(std::move(other.stream_)),
      input_(std::move(other.input_)) {}
RespClient& RespClient::operator=(RespClient&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(stream_, other.stream_);
  std::swap(input_, other.input_);
  return *this;
}

Result<void> RespClient::send(const std::vector<std::vector<std::string>>& commands,
                              Timeout timeout) const {
  const auto deadline = Clock::now() + timeout;
  std::string bytes;
  for (const auto& words : commands) append_command(bytes, words);
  std::size_t sent = 0;
  while (stream_ && sent < bytes.size()) {
    const tls::Stream::Step step = stream_->write(std::string_view(bytes).substr(sent));
    sent += step.bytes;
    if (auto ready = wait_for(step.state, *stream_, socket_, deadline); !ready) return ready;
  }
  while (sent < bytes.size()) {
    const ssize_t size = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (size >= 0) {
      sent += static_cast<std::size_t>(size);
    } else if (errno == EAGAIN) {
      if (auto ready = wait_ready(socket_, POLLOUT, deadline); !ready) return ready;
    } else if (errno != EINTR) {
      return broken("the connection broke", errno);
    }
  }
  return {};
}

Result<RespValue> RespClient::reply(Timeout timeout) {
  const auto deadline = Clock::now() + timeout;
  RespValue value;
  for (;;) {
    const auto length = parse_reply(input_, value);
    if (!length) return length.error();
    if (length.value() > 0) {
      input_.erase(0, length.value());
      return value;
    }
    if (input_.size() > kReplyBytesMax) return malformed("too long");
    const std::size_t old = input_.size();
    input_.resize(old + kReadBytes);
    if (stream_) {
      const tls::Stream::Step step = stream_->read(input_.data() + old, kReadBytes);
      input_.resize(old + step.bytes);
      if (auto ready = wait_for(step.state, *stream_, socket_, deadline); !ready) {
        return ready.error();
      }
      continue;
    }
    const ssize_t size = recv(socket_, input_.data() + old, kReadBytes, 0);
    const int code = errno;
    input_.resize(old + (size > 0 ? static_cast<std::size_t>(size) : 0));
    if (size == 0) return Error{ErrorCode::unavailable, kClosed};
    if (size < 0 && code == EAGAIN) {
      if (auto ready = wait_ready(socket_, POLLIN, deadline); !ready) return ready.error();
    } else if (size < 0 && code != EINTR) {
      return broken("the connection broke", code);
    }
  }
}

Result<RespValue> RespClient::call(const std::vector<std::string>& words, Timeout timeout) {
  if (auto sent = send({words}, timeout); !sent) return sent.error();
  return reply(timeout);
}

}  // namespace leasehold::client
