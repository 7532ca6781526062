// A lease in the words of a command: by its id, or by its name.
#pragma once

#include <leasehold/kv/command.h>

#include <string>
#include <string_view>
#include <utility>

namespace leasehold::server {

/// A number is an id, and every other word a name. The text of an error, or empty.
std::string parse_lease(std::string_view word, kv::LeaseRef& lease);

/// `command`, whose lease `member` tells, about that lease.
template <class Command>
kv::Operation about(const kv::LeaseRef& lease, Command command, grant::LeaseId Command::*member) {
  if (!lease.name.empty()) return kv::WithNamedLease{lease.name, std::move(command)};
  command.*member = lease.id;
  return command;
}

/// Whether it has a key, and the id of the lease for it. An id is that of another lease in each
/// group, a name is not.
bool attaches_by_id(const kv::Operation& operation);

}  // namespace leasehold::server
