// The inside of TcpTransport: what it keeps for each peer. Not for other rooms.
//
// tcp_transport.cc moves messages, tcp_admission.cc judges who may talk, tcp_dial.cc makes and
// loses connections, tcp_renewal.cc replaces them when keys or certificates change.
#pragma once

#include <leasehold/base/random.h>
#include <leasehold/net/handshake.h>
#include <leasehold/net/tcp_connection.h>
#include <leasehold/net/tcp_socket.h>
#include <leasehold/net/tcp_transport.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace leasehold::net {

class TcpTransport::Impl final : public TcpConnection::Owner,
                                 public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& io, TcpOptions options, TcpCallbacks callbacks);

  Result<void> start();
  void stop();
  void send(raft::NodeId to, const wire::PeerMessage& message);
  Result<void> set_peer(PeerAddress peer);
  void remove_peer(raft::NodeId peer);
  void dismiss_peer(raft::NodeId peer, const wire::Refusal& refusal);
  std::vector<PeerAddress> peers() const;
  std::optional<raft::LogId> known_membership(raft::NodeId peer) const;
  void describe(std::string address, raft::LogId membership);
  void set_guard(GuardPtr guard);
  Result<void> may_protect_by(const PeerSecurity& security) const;
  PeerProofs proofs(raft::NodeId peer) const;
  std::optional<std::uint32_t> wire_version(raft::NodeId peer) const;
  void introduce(const PeerAddress& peer, std::function<void(Result<wire::Hello>)> done);

  bool connected(raft::NodeId peer) const;
  std::size_t queued_bytes(raft::NodeId peer) const;
  std::uint16_t port() const { return bound_.port; }
  const HostPort& bound() const { return bound_; }
  std::optional<HostPort> reached(raft::NodeId peer) const;
  const TcpCounters& counters() const { return counters_; }

 private:
  using Tcp = asio::ip::tcp;
  using ConnectionPtr = std::shared_ptr<TcpConnection>;

  /// One peer, or the connection for snapshots to it.
  struct Link {
    Link(asio::io_context& io, PeerAddress peer, wire::Purpose what_for)
        : id(peer.id),
          address(std::move(peer.address)),
          purpose(what_for),
          timer(io),
          resolver(io) {}

    raft::NodeId id;
    std::string address;
    wire::Purpose purpose;
    /// In renewals_: its connection is to take the place of the one in links_.
    bool renews = false;
    std::string followed;  ///< see follow_certificate()
    PeerHistory history;
    /// Of the connection that this node dialled last. Not null.
    std::unique_ptr<tls::SessionSlot> session = std::make_unique<tls::SessionSlot>();

    /// The connection that this node dialled. Invariant: at most one of `dialling`, `out` and
    /// `waiting` is set.
    std::shared_ptr<Tcp::socket> dialling;
    ConnectionPtr out;
    bool waiting = false;  ///< for the next dial
    /// The handshake on `out` is done.
    bool up = false;
    /// Failed dials: those without a connection that lasted for a while.
    std::uint32_t failures = 0;
    /// Names the dial under way; handlers of an earlier one find another number here and do
    /// nothing.
    std::uint64_t attempt = 0;
    /// The end of the pause before the next dial, deadline of the one under way, or the instant
    /// from which the connection counts as a success.
    asio::steady_timer timer;
    Tcp::resolver resolver;

    /// The connection that the peer dialled and that completed the handshake.
    ConnectionPtr in;
    /// For snapshots: something was sent since the timer was set.
    bool used = false;
  };
  using Links = std::map<raft::NodeId, std::unique_ptr<Link>>;

  // TcpConnection::Owner
  void on_frame(TcpConnection& connection, wire::Frame frame) override;
  void on_end(TcpConnection& connection, std::optional<RejectReason> reason, Error error) override;

  // tcp_transport.cc
  Result<void> validate() const;
  static std::uint32_t spoken_on(const Link& link);
  void send_on(Link& link, const wire::PeerMessage& message, std::size_t queue_bytes_max);
  Link* snapshot_link(const Link& link);
  void on_message(TcpConnection& connection, const wire::Frame& frame);
  void schedule_flush();

  // tcp_admission.cc
  wire::Hello my_hello(raft::NodeId to, wire::Purpose purpose) const;
  void on_hello(TcpConnection& connection, const wire::Hello& hello);
  /// By the guard that the connection was opened with, and by the present one.
  std::optional<wire::Refusal> judge_proof(const TcpConnection& connection,
                                           const wire::Hello& hello) const;
  std::optional<wire::Refusal> judge_cluster(const wire::Hello& hello) const;
  std::optional<wire::Refusal> judge(const TcpConnection& connection, const wire::Hello& hello);
  std::optional<wire::Refusal> judge_stranger(const TcpConnection& connection,
                                              const wire::Hello& hello);
  void on_introduction(TcpConnection& connection, const wire::Hello& hello);
  void let_in_dialled(TcpConnection& connection, const wire::Hello& hello);
  void let_in_accepted(TcpConnection& connection, const wire::Hello& hello);
  void on_refusal(TcpConnection& connection, const wire::Frame& frame);
  void reject(TcpConnection& connection, RejectReason reason, raft::NodeId peer, Error error);
  void refuse(TcpConnection& connection, raft::NodeId peer, const wire::Refusal& refusal);
  void tell(const TcpConnection& connection, Rejection rejection);

  // tcp_renewal.cc
  /// Dials the peer again, by the present guard. `link` keeps its connection until the new one
  /// stands.
  void renew(const Link& link);
  void end_renewal(raft::NodeId peer);
  /// Renews if the peer shows another certificate than it did when this node dialled it.
  void follow_certificate(Link& link);
  /// The new connection stands.
  void take_over(Link& renewal);
  /// Another connection has taken its place: what is on its way still arrives.
  void retire(const ConnectionPtr& connection);
  void drop_retired(raft::NodeId peer);

  // tcp_dial.cc
  Result<void> listen();
  Result<void> listen_to_streams();
  void accept();
  void greet(PeerSocket socket);
  void dial(Link& link);
  void dial_by_streams(const Link& link);
  void connect(Link& link, std::vector<Tcp::endpoint> endpoints);
  void connected_to(Link& link, PeerSocket socket);
  void dial_timed_out(Link& link);
  /// A connection that stands for reconnect_max was a success; one that is lost before was not.
  void forgive_later(Link& link);
  /// Later closes a connection for snapshots, if it was not used since this call.
  void hang_up_idle(Link& link);
  /// Ends what is under way on the dialled side.
  void hang_up(Link& link);
  /// hang_up(), and dial again after a pause; one for snapshots when it is needed.
  void redial_later(Link& link);
  /// Closes `connection` and forgets it; a dialled one is dialled again later.
  void remove(TcpConnection& connection);

  /// Closes what the peer has dialled.
  void drop_accepted(Link& link);
  Link* find(raft::NodeId id);
  const Link* find(raft::NodeId id) const;
  /// The link whose dial `attempt` is still under way.
  Link* find_attempt(raft::NodeId id, std::uint64_t attempt);
  Link* link_of_dialled(const TcpConnection& connection);

  asio::io_context& io_;
  const TcpOptions options_;
  const TcpCallbacks callbacks_;
  GuardPtr guard_;
  TcpCounters counters_;
  Random random_;
  std::string scratch_;
  /// See describe().
  std::string address_;
  raft::LogId membership_;
  /// Null: TCP makes the streams.
  const std::shared_ptr<StreamDoor> door_;
  Tcp::acceptor acceptor_;
  asio::steady_timer accept_pause_;
  HostPort bound_;
  bool beyond_loopback_ = false;  ///< start() has bound such an address
  Links links_;
  /// Those for snapshots; each peer here is in links_ too.
  Links snapshot_links_;
  /// Dials that are to replace a connection of links_; each peer here is in links_ too, and `up`.
  Links renewals_;
  /// Connections that others have replaced, of both sides, the oldest first.
  std::deque<ConnectionPtr> retired_;
  /// Accepted, handshake not done; the oldest first.
  std::deque<ConnectionPtr> strangers_;
  std::uint64_t last_attempt_ = 0;
  bool started_ = false;
  bool stopped_ = false;
  bool flush_scheduled_ = false;
};

}  // namespace leasehold::net
