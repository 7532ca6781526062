// What holds of the fields of the commands that move slots.
#include <leasehold/kv/command_limits.h>
#include <leasehold/kv/key_slot.h>

#include <algorithm>
#include <functional>

namespace leasehold::kv {
namespace {

Error wrong(const char* what) {
  return {ErrorCode::invalid_argument, what};
}

Result<void> check_groups(std::uint32_t here, std::uint32_t groups, std::uint32_t other) {
  if (groups < 2 || groups > kSlots) return wrong("there are 2 to 16384 groups that share slots");
  if (here == 0 || here > groups || other == 0 || other > groups || here == other) {
    return wrong("a move is from one group to another one of them");
  }
  return {};
}

Result<void> check_moved(const MovedKey& key) {
  if (key.ttl && (*key.ttl < grant::kLeaseTtlMin || *key.ttl > grant::kLeaseTtlMax)) {
    return wrong("a key lives for a millisecond to ten years");
  }
  if (key.ttl && !key.exists) return wrong("a key that does not exist has no end");
  if (key.token.value() > kMovedRevisionMax) return check_revision(key.token.value());
  if (!key.exists) return {};
  if (key.create_revision == 0 || key.create_revision > key.mod_revision || key.version == 0) {
    return wrong("no key has these revisions");
  }
  return check_revision(key.mod_revision);
}

/// Ascending, and each once.
template <class Things, class Less>
bool ascends(const Things& things, const Less& less) {
  return std::adjacent_find(things.begin(), things.end(), [&](const auto& a, const auto& b) {
           return !less(a, b);
         }) == things.end();
}

}  // namespace

Result<void> check_slots(const std::vector<std::uint32_t>& slots) {
  if (auto count = check_slot_count(slots.size()); !count) return count;
  if (!ascends(slots, std::less<>()) || slots.back() >= kSlots) {
    return wrong("slots are named once, in ascending order, and below 16384");
  }
  return {};
}

Result<void> check_begin(const BeginMove& begin) {
  if (auto groups = check_groups(begin.group, begin.groups, begin.to); !groups) return groups;
  return check_slots(begin.slots);
}

Result<void> check_expect(const ExpectSlots& expect) {
  if (auto count = check_slot_count(expect.slots.size()); !count) return count;
  if (auto groups = check_groups(expect.group, expect.groups, expect.from); !groups) return groups;
  const auto less = [](const ExpectedSlot& a, const ExpectedSlot& b) { return a.slot < b.slot; };
  if (!ascends(expect.slots, less) || expect.slots.back().slot >= kSlots) {
    return wrong("slots are named once, in ascending order, and below 16384");
  }
  for (const ExpectedSlot& one : expect.slots) {
    if (one.epoch == 0 || one.epoch > kMovedRevisionMax) return wrong("a slot moves with an epoch");
  }
  if (expect.move == 0) return wrong("a move has a number");
  return {};
}

Result<void> check_import(const ImportKeys& import) {
  const auto less = [](const MovedKey& a, const MovedKey& b) { return a.key < b.key; };
  if (!ascends(import.keys, less)) return wrong("keys are named once, in ascending order");
  for (const MovedKey& key : import.keys) {
    if (auto checked = check_moved(key); !checked) return checked;
  }
  return {};
}

Result<void> check_ascending(const std::vector<std::string_view>& keys) {
  if (ascends(keys, std::less<>())) return {};
  return wrong("keys are named once, in ascending order");
}

}  // namespace leasehold::kv
