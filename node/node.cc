// What a node says to other nodes, and hears from them, beside messages; and its end.
#include <leasehold/net/handshake.h>
#include <leasehold/node/node_shell.h>

#include <fmt/format.h>

#include <utility>

namespace leasehold::node {

ReplicaOptions NodeShell::of_replica(const NodeOptions& options) {
  return {kGroup,
          options.id,
          options.data_dir,
          options.timing,
          options.preferred_leaders,
          options.preference_settle,
          options.witness,
          options.tracer,
          options.limits};
}

Result<void> NodeShell::set_peer_security(const net::PeerSecurity& security) {
  if (auto may = loop_.transport().may_protect_by(security); !may.ok()) return may;
  auto guard = net::PeerGuard::load(security);
  if (!guard.ok()) return guard.error();
  loop_.post_task([this, fresh = std::move(guard).value()] { loop_.transport().set_guard(fresh); });
  return {};
}

net::TcpCallbacks NodeShell::policy() {
  net::TcpCallbacks policy;
  policy.on_peer = [this](const raft::Peer& peer) { group_.learned(peer.id, peer.uuid); };
  policy.accept_peer = [this](raft::NodeId peer, raft::Uuid uuid, raft::Incarnation) {
    return group_.driver() != nullptr ? group_.members().accept_peer(*group_.core(), peer, uuid)
                                      : group_.formation()->judge(peer, uuid);
  };
  policy.judge_stranger = [this](const wire::Hello& hello) {
    return group_.members().judge_stranger(group_.core(), hello);
  };
  policy.judge_introduction = [this](const wire::Hello& hello) {
    return group_.members().judge_introduction(group_.core(), hello);
  };
  policy.on_reject = [this](const net::Rejection& rejection) { rejected(rejection); };
  return policy;
}

void NodeShell::rejected(const net::Rejection& rejection) {
  if (!rejection.by_peer) return;
  const bool replaced = rejection.reason == net::RejectReason::older_incarnation ||
                        rejection.reason == net::RejectReason::duplicate_process;
  if (replaced) {
    group_.fail({ErrorCode::in_use,
                 fmt::format("another process runs as this node, with a directory like this one; "
                             "only one may: {}",
                             rejection.error.message)});
  } else if (rejection.reason == net::RejectReason::removed && group_.driver() != nullptr) {
    group_.members().told_removed(*group_.core(), rejection, clock().now());
    loop_.schedule(group_);
  } else if (rejection.reason == net::RejectReason::removed) {
    group_.fail({ErrorCode::wrong_cluster,
                 fmt::format("{}. The group exists already: a new node joins it (--join)",
                             rejection.error.message)});
  } else if (rejection.reason == net::RejectReason::given_up) {
    group_.fail({ErrorCode::wrong_cluster, rejection.error.message});
  } else if (rejection.reason == net::RejectReason::refused_by_node && group_.driver() == nullptr) {
    group_.fail({ErrorCode::wrong_cluster, rejection.error.message});
  }
}

void NodeShell::stop() {
  loop_.stop([this] {
    group_.log_ends();
    log_.reset();
  });
}

}  // namespace leasehold::node
