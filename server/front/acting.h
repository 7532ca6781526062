// Commands about leases say whose they are.
#pragma once

#include <leasehold/base/bytes.h>
#include <leasehold/base/result.h>
#include <leasehold/server/users/rights.h>

namespace leasehold::server {

/// Whether the leases that this user takes are its own. Those of the default user that may do
/// everything are everybody's.
bool acts_for_itself(const Rights& rights);

/// The command, an encoded one, in the name of the user if it is about leases of clients; else as
/// it is. Errors: as kv::encode_command().
Result<Bytes> in_name_of(const Rights& rights, Bytes command);

}  // namespace leasehold::server
