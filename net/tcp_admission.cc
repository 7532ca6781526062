// Which peers may talk: judges a hello; accepts, refuses or disconnects a peer; reports why.
#include <leasehold/base/assert.h>
#include <leasehold/net/tcp_impl.h>
#include <leasehold/net/tcp_introduction.h>
#include <leasehold/wire/check.h>

#include <fmt/format.h>

#include <string>
#include <utility>

namespace leasehold::net {
namespace {

RejectReason reason_of(wire::RefusalCode code) {
  using wire::RefusalCode;
  switch (code) {
    case RefusalCode::version: return RejectReason::version;
    case RefusalCode::wrong_cluster: return RejectReason::wrong_cluster;
    case RefusalCode::wrong_target: return RejectReason::wrong_target;
    case RefusalCode::same_id: return RejectReason::same_id;
    case RefusalCode::unknown_peer: return RejectReason::unknown_peer;
    case RefusalCode::older_incarnation: return RejectReason::older_incarnation;
    case RefusalCode::duplicate_process: return RejectReason::duplicate_process;
    case RefusalCode::refused_by_node: return RejectReason::refused_by_node;
    case RefusalCode::too_many: return RejectReason::too_many;
    case RefusalCode::removed: return RejectReason::removed;
    case RefusalCode::unproved: return RejectReason::unproved;
    case RefusalCode::given_up: return RejectReason::given_up;
  }
  LEASEHOLD_UNREACHABLE();
}

ErrorCode error_code_of(RejectReason reason) {
  switch (reason) {
    case RejectReason::malformed: return ErrorCode::malformed;
    case RejectReason::version: return ErrorCode::unsupported_format;
    case RejectReason::oversized:
    case RejectReason::too_many: return ErrorCode::overloaded;
    case RejectReason::handshake_timeout: return ErrorCode::timed_out;
    case RejectReason::duplicate_process:
    case RejectReason::same_id: return ErrorCode::in_use;
    case RejectReason::wrong_cluster:
    case RejectReason::wrong_target:
    case RejectReason::unknown_peer:
    case RejectReason::older_incarnation:
    case RejectReason::unproved:
    case RejectReason::given_up:
    case RejectReason::refused_by_node: return ErrorCode::wrong_cluster;
    case RejectReason::removed: return ErrorCode::removed;
  }
  LEASEHOLD_UNREACHABLE();
}

/// Links to members, and to nodes that this one does not know as members yet.
constexpr std::size_t kLinksMax = 2 * wire::kMembersMax;

}  // namespace

const char* reject_reason_name(RejectReason reason) {
  switch (reason) {
    case RejectReason::malformed: return "malformed";
    case RejectReason::oversized: return "oversized";
    case RejectReason::version: return "version";
    case RejectReason::wrong_cluster: return "wrong_cluster";
    case RejectReason::wrong_target: return "wrong_target";
    case RejectReason::same_id: return "same_id";
    case RejectReason::unknown_peer: return "unknown_peer";
    case RejectReason::older_incarnation: return "older_incarnation";
    case RejectReason::duplicate_process: return "duplicate_process";
    case RejectReason::refused_by_node: return "refused_by_node";
    case RejectReason::handshake_timeout: return "handshake_timeout";
    case RejectReason::too_many: return "too_many";
    case RejectReason::removed: return "removed";
    case RejectReason::unproved: return "unproved";
    case RejectReason::given_up: return "given_up";
  }
  LEASEHOLD_UNREACHABLE();
}

wire::Hello TcpTransport::Impl::my_hello(raft::NodeId to, wire::Purpose purpose) const {
  wire::Hello hello;
  hello.cluster_id = options_.cluster_id;
  hello.from = options_.id;
  hello.to = to;
  hello.uuid = options_.uuid;
  hello.incarnation = options_.incarnation;
  hello.process = options_.process;
  hello.purpose = purpose;
  if (purpose == wire::Purpose::introduction) hello.cluster = options_.cluster;
  hello.address = address_;
  hello.membership = membership_;
  hello.witness = options_.witness;
  hello.place = options_.place;
  hello.end_commitment = options_.end_commitment;
  return hello;
}

void TcpTransport::Impl::on_hello(TcpConnection& connection, const wire::Hello& hello) {
  if (hello.purpose == wire::Purpose::introduction &&
      connection.side() == TcpConnection::Side::accepted) {
    return on_introduction(connection, hello);
  }
  const std::optional<wire::Refusal> refusal = judge(connection, hello);
  if (connection.closed()) return;  // accept_peer has stopped the transport
  if (refusal) return refuse(connection, hello.from, *refusal);
  connection.peer = hello;
  connection.deadline.cancel();
  if (connection.side() == TcpConnection::Side::dialled) {
    let_in_dialled(connection, hello);
  } else {
    let_in_accepted(connection, hello);
  }
}

std::optional<wire::Refusal> TcpTransport::Impl::judge_proof(const TcpConnection& connection,
                                                             const wire::Hello& hello) const {
  if (auto refusal = connection.judge_proof(hello, options_.cluster)) return refusal;
  if (&connection.guard() == guard_.get() || connection.believed_by(*guard_)) return std::nullopt;
  return wire::Refusal{wire::RefusalCode::unproved,
                       "keys or certificates were replaced during the handshake: dial again",
                       wire::VersionRange{}};
}

/// A node of the cluster that was given up for this one may have slept through that.
std::optional<wire::Refusal> TcpTransport::Impl::judge_cluster(const wire::Hello& hello) const {
  if (hello.cluster_id == 0 || hello.cluster_id != options_.given_up_cluster) return std::nullopt;
  return wire::Refusal{wire::RefusalCode::given_up, options_.given_up_reason, wire::VersionRange{}};
}

std::optional<wire::Refusal> TcpTransport::Impl::judge(const TcpConnection& connection,
                                                       const wire::Hello& hello) {
  using wire::RefusalCode;
  if (auto refusal = judge_proof(connection, hello)) return refusal;
  if (auto refusal = judge_cluster(hello)) return refusal;
  const Link* dialled = link_of_dialled(connection);
  if (auto refusal = judge_hello(
          my_hello(dialled == nullptr ? raft::kNobody : dialled->id, hello.purpose), hello)) {
    return refusal;
  }
  const Link* link = find(hello.from);
  if (link == nullptr) return judge_stranger(connection, hello);
  if (auto refusal = link->history.judge(hello, link->up || link->in != nullptr)) return refusal;
  if (dialled == nullptr && link->in == nullptr) {
    std::size_t accepted = 0;
    for (const Links* links : {&links_, &snapshot_links_}) {
      for (const auto& [id, other] : *links) accepted += other->in != nullptr ? 1 : 0;
    }
    if (accepted >= options_.limits.connections_max) {
      return wire::Refusal{RefusalCode::too_many, "too many connections: raise connections_max",
                           wire::VersionRange{}};
    }
  }
  if (callbacks_.accept_peer) {
    const Result<void> accepted = callbacks_.accept_peer(hello.from, hello.uuid, hello.incarnation);
    if (!accepted.ok()) {
      return wire::Refusal{RefusalCode::refused_by_node, accepted.error().message,
                           wire::VersionRange{}};
    }
  }
  return std::nullopt;
}

std::optional<wire::Refusal> TcpTransport::Impl::judge_stranger(const TcpConnection& connection,
                                                                const wire::Hello& hello) {
  using wire::RefusalCode;
  const bool may_ask = callbacks_.judge_stranger != nullptr && !hello.address.empty() &&
                       connection.side() == TcpConnection::Side::accepted;
  if (!may_ask || !parse_address(hello.address).ok()) {
    return wire::Refusal{
        RefusalCode::unknown_peer,
        fmt::format("node {} is not among the peers of node {}: add it there first",
                    hello.from.value(), options_.id.value()),
        wire::VersionRange{}};
  }
  if (auto refusal = callbacks_.judge_stranger(hello)) return refusal;
  if (links_.size() < kLinksMax) return std::nullopt;
  return wire::Refusal{RefusalCode::too_many, "too many peers", wire::VersionRange{}};
}

void TcpTransport::Impl::on_introduction(TcpConnection& connection, const wire::Hello& hello) {
  std::optional<wire::Refusal> refusal = judge_proof(connection, hello);
  if (!refusal) refusal = judge_cluster(hello);
  if (!refusal) refusal = judge_introduction(my_hello(raft::kNobody, hello.purpose), hello);
  if (!refusal && callbacks_.judge_introduction) refusal = callbacks_.judge_introduction(hello);
  if (connection.closed()) return;
  if (refusal) return refuse(connection, hello.from, *refusal);
  // As with a refusal: the answer fits into the empty buffer of a fresh connection.
  wire::encode_hello(my_hello(hello.from, hello.purpose), connection.out());
  connection.flush();
  remove(connection);
}

void TcpTransport::Impl::let_in_dialled(TcpConnection& connection, const wire::Hello& hello) {
  Link* link = link_of_dialled(connection);
  LEASEHOLD_ASSERT(link != nullptr);
  link->up = true;
  ++counters_.connects;
  if (link->renews) {
    take_over(*link);
    link = find(hello.from);
  }
  if (link->purpose == wire::Purpose::snapshots) return hang_up_idle(*link);
  link->history.let_in(hello);
  forgive_later(*link);
  if (&connection.guard() != guard_.get()) renew(*link);
  if (callbacks_.on_met) callbacks_.on_met(hello);
  if (callbacks_.on_peer) callbacks_.on_peer(wire::peer_of(hello));
}

void TcpTransport::Impl::let_in_accepted(TcpConnection& connection, const wire::Hello& hello) {
  if (find(hello.from) == nullptr) {
    const Result<void> set = set_peer({hello.from, hello.address});
    LEASEHOLD_ASSERT(set.ok());
  }
  Link* const peer = find(hello.from);
  LEASEHOLD_ASSERT(peer != nullptr);
  peer->history.let_in(hello);
  const bool for_snapshots = hello.purpose == wire::Purpose::snapshots;
  Link* const link = for_snapshots ? snapshot_link(*peer) : peer;
  const ConnectionPtr before = std::exchange(link->in, connection.shared_from_this());
  std::erase(strangers_, link->in);
  // An earlier process is dead, even if TCP has not noticed.
  const bool same_process = before && before->peer->uuid == hello.uuid &&
                            before->peer->incarnation == hello.incarnation &&
                            before->peer->process == hello.process;
  if (!same_process) {
    drop_retired(hello.from);
    if (before) before->close();
    counters_.disconnects += before ? 1 : 0;
  } else {
    retire(before);
  }
  connection.allow(options_.limits.frame_bytes_max);
  wire::encode_hello(my_hello(hello.from, hello.purpose), connection.out());
  connection.flush();
  ++counters_.accepts;
  if (for_snapshots) return;
  if (callbacks_.on_met) callbacks_.on_met(hello);

  // It is alive, so dial back at once, without a pause. A connection to an earlier process of it,
  // or an attempt that began before it came back, would be noticed only later.
  const bool to_earlier_process = link->up && (link->out->peer->uuid != hello.uuid ||
                                               link->out->peer->incarnation != hello.incarnation);
  if (link->waiting || link->dialling || to_earlier_process) {
    hang_up(*link);
    dial(*link);
  } else {
    follow_certificate(*link);
  }
}

void TcpTransport::Impl::on_refusal(TcpConnection& connection, const wire::Frame& frame) {
  const Link* link = link_of_dialled(connection);
  Rejection rejection;
  if (connection.peer) rejection.peer = connection.peer->from;
  if (link != nullptr) rejection.peer = link->id;
  const Result<wire::Refusal> refusal = wire::decode_refusal(frame);
  if (!refusal.ok()) {
    return reject(connection, RejectReason::malformed, rejection.peer, refusal.error());
  }
  // An unknown peer cannot refuse: only one that was dialled, or whose hello was accepted, can.
  if (rejection.peer == raft::kNobody) {
    return reject(connection, RejectReason::malformed, raft::kNobody,
                  Error{ErrorCode::malformed, "malformed stream: a refusal before the hello"});
  }
  rejection.by_peer = true;
  rejection.reason = reason_of(refusal.value().code);
  rejection.error = Error{error_code_of(rejection.reason),
                          fmt::format("node {} at {} refuses this node: {}", rejection.peer.value(),
                                      connection.address(), refusal.value().reason)};
  rejection.membership = refusal.value().membership;
  ++counters_.refused_by_peers;
  remove(connection);
  tell(connection, std::move(rejection));
}

void TcpTransport::Impl::reject(TcpConnection& connection, RejectReason reason, raft::NodeId peer,
                                Error error) {
  ++counters_.rejected[static_cast<std::size_t>(reason)];
  remove(connection);
  Rejection rejection;
  rejection.reason = reason;
  rejection.peer = peer;
  rejection.error = std::move(error);
  tell(connection, std::move(rejection));
}

void TcpTransport::Impl::refuse(TcpConnection& connection, raft::NodeId peer,
                                const wire::Refusal& refusal) {
  // A refusal fits into the empty buffer of a fresh connection: what does not leave now is lost
  // with it, and costs the peer only the reason.
  wire::encode_refusal(refusal, connection.out());
  connection.flush();
  const RejectReason reason = reason_of(refusal.code);
  reject(connection, reason, peer, Error{error_code_of(reason), refusal.reason});
}

void TcpTransport::Impl::tell(const TcpConnection& connection, Rejection rejection) {
  rejection.address = connection.address();
  if (!stopped_ && callbacks_.on_reject) callbacks_.on_reject(rejection);
}

}  // namespace leasehold::net
