// Says what a node is waiting for, while it cannot serve.
#pragma once

#include <leasehold/node/node.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

namespace leasehold::server {

/// One sentence: which members have not confirmed the group yet, or why there is no leader. Empty
/// when the node waits for nothing that a person could help with.
std::string waiting_text(const node::NodeStatus& status);

/// Looked at in turns, on one thread. Asks the node for its status only while no leader is known,
/// and says a sentence when it is new or was not said for a while.
class StartWatch {
 public:
  /// `leader_known` is kept by the node's observer.
  StartWatch(node::Node& node, const std::atomic<bool>& leader_known);
  ~StartWatch();
  void look();

 private:
  struct Seen;

  node::Node& node_;
  const std::atomic<bool>& leader_known_;
  std::shared_ptr<Seen> seen_;  ///< outlives this: an answer may come late
  std::chrono::steady_clock::time_point without_since_;
  bool without_ = false;
  std::string said_;
  std::chrono::steady_clock::time_point said_at_;
};

}  // namespace leasehold::server
