// The options of a node, behind the C interface.
#pragma once

#include <leasehold/c/leasehold.h>
#include <leasehold/node/node.h>

struct leasehold_options {
  leasehold::node::NodeOptions node;
};
