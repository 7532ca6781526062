// What happens in the node, as lines of its log.
#pragma once

#include <leasehold/node/driver.h>

#include <string>

namespace leasehold::server {

/// Writes each event and notice to the default logger, which has to be asynchronous: both run on
/// the node's thread and must not wait for a terminal.
class LogObserver final : public node::Observer {
 public:
  void on_event(const raft::Event& event) override;
  void on_notice(const std::string& text) override;
};

}  // namespace leasehold::server
