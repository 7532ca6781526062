// What happens in the node, as lines of its log.
#pragma once

#include <leasehold/replica/observer.h>

#include <atomic>
#include <string>

namespace leasehold::server {

/// Writes each event and notice to the default logger, which has to be asynchronous: both run on
/// the node's thread and must not wait for a terminal.
class LogObserver final : public replica::Observer {
 public:
  void on_change(const replica::Change& change) override;
  void on_event(const raft::Event& event) override;
  void on_notice(const std::string& text) override;

  /// Whether the node knows the leader. Any thread.
  const std::atomic<bool>& leader_known() const { return leader_known_; }

 private:
  std::atomic<bool> leader_known_{false};
};

}  // namespace leasehold::server
