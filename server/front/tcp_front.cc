#include <leasehold/base/assert.h>
#include <leasehold/server/front/gate.h>
#include <leasehold/server/front/io_thread.h>
#include <leasehold/server/front/people_time.h>
#include <leasehold/server/front/tcp_front.h>

#include <fmt/format.h>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <mutex>
#include <utility>
#include <vector>

namespace leasehold::server {
namespace {

using asio::ip::tcp;

/// Pause between two log lines about refused connections.
constexpr auto kSayAgain = std::chrono::seconds(10);
/// Pause after a failed accept: the process is out of file descriptors.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

std::string describe(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  const bool v6 = endpoint.address().is_v6();
  return fmt::format("{}:{}", v6 ? fmt::format("[{}]", host) : host, endpoint.port());
}

}  // namespace

class TcpFront::Impl final : public ClientDirectory {
 public:
  Impl(const ServedGroups& groups, ServerState& state)
      : state_(state), groups_(groups), rate_(state.options.connection_rate) {
    for (Counters& counters : state.counters) {
      IoThread* back = threads_.empty() ? nullptr : threads_.front().get();
      threads_.push_back(std::make_unique<IoThread>(groups, state, counters, back));
    }
    back().next_thread = [this]() -> IoThread& {
      return *threads_[1 + next_thread_++ % (threads_.size() - 1)];
    };
    state.clients_known = this;
    acceptor_ = std::make_unique<tcp::acceptor>(back().io);
    pause_ = std::make_unique<asio::steady_timer>(back().io);
  }

  Result<void> listen(const std::string& address) {
    const std::size_t colon = address.rfind(':');
    if (colon == std::string::npos || colon + 1 == address.size()) {
      return Error{
          ErrorCode::invalid_argument,
          fmt::format("cannot listen on '{}': write host:port, as in 127.0.0.1:7201", address)};
    }
    std::string host = address.substr(0, colon);
    if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
      host = host.substr(1, host.size() - 2);
    }
    asio::error_code error;
    tcp::resolver resolver(back().io);
    const auto found =
        resolver.resolve(host, address.substr(colon + 1), tcp::resolver::passive, error);
    if (error) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("cannot listen on '{}': {}. Write host:port, as in 127.0.0.1:7201",
                               address, error.message())};
    }
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor_->open(endpoint.protocol(), error);
    if (!error) acceptor_->set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_->bind(endpoint, error);
    if (!error) acceptor_->listen(asio::socket_base::max_listen_connections, error);
    if (error) {
      return Error{
          ErrorCode::io,
          fmt::format("cannot listen for clients on {}: {}. Choose another --listen, or end what "
                      "uses it",
                      describe(endpoint), error.message())};
    }
    state_.port = port_ = acceptor_->local_endpoint().port();
    for (auto& thread : threads_) thread->start();
    asio::post(back().io, [this] { accept(); });
    return {};
  }

  std::uint16_t port() const { return port_; }

  void list(ClientFilter filter, std::function<void(std::string lines)> done) override {
    gather<ListedClients>([filter](IoThread& thread) { return thread.list(filter); },
                          [done = std::move(done)](const ListedClients& listed) {
                            std::string lines;
                            for (const auto& [id, line] : listed.lines) lines += line;
                            done(std::move(lines));
                          });
  }
  void kill(ClientFilter filter, std::uint64_t asker,
            std::function<void(std::size_t)> done) override {
    gather<std::size_t>([filter, asker](IoThread& thread) { return thread.kill(filter, asker); },
                        std::move(done));
  }

  void close_door() {
    if (std::exchange(door_closed_, true)) return;
    asio::post(back().io, [this] {
      asio::error_code ignored;
      pause_->cancel();
      take_waiting();
      acceptor_->close(ignored);
    });
  }

  void stop_accepting() {
    if (std::exchange(accepting_stopped_, true)) return;
    close_door();
    for (auto& thread : threads_) {
      asio::post(thread->io, [&thread] { thread->stop_reading(); });
    }
  }

  void stop() {
    if (std::exchange(stopped_, true)) return;
    close_door();
    state_.accounts.queue.stop();  // its tasks post to these threads
    for (auto& thread : threads_) thread->ignore_events();
    // Behind everything that was posted before: replies that are ready leave first.
    for (auto& thread : threads_) {
      asio::post(thread->io, [&thread] { thread->close_all(); });
    }
    // The back thread first: it hands connections to the others.
    for (auto& thread : threads_) thread->join();
  }

 private:
  IoThread& back() { return *threads_.front(); }

  /// Asks every thread, on it, and hands on the sum. One after the other, the back thread first: a
  /// connection that leaves it is posted to the other before the question is, so none is missed.
  template <class T>
  void gather(std::function<T(IoThread&)> ask, std::function<void(T)> done, std::size_t at = 0,
              T sum = {}) {
    if (at == threads_.size()) return done(std::move(sum));
    IoThread& thread = *threads_[at];
    asio::post(thread.io, [this, &thread, ask = std::move(ask), done = std::move(done), at,
                           sum = std::move(sum)]() mutable {
      sum += ask(thread);
      gather<T>(std::move(ask), std::move(done), at + 1, std::move(sum));
    });
  }

  /// The log reports refused connections, but not each one.
  void note_refused() {
    ++refused_;
    const auto now = coarse_now();
    if (!state_.options.notice || now - refused_said_ < kSayAgain) return;
    state_.options.notice(
        fmt::format("{} client connections refused since the last such line: --clients-max is {}",
                    std::exchange(refused_, 0), state_.live.clients_max()));
    refused_said_ = now;
  }

  void accept() {
    acceptor_->async_accept([this](asio::error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted || !acceptor_->is_open()) return;
      if (error) {
        pause_->expires_after(kAcceptPause);
        pause_->async_wait([this](asio::error_code cancelled) {
          if (!cancelled) accept();
        });
        return;
      }
      take(std::move(socket));
      const auto pause = rate_.take(coarse_now());
      if (pause == std::chrono::nanoseconds(0)) return accept();
      // The others wait in the system's queue, where they cost this node nothing.
      back().counters.connections_delayed.add();
      pause_->expires_after(pause);
      pause_->async_wait([this](asio::error_code cancelled) {
        if (!cancelled) accept();
      });
    });
  }

  /// Who was let in by the system is connected, and may have asked something already: it is to be
  /// answered.
  void take_waiting() {
    asio::error_code error;
    acceptor_->non_blocking(true, error);
    while (!error) {
      tcp::socket socket(back().io);
      acceptor_->accept(socket, error);
      if (!error) take(std::move(socket));
    }
  }

  static void turn_away(tcp::socket& socket, std::string_view text) {
    std::string reply;
    append_error(reply, text);
    asio::error_code ignored;
    socket.non_blocking(true, ignored);
    socket.write_some(asio::buffer(reply), ignored);
  }

  void take(tcp::socket socket) {
    Counters& counters = back().counters;
    asio::error_code error;
    const tcp::endpoint peer = socket.remote_endpoint(error);
    if (error) return;  // gone already
    // A reload may change it: what lets a client in holds until it is served.
    const ClientTls::Mode mode = state_.client_tls.mode();
    if (is_protected_from(state_, groups_.home().store.users(), peer.address(), mode)) {
      counters.connections_denied.add();
      return turn_away(socket, kProtectedModeRefusal);
    }
    const bool full = state_.clients.load(std::memory_order_relaxed) >= state_.live.clients_max();
    // One for each that is taken: the other counts until the system has given it up.
    if (full && !back().make_place()) {
      counters.connections_refused.add();
      note_refused();
      // A client with TLS could not read it.
      if (mode == ClientTls::Mode::on) return;
      return turn_away(socket,
                       "ERR max number of clients reached; raise --clients-max of this node");
    }
    counters.connections.add();
    state_.clients.fetch_add(1, std::memory_order_relaxed);
    back().adopt(std::move(socket), describe(peer), mode);
  }

  ServerState& state_;
  const ServedGroups& groups_;
  std::vector<std::unique_ptr<IoThread>> threads_;  ///< the back thread is the first
  std::unique_ptr<tcp::acceptor> acceptor_;         ///< on the back thread
  std::unique_ptr<asio::steady_timer> pause_;
  ConnectionRate rate_;  ///< on the back thread
  std::size_t next_thread_ = 0;
  std::size_t refused_ = 0;  ///< since refused_said_
  std::chrono::nanoseconds refused_said_ = -kSayAgain;
  std::uint16_t port_ = 0;
  bool door_closed_ = false;
  bool accepting_stopped_ = false;
  bool stopped_ = false;
};

Result<std::unique_ptr<TcpFront>> TcpFront::open(const std::string& listen,
                                                 const ServedGroups& groups, ServerState& state) {
  LEASEHOLD_ASSERT(!state.counters.empty());
  auto impl = std::make_unique<Impl>(groups, state);
  if (auto listening = impl->listen(listen); !listening) return listening.error();
  return std::unique_ptr<TcpFront>(new TcpFront(std::move(impl)));
}

TcpFront::TcpFront(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TcpFront::~TcpFront() {
  stop();
}
std::uint16_t TcpFront::port() const {
  return impl_->port();
}
void TcpFront::close_door() {
  impl_->close_door();
}
void TcpFront::stop_accepting() {
  impl_->stop_accepting();
}
void TcpFront::stop() {
  impl_->stop();
}

}  // namespace leasehold::server
