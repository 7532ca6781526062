// The answers of queries, for a reader's view and for a transaction alike.
#pragma once

#include <leasehold/kv/command.h>
#include <leasehold/kv/store.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace leasehold::kv {

/// The values of a query's keys, in the order of the keys, at one instant.
using Found = std::vector<std::optional<Value>>;

/// The keys of a query.
std::vector<std::string_view> keys_of(const Operation& query);
/// The reply, from what was found. `size`: the number of keys in the store, at that instant.
Reply answer(const Operation& query, const Found& found, std::uint64_t size);

/// What answer() takes, in kStepsMax.
std::uint64_t steps_of(const Operation& query, const Found& found);
/// The reply to what would take more.
ErrorReply too_many_steps();

/// The replies about leases.
Reply answer(const FoundLease& found);

/// Leases of keys are left out.
Reply answer(const std::vector<grant::LeaseTable::Lease>& leases);
/// Whether LeaseInfo shows the lease that it has found.
bool shown(const grant::LeaseTable::Lease& lease, const LeaseInfo& query);
/// Whether KeyLease has found the requested value.
bool has_value(const std::optional<Value>& found, const KeyLease& query);
/// The result of KeyLease for a key that exists; null: it has no lease.
Reply key_lease(const grant::LeaseTable::Lease* lease);

/// Whether an operation is a query.
bool is_query(const Operation& operation);
/// Answers a query from a store. `loaded`, if it is not null: the bytes of values that were read
/// for this, also those that are not in the reply. Errors: those of Store::get().
Result<Reply> query(const Operation& query, const Store& store, std::size_t* loaded = nullptr);

}  // namespace leasehold::kv
