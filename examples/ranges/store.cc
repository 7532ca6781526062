#include "store.h"

#include <leasehold/node/file_snapshot.h>

#include <rocksdb/options.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/write_batch.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>

using leasehold::Bytes;
using leasehold::Error;
using leasehold::ErrorCode;
using leasehold::Result;
namespace node = leasehold::node;
namespace raft = leasehold::raft;
namespace replica = leasehold::replica;

namespace {

// Keys of users stand behind "k". The index of the last entry that was applied is beside them, and
// in the same batch as its effect: nothing is applied twice, and nothing is left out.
const char* const kIndexKey = "applied";
/// In the default column family: which one has the keys.
const char* const kCurrentKey = "current";
std::string user_key(std::string_view key) {
  return "k" + std::string(key);
}

Error io(const rocksdb::Status& status) {
  return {ErrorCode::io, "RocksDB: " + status.ToString() + ": check the disk"};
}

Result<raft::Index> index_in(rocksdb::DB& db, rocksdb::ColumnFamilyHandle& keys,
                             const rocksdb::Snapshot* at = nullptr) {
  rocksdb::ReadOptions options;
  options.snapshot = at;
  std::string text;
  const rocksdb::Status found = db.Get(options, &keys, kIndexKey, &text);
  if (found.IsNotFound()) return raft::Index(0);
  if (!found.ok()) return io(found);
  return raft::Index(std::strtoull(text.c_str(), nullptr, 10));
}

/// {operation}{length of the first word: 4 bytes}{first word}{second word}
Bytes command(char operation, std::string_view first, std::string_view second) {
  const auto length = static_cast<std::uint32_t>(first.size());
  std::string bytes(1, operation);
  for (int shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<char>(length >> static_cast<unsigned>(shift) & 0xFFU));
  }
  bytes.append(first).append(second);
  return Bytes(std::move(bytes));
}

/// False: the command is not one of ours.
bool carry_out(std::string_view bytes, rocksdb::ColumnFamilyHandle& keys,
               rocksdb::WriteBatch& batch) {
  if (bytes.size() < 5) return false;
  std::uint32_t length = 0;
  for (unsigned i = 0; i < 4; ++i) {
    length |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[1 + i])) << (8 * i);
  }
  const std::string_view words = bytes.substr(5);
  if (length > words.size()) return false;
  const std::string_view first = words.substr(0, length);
  const std::string_view second = words.substr(length);
  if (bytes[0] == 'P') {
    return batch.Put(&keys, user_key(first), rocksdb::Slice(second.data(), second.size())).ok();
  }
  if (bytes[0] != 'R' || first >= second) return false;
  return batch.DeleteRange(&keys, user_key(first), user_key(second)).ok();
}

}  // namespace

Bytes put(const std::string& key, const std::string& value) {
  return command('P', key, value);
}
Bytes remove_range(const std::string& first, const std::string& end) {
  return command('R', first, end);
}

Result<std::unique_ptr<Store>> Store::open(const std::string& folder) {
  std::filesystem::create_directories(folder);
  // Of an earlier process.
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() == ".sst") std::filesystem::remove(file.path());
  }
  const std::string path = folder + "/db";
  rocksdb::DBOptions options;
  options.create_if_missing = true;
  std::vector<std::string> names;
  // It fails where there is no database yet.
  if (!rocksdb::DB::ListColumnFamilies(options, path, &names).ok()) {
    names = {rocksdb::kDefaultColumnFamilyName};
  }
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (const std::string& name : names) families.emplace_back(name, rocksdb::ColumnFamilyOptions());
  std::vector<rocksdb::ColumnFamilyHandle*> found;
  rocksdb::DB* opened = nullptr;
  if (const auto status = rocksdb::DB::Open(options, path, families, &found, &opened);
      !status.ok()) {
    return io(status);
  }
  std::unique_ptr<Store> store(new Store(folder, std::unique_ptr<rocksdb::DB>(opened)));
  if (auto ready = store->find_keys(found); !ready.ok()) return ready.error();
  return store;
}

/// What is not the current one was being made, or was about to go, when the process ended.
Result<void> Store::find_keys(const std::vector<rocksdb::ColumnFamilyHandle*>& found) {
  std::string current;
  const rocksdb::Status named = db_->Get(rocksdb::ReadOptions(), kCurrentKey, &current);
  if (!named.ok() && !named.IsNotFound()) return io(named);
  for (rocksdb::ColumnFamilyHandle* const one : found) {
    if (one->GetName() == current) {
      keys_ = Keys(one, [this](auto* handle) { db_->DestroyColumnFamilyHandle(handle); });
      continue;
    }
    if (one->GetName() != rocksdb::kDefaultColumnFamilyName) db_->DropColumnFamily(one);
    db_->DestroyColumnFamilyHandle(one);
  }
  if (!keys_) {
    const Result<Keys> made = make_keys("keys");
    if (!made.ok()) return made.error();
    if (auto done = switch_to(made.value()); !done.ok()) return done;
  }
  const Result<raft::Index> durable = index_in(*db_, *keys_);
  if (!durable.ok()) return durable.error();
  durable_ = durable.value();
  return {};
}

Result<Store::Keys> Store::make_keys(const std::string& name) {
  rocksdb::ColumnFamilyHandle* made = nullptr;
  const auto status = db_->CreateColumnFamily(rocksdb::ColumnFamilyOptions(), name, &made);
  if (!status.ok()) return io(status);
  return Keys(made, [this](auto* handle) { db_->DestroyColumnFamilyHandle(handle); });
}

/// In one durable step. Who reads the ones before goes on with them.
Result<void> Store::switch_to(const Keys& keys) {
  rocksdb::WriteOptions durably;
  durably.sync = true;
  const rocksdb::Status switched = db_->Put(durably, kCurrentKey, keys->GetName());
  if (!switched.ok()) return io(switched);
  Keys before;
  {
    const std::lock_guard lock(mutex_);
    before = std::exchange(keys_, keys);
  }
  if (before) db_->DropColumnFamily(before.get());
  return {};
}

std::vector<Bytes> Store::apply(const std::vector<replica::Command>& commands, raft::Index last) {
  const Keys at = keys();
  rocksdb::WriteBatch batch;
  std::vector<Bytes> results;
  for (const replica::Command& one : commands) {
    results.emplace_back(carry_out(one.bytes, *at, batch) ? "ok"
                                                          : "error: not a command of this store");
  }
  batch.Put(at.get(), kIndexKey, std::to_string(last.value()));
  // The log has it durably: RocksDB need not sync each batch.
  const rocksdb::Status written = db_->Write(rocksdb::WriteOptions(), &batch);
  // Going on would tear the replicas apart; the next start applies the entries again.
  if (!written.ok()) std::abort();
  return results;
}

Result<raft::Index> Store::make_durable() {
  const Result<raft::Index> applied = index_in(*db_, *keys());
  if (!applied.ok()) return applied;
  const rocksdb::Status synced = db_->SyncWAL();
  if (!synced.ok()) return io(synced);
  return applied;
}

std::vector<std::pair<std::string, std::string>> Store::range(const std::string& first,
                                                              const std::string& end,
                                                              std::size_t limit) const {
  std::vector<std::pair<std::string, std::string>> found;
  const Keys keys = this->keys();
  // An iterator sees them as they are now, whatever is applied meanwhile.
  const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(rocksdb::ReadOptions(), keys.get()));
  for (at->Seek(user_key(first)); at->Valid() && found.size() < limit; at->Next()) {
    if (at->key().compare(user_key(end)) >= 0) break;
    rocksdb::Slice key = at->key();
    key.remove_prefix(1);
    found.emplace_back(key.ToString(), at->value().ToString());
  }
  return found;
}

Result<std::shared_ptr<const replica::Snapshot>> Store::take_snapshot() {
  const std::string path = folder_ + "/snapshot-" + std::to_string(++snapshots_) + ".sst";
  const Keys keys = this->keys();
  rocksdb::ManagedSnapshot held(db_.get());
  const Result<raft::Index> last = index_in(*db_, *keys, held.snapshot());
  if (!last.ok()) return last.error();
  rocksdb::SstFileWriter table(rocksdb::EnvOptions(), db_->GetOptions());
  rocksdb::Status status = table.Open(path);
  rocksdb::ReadOptions options;
  options.snapshot = held.snapshot();
  const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(options, keys.get()));
  for (at->SeekToFirst(); at->Valid() && status.ok(); at->Next()) {
    status = table.Put(at->key(), at->value());
  }
  if (status.ok()) status = at->status();
  if (status.ok()) status = table.Finish();
  if (!status.ok()) return io(status);
  auto snapshot = node::snapshot_of_files(last.value(), {{"keys.sst", path}});
  std::filesystem::remove(path);  // it is open
  return snapshot;
}

Result<void> Store::install_snapshot(const replica::Snapshot& snapshot) {
  const std::string arrived = folder_ + "/arrived";
  std::filesystem::remove_all(arrived);
  const auto files = node::unpack_files(snapshot, arrived);
  if (!files.ok()) return files.error();
  const std::string name = "keys-" + std::to_string(snapshot.last().value());
  const Result<Keys> fresh = make_keys(name);
  if (!fresh.ok()) return fresh.error();
  rocksdb::IngestExternalFileOptions options;
  options.move_files = true;
  const rocksdb::Status taken =
      db_->IngestExternalFile(fresh.value().get(), {arrived + "/keys.sst"}, options);
  if (!taken.ok()) {
    db_->DropColumnFamily(fresh.value().get());
    return Error{ErrorCode::corrupted, "the snapshot is no table of RocksDB: " + taken.ToString()};
  }
  return switch_to(fresh.value());
}
