#include <leasehold/net/tcp_introduction.h>

#include <leasehold/net/handshake.h>
#include <leasehold/net/tcp_connection.h>

#include <fmt/format.h>

#include <asio/connect.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <memory>
#include <optional>
#include <utility>

namespace leasehold::net {

namespace {

ErrorCode error_code_of(wire::RefusalCode code) {
  switch (code) {
    case wire::RefusalCode::version: return ErrorCode::unsupported_format;
    case wire::RefusalCode::same_id:
    case wire::RefusalCode::duplicate_process: return ErrorCode::in_use;
    case wire::RefusalCode::wrong_cluster:
    case wire::RefusalCode::given_up:
    case wire::RefusalCode::wrong_target: return ErrorCode::wrong_cluster;
    // A person may remove the cause of these while the node waits.
    case wire::RefusalCode::too_many:
    case wire::RefusalCode::removed:
    case wire::RefusalCode::unknown_peer:
    case wire::RefusalCode::unproved:
    case wire::RefusalCode::older_incarnation:
    case wire::RefusalCode::refused_by_node: return ErrorCode::unavailable;
  }
  LEASEHOLD_UNREACHABLE();
}

/// One question. Lives as long as something is under way for it.
class Asking final : public TcpConnection::Owner, public std::enable_shared_from_this<Asking> {
 public:
  using Tcp = asio::ip::tcp;

  Asking(asio::io_context& io, Introduction introduction,
         std::function<void(Result<wire::Hello>)> done)
      : io_(io),
        introduction_(std::move(introduction)),
        done_(std::move(done)),
        resolver_(io),
        socket_(io),
        timer_(io) {}

  void start() {
    const Result<HostPort> target = parse_address(introduction_.address);
    if (!target.ok()) {
      return asio::post(
          io_, [self = shared_from_this(), error = target.error()] { self->finish(error); });
    }
    timer_.expires_after(introduction_.timeout);
    timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
      if (!error) self->finish(self->nobody("no answer in time"));
    });
    if (introduction_.streams != nullptr) return connect_by_streams();
    // Numeric addresses too: asio resolves them without a name server.
    resolver_.async_resolve(target.value().host, std::to_string(target.value().port),
                            [self = shared_from_this()](const asio::error_code& error,
                                                        const Tcp::resolver::results_type& found) {
                              self->resolved(error, found);
                            });
  }

  void on_frame(TcpConnection& connection, wire::Frame frame) override {
    if (frame.header.kind == wire::FrameKind::refusal) {
      const Result<wire::Refusal> refusal = wire::decode_refusal(frame);
      if (!refusal.ok()) return finish(refusal.error());
      return finish(Error{error_code_of(refusal.value().code),
                          fmt::format("the node at {} refuses: {}", introduction_.address,
                                      refusal.value().reason)});
    }
    if (frame.header.kind != wire::FrameKind::hello) {
      return finish(nobody("something else than a hello came back"));
    }
    const Result<wire::Hello> hello = wire::decode_hello(frame);
    if (!hello.ok()) return finish(hello.error());
    auto refusal = connection.judge_proof(hello.value(), introduction_.cluster);
    if (!refusal) refusal = judge_introduction(introduction_.hello, hello.value());
    if (refusal) {
      return finish(Error{error_code_of(refusal->code),
                          fmt::format("at {}: {}", introduction_.address, refusal->reason)});
    }
    if (introduction_.hello.to != raft::kNobody && hello.value().from != introduction_.hello.to) {
      return finish(Error{ErrorCode::wrong_cluster,
                          fmt::format("node {} answers at {}, not node {}: correct the id or the "
                                      "address",
                                      hello.value().from.value(), introduction_.address,
                                      introduction_.hello.to.value())});
    }
    finish(hello.value());
  }

  void on_end(TcpConnection&, std::optional<RejectReason>, Error error) override {
    finish(nobody(error.message));
  }

 private:
  Error nobody(const std::string& why) const {
    return Error{ErrorCode::unavailable,
                 fmt::format("no Leasehold node answers at {}: {}", introduction_.address, why)};
  }

  void resolved(const asio::error_code& error, const Tcp::resolver::results_type& found) {
    if (!done_) return;
    if (error) {
      return finish(Error{
          ErrorCode::invalid_argument,
          fmt::format("the host of {} is not known: {}", introduction_.address, error.message())});
    }
    asio::async_connect(
        socket_, found,
        [self = shared_from_this()](const asio::error_code& failed, const Tcp::endpoint&) {
          if (failed) return self->finish(self->nobody(failed.message()));
          self->connected(of_tcp(std::move(self->socket_)));
        });
  }

  void connect_by_streams() {
    door_ = std::make_shared<StreamDoor>(io_, *introduction_.streams);
    introduction_.streams->connect(
        introduction_.address, [door = door_, weak = weak_from_this()](Result<PeerStream> stream) {
          door->pass(std::move(stream), [weak](Result<PeerSocket> socket) {
            const std::shared_ptr<Asking> self = weak.lock();
            if (!self) return;
            if (!socket.ok()) return self->finish(self->nobody(socket.error().message));
            self->connected(std::move(socket).value());
          });
        });
  }

  void connected(PeerSocket socket) {
    if (!done_) return;
    connection_ = std::make_shared<TcpConnection>(std::move(socket), TcpConnection::Side::dialled,
                                                  *this, scratch_, counters_, introduction_.guard);
    connection_->start(TcpLimits{});
    if (connection_->closed()) return;
    introduction_.hello.purpose = wire::Purpose::introduction;
    wire::encode_hello(introduction_.hello, connection_->out());
    connection_->flush();
  }

  void finish(Result<wire::Hello> answer) {
    if (!done_) return;
    const auto done = std::exchange(done_, nullptr);
    timer_.cancel();
    resolver_.cancel();
    if (door_) door_->close();
    asio::error_code ignored;
    socket_.close(ignored);
    if (connection_) connection_->close();
    done(std::move(answer));
  }

  asio::io_context& io_;
  Introduction introduction_;
  std::function<void(Result<wire::Hello>)> done_;
  std::string scratch_ = std::string(4096, '\0');
  TcpCounters counters_;
  Tcp::resolver resolver_;
  Tcp::socket socket_;
  asio::steady_timer timer_;
  std::shared_ptr<StreamDoor> door_;  ///< of PeerStreams
  std::shared_ptr<TcpConnection> connection_;
};

}  // namespace

void introduce(asio::io_context& io, Introduction introduction,
               std::function<void(Result<wire::Hello>)> done) {
  std::make_shared<Asking>(io, std::move(introduction), std::move(done))->start();
}

Result<wire::Hello> introduce_and_wait(Introduction introduction) {
  asio::io_context io;
  std::optional<Result<wire::Hello>> answer;
  introduce(io, std::move(introduction), [&](Result<wire::Hello> hello) {
    answer.emplace(std::move(hello));
    io.stop();
  });
  io.run();
  LEASEHOLD_ASSERT(answer.has_value());
  return std::move(*answer);
}

}  // namespace leasehold::net
