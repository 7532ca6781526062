#include <leasehold/bench/floors/echo_server.h>

#include <fmt/format.h>

#include <asio.hpp>

#include <array>
#include <cstdio>
#include <iostream>
#include <memory>

namespace leasehold::bench {
namespace {

using asio::ip::tcp;

/// One connection: read what is there, answer the requests that are complete, again.
class EchoSession : public std::enable_shared_from_this<EchoSession> {
 public:
  EchoSession(tcp::socket socket, const EchoOptions& options)
      : socket_(std::move(socket)), options_(options) {}

  void read() {
    socket_.async_read_some(asio::buffer(input_),
                            [self = shared_from_this()](std::error_code error, std::size_t got) {
                              if (!error) self->answer(got);
                            });
  }

 private:
  void answer(std::size_t got) {
    pending_ += got;
    output_.clear();
    for (; pending_ >= options_.request_bytes; pending_ -= options_.request_bytes) {
      output_ += options_.reply;
    }
    if (output_.empty()) return read();
    asio::async_write(socket_, asio::buffer(output_),
                      [self = shared_from_this()](std::error_code error, std::size_t) {
                        if (!error) self->read();
                      });
  }

  tcp::socket socket_;
  const EchoOptions& options_;
  std::array<char, 64U << 10U> input_{};
  std::size_t pending_ = 0;
  std::string output_;
};

class EchoServer {
 public:
  EchoServer(asio::io_context& io, const tcp::endpoint& endpoint, const EchoOptions& options)
      : acceptor_(io, endpoint), options_(options) {}

  tcp::endpoint endpoint() const { return acceptor_.local_endpoint(); }

  void accept() {
    acceptor_.async_accept([this](std::error_code error, tcp::socket socket) {
      if (error) return;
      std::error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      std::make_shared<EchoSession>(std::move(socket), options_)->read();
      accept();
    });
  }

 private:
  tcp::acceptor acceptor_;
  const EchoOptions& options_;
};

}  // namespace

Result<void> serve_echo(const EchoOptions& options) {
  const std::size_t colon = options.listen.rfind(':');
  if (options.request_bytes == 0 || colon == std::string::npos) {
    return Error{ErrorCode::invalid_argument,
                 "give the size of a request, and host:port to listen on"};
  }
  // One thread: asio can leave its locks out.
  asio::io_context io(1);
  std::error_code error;
  const auto found = tcp::resolver(io).resolve(options.listen.substr(0, colon),
                                               options.listen.substr(colon + 1), error);
  if (error) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{}: {}", options.listen, error.message())};
  }
  try {
    EchoServer server(io, *found.begin(), options);
    asio::signal_set signals(io, SIGTERM, SIGINT);
    signals.async_wait([&io](std::error_code, int) { io.stop(); });
    server.accept();
    std::cout << "listening " << server.endpoint() << std::endl;
    io.run();
  } catch (const std::system_error& failure) {
    return Error{ErrorCode::io,
                 fmt::format("echo server on {}: {}", options.listen, failure.what())};
  }
  return {};
}

}  // namespace leasehold::bench
