// The tables in a snapshot of a store in memory (memory_store.cc). Not for other rooms.
#pragma once

#include <leasehold/base/coding.h>
#include <leasehold/base/result.h>
#include <leasehold/kv/slots.h>
#include <leasehold/kv/users.h>

#include <string>

namespace leasehold::kv {

void put_users(std::string& out, const Users& users);
/// Errors: corrupted.
Result<UserMap> take_users(BigReader& in);

void put_slots(std::string& out, const SlotMap& slots);
/// Errors: corrupted.
Result<SlotMap> take_slots(BigReader& in);

}  // namespace leasehold::kv
