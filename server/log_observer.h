// What happens in the node, as lines of its log.
#pragma once

#include <leasehold/replica/observer.h>
#include <leasehold/server/admin/event_counts.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace leasehold::server {

/// Writes each event and notice to the default logger, which has to be asynchronous: both run on
/// the node's thread and must not wait for a terminal.
class LogObserver final : public replica::Observer {
 public:
  /// `prefix`: before each line, as "group 2, ".
  /// `named`: takes each membership of the group. On the node's thread; may be empty.
  using Named = std::function<void(const raft::Membership& membership)>;
  /// `counts`: of `group` among others, from 1 on; may be null, and else outlives it.
  explicit LogObserver(std::string prefix = {}, Named named = {}, EventCounts* counts = nullptr,
                       std::uint64_t group = 1)
      : prefix_(std::move(prefix)), named_(std::move(named)), counts_(counts), group_(group) {}
  void on_change(const replica::Change& change) override;
  void on_event(const raft::Event& event) override;
  void on_round(lease::Duration took) override {
    if (counts_ != nullptr) counts_->note_round(took);
  }
  void on_notice(const std::string& text) override;

  /// Whether the node knows the leader. Any thread.
  const std::atomic<bool>& leader_known() const { return leader_known_; }

 private:
  const std::string prefix_;
  const Named named_;
  EventCounts* const counts_;
  const std::uint64_t group_;
  bool lease_held_ = false;  ///< on the node's thread
  std::atomic<bool> leader_known_{false};
};

}  // namespace leasehold::server
