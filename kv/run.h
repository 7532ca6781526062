// What each operation does to a draft. evaluate.cc makes commands of them. Not for other rooms.
//
// A result is the reply; an error reply says that nothing was done. An error is the backend's.
#pragma once

#include <leasehold/kv/draft.h>

#include <algorithm>
#include <cstddef>
#include <optional>

namespace leasehold::kv {

/// How many more leases there are when a key has its time to live.
inline std::size_t leases_for(const std::optional<Value>& old, KeyTime ttl) {
  return ttl == KeyTime(0) || grant::is_of_key(Draft::lease_of(old)) ? 0 : 1;
}

// evaluate_keys.cc
Result<Reply> run(const Set& set, Draft& draft);
Result<Reply> run(const SetSequential& set, Draft& draft);
Result<Reply> run(const Del& del, Draft& draft);
Result<Reply> run(const DelEqual& del, Draft& draft);
Result<Reply> run(const IncrBy& incr, Draft& draft);
Result<Reply> run(const Append& append, Draft& draft);
Result<Reply> run(const SetRange& range, Draft& draft);
Result<Reply> run(const GetDel& command, Draft& draft);
Result<Reply> run(const MSet& mset, Draft& draft);
Result<Reply> run(const Rename& rename, Draft& draft);

/// What is left of a key's time, or more. The node that made the command has looked before it was
/// applied, so less is left by now. If it has not seen this lease with this stamp, the key was
/// given its time after that look, or this node had not heard of it: the whole of it is left at
/// most.
inline lease::Duration most_left(const grant::LeaseTable::Lease& lease, const SeenTime& seen) {
  return seen.stamp == lease.stamp ? std::min(seen.left, lease.ttl) : lease.ttl;
}

// evaluate_strings.cc
Result<Reply> run(const IncrByFloat& incr, Draft& draft);
Result<Reply> run(const Copy& copy, Draft& draft);
Result<Reply> run(const SetBit& set, Draft& draft);

// evaluate_leases.cc
Result<Reply> run(const GrantLease& grant, Draft& draft);
Result<Reply> run(const RenewLeases& renew, Draft& draft);
Result<Reply> run(const RevokeLease& revoke, Draft& draft);
Result<Reply> run(const AttachKey& attach, Draft& draft);
Result<Reply> run(const WithNamedLease& named, Draft& draft);
Result<Reply> run(const RenewNamed& renew, Draft& draft);
Result<Reply> run(const ExpireKey& expire, Draft& draft);
Result<Reply> run(const KeyLease& query, Draft& draft);
Result<Reply> run(const LeaseInfo& query, Draft& draft);
Result<Reply> run(const LeaseList& query, Draft& draft);

}  // namespace leasehold::kv
