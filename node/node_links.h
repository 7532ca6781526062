// What a group needs of the connections with the other members: its own, or those of a host.
#pragma once

#include <leasehold/net/tcp_transport.h>
#include <leasehold/node/member_edit.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::node {

/// Members have the numbers of the group. On the node's thread.
class Links {
 public:
  virtual ~Links() = default;

  /// This member's address, and the newest membership of its log.
  virtual void describe(const std::string& address, raft::LogId membership) = 0;
  virtual void set_peer(const net::PeerAddress& member) = 0;
  /// Those with which connections are kept, and which may be dismissed.
  virtual std::vector<net::PeerAddress> peers() const = 0;
  virtual void dismiss_peer(raft::NodeId member, const wire::Refusal& refusal) = 0;
  /// Which membership the member has said last that it knows.
  virtual std::optional<raft::LogId> known_membership(raft::NodeId member) const = 0;
  /// Asks who is at the address of a member that is added. Calls `done` once, later, unless the
  /// connections end before.
  virtual void introduce(const MemberEdit& added,
                         std::function<void(Result<wire::Hello>)> done) = 0;
  virtual std::optional<std::uint32_t> wire_version(raft::NodeId member) const = 0;
  virtual bool connected(raft::NodeId member) const = 0;
  virtual net::PeerProofs proofs(raft::NodeId member) const = 0;
};

/// Of a node whose process has one group: the connections are the group's.
class OwnLinks final : public Links {
 public:
  explicit OwnLinks(net::TcpTransport& transport) : transport_(transport) {}

  void describe(const std::string& address, raft::LogId membership) override {
    transport_.describe(address, membership);
  }
  void set_peer(const net::PeerAddress& member) override {
    // A member with an invalid address cannot be reached; its status shows that.
    static_cast<void>(transport_.set_peer(member));
  }
  std::vector<net::PeerAddress> peers() const override { return transport_.peers(); }
  void dismiss_peer(raft::NodeId member, const wire::Refusal& refusal) override {
    transport_.dismiss_peer(member, refusal);
  }
  std::optional<raft::LogId> known_membership(raft::NodeId member) const override {
    return transport_.known_membership(member);
  }
  void introduce(const MemberEdit& added, std::function<void(Result<wire::Hello>)> done) override {
    transport_.introduce({added.id, added.address}, std::move(done));
  }
  std::optional<std::uint32_t> wire_version(raft::NodeId member) const override {
    return transport_.wire_version(member);
  }
  bool connected(raft::NodeId member) const override { return transport_.connected(member); }
  net::PeerProofs proofs(raft::NodeId member) const override { return transport_.proofs(member); }

 private:
  net::TcpTransport& transport_;
};

}  // namespace leasehold::node
