// What a running node says of itself, in numbers and in words.
#pragma once

#include <leasehold/lease/instant.h>
#include <leasehold/net/tcp_transport.h>
#include <leasehold/node/node.h>
#include <leasehold/replica/driver.h>
#include <leasehold/replica/observer.h>

#include <chrono>
#include <string>

namespace leasehold::node {

/// Fills what NodeStatus says of the group's state, except the members. `failed`: it has no lease.
void describe(const replica::Driver& driver, lease::HolderInstant now, bool failed,
              NodeStatus& status);

/// A connection that this node or the peer refused, and why.
std::string text_of(const net::Rejection& rejection);

/// The newest refusal between this node and a peer, while a person may have to act on it.
class LastRefusal {
 public:
  /// A peer that is refused dials again within a second: a refusal that was not repeated by then is
  /// over.
  static constexpr lease::Duration kShown = std::chrono::seconds(10);

  void note(const net::Rejection& rejection, raft::PromiseInstant now);
  /// This node and `peer` talk to each other now.
  void connected(raft::NodeId peer);
  /// Empty: there was none, or it is over.
  std::string text(raft::PromiseInstant now) const;

 private:
  std::string text_;
  raft::NodeId peer_;
  raft::PromiseInstant until_;
};

/// Reports what a person has to know about the log, once per event.
class LogNotices {
 public:
  void look(const replica::Driver& driver, const std::string& data_dir,
            replica::Observer& observer);

 private:
  bool told_full_ = false;
  bool told_never_cut_ = false;
};

}  // namespace leasehold::node
