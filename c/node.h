// A node, with all that it calls, behind the C interface.
#pragma once

#include <leasehold/c/machine.h>
#include <leasehold/c/observer.h>
#include <leasehold/node/node.h>
#include <leasehold/node/system_clock.h>

#include <memory>

struct leasehold_node {
  leasehold::node::SystemClock clock;
  leasehold::c::Observer observer;
  std::unique_ptr<leasehold::c::Machine> machine;
  /// Ends first.
  std::unique_ptr<leasehold::node::Node> node;
};
