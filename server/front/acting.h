// Commands about leases say whose they are.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/server/users/rights.h>

#include <string>
#include <string_view>

namespace leasehold::server {

/// Whether the leases that this user takes are its own. Those of the default user that may do
/// everything are everybody's.
bool acts_for_itself(const Rights& rights);

/// Whose the leases and sessions are that the user takes in a group. The first group has the users,
/// and so knows which of those with that name it is; in another one the owner's name says it, too.
std::string owner_in(const Rights& rights, bool has_users);
/// The user of such a name; of one that is too long to be an owner with all of that, its beginning
/// and a hash.
std::string_view user_of(std::string_view owner, bool has_users);

/// The command, an encoded one, in the name of the user if it is about leases of clients; else as
/// it is. Errors: as kv::encode_command().
Result<Bytes> in_name_of(const Rights& rights, bool has_users, Bytes command);

}  // namespace leasehold::server
