// Renewals without the log, at the node that leads.
#pragma once

#include <leasehold/grant/lease_table.h>
#include <leasehold/kv/lease_keeper.h>
#include <leasehold/kv/store.h>
#include <leasehold/node/group.h>

#include <optional>
#include <vector>

namespace leasehold::kv {

/// Under the leader lease, as a lease read: the caller has the request first, then this function
/// reads the lease, then the clock. None: use the log, by RenewLeases.
std::optional<kv::LeaseKeeper::Renewal> renew_under_lease(const node::Group& node,
                                                          kv::LeaseKeeper& keeper,
                                                          const std::vector<grant::LeaseId>& ids);
/// The same, for leases that may be named. None also when the store failed.
std::optional<kv::LeaseKeeper::Renewal> renew_under_lease(const node::Group& node,
                                                          kv::LeaseKeeper& keeper,
                                                          const kv::Store& store,
                                                          const std::vector<kv::LeaseRef>& leases);

}  // namespace leasehold::kv
