// What the transport does for its user: start and stop, peers, and messages to and from them.
#include <leasehold/net/tcp_transport.h>

#include <leasehold/net/tcp_impl.h>
#include <leasehold/net/tcp_introduction.h>
#include <leasehold/wire/check.h>
#include <leasehold/wire/codec.h>

#include <fmt/format.h>

#include <asio/post.hpp>

#include <set>
#include <utility>

namespace leasehold::net {

namespace {

Error invalid(std::string message) {
  return Error{ErrorCode::invalid_argument, std::move(message)};
}

}  // namespace

Result<void> TcpTransport::Impl::validate() const {
  constexpr std::size_t kFrameFloor = 64U << 10U;
  constexpr std::size_t kFrameCeiling = std::size_t{1} << 30U;
  const TcpLimits& limits = options_.limits;
  if (options_.guard == nullptr) return invalid("the guard of the transport is missing");
  if (options_.cluster_id == 0) return invalid("the cluster id is zero");
  if (options_.id == raft::kNobody) return invalid("the node id is zero: choose one from 1 on");
  if (options_.uuid == raft::Uuid{}) return invalid("the node's uuid is zero");
  if (options_.incarnation.value() == 0) return invalid("the incarnation is zero");
  if (limits.frame_bytes_max < kFrameFloor || limits.frame_bytes_max > kFrameCeiling) {
    return invalid("frame_bytes_max is outside 64 KiB to 1 GiB");
  }
  if (limits.queue_bytes_max == 0 || limits.connections_max == 0 || limits.handshakes_max == 0) {
    return invalid("a limit of the transport is zero");
  }
  if (limits.handshake_timeout.count() <= 0 || limits.unacknowledged_timeout.count() <= 0 ||
      limits.reconnect_min.count() <= 0 || limits.reconnect_max < limits.reconnect_min) {
    return invalid("a timeout of the transport is not positive, or reconnect_max < reconnect_min");
  }
  if (options_.peers.size() > wire::kMembersMax) {
    return invalid(fmt::format("more than {} peers", wire::kMembersMax));
  }
  std::set<raft::NodeId> ids;
  for (const PeerAddress& peer : options_.peers) {
    if (peer.id == raft::kNobody) return invalid("the id of a peer is zero");
    if (!ids.insert(peer.id).second) {
      return invalid(fmt::format("node id {} is given to two peers", peer.id.value()));
    }
    if (Result<HostPort> parsed = parse_address(peer.address); !parsed.ok()) return parsed.error();
  }
  return {};
}

TcpTransport::Impl::Impl(asio::io_context& io, TcpOptions options, TcpCallbacks callbacks)
    : io_(io),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      guard_(options_.guard),
      random_(options_.process ^ options_.id.value()),
      address_(options_.address),
      door_(options_.streams != nullptr ? std::make_shared<StreamDoor>(io, *options_.streams)
                                        : nullptr),
      acceptor_(io),
      accept_pause_(io) {}

Result<void> TcpTransport::Impl::start() {
  /// What one read may bring.
  constexpr std::size_t kScratchBytes = 256U << 10U;
  LEASEHOLD_ASSERT(!started_);
  if (Result<void> valid = validate(); !valid.ok()) return valid;
  if (Result<void> bound = listen(); !bound.ok()) return bound;
  started_ = true;
  scratch_.resize(kScratchBytes);
  if (!door_) accept();
  for (const PeerAddress& peer : options_.peers) {
    // A peer that was set before the start has the newer address.
    if (find(peer.id) == nullptr) {
      const Result<void> set = set_peer(peer);
      LEASEHOLD_ASSERT(set.ok());
    }
  }
  for (auto& [id, link] : links_) {
    if (link->attempt == 0) dial(*link);
  }
  return {};
}

void TcpTransport::Impl::stop() {
  if (stopped_) return;
  stopped_ = true;
  if (door_) {
    if (started_) options_.streams->stop();
    door_->close();
  }
  asio::error_code ignored;
  acceptor_.close(ignored);
  accept_pause_.cancel();
  for (const ConnectionPtr& stranger : strangers_) stranger->close();
  strangers_.clear();
  for (const ConnectionPtr& retired : retired_) retired->close();
  retired_.clear();
  for (Links* links : {&links_, &snapshot_links_}) {
    for (auto& [id, link] : *links) {
      if (link->up) link->out->flush();  // what the socket takes
      hang_up(*link);
      if (link->in) link->in->close();
      link->in.reset();
    }
  }
}

Result<void> TcpTransport::Impl::set_peer(PeerAddress peer) {
  if (peer.id == raft::kNobody) return invalid("the id of a peer is zero");
  if (peer.id == options_.id) return {};
  if (Result<HostPort> parsed = parse_address(peer.address); !parsed.ok()) return parsed.error();
  std::unique_ptr<Link>& link = links_[peer.id];
  if (!link) {
    link = std::make_unique<Link>(io_, std::move(peer), wire::Purpose::messages);
  } else if (link->address == peer.address) {
    return {};
  } else {
    link->address = std::move(peer.address);
    if (const auto at = snapshot_links_.find(link->id); at != snapshot_links_.end()) {
      hang_up(*at->second);
      at->second->address = link->address;
    }
  }
  if (started_ && !stopped_) {
    hang_up(*link);
    dial(*link);
  }
  return {};
}

void TcpTransport::Impl::remove_peer(raft::NodeId peer) {
  Link* link = find(peer);
  if (link == nullptr) return;
  hang_up(*link);
  drop_accepted(*link);
  drop_retired(peer);
  links_.erase(peer);
  const auto at = snapshot_links_.find(peer);
  if (at == snapshot_links_.end()) return;
  hang_up(*at->second);
  drop_accepted(*at->second);
  snapshot_links_.erase(at);
}

void TcpTransport::Impl::dismiss_peer(raft::NodeId peer, const wire::Refusal& refusal) {
  Link* link = find(peer);
  if (link != nullptr && link->in) {
    wire::encode_refusal(refusal, link->in->out());
    link->in->flush();
  }
  // What was sent in this turn leaves first, as far as the kernel takes it.
  if (link != nullptr && link->up) link->out->flush();
  remove_peer(peer);
}

std::vector<PeerAddress> TcpTransport::Impl::peers() const {
  std::vector<PeerAddress> all;
  for (const auto& [id, link] : links_) all.push_back({id, link->address});
  return all;
}

std::optional<raft::LogId> TcpTransport::Impl::known_membership(raft::NodeId peer) const {
  const Link* link = find(peer);
  if (link == nullptr || !link->history.last()) return std::nullopt;
  return link->history.last()->membership;
}

void TcpTransport::Impl::describe(std::string address, raft::LogId membership) {
  address_ = std::move(address);
  membership_ = membership;
}

void TcpTransport::Impl::introduce(const PeerAddress& peer,
                                   std::function<void(Result<wire::Hello>)> done) {
  Introduction introduction;
  introduction.address = peer.address;
  introduction.hello = my_hello(peer.id, wire::Purpose::introduction);
  introduction.guard = guard_;
  introduction.cluster = options_.cluster;
  introduction.streams = options_.streams;
  introduction.timeout = options_.limits.handshake_timeout;
  net::introduce(io_, std::move(introduction),
                 [weak = weak_from_this(), done = std::move(done)](Result<wire::Hello> answer) {
                   const std::shared_ptr<Impl> self = weak.lock();
                   if (self && !self->stopped_) done(std::move(answer));
                 });
}

void TcpTransport::Impl::drop_accepted(Link& link) {
  if (!link.in) return;
  ++counters_.disconnects;
  link.in->close();
  link.in.reset();
}

TcpTransport::Impl::Link* TcpTransport::Impl::find(raft::NodeId id) {
  const auto at = links_.find(id);
  return at == links_.end() ? nullptr : at->second.get();
}

const TcpTransport::Impl::Link* TcpTransport::Impl::find(raft::NodeId id) const {
  const auto at = links_.find(id);
  return at == links_.end() ? nullptr : at->second.get();
}

bool TcpTransport::Impl::connected(raft::NodeId peer) const {
  const Link* link = find(peer);
  return link != nullptr && link->up;
}

std::size_t TcpTransport::Impl::queued_bytes(raft::NodeId peer) const {
  const Link* link = find(peer);
  return link != nullptr && link->up ? link->out->out().bytes() : 0;
}

void TcpTransport::Impl::send(raft::NodeId to, const wire::PeerMessage& message) {
  Link* link = find(to);
  if (link == nullptr || !link->up) {
    ++counters_.dropped_unconnected;
    return;
  }
  const auto* of_raft = std::get_if<raft::Message>(&message.payload);
  if (of_raft == nullptr || !std::holds_alternative<raft::SnapshotChunk>(*of_raft)) {
    return send_on(*link, message, options_.limits.queue_bytes_max);
  }
  if (link->out->peer->versions.max < wire::kSnapshotVersion) {
    ++counters_.dropped_unconnected;
    return;
  }
  Link* own = snapshot_link(*link);
  if (!own->up) {
    ++counters_.dropped_unconnected;
    if (!own->out && !own->dialling && own->attempt == 0) dial(*own);
    return;
  }
  own->used = true;
  send_on(*own, message, options_.limits.snapshot_queue_bytes_max);
}

TcpTransport::Impl::Link* TcpTransport::Impl::snapshot_link(const Link& link) {
  std::unique_ptr<Link>& own = snapshot_links_[link.id];
  if (!own) {
    own = std::make_unique<Link>(io_, PeerAddress{link.id, link.address}, wire::Purpose::snapshots);
  }
  return own.get();
}

void TcpTransport::Impl::send_on(Link& link, const wire::PeerMessage& message,
                                 std::size_t queue_bytes_max) {
  wire::SendBuffer& out = link.out->out();
  if (!out.empty() && out.bytes() + wire::payload_bytes(message) >= queue_bytes_max) {
    ++counters_.dropped_full;
    return;
  }
  const auto version = static_cast<std::uint16_t>(spoken_on(link));
  if (!wire::speaks(version, message)) {
    ++counters_.dropped_unconnected;
    return;
  }
  if (!wire::encode_message(message, options_.limits.frame_bytes_max, out, version).ok()) {
    ++counters_.dropped_oversized;
    return;
  }
  ++counters_.frames_sent;
  schedule_flush();
}

// The newest version that both know.
std::uint32_t TcpTransport::Impl::spoken_on(const Link& link) {
  return std::min<std::uint32_t>(link.out->peer->versions.max, wire::kWireVersionMax);
}

std::optional<std::uint32_t> TcpTransport::Impl::wire_version(raft::NodeId peer) const {
  const Link* link = find(peer);
  if (link == nullptr || !link->up) return std::nullopt;
  return spoken_on(*link);
}

void TcpTransport::Impl::schedule_flush() {
  if (flush_scheduled_) return;
  flush_scheduled_ = true;
  asio::post(io_, [weak = weak_from_this()] {
    const std::shared_ptr<Impl> self = weak.lock();
    if (!self) return;
    self->flush_scheduled_ = false;
    for (const Links* links : {&self->links_, &self->snapshot_links_}) {
      for (const auto& [id, link] : *links) {
        if (link->up) link->out->flush();
      }
    }
  });
}

void TcpTransport::Impl::on_frame(TcpConnection& connection, wire::Frame frame) {
  const auto out_of_turn = [&](const char* what) {
    reject(connection, RejectReason::malformed,
           connection.peer ? connection.peer->from : raft::kNobody,
           Error{ErrorCode::malformed, std::string("malformed stream: ") + what});
  };
  switch (frame.header.kind) {
    case wire::FrameKind::hello: {
      if (connection.peer) return out_of_turn("a second hello");
      const Result<wire::Hello> hello = wire::decode_hello(frame);
      if (!hello.ok()) {
        return reject(connection, RejectReason::malformed, raft::kNobody, hello.error());
      }
      return on_hello(connection, hello.value());
    }
    case wire::FrameKind::refusal: return on_refusal(connection, frame);
    case wire::FrameKind::message:
      if (!connection.peer) return out_of_turn("a message before the handshake");
      if (connection.side() == TcpConnection::Side::dialled) {
        return out_of_turn("a message from the side that only receives");
      }
      return on_message(connection, frame);
  }
  LEASEHOLD_UNREACHABLE();
}

void TcpTransport::Impl::on_message(TcpConnection& connection, const wire::Frame& frame) {
  Result<wire::PeerMessage> message = wire::decode_message(frame);
  if (!message.ok()) {
    return reject(connection, RejectReason::malformed, connection.peer->from, message.error());
  }
  ++counters_.frames_received;
  if (callbacks_.on_message) {
    callbacks_.on_message(wire::peer_of(*connection.peer), std::move(message).value());
  }
}

void TcpTransport::Impl::on_end(TcpConnection& connection, std::optional<RejectReason> reason,
                                Error error) {
  if (reason) {
    return reject(connection, *reason, connection.peer ? connection.peer->from : raft::kNobody,
                  std::move(error));
  }
  remove(connection);
}

TcpTransport::TcpTransport(asio::io_context& io, TcpOptions options, TcpCallbacks callbacks)
    : impl_(std::make_shared<Impl>(io, std::move(options), std::move(callbacks))) {}

// NOLINTNEXTLINE(bugprone-exception-escape): asio's cancel() of a timer never fails
TcpTransport::~TcpTransport() {
  stop();
}

Result<void> TcpTransport::start() {
  return impl_->start();
}
void TcpTransport::stop() {
  impl_->stop();
}
void TcpTransport::send(raft::NodeId to, wire::PeerMessage message) {
  impl_->send(to, message);
}
Result<void> TcpTransport::set_peer(PeerAddress peer) {
  return impl_->set_peer(std::move(peer));
}
void TcpTransport::remove_peer(raft::NodeId peer) {
  impl_->remove_peer(peer);
}
void TcpTransport::dismiss_peer(raft::NodeId peer, const wire::Refusal& refusal) {
  impl_->dismiss_peer(peer, refusal);
}
std::vector<PeerAddress> TcpTransport::peers() const {
  return impl_->peers();
}
std::optional<raft::LogId> TcpTransport::known_membership(raft::NodeId peer) const {
  return impl_->known_membership(peer);
}
void TcpTransport::describe(std::string address, raft::LogId membership) {
  impl_->describe(std::move(address), membership);
}
void TcpTransport::set_guard(GuardPtr guard) {
  impl_->set_guard(std::move(guard));
}
Result<void> TcpTransport::may_protect_by(const PeerSecurity& security) const {
  return impl_->may_protect_by(security);
}
std::optional<std::uint32_t> TcpTransport::wire_version(raft::NodeId peer) const {
  return impl_->wire_version(peer);
}
PeerProofs TcpTransport::proofs(raft::NodeId peer) const {
  return impl_->proofs(peer);
}
void TcpTransport::introduce(const PeerAddress& peer,
                             std::function<void(Result<wire::Hello>)> done) {
  impl_->introduce(peer, std::move(done));
}
bool TcpTransport::connected(raft::NodeId peer) const {
  return impl_->connected(peer);
}
std::size_t TcpTransport::queued_bytes(raft::NodeId peer) const {
  return impl_->queued_bytes(peer);
}
std::uint16_t TcpTransport::port() const {
  return impl_->port();
}
const HostPort& TcpTransport::bound() const {
  return impl_->bound();
}
std::optional<HostPort> TcpTransport::reached(raft::NodeId peer) const {
  return impl_->reached(peer);
}
const TcpCounters& TcpTransport::counters() const {
  return impl_->counters();
}

}  // namespace leasehold::net
