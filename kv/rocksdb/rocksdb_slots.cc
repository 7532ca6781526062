#include <leasehold/base/assert.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/kv/rocksdb/rocksdb_slots.h>

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>

namespace leasehold::kv {
namespace {

constexpr std::size_t kSlotBytes = 2;

std::string slot_key(std::uint32_t slot) {
  std::string key(kSlotSpace);
  key += static_cast<char>(slot >> 8U);
  key += static_cast<char>(slot & 0xffU);
  return key;
}

/// None: its numbers are out of range.
std::optional<SlotRecord> record_of(const Record& numbers) {
  if (numbers[0] > std::numeric_limits<std::uint8_t>::max() ||
      numbers[2] > std::numeric_limits<std::uint32_t>::max()) {
    return std::nullopt;
  }
  SlotRecord record;
  record.phase = static_cast<SlotPhase>(numbers[0]);
  record.epoch = numbers[1];
  record.other = static_cast<std::uint32_t>(numbers[2]);
  record.move = numbers[3];
  record.keys = numbers[4];
  return record;
}

}  // namespace

Result<SlotMap> read_slots(rocksdb::DB& db) {
  const Error damaged{ErrorCode::corrupted, "the record of a slot is damaged"};
  SlotMap slots;
  const std::unique_ptr<rocksdb::Iterator> at(db.NewIterator(rocksdb::ReadOptions()));
  const rocksdb::Slice space(kSlotSpace.data(), kSlotSpace.size());
  for (at->Seek(space); at->Valid() && at->key().starts_with(space); at->Next()) {
    const auto numbers = decode_whole_record("slot", {at->value().data(), at->value().size()}, 5);
    if (!numbers) return numbers.error();
    const auto record = record_of(numbers.value());
    if (at->key().size() != kSlotSpace.size() + kSlotBytes || !record) return damaged;
    const auto high = static_cast<unsigned char>(at->key()[kSlotSpace.size()]);
    const auto low = static_cast<unsigned char>(at->key()[kSlotSpace.size() + 1]);
    const std::uint32_t slot = std::uint32_t{high} << 8U | low;
    if (slot_problem(slot, *record) != nullptr) return damaged;
    slots.emplace(slot, *record);
  }
  if (!at->status().ok()) return status_error("cannot read the slots", at->status());
  return slots;
}

Result<std::uint64_t> arriving_keys(std::string_view record) {
  const auto numbers = decode_whole_record("slot", record, 5);
  if (!numbers) return numbers.error();
  const auto found = record_of(numbers.value());
  if (!found) return Error{ErrorCode::corrupted, "the record of a slot is damaged"};
  return found->phase == SlotPhase::arriving ? found->keys : 0;
}

void put_slots(const Slots& slots, rocksdb::WriteBatch& batch) {
  for (const std::uint32_t slot : slots.changed()) {
    const SlotRecord& record = *slots.find(slot);
    LEASEHOLD_ASSERT(batch
                         .Put(slot_key(slot),
                              encode_record({static_cast<std::uint64_t>(record.phase), record.epoch,
                                             record.other, record.move, record.keys}))
                         .ok());
  }
}

}  // namespace leasehold::kv
