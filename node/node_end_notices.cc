#include <leasehold/node/node_end_notices.h>
#include <leasehold/tls/digest.h>
#include <leasehold/wire/notice.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace leasehold::node {
namespace {

/// Before the port is tried again that another process has.
constexpr std::chrono::seconds kFirstPause{1};
constexpr std::chrono::seconds kLongestPause{64};

}  // namespace

EndNotices::EndNotices(asio::io_context& io, std::string program, net::NoticePort::OnEnd on_end,
                       std::function<void(const std::string& line)> say)
    : io_(io),
      program_(std::move(program)),
      on_end_(std::move(on_end)),
      say_(std::move(say)),
      again_(io) {}

void EndNotices::prepare(net::TcpOptions& tcp) {
  port_ = std::make_unique<net::NoticePort>(io_, tcp.cluster_id, tcp.id, on_end_);
  if (program_.empty()) return;
  if (tcp.place == 0) {
    say_(
        "no deputy: the file system of the data directory keeps its locks elsewhere, so the end of "
        "this process cannot be known");
    return;
  }
  wire::EndNotice notice;
  notice.cluster_id = tcp.cluster_id;
  notice.ended = {tcp.id, tcp.uuid, {tcp.incarnation, tcp.place}};
  notice.secret = tls::random_secret(wire::kSecretBytes);
  tcp.end_commitment = tls::sha256(notice.secret);
  notice_ = wire::encode_notice(notice);
  self_ = notice.ended;
  tls::wipe(notice.secret);
}

void EndNotices::start(const net::TcpTransport& transport) {
  if (transport.bound().port != 0) listen(transport.bound(), kFirstPause);
  if (notice_.empty()) return;
  deputy_ = std::make_unique<Deputy>(io_, program_, self_, say_);
  const auto started = deputy_->start(std::move(notice_));
  notice_.clear();
  if (!started.ok()) {
    say_(started.error().message + ": after a crash of this node the others wait for its lease");
  }
}

void EndNotices::listen(const net::HostPort& at, std::chrono::seconds pause) {
  const auto listening = port_->listen(at);
  listens_ = listening.ok();
  if (listens_) return;
  if (pause == kFirstPause) {
    say_(listening.error().message +
         ": until then, promises to a process that ends run out by time");
  }
  again_.expires_after(pause);
  again_.async_wait([this, at, pause, alive = alive_](const asio::error_code& error) {
    if (*alive && !error) listen(at, std::min(2 * pause, kLongestPause));
  });
}

void EndNotices::met(const wire::Hello& hello, const net::TcpTransport& transport) {
  port_->met(hello);
  port_->keep(transport.peers());
  if (!deputy_) return;
  // If the connection to a peer is down, the deputy sends to the address of the last one.
  std::vector<Deputy::Target> peers;
  for (const net::PeerAddress& peer : transport.peers()) {
    if (auto at = transport.reached(peer.id)) reached_[peer.id] = std::move(*at);
    if (const auto at = reached_.find(peer.id); at != reached_.end()) {
      peers.push_back({peer.id, at->second});
    }
  }
  std::erase_if(reached_, [&peers](const auto& known) {
    return std::none_of(peers.begin(), peers.end(),
                        [&known](const Deputy::Target& peer) { return peer.id == known.first; });
  });
  deputy_->set_peers(std::move(peers));
}

void EndNotices::stop(bool leads) {
  // A leader that ends without a successor is missed until its lease is over.
  *alive_ = false;
  if (deputy_) deputy_->stop(leads ? Deputy::Ending::tells : Deputy::Ending::silent);
  again_.cancel();
  if (port_) port_->stop();
}

void EndNotices::describe(NodeStatus& status) const {
  status.deputy = deputy_ && deputy_->runs();
  status.deputy_restarts = deputy_ ? deputy_->restarts() : 0;
  status.notices_heard = listens_;
  if (!port_) return;
  status.notices_believed = port_->counters().believed;
  status.notices_late = port_->counters().late;
  status.notices_refused = port_->counters().refused;
}

}  // namespace leasehold::node
