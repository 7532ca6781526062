// How connections come and go: listening, dialling, pauses between dials.
#include <leasehold/net/tcp_impl.h>

#include <fmt/format.h>

#include <asio/connect.hpp>
#include <asio/ip/address.hpp>
#include <asio/socket_base.hpp>

#include <algorithm>
#include <utility>

namespace leasehold::net {

namespace {

/// Before accept() is tried again after the system refused it (no file descriptors left).
constexpr std::chrono::milliseconds kAcceptPause{100};

Error cannot_listen(const std::string& address, const asio::error_code& error) {
  if (error == asio::error::address_in_use) {
    return Error{ErrorCode::in_use,
                 fmt::format("peer address {} is in use: stop the other process or choose another",
                             address)};
  }
  return Error{ErrorCode::io,
               fmt::format("cannot listen for peers on {}: {}", address, error.message())};
}

}  // namespace

Result<void> TcpTransport::Impl::may_protect_by(const PeerSecurity& security) const {
  if (!beyond_loopback_ || !security.accepts(Protection::plain) || security.plain_beyond_loopback) {
    return {};
  }
  return Error{
      ErrorCode::invalid_argument,
      fmt::format(
          "peer address {} is {}, and peers would be let in without proof: protect "
          "them by a key (leasehold cert key) or by certificates (leasehold cert init), or, on a "
          "network in which all are trusted, allow plain ones (serve --allow-plain-peers on)",
          options_.listen, door_ ? "reached by streams of the program" : "beyond loopback")};
}

Result<void> TcpTransport::Impl::listen_to_streams() {
  beyond_loopback_ = !options_.streams->proves_peers();
  if (auto may = may_protect_by(guard_->security()); !may.ok()) return may;
  return options_.streams->listen(
      options_.listen, [door = door_, weak = weak_from_this()](PeerStream stream) {
        door->pass(std::move(stream), [weak](Result<PeerSocket> socket) {
          const std::shared_ptr<Impl> self = weak.lock();
          if (self && !self->stopped_ && socket.ok()) self->greet(std::move(socket).value());
        });
      });
}

Result<void> TcpTransport::Impl::listen() {
  if (door_) return listen_to_streams();
  const Result<HostPort> parsed = parse_address(options_.listen);
  if (!parsed.ok()) return parsed.error();
  asio::error_code error;
  Tcp::endpoint endpoint;
  const asio::ip::address numeric = asio::ip::make_address(parsed.value().host, error);
  if (!error) {
    endpoint = Tcp::endpoint(numeric, parsed.value().port);
  } else {
    // Before anything runs: here, and only here, a name may be looked up while the caller waits.
    Tcp::resolver resolver(io_);
    const auto found = resolver.resolve(parsed.value().host, std::to_string(parsed.value().port),
                                        Tcp::resolver::passive, error);
    if (error || found.empty()) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("the host of peer address {} is not known: {}", options_.listen,
                               error.message())};
    }
    endpoint = found.begin()->endpoint();
  }
  beyond_loopback_ = !endpoint.address().is_loopback();
  if (auto may = may_protect_by(guard_->security()); !may.ok()) return may;
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    asio::error_code ignored;
    acceptor_.close(ignored);
    return cannot_listen(options_.listen, error);
  }
  const Tcp::endpoint at = acceptor_.local_endpoint(error);
  bound_ = {at.address().to_string(), at.port()};
  return {};
}

std::optional<HostPort> TcpTransport::Impl::reached(raft::NodeId peer) const {
  const Link* const link = find(peer);
  if (link == nullptr || !link->up) return std::nullopt;
  Result<HostPort> end = parse_address(link->out->address());
  if (!end.ok()) return std::nullopt;
  return std::move(end).value();
}

void TcpTransport::Impl::accept() {
  acceptor_.async_accept(
      [weak = weak_from_this()](const asio::error_code& error, Tcp::socket socket) {
        const std::shared_ptr<Impl> self = weak.lock();
        if (!self || self->stopped_) return;
        if (!error || error == asio::error::connection_aborted) {
          if (!error) self->greet(of_tcp(std::move(socket)));
          if (!self->stopped_) self->accept();
          return;
        }
        self->accept_pause_.expires_after(kAcceptPause);
        self->accept_pause_.async_wait([weak](const asio::error_code&) {
          const std::shared_ptr<Impl> again = weak.lock();
          if (again && !again->stopped_) again->accept();
        });
      });
}

void TcpTransport::Impl::greet(PeerSocket socket) {
  const auto stranger = std::make_shared<TcpConnection>(
      std::move(socket), TcpConnection::Side::accepted, *this, scratch_, counters_, guard_);
  strangers_.push_back(stranger);
  stranger->deadline.expires_after(options_.limits.handshake_timeout);
  stranger->deadline.async_wait(
      [weak = weak_from_this(),
       late = std::weak_ptr<TcpConnection>(stranger)](const asio::error_code& error) {
        const std::shared_ptr<Impl> self = weak.lock();
        const ConnectionPtr connection = late.lock();
        if (error || !self || !connection || connection->closed() || connection->peer) return;
        self->reject(*connection, RejectReason::handshake_timeout, raft::kNobody,
                     Error{ErrorCode::timed_out, "no hello in time"});
      });
  stranger->start(options_.limits);
  if (strangers_.size() <= options_.limits.handshakes_max) return;
  refuse(*ConnectionPtr(strangers_.front()), raft::kNobody,
         wire::Refusal{wire::RefusalCode::too_many, "too many connections without a handshake",
                       wire::VersionRange{}});
}

void TcpTransport::Impl::dial(Link& link) {
  LEASEHOLD_ASSERT(!link.out && !link.dialling);
  link.waiting = false;
  link.attempt = ++last_attempt_;
  const raft::NodeId id = link.id;
  const std::uint64_t attempt = link.attempt;
  link.timer.expires_after(options_.limits.handshake_timeout);
  link.timer.async_wait([weak = weak_from_this(), id, attempt](const asio::error_code& error) {
    const std::shared_ptr<Impl> self = weak.lock();
    if (error || !self) return;
    if (Link* late = self->find_attempt(id, attempt); late != nullptr && !late->up) {
      self->dial_timed_out(*late);
    }
  });

  if (door_) return dial_by_streams(link);
  const HostPort target = parse_address(link.address).value();
  asio::error_code not_numeric;
  const asio::ip::address numeric = asio::ip::make_address(target.host, not_numeric);
  if (!not_numeric) return connect(link, {Tcp::endpoint(numeric, target.port)});
  link.resolver.async_resolve(
      target.host, std::to_string(target.port),
      [weak = weak_from_this(), id, attempt](const asio::error_code& error,
                                             const Tcp::resolver::results_type& found) {
        const std::shared_ptr<Impl> self = weak.lock();
        if (!self) return;
        Link* resolved = self->find_attempt(id, attempt);
        if (resolved == nullptr) return;
        if (error) return self->redial_later(*resolved);
        std::vector<Tcp::endpoint> endpoints;
        for (const auto& entry : found) endpoints.push_back(entry.endpoint());
        self->connect(*resolved, std::move(endpoints));
      });
}

void TcpTransport::Impl::dial_by_streams(const Link& link) {
  auto connected = [weak = weak_from_this(), id = link.id,
                    attempt = link.attempt](Result<PeerSocket> socket) {
    const std::shared_ptr<Impl> self = weak.lock();
    Link* reached = self ? self->find_attempt(id, attempt) : nullptr;
    if (reached == nullptr) return;
    if (!socket.ok()) return self->redial_later(*reached);
    self->connected_to(*reached, std::move(socket).value());
  };
  options_.streams->connect(
      link.address, [door = door_, connected = std::move(connected)](Result<PeerStream> stream) {
        door->pass(std::move(stream), connected);
      });
}

void TcpTransport::Impl::connect(Link& link, std::vector<Tcp::endpoint> endpoints) {
  link.dialling = std::make_shared<Tcp::socket>(io_);
  // The list has to outlive the attempts on it.
  const auto targets = std::make_shared<std::vector<Tcp::endpoint>>(std::move(endpoints));
  asio::async_connect(
      *link.dialling, *targets,
      [weak = weak_from_this(), id = link.id, attempt = link.attempt, targets,
       socket = link.dialling](const asio::error_code& error, const Tcp::endpoint&) {
        const std::shared_ptr<Impl> self = weak.lock();
        if (!self) return;
        Link* reached = self->find_attempt(id, attempt);
        if (reached == nullptr) return;
        if (error) return self->redial_later(*reached);
        reached->dialling.reset();
        self->connected_to(*reached, of_tcp(std::move(*socket)));
      });
}

void TcpTransport::Impl::connected_to(Link& link, PeerSocket socket) {
  link.out = std::make_shared<TcpConnection>(std::move(socket), TcpConnection::Side::dialled, *this,
                                             scratch_, counters_, guard_, link.session.get());
  link.out->start(options_.limits);
  wire::encode_hello(my_hello(link.id, link.purpose), link.out->out());
  link.out->flush();
}

void TcpTransport::Impl::dial_timed_out(Link& link) {
  // An unreachable peer is not a rejection; one that accepts the connection and stays silent is.
  if (!link.out) return redial_later(link);
  reject(*ConnectionPtr(link.out), RejectReason::handshake_timeout, link.id,
         Error{ErrorCode::timed_out,
               fmt::format("node {} does not answer the hello", link.id.value())});
}

void TcpTransport::Impl::forgive_later(Link& link) {
  link.timer.expires_after(options_.limits.reconnect_max);
  link.timer.async_wait([weak = weak_from_this(), id = link.id,
                         attempt = link.attempt](const asio::error_code& error) {
    const std::shared_ptr<Impl> self = weak.lock();
    if (error || !self) return;
    if (Link* stands = self->find_attempt(id, attempt)) stands->failures = 0;
  });
}

void TcpTransport::Impl::hang_up_idle(Link& link) {
  link.used = false;
  link.timer.expires_after(options_.limits.snapshot_idle);
  link.timer.async_wait([weak = weak_from_this(), id = link.id,
                         attempt = link.attempt](const asio::error_code& error) {
    const std::shared_ptr<Impl> self = weak.lock();
    if (error || !self) return;
    Link* stands = self->find_attempt(id, attempt);
    if (stands == nullptr) return;
    if (stands->used || !stands->out->out().empty()) {
      self->hang_up_idle(*stands);
    } else {
      self->hang_up(*stands);
    }
  });
}

void TcpTransport::Impl::hang_up(Link& link) {
  if (link.purpose == wire::Purpose::messages && !link.renews) end_renewal(link.id);
  link.attempt = link.purpose == wire::Purpose::messages ? ++last_attempt_ : 0;
  link.timer.cancel();
  link.resolver.cancel();
  link.waiting = false;
  if (link.dialling) {
    asio::error_code ignored;
    link.dialling->close(ignored);
    link.dialling.reset();
  }
  if (link.out) {
    link.out->close();
    link.out.reset();
  }
  if (link.up) {
    ++counters_.disconnects;
    link.up = false;
  }
}

void TcpTransport::Impl::redial_later(Link& link) {
  const TcpLimits& limits = options_.limits;
  hang_up(link);
  if (stopped_ || link.purpose == wire::Purpose::snapshots) return;
  std::int64_t pause = limits.reconnect_min.count();
  for (std::uint32_t i = 0; i < link.failures && pause < limits.reconnect_max.count(); ++i) {
    pause *= 2;
  }
  pause = std::min(pause, std::int64_t{limits.reconnect_max.count()});
  if (link.failures < 32) ++link.failures;
  const std::int64_t drawn = random_.between(pause / 2, pause) + 1;
  link.waiting = true;
  link.timer.expires_after(std::chrono::milliseconds(drawn));
  link.timer.async_wait([weak = weak_from_this(), id = link.id,
                         attempt = link.attempt](const asio::error_code& error) {
    const std::shared_ptr<Impl> self = weak.lock();
    if (error || !self || self->stopped_) return;
    if (Link* due = self->find_attempt(id, attempt)) self->dial(*due);
  });
}

void TcpTransport::Impl::remove(TcpConnection& connection) {
  if (Link* link = link_of_dialled(connection)) return redial_later(*link);
  connection.close();
  for (Links* links : {&links_, &snapshot_links_}) {
    for (auto& [id, link] : *links) {
      if (link->in.get() == &connection) {
        ++counters_.disconnects;
        link->in.reset();
        return;
      }
    }
  }
  for (std::deque<ConnectionPtr>* others : {&strangers_, &retired_}) {
    std::erase_if(*others,
                  [&connection](const ConnectionPtr& other) { return other.get() == &connection; });
  }
}

TcpTransport::Impl::Link* TcpTransport::Impl::find_attempt(raft::NodeId id, std::uint64_t attempt) {
  if (stopped_) return nullptr;
  for (Links* links : {&links_, &snapshot_links_, &renewals_}) {
    const auto at = links->find(id);
    if (at != links->end() && at->second->attempt == attempt) return at->second.get();
  }
  return nullptr;
}

TcpTransport::Impl::Link* TcpTransport::Impl::link_of_dialled(const TcpConnection& connection) {
  for (Links* links : {&links_, &snapshot_links_, &renewals_}) {
    for (auto& [id, link] : *links) {
      if (link->out.get() == &connection) return link.get();
    }
  }
  return nullptr;
}

}  // namespace leasehold::net
