// Reads of many keys of a store's database. Not for other rooms.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/store.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rocksdb {
class DB;
}  // namespace rocksdb

namespace leasehold::kv {

/// The database's key of a key of data.
std::string data_key(std::string_view key);

// As in Store. Errors: corrupted, unsupported_format, io.
Result<std::vector<std::string>> read_keys(rocksdb::DB& db, std::optional<std::string_view> after,
                                           std::size_t count);
Result<Rows> read_rows(rocksdb::DB& db, std::string_view prefix,
                       std::optional<std::string_view> after, std::size_t count, Load load);
Result<SlotRows> read_slot_rows(rocksdb::DB& db, const SlotSet& slots,
                                std::optional<std::string_view> after, Load load);

}  // namespace leasehold::kv
