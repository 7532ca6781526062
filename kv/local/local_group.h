// A group with a node in this process, and the store that ships.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/command.h>
#include <leasehold/kv/lease_keeper.h>
#include <leasehold/kv/reply.h>
#include <leasehold/kv/store.h>
#include <leasehold/lease/instant.h>
#include <leasehold/node/group.h>

namespace leasehold::kv {

/// The parts of one replica; all outlive their users. Any thread except the node's.
struct LocalGroup {
  node::Group& node;
  /// The node's state machine.
  const kv::Store& store;
  /// A LeaseTimer calls it, or another caller that does so often.
  kv::LeaseKeeper& keeper;

  /// Waits until the command is applied. The reply is never an ErrorReply. Errors, with the meaning
  /// of client/lease_service.h: unavailable, timed_out, in_use, not_found, invalid_argument.
  Result<kv::Reply> execute(const kv::Command& command, lease::Duration timeout) const;
  /// Waits until the store may be read linearizably. Errors: unavailable.
  Result<void> wait_readable(lease::Duration timeout) const;
};

}  // namespace leasehold::kv
