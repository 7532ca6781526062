// A group of this process, as one that moves slots sees it.
#pragma once

#include <leasehold/kv/lease_keeper.h>
#include <leasehold/kv/local/slot_move.h>
#include <leasehold/kv/store.h>
#include <leasehold/node/group.h>

#include <memory>

namespace leasehold::kv {

/// Calls the replica here and waits for the answers. `timeout`: of a command, and of the wait until
/// the store is new enough. All outlive it.
std::unique_ptr<LedGroup> led_group(node::Group& group, const Store& store, LeaseKeeper& keeper,
                                    lease::Duration timeout);

}  // namespace leasehold::kv
