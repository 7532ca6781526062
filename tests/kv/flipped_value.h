// A bit that has flipped in a stored value, where no checksum sees it.
#pragma once

#include <leasehold/kv/rocksdb/rocksdb_database.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/kv/rocksdb/rocksdb_rows.h>

#include <rocksdb/db.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace leasehold::kv::testing {

/// The live database of the store at `dir`, which nobody has open; null: it cannot be opened.
inline std::unique_ptr<rocksdb::DB> open_raw(const std::string& dir) {
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    if (entry.path().filename().string().rfind("db-", 0) == 0) path = entry.path().string();
  }
  rocksdb::DB* opened = nullptr;
  const auto status = rocksdb::DB::Open(database_options(rocksdb::Env::Default()), path, &opened);
  return std::unique_ptr<rocksdb::DB>(status.ok() ? opened : nullptr);
}

/// Flips the lowest bit of the last byte of a key's value. RocksDB writes the record with a
/// checksum that fits. False: there is no such key.
inline bool flip_bit(const std::string& dir, std::string_view key) {
  const auto db = open_raw(dir);
  std::string value;
  if (!db || !db->Get(rocksdb::ReadOptions(), data_key(key), &value).ok()) return false;
  value.back() = static_cast<char>(value.back() ^ 1);
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  return db->Put(unlogged, data_key(key), value).ok() && db->Flush(rocksdb::FlushOptions()).ok() &&
         db->Close().ok();
}

/// Leaves the store at `dir` as a build that knows no sums would.
inline bool forget_sum(const std::string& dir) {
  const auto db = open_raw(dir);
  rocksdb::WriteOptions unlogged;
  unlogged.disableWAL = true;
  return db && db->Delete(unlogged, std::string(kSumKey)).ok() &&
         db->Flush(rocksdb::FlushOptions()).ok() && db->Close().ok();
}

}  // namespace leasehold::kv::testing
