// Keys and certificates change while connections stand: those that no longer prove anything end,
// the others are replaced one by one, and no message is lost with them.
#include <leasehold/base/assert.h>
#include <leasehold/net/tcp_impl.h>

#include <memory>
#include <utility>

namespace leasehold::net {

namespace {

/// Connections that others have replaced. Each peer has two of them as a rule, for an instant.
constexpr std::size_t kRetiredMax = 64;

}  // namespace

void TcpTransport::Impl::set_guard(GuardPtr guard) {
  guard_ = std::move(guard);
  for (Links* links : {&links_, &snapshot_links_}) {
    for (auto& [id, link] : *links) {
      if (link->in && !link->in->believed_by(*guard_)) drop_accepted(*link);
      if (!link->out || !link->up) continue;
      if (!link->out->believed_by(*guard_)) {
        redial_later(*link);
      } else if (link->purpose == wire::Purpose::messages) {
        renew(*link);
      }
    }
  }
  std::erase_if(retired_, [this](const ConnectionPtr& retired) {
    const bool stays = retired->believed_by(*guard_);
    if (!stays) retired->close();
    return !stays;
  });
}

void TcpTransport::Impl::renew(const Link& link) {
  LEASEHOLD_ASSERT(link.up && !link.renews);
  // One by an earlier guard.
  end_renewal(link.id);
  // Nothing is proved by another plain connection.
  if (!guard_->dialling() && link.out->proof() == "plain") return;
  std::unique_ptr<Link>& renewal = renewals_[link.id];
  renewal =
      std::make_unique<Link>(io_, PeerAddress{link.id, link.address}, wire::Purpose::messages);
  renewal->renews = true;
  dial(*renewal);
}

void TcpTransport::Impl::end_renewal(raft::NodeId peer) {
  const auto at = renewals_.find(peer);
  if (at == renewals_.end()) return;
  hang_up(*at->second);
  renewals_.erase(at);
}

void TcpTransport::Impl::take_over(Link& renewal) {
  Link* const link = find(renewal.id);
  LEASEHOLD_ASSERT(link != nullptr && link->up && renewal.up);
  retire(std::exchange(link->out, std::exchange(renewal.out, nullptr)));
  renewal.up = false;
  link->session.swap(renewal.session);
  end_renewal(link->id);
}

void TcpTransport::Impl::retire(const ConnectionPtr& connection) {
  ++counters_.disconnects;
  if (retired_.size() == kRetiredMax) {
    retired_.front()->close();
    retired_.pop_front();
  }
  retired_.push_back(connection);
  connection->deadline.expires_after(options_.limits.handshake_timeout);
  connection->deadline.async_wait(
      [weak = weak_from_this(),
       late = std::weak_ptr<TcpConnection>(connection)](const asio::error_code& error) {
        const std::shared_ptr<Impl> self = weak.lock();
        const ConnectionPtr retired = late.lock();
        if (!error && self && retired && !retired->closed()) self->remove(*retired);
      });
  if (connection->side() == TcpConnection::Side::dialled) connection->end_when_sent();
}

void TcpTransport::Impl::drop_retired(raft::NodeId peer) {
  std::erase_if(retired_, [peer](const ConnectionPtr& retired) {
    const bool of_peer = retired->peer->from == peer;
    if (of_peer) retired->close();
    return of_peer;
  });
}

void TcpTransport::Impl::follow_certificate(Link& link) {
  if (!link.up || !link.in) return;
  const std::string now = link.in->proof();
  const std::string then = link.out->proof();
  if (!now.starts_with("tls ") || !then.starts_with("tls ") || now == then) return;
  // Once for each, so that two nodes do not go on and on, whatever they show.
  if (std::exchange(link.followed, now) != now) renew(link);
}

PeerProofs TcpTransport::Impl::proofs(raft::NodeId peer) const {
  const Link* link = find(peer);
  if (link == nullptr) return {};
  return {link->up ? link->out->proof() : "", link->in ? link->in->proof() : ""};
}

}  // namespace leasehold::net
