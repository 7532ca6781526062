#include <leasehold/net/notice_port.h>
#include <leasehold/tls/digest.h>
#include <leasehold/wire/notice.h>

#include <fmt/format.h>

#include <asio/buffer.hpp>
#include <asio/ip/address.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace leasehold::net {

NoticePort::NoticePort(asio::io_context& io, std::uint64_t cluster_id, raft::NodeId self,
                       OnEnd on_end)
    : cluster_id_(cluster_id), self_(self), on_end_(std::move(on_end)), socket_(io) {}

NoticePort::~NoticePort() {
  stop();
}

Result<void> NoticePort::listen(const HostPort& at) {
  asio::error_code error;
  const asio::ip::udp::endpoint endpoint(asio::ip::make_address(at.host, error), at.port);
  if (!error) socket_.open(endpoint.protocol(), error);
  if (!error) socket_.bind(endpoint, error);
  if (!error) socket_.non_blocking(true, error);
  if (error) {
    asio::error_code ignored;
    socket_.close(ignored);
    const ErrorCode code = error == asio::error::address_in_use ? ErrorCode::in_use : ErrorCode::io;
    return Error{code, fmt::format("cannot listen for notices on UDP port {}: {}", at.port,
                                   error.message())};
  }
  receive();
  return {};
}

void NoticePort::stop() {
  *alive_ = false;
  asio::error_code ignored;
  socket_.close(ignored);
}

void NoticePort::met(const wire::Hello& hello) {
  const raft::Peer peer = wire::peer_of(hello);
  if (peer.process.incarnation.value() == 0 || hello.end_commitment.empty()) {
    met_.erase(hello.from);
    return;
  }
  Met& met = met_[hello.from];
  const bool ended = met.ended && met.peer == peer;
  met = {peer, hello.end_commitment, ended};
}

void NoticePort::keep(const std::vector<PeerAddress>& peers) {
  std::erase_if(met_, [&peers](const auto& known) {
    return std::none_of(peers.begin(), peers.end(),
                        [&known](const PeerAddress& peer) { return peer.id == known.first; });
  });
}

void NoticePort::receive() {
  socket_.async_receive_from(
      asio::buffer(datagram_), from_,
      [this, alive = alive_](const asio::error_code& error, std::size_t bytes) {
        if (!*alive || error == asio::error::operation_aborted) return;
        // Another error is of an answer that could not be delivered.
        std::optional<raft::Peer> ended;
        if (!error) ended = take(std::string_view(datagram_.data(), bytes));
        if (ended && *alive) {
          const std::string answer = wire::encode_notice_answer(*ended, self_);
          asio::error_code ignored;
          socket_.send_to(asio::buffer(answer), from_, 0, ignored);
        }
        if (*alive) receive();
      });
}

std::optional<raft::Peer> NoticePort::take(std::string_view datagram) {
  const std::optional<wire::EndNotice> notice = wire::decode_notice(datagram);
  const auto known = notice ? met_.find(notice->ended.id) : met_.end();
  if (known != met_.end() && known->second.peer.uuid == notice->ended.uuid &&
      known->second.peer.process.place == notice->ended.process.place &&
      notice->ended.process.incarnation < known->second.peer.process.incarnation) {
    // Its next process has shown the same.
    ++counters_.late;
    return std::nullopt;
  }
  if (known == met_.end() || notice->cluster_id != cluster_id_ ||
      known->second.peer != notice->ended ||
      !tls::same_secret(tls::sha256(notice->secret), known->second.commitment)) {
    ++counters_.refused;
    return std::nullopt;
  }
  // Its answer may have been lost.
  if (std::exchange(known->second.ended, true)) return notice->ended;
  ++counters_.believed;
  on_end_(notice->ended);
  return notice->ended;
}

}  // namespace leasehold::net
