// Commands that wait for a slot on its way from group to group. Not for other rooms.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/kv/operation.h>
#include <leasehold/server/front/place.h>

namespace leasehold::server {

/// For a command that has waited in vain.
inline constexpr const char* kSlotMoves =
    "TRYAGAIN the slot of the key is moving to another group; the command was not executed, send "
    "it again";

/// For a command to be executed once whose slot has left the group of its session.
inline constexpr const char* kSessionStays =
    "CROSSSLOT the slot of the key has left the group of the session, and the command was not "
    "executed there: send LEASEHOLD GROUP KEY with such a key, and open a session in that group";

/// For a command with the id of a lease whose key is of another group. `unseen`: this node could
/// not learn what has moved.
const char* lease_elsewhere(bool unseen);

/// Whether a command means the same in each group that has its keys. One that names a lease, or
/// what is left of a key's time, does not: both are of one group.
bool is_movable(const kv::Operation& operation);

/// Whether this result of a write says that its group has the slot no more, and it may go to the
/// other one.
bool is_elsewhere(const Place& place, const Bytes& result);

/// Whether this result of a write, which found no lease of a name, means nothing: its group does
/// not have the slot (any more), and the lease may be where that has gone.
bool is_of_old_slot(const Place& place, const Bytes& result);

/// Whether this is a command to be executed once that was not, because the slot has left the group
/// of its session, as this node knows.
bool has_left_session(const Place& place, const Bytes& result, const ServedGroups& groups);

}  // namespace leasehold::server
