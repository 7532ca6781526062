#include <leasehold/server/admin/admin_connection.h>
#include <leasehold/server/admin/admin_port.h>
#include <leasehold/server/front/gate.h>

#include <fmt/format.h>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <algorithm>
#include <list>
#include <memory>
#include <thread>
#include <utility>

namespace leasehold::server {
namespace {

using asio::ip::tcp;

/// Pause after a failed accept: the process is out of file descriptors.
constexpr std::chrono::milliseconds kAcceptAgain{100};

Error bad_address(const std::string& address, const std::string& problem) {
  return {ErrorCode::invalid_argument,
          fmt::format("cannot listen on '{}'{}: write --admin as host:port, as in 127.0.0.1:7301",
                      address, problem)};
}

}  // namespace

class AdminPort::Impl {
 public:
  Impl(AdminOptions options, const ServedGroups& groups, ServerState& state,
       const AdminSources& sources)
      : options_(std::move(options)),
        groups_(groups),
        state_(state),
        sources_(sources),
        looks_(io_, groups),
        engine_([this](const HttpRequest& request) { return routes_->answer(request, *look_); }),
        owner_{state,
               counts_,
               {},
               [this](const std::string& head, std::function<void(std::string)> done) {
                 answer(head, std::move(done));
               },
               [this](const AdminConnection* ended) {
                 std::erase_if(connections_,
                               [&](const auto& connection) { return connection.get() == ended; });
               }} {}
  ~Impl() {
    asio::post(io_, [this] {
      asio::error_code ignored;
      acceptor_.close(ignored);
      pause_.cancel();
      while (!connections_.empty()) {
        const auto first = connections_.front();
        first->close();
      }
      io_.stop();
    });
    if (thread_.joinable()) thread_.join();
    looks_.stop();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<void> listen() {
    const std::string& address = options_.listen;
    const std::size_t colon = address.rfind(':');
    if (colon == std::string::npos || colon + 1 == address.size()) return bad_address(address, "");
    std::string host = address.substr(0, colon);
    if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
      host = host.substr(1, host.size() - 2);
    }
    asio::error_code error;
    tcp::resolver resolver(io_);
    const auto found =
        resolver.resolve(host, address.substr(colon + 1), tcp::resolver::passive, error);
    if (error) return bad_address(address, ": " + error.message());
    const tcp::endpoint endpoint = found.begin()->endpoint();
    if (auto allowed = open_door(endpoint); !allowed) return allowed;
    acceptor_.open(endpoint.protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(endpoint, error);
    if (!error) acceptor_.listen(static_cast<int>(kConnectionsMax), error);
    if (!error) acceptor_.non_blocking(true, error);
    if (error) {
      return Error{ErrorCode::io, fmt::format("cannot listen for monitors on {}: {}. Choose "
                                              "another --admin, or end what uses it",
                                              address, error.message())};
    }
    port_ = acceptor_.local_endpoint().port();
    asio::post(io_, [this] { accept(); });
    // Those who ask here do not hold up those who do work.
    thread_ = std::thread([this] {
      while (io_.run_one() > 0) std::this_thread::yield();
    });
    return {};
  }

  std::uint16_t port() const { return port_; }

 private:
  /// Who is let in at this address.
  Result<void> open_door(const tcp::endpoint& endpoint) {
    const bool loopback = is_loopback(endpoint.address());
    if (!loopback && !options_.open && state_.client_tls.mode() == ClientTls::Mode::off) {
      return Error{
          ErrorCode::invalid_argument,
          fmt::format("--admin {} is beyond loopback and not protected: give --tls-cert, --tls-key "
                      "and --tls-ca, so that only users with a certificate are answered; or listen "
                      "on 127.0.0.1; or say --admin-open on, if all who reach the port may see how "
                      "this node is",
                      options_.listen)};
    }
    const bool anybody = loopback || options_.open;
    owner_.door = {anybody, !anybody};
    routes_ = std::make_unique<AdminRoutes>(options_, loopback && !options_.open, groups_, state_,
                                            sources_, counts_);
    return {};
  }

  void accept() {
    acceptor_.async_accept([this](asio::error_code error, tcp::socket socket) {
      if (!acceptor_.is_open()) return;
      if (error) {
        pause_.expires_after(kAcceptAgain);
        pause_.async_wait([this](asio::error_code cancelled) {
          if (!cancelled && acceptor_.is_open()) accept();
        });
        return;
      }
      if (make_place()) {
        const auto connection = std::make_shared<AdminConnection>(std::move(socket), owner_);
        connections_.push_back(connection);
        connection->start();
      }
      accept();
    });
  }

  /// The oldest that has not asked yet goes.
  bool make_place() {
    if (connections_.size() < kConnectionsMax) return true;
    ++counts_.crowded;
    const auto oldest =
        std::find_if(connections_.begin(), connections_.end(),
                     [](const auto& connection) { return connection->is_asking(); });
    if (oldest == connections_.end()) return false;
    const auto kept = *oldest;
    kept->close();
    return true;
  }

  void answer(const std::string& head, std::function<void(std::string)> done) {
    looks_.ask([this, head, done = std::move(done)](const Look& look) {
      look_ = &look;
      std::string answer = engine_.respond(head);
      look_ = nullptr;
      done(std::move(answer));
    });
  }

  const AdminOptions options_;
  const ServedGroups& groups_;
  ServerState& state_;
  const AdminSources sources_;
  AdminCounts counts_;
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  tcp::acceptor acceptor_{io_};
  asio::steady_timer pause_{io_};
  Looks looks_;
  const Look* look_ = nullptr;  ///< of the request that is being answered
  std::unique_ptr<AdminRoutes> routes_;
  HttpEngine engine_;
  AdminConnection::Owner owner_;
  std::list<std::shared_ptr<AdminConnection>> connections_;  ///< the oldest first
  std::uint16_t port_ = 0;
  std::thread thread_;
};

Result<std::unique_ptr<AdminPort>> AdminPort::open(const AdminOptions& options,
                                                   const ServedGroups& groups, ServerState& state,
                                                   const AdminSources& sources) {
  auto impl = std::make_unique<Impl>(options, groups, state, sources);
  if (auto listening = impl->listen(); !listening) return listening.error();
  return std::unique_ptr<AdminPort>(new AdminPort(std::move(impl)));
}

AdminPort::AdminPort(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
AdminPort::~AdminPort() = default;
std::uint16_t AdminPort::port() const {
  return impl_->port();
}

}  // namespace leasehold::server
