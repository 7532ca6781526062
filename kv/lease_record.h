// The bytes of leases: one record, and a whole table (docs/formats/kv.md). Not for other rooms.
#pragma once

#include <leasehold/base/coding.h>
#include <leasehold/base/result.h>
#include <leasehold/grant/lease_table.h>

#include <string>
#include <string_view>

namespace leasehold::kv {

/// Everything but the id and the keys.
std::string encode_lease(const grant::LeaseTable::Lease& lease);
/// Errors: malformed, unsupported_format. Whether it fits into a table is the table's to say.
Result<grant::LeaseTable::Lease> decode_lease(grant::LeaseId id, std::string_view bytes);

/// Appends a whole table.
void put_leases(std::string& out, const grant::LeaseTable& table);
/// Takes one off the front. Errors: malformed, unsupported_format.
Result<grant::LeaseTable> take_leases(BigReader& in);

}  // namespace leasehold::kv
