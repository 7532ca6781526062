// What happens in the node, as lines of its log.
#pragma once

#include <leasehold/node/driver.h>

namespace leasehold::server {

/// Writes each event to the default logger, which has to be asynchronous: on_event() runs on the
/// node's thread and must not wait for a terminal.
class LogObserver final : public node::Observer {
 public:
  void on_event(const raft::Event& event) override;
};

}  // namespace leasehold::server
