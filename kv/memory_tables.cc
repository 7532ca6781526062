#include <leasehold/base/assert.h>
#include <leasehold/kv/memory_tables.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace leasehold::kv {

Result<void> EncodedSnapshot::read(std::uint64_t offset, char* to, std::size_t bytes) const {
  LEASEHOLD_ASSERT(offset <= bytes_.size() && bytes <= bytes_.size() - offset);
  bytes_.copy(to, bytes, offset);
  return {};
}

void put_users(std::string& out, const Users& users) {
  BigWriter to(out);
  to.u32(static_cast<std::uint32_t>(users.size()));
  const auto all = users.list();
  for (const auto& [name, user] : *all) {
    to.sized(name);
    to.u64(user->version);
    to.u64(user->created);
    to.sized(user->rules);
  }
}

Result<UserMap> take_users(BigReader& in) {
  UserMap users;
  const std::uint32_t count = in.u32();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    std::string name(in.sized());
    User user;
    user.version = in.u64();
    user.created = in.u64();
    user.rules = in.sized();
    users.insert_or_assign(std::move(name), std::make_shared<const User>(std::move(user)));
  }
  if (in.ok() && users.size() == count) return users;
  return Error{ErrorCode::corrupted, "the table of users is damaged"};
}

void put_slots(std::string& out, const SlotMap& slots) {
  BigWriter to(out);
  to.u32(static_cast<std::uint32_t>(slots.size()));
  for (const auto& [slot, record] : slots) {
    to.u32(slot);
    to.u8(static_cast<std::uint8_t>(record.phase));
    to.u64(record.epoch);
    to.u32(record.other);
    to.u64(record.move);
    to.u64(record.keys);
  }
}

Result<SlotMap> take_slots(BigReader& in) {
  SlotMap slots;
  const std::uint32_t count = in.u32();
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    const std::uint32_t slot = in.u32();
    SlotRecord record;
    record.phase = static_cast<SlotPhase>(in.u8());
    record.epoch = in.u64();
    record.other = in.u32();
    record.move = in.u64();
    record.keys = in.u64();
    if (slot_problem(slot, record) != nullptr) break;
    slots.insert_or_assign(slot, record);
  }
  if (in.ok() && slots.size() == count) return slots;
  return Error{ErrorCode::corrupted, "the table of slots is damaged"};
}

}  // namespace leasehold::kv
