#include <leasehold/server/front/client_channel.h>
#include <leasehold/server/front/replies.h>
#include <leasehold/server/front/resp.h>

#include <fmt/format.h>

#include <sys/socket.h>

#include <cerrno>
#include <variant>

namespace leasehold::server {

namespace {

using State = Greeting::State;

Count Counters::*counter_of(tls::Stream::Fault fault) {
  switch (fault) {
    case tls::Stream::Fault::certificate: return &Counters::tls_failed_certificate;
    case tls::Stream::Fault::refused: return &Counters::tls_failed_refused;
    case tls::Stream::Fault::none:
    case tls::Stream::Fault::protocol: break;
  }
  return &Counters::tls_failed_protocol;
}

}  // namespace

Greeting ClientChannel::greet(const ClientTls& tls, const std::string& cluster) {
  if (stream_ != nullptr) return greet_through_tls(cluster);
  const int handle = socket_.native_handle();
  unsigned char first = 0;
  const ssize_t got = ::recv(handle, &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got == 0) return {State::ended};
  if (got < 0) {
    const bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    return {later ? State::waits_to_read : State::ended};
  }
  if (first == kTlsHandshake) {
    generation_ = tls.generation();
    tls::ContextPtr context = tls.context();
    if (context == nullptr) return {State::ended};  // the certificate was taken away meanwhile
    stream_ =
        std::make_unique<tls::Stream>(std::move(context), tls::Stream::Side::accepted, handle);
    return greet_through_tls(cluster);
  }
  if (!only_tls_ && tls.mode() != ClientTls::Mode::on) return {State::done};
  std::string reply;
  append_error(reply, "ERR this port speaks TLS only: connect with TLS, as in redis-cli --tls");
  asio::error_code ignored;
  socket_.write_some(asio::buffer(reply), ignored);
  return {State::failed, &Counters::tls_failed_plain, "it does not speak TLS"};
}

Greeting ClientChannel::greet_through_tls(const std::string& cluster) {
  switch (stream_->handshake().state) {
    case tls::Stream::State::wants_read: return {State::waits_to_read};
    case tls::Stream::State::wants_write: return {State::waits_to_write};
    case tls::Stream::State::ended: return {State::ended};
    case tls::Stream::State::failed:
      return {State::failed, counter_of(stream_->fault()), stream_->problem()};
    case tls::Stream::State::done: break;
  }
  // Of this authority, which may serve several groups.
  const auto& name = stream_->peer_name();
  const auto* user = name ? std::get_if<tls::UserName>(&*name) : nullptr;
  if (user == nullptr || user->cluster == cluster) return {State::done};
  return {State::failed, &Counters::tls_failed_certificate,
          fmt::format("its certificate is for a user of cluster '{}'", user->cluster)};
}

std::string ClientChannel::user() const {
  if (stream_ == nullptr || !stream_->peer_name()) return {};
  const auto* user = std::get_if<tls::UserName>(&*stream_->peer_name());
  return user == nullptr ? std::string() : user->user;
}

bool ClientChannel::is_believed(const ClientTls& tls) {
  generation_ = tls.generation();
  if (stream_ == nullptr) return tls.mode() != ClientTls::Mode::on;
  const tls::ContextPtr context = tls.context();
  return context != nullptr && stream_->believed_by(*context);
}

asio::error_code ClientChannel::error_of(tls::Stream::State state) {
  switch (state) {
    case tls::Stream::State::done: return {};
    case tls::Stream::State::wants_read:
    case tls::Stream::State::wants_write: return asio::error::would_block;
    case tls::Stream::State::ended: return asio::error::eof;
    case tls::Stream::State::failed: break;
  }
  return asio::error::connection_aborted;
}

std::size_t ClientChannel::read_from_stream(char* to, std::size_t size, asio::error_code& error) {
  const tls::Stream::Step step = stream_->read(to, size);
  read_needs_ =
      step.state == tls::Stream::State::wants_write ? Socket::wait_write : Socket::wait_read;
  error = error_of(step.state);
  return step.bytes;
}

std::size_t ClientChannel::write_to_stream(const char* from, std::size_t size,
                                           asio::error_code& error) {
  const tls::Stream::Step step = stream_->write({from, size});
  write_needs_ =
      step.state == tls::Stream::State::wants_read ? Socket::wait_read : Socket::wait_write;
  error = error_of(step.state);
  return step.bytes;
}

void ClientChannel::shut_down_sending() {
  if (stream_ != nullptr) stream_->shut_down();
  asio::error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

void ClientChannel::close() {
  if (stream_ != nullptr) stream_->shut_down();
  asio::error_code ignored;
  socket_.close(ignored);
}

}  // namespace leasehold::server
