// How commands name the leases that they are about. Not for other rooms.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/command.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace leasehold::kv {

inline Error limit_error(const char* what, std::uint64_t size, std::uint64_t limit) {
  return {ErrorCode::invalid_argument, std::string(what) + " of " + std::to_string(size) +
                                           " is above the limit of " + std::to_string(limit)};
}

inline Result<void> check_leases(std::size_t count) {
  if (count == 0) return Error{ErrorCode::invalid_argument, "no lease was given"};
  if (count <= kCommandLeasesMax) return {};
  return limit_error("the number of leases", count, kCommandLeasesMax);
}

inline Result<void> check_name(std::string_view name) {
  if (name.empty()) return Error{ErrorCode::invalid_argument, "a lease's name is empty"};
  if (name.size() <= grant::kLeaseNameBytesMax) return {};
  return limit_error("a lease's name in bytes", name.size(), grant::kLeaseNameBytesMax);
}

inline Result<void> check_ref(const LeaseRef& ref) {
  if (ref.id == grant::LeaseId(0)) return check_name(ref.name);
  if (ref.name.empty()) return {};
  return Error{ErrorCode::invalid_argument, "a lease has an id or a name, not both"};
}

/// The field of a command that holds its lease.
inline grant::LeaseId& lease_of(Set& set) {
  return set.lease;
}
inline grant::LeaseId& lease_of(SetSequential& set) {
  return set.lease;
}
inline grant::LeaseId& lease_of(RevokeLease& revoke) {
  return revoke.id;
}
inline grant::LeaseId& lease_of(AttachKey& attach) {
  return attach.lease;
}

inline Result<void> check_named(const WithNamedLease& named) {
  if (auto checked = check_name(named.name); !checked) return checked;
  auto what = named.what;
  const auto id = std::visit([](auto& command) { return lease_of(command); }, what);
  const auto* set = std::get_if<Set>(&what);
  if (id == grant::LeaseId(0) && (set == nullptr || (!set->keep_lease && !set->ttl))) return {};
  return Error{ErrorCode::invalid_argument, "a command names one lease, by its name or otherwise"};
}

}  // namespace leasehold::kv
