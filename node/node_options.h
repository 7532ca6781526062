// What a node's options have to be.
#pragma once

#include <leasehold/node/node.h>

namespace leasehold::node {

/// Errors: invalid_argument, naming what is wrong and what it should be.
Result<void> validate(const NodeOptions& options);

}  // namespace leasehold::node
