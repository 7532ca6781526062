#include <leasehold/kv/give_way.h>
#include <leasehold/kv/rocksdb/rocksdb_database.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/kv/rocksdb/rocksdb_rows.h>

#include <rocksdb/db.h>
#include <rocksdb/snapshot.h>

#include <memory>
#include <utility>

namespace leasehold::kv {

std::string data_key(std::string_view key) {
  std::string out;
  out.reserve(1 + key.size());
  out.push_back(kDataSpace);
  return out.append(key);
}

Result<std::vector<std::string>> read_keys(rocksdb::DB& db, std::optional<std::string_view> after,
                                           std::size_t count) {
  // An iterator sees one instant. The data is the last space of the database.
  const std::unique_ptr<rocksdb::Iterator> at(db.NewIterator(rocksdb::ReadOptions()));
  const std::string from = data_key(after.value_or(std::string_view()));
  at->Seek(from);
  if (after && at->Valid() && at->key() == rocksdb::Slice(from)) at->Next();
  std::vector<std::string> out;
  GiveWay way;
  for (; out.size() < count && at->Valid(); at->Next()) {
    out.emplace_back(at->key().data() + 1, at->key().size() - 1);
    way.step();
  }
  if (!at->status().ok()) return status_error("a read failed", at->status());
  return out;
}

Result<Rows> read_rows(rocksdb::DB& db, std::string_view prefix,
                       std::optional<std::string_view> after, std::size_t count, Load load) {
  rocksdb::ManagedSnapshot snapshot(&db);
  rocksdb::ReadOptions options;
  options.snapshot = snapshot.snapshot();
  // Every write contains the counters: those of this instant have its revision.
  const auto counters = read_counters(db, options);
  if (!counters) return counters.error();
  Rows out;
  out.revision = counters.value().revision;
  const std::unique_ptr<rocksdb::Iterator> at(db.NewIterator(options));
  const std::string begins = data_key(prefix);
  std::size_t bytes = 0;
  GiveWay way;
  at->Seek(after && *after > prefix ? data_key(*after) : begins);
  for (; at->Valid() && at->key().starts_with(begins); at->Next()) {
    const std::string_view key(at->key().data() + 1, at->key().size() - 1);
    if (after && key <= *after) continue;
    if (out.rows.size() == count || bytes > kRowsBytesMax) {
      out.more = true;
      break;
    }
    auto value = decode_value({at->value().data(), at->value().size()}, load);
    if (!value) return value.error();
    bytes += value.value().bytes.size();
    out.rows.push_back({std::string(key), std::move(value).value()});
    way.step();
  }
  if (!at->status().ok()) return status_error("a read failed", at->status());
  return out;
}

Result<SlotRows> read_slot_rows(rocksdb::DB& db, const SlotSet& slots,
                                std::optional<std::string_view> after, Load load) {
  const std::unique_ptr<rocksdb::Iterator> at(db.NewIterator(rocksdb::ReadOptions()));
  const std::string from = data_key(after.value_or(std::string_view()));
  at->Seek(from);
  if (after && at->Valid() && at->key() == rocksdb::Slice(from)) at->Next();
  SlotRows out;
  std::size_t bytes = 0;
  GiveWay way;
  for (std::size_t seen = 1; at->Valid(); at->Next(), ++seen) {
    const std::string_view key(at->key().data() + 1, at->key().size() - 1);
    if (slots.test(slot_of(key))) {
      auto value = decode_value({at->value().data(), at->value().size()}, load);
      if (!value) return value.error();
      bytes += key.size() + value.value().bytes.size();
      out.rows.push_back({std::string(key), std::move(value).value()});
    }
    if (seen == kSlotKeysSeenMax || bytes > kRowsBytesMax) {
      out.reached = std::string(key);
      break;
    }
    way.step();
  }
  if (!at->status().ok()) return status_error("a read failed", at->status());
  return out;
}

}  // namespace leasehold::kv
