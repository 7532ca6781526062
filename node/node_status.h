// What a running node says of itself, in numbers and in words.
#pragma once

#include <leasehold/lease/instant.h>
#include <leasehold/net/tcp_transport.h>
#include <leasehold/node/node.h>
#include <leasehold/replica/driver.h>
#include <leasehold/replica/observer.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace leasehold::node {

/// Fills what NodeStatus says of the group's state, except the members. `failed`: it has no lease.
void describe(const replica::Driver& driver, lease::Now now, bool failed, NodeStatus& status);

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

/// The lines of the log about refusals. Who reaches the port can be refused as often as it likes,
/// and must not fill a disk with that.
class RefusalLines {
 public:
  static constexpr lease::Duration kWindow = std::chrono::seconds(10);
  static constexpr std::size_t kLinesMax = 20;  ///< in a window, of connections that came here

  /// Nothing: this one is only counted, and a later line says how many were.
  std::optional<std::string> line(const net::Rejection& rejection, raft::PromiseInstant now);

 private:
  raft::PromiseInstant window_end_;
  std::size_t lines_ = 0;  ///< of this window
  std::uint64_t without_a_line_ = 0;
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
