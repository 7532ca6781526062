// The socket of one client: plain, or with TLS over it.
#pragma once

#include <leasehold/server/front/client_tls.h>
#include <leasehold/server/front/counters.h>
#include <leasehold/tls/stream.h>

#include <asio/buffer.hpp>
#include <asio/error.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/write.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace leasehold::server {

/// What a client is before its first request.
struct Greeting {
  enum class State : std::uint8_t {
    waits_to_read,   ///< call greet() again when the socket is readable
    waits_to_write,  ///< or writable
    done,
    ended,   ///< the client has left
    failed,  ///< it was answered, where it could be: close the connection
  };
  State state = State::done;
  Count Counters::*failure = nullptr;  ///< of `failed`
  std::string problem = {};            ///< of `failed`, for people
};

/// One thread at a time. The functions that take a `done` call it later, never inside the call; it
/// keeps the channel.
class ClientChannel {
 public:
  using Socket = asio::ip::tcp::socket;
  /// `only_tls`: it was taken while the mode was on, and is not served without TLS, whatever the
  /// mode is when it speaks.
  explicit ClientChannel(Socket socket, bool only_tls = false)
      : socket_(std::move(socket)), only_tls_(only_tls) {}

  Socket& socket() { return socket_; }
  /// On another thread, under the same number.
  void replace_socket(Socket socket) { socket_ = std::move(socket); }

  /// Finds out whether the client speaks TLS, and takes the next step of its handshake. A record of
  /// TLS begins with a byte that no request begins with.
  Greeting greet(const ClientTls& tls, const std::string& cluster);
  bool has_tls() const { return stream_ != nullptr; }
  /// The user in the client's certificate; empty: it showed none.
  std::string user() const;
  bool resumed() const { return stream_ != nullptr && stream_->resumed(); }
  /// Whether it may be one that is not taken any more, since certificates or the mode were
  /// replaced.
  bool looks_outdated(const ClientTls& tls) const { return generation_ != tls.generation(); }
  /// Looks at it.
  bool is_believed(const ClientTls& tls);

  /// Error: would_block, eof, or another.
  std::size_t read_some(char* to, std::size_t size, asio::error_code& error) {
    if (stream_ == nullptr) return socket_.read_some(asio::buffer(to, size), error);
    return read_from_stream(to, size, error);
  }
  /// After would_block, call it again with the same bytes, at another place if need be.
  std::size_t write_some(const char* from, std::size_t size, asio::error_code& error) {
    if (stream_ == nullptr) return socket_.write_some(asio::buffer(from, size), error);
    return write_to_stream(from, size, error);
  }

  /// done(error, bytes)
  template <class Done>
  void async_read_some(char* to, std::size_t size, Done done) {
    if (stream_ == nullptr) {
      socket_.async_read_some(asio::buffer(to, size), std::move(done));
    } else if (stream_->has_pending()) {
      // The socket need not become readable again for them.
      asio::post(socket_.get_executor(), [this, to, size, done = std::move(done)]() mutable {
        read_or_wait(to, size, std::move(done));
      });
    } else {
      wait_and_read(Socket::wait_read, to, size, std::move(done));
    }
  }
  /// All of it, after a write_some() that would have blocked. done(error)
  template <class Done>
  void async_write_rest(const char* from, std::size_t size, Done done) {
    if (stream_ == nullptr) {
      asio::async_write(
          socket_, asio::buffer(from, size),
          [done = std::move(done)](asio::error_code error, std::size_t) mutable { done(error); });
      return;
    }
    socket_.async_wait(write_needs_,
                       [this, from, size, done = std::move(done)](asio::error_code error) mutable {
                         std::size_t sent = 0;
                         if (!socket_.is_open()) error = asio::error::operation_aborted;
                         while (!error && sent < size)
                           sent += write_some(from + sent, size - sent, error);
                         if (error == asio::error::would_block) {
                           return async_write_rest(from + sent, size - sent, std::move(done));
                         }
                         done(error);
                       });
  }

  /// Says farewell, and that no more comes.
  void shut_down_sending();
  void close();

 private:
  using Wait = asio::socket_base::wait_type;

  Greeting greet_through_tls(const std::string& cluster);
  std::size_t read_from_stream(char* to, std::size_t size, asio::error_code& error);
  std::size_t write_to_stream(const char* from, std::size_t size, asio::error_code& error);
  static asio::error_code error_of(tls::Stream::State state);

  template <class Done>
  void wait_and_read(Wait what, char* to, std::size_t size, Done done) {
    socket_.async_wait(what,
                       [this, to, size, done = std::move(done)](asio::error_code error) mutable {
                         if (error) return done(error, 0);
                         read_or_wait(to, size, std::move(done));
                       });
  }
  template <class Done>
  void read_or_wait(char* to, std::size_t size, Done done) {
    // It may have been closed since it became readable, and its number may be another's by now.
    if (!socket_.is_open()) return done(asio::error::operation_aborted, 0);
    asio::error_code error;
    const std::size_t got = read_from_stream(to, size, error);
    if (error != asio::error::would_block) return done(error, got);
    wait_and_read(read_needs_, to, size, std::move(done));
  }

  Socket socket_;
  bool only_tls_;
  std::unique_ptr<tls::Stream> stream_;
  std::uint64_t generation_ = 0;  ///< of the ClientTls, when the certificate was last looked at
  Wait read_needs_ = Socket::wait_read;
  Wait write_needs_ = Socket::wait_write;
};

}  // namespace leasehold::server
