// Says what a node is waiting for, while it cannot serve.
#pragma once

#include <leasehold/node/group.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace leasehold::server {

/// One sentence: which members have not confirmed the group yet, or why there is no leader. Empty
/// if the node waits for nothing that the operator could change.
std::string waiting_text(const node::NodeStatus& status, bool many_groups = false);

/// Called in turns, on one thread. Asks the node for its status only while no leader is known, and
/// logs a sentence when it is new or was not logged for a while: as soon as the node answers, on
/// the node's thread, so that it is in the right order with the node's own messages.
class StartWatch {
 public:
  using Say = std::function<void(const std::string&)>;
  /// `leader_known` is kept by the node's observer. `say` takes a sentence, on the node's thread.
  StartWatch(node::Group& node, const std::atomic<bool>& leader_known, Say say,
             bool many_groups = false);
  ~StartWatch();
  void look();

 private:
  struct Said;

  node::Group& node_;
  const std::atomic<bool>& leader_known_;
  const bool many_groups_;
  std::shared_ptr<Said> said_;  ///< outlives this: an answer may come late
  std::chrono::steady_clock::time_point without_since_;
  bool without_ = false;
};

}  // namespace leasehold::server
