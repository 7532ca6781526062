// One column family, no write-ahead log. Keys and records, numbers big-endian:
//
//   {0}{1}             identity: {format u8}{cluster u64}{node u64}
//   {0}{2}             counters: {format u8}{applied index u64}{revision u64}{keys u64}
//   {1}{key}           value:    {format u8}{create revision u64}{mod revision u64}{version
//   u64}{bytes}
//
// The counters are part of every write, so whatever was flushed is a state that the log once led
// to: a write is atomic in the memtable, and a flush takes whole memtables in their order.
#include <leasehold/base/assert.h>
#include <leasehold/kv/evaluate.h>
#include <leasehold/kv/rocksdb_store.h>

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/snapshot.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

namespace leasehold::kv {
namespace {

constexpr std::uint8_t kFormat = 1;
constexpr std::string_view kIdentityKey("\0\1", 2);
constexpr std::string_view kCountersKey("\0\2", 2);
constexpr char kDataSpace = 1;

constexpr std::size_t kMemtableBytes = std::size_t{4} << 20U;
constexpr std::size_t kCacheBytes = std::size_t{4} << 20U;
constexpr std::size_t kInfoLogBytes = std::size_t{1} << 20U;
constexpr double kFilterBitsPerKey = 10;
/// Values that one apply() collects before it writes them, give or take one command.
constexpr std::size_t kChangedBytesMax = std::size_t{16} << 20U;

using Record = std::vector<std::uint64_t>;

/// {format u8} and numbers.
std::string encode(std::initializer_list<std::uint64_t> numbers) {
  std::string out(1, static_cast<char>(kFormat));
  for (const std::uint64_t number : numbers) {
    for (int shift = 56; shift >= 0; shift -= 8) out.push_back(static_cast<char>(number >> shift));
  }
  return out;
}

/// The reverse, for `count` numbers; whatever follows them stays in `bytes`.
Result<Record> decode(std::string_view what, std::string_view& bytes, std::size_t count) {
  const std::string name = "the " + std::string(what) + " record ";
  if (bytes.empty()) return Error{ErrorCode::corrupted, name + "is empty"};
  const auto format = static_cast<std::uint8_t>(bytes[0]);
  if (format != kFormat) {
    return Error{ErrorCode::unsupported_format,
                 name + "has format " + std::to_string(format) + ", this build knows " +
                     std::to_string(kFormat) + ": use a newer build"};
  }
  if (bytes.size() < 1 + 8 * count) return Error{ErrorCode::corrupted, name + "is damaged"};
  Record numbers(count, 0);
  for (std::size_t i = 0; i < 8 * count; ++i) {
    numbers[i / 8] = (numbers[i / 8] << 8U) | static_cast<unsigned char>(bytes[1 + i]);
  }
  bytes.remove_prefix(1 + 8 * count);
  return numbers;
}

/// As decode(), for a record that ends there.
Result<Record> decode_whole(std::string_view what, std::string_view bytes, std::size_t count) {
  auto numbers = decode(what, bytes, count);
  if (numbers && !bytes.empty()) {
    return Error{ErrorCode::corrupted, "the " + std::string(what) + " record is damaged"};
  }
  return numbers;
}

Result<Value> decode_value(std::string_view bytes) {
  const auto numbers = decode("value", bytes, 3);
  if (!numbers) return numbers.error();
  const Record& n = numbers.value();
  return Value{Bytes(bytes), n[0], n[1], n[2]};
}

std::string data_key(std::string_view key) {
  std::string out;
  out.reserve(1 + key.size());
  out.push_back(kDataSpace);
  return out.append(key);
}

rocksdb::Options database_options() {
  rocksdb::Options options;
  options.paranoid_checks = true;
  options.max_bgerror_resume_count = 0;  // a disk that failed is not tried again

  options.write_buffer_size = kMemtableBytes;
  options.max_write_buffer_number = 2;
  options.max_background_jobs = 2;
  options.compression = rocksdb::kNoCompression;
  options.allow_concurrent_memtable_write = false;  // there is one writer
  options.enable_write_thread_adaptive_yield = false;
  options.max_open_files = 256;

  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(kCacheBytes);
  table.cache_index_and_filter_blocks = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kFilterBitsPerKey));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));

  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  options.max_log_file_size = kInfoLogBytes;
  options.keep_log_file_num = 2;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  return options;
}

Error status_error(const std::string& what, const rocksdb::Status& status) {
  const std::string message = what + ": " + status.ToString();
  if (status.IsIOError() && message.find("LOCK") != std::string::npos) {
    return {ErrorCode::in_use, message + ": another process has it open, stop it"};
  }
  if (status.IsNoSpace()) return {ErrorCode::io, message + ": free some space on its disk"};
  if (status.IsIOError() && !status.IsPathNotFound()) return {ErrorCode::io, message};
  return {ErrorCode::corrupted, message};
}

Error in_folder(const std::string& dir, const Error& error) {
  std::string message = "the store in " + dir + ": " + error.message;
  if (error.code == ErrorCode::corrupted) {
    message +=
        ". It cannot be trusted: wipe this folder, and the store is made again from the log while "
        "the log still reaches back to its beginning";
  }
  return {error.code, std::move(message)};
}

/// Whether the folder holds nothing that a database ever stood on.
Result<bool> may_create(const std::string& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  std::filesystem::directory_iterator at(dir, error);
  bool current = false;
  bool data = false;
  bool foreign = false;
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const std::string name = at->path().filename().string();
    const std::string extension = at->path().extension().string();
    current = current || name == "CURRENT";
    data = data || extension == ".sst";
    const bool ours = name == "LOCK" || name == "IDENTITY" || name.rfind("LOG", 0) == 0 ||
                      name.rfind("MANIFEST-", 0) == 0 || name.rfind("OPTIONS-", 0) == 0 ||
                      extension == ".log" || extension == ".dbtmp";
    foreign = foreign || !ours;
  }
  if (error) {
    return Error{ErrorCode::io, "cannot use the folder: " + error.message() +
                                    ": check that its parent exists and is writable"};
  }
  if (current) return false;
  if (data) return Error{ErrorCode::corrupted, "the file CURRENT is missing"};
  if (foreign) {
    return Error{ErrorCode::corrupted, "the folder is not empty and holds no database"};
  }
  return true;
}

}  // namespace

class RocksdbStore::Impl final : private Backend {
 public:
  explicit Impl(Options options) : options_(std::move(options)) {}
  ~Impl() override;

  Result<void> open();
  std::vector<Bytes> apply(const std::vector<node::Command>& commands, raft::Index last);
  Result<std::optional<Value>> get(std::string_view key) const;
  Result<std::vector<std::optional<Value>>> get_all(const std::vector<std::string_view>& keys,
                                                    Load load) const;
  Result<std::vector<std::string>> keys_after(std::optional<std::string_view> after,
                                              std::size_t count) const;
  Result<bool> exists(std::string_view key) const;
  Result<void> flush();

  std::atomic<std::uint64_t> durable_{0};
  std::atomic<std::uint64_t> applied_{0};
  std::atomic<std::uint64_t> revision_{0};
  std::atomic<std::uint64_t> keys_{0};

 private:
  Result<std::optional<Value>> load(std::string_view key) override;
  void put(std::string_view key, Value value) override;
  void erase(std::string_view key) override;

  Result<std::optional<Value>> get(std::string_view key, const rocksdb::ReadOptions& options) const;
  Result<void> check_identity();
  Result<void> load_counters();
  Result<void> write_changes(const Counters& counters, raft::Index last);
  Error fail(const Error& error) const;
  std::optional<Error> failure() const;

  const Options options_;
  std::unique_ptr<rocksdb::DB> db_;
  /// What the commands of one apply() have changed so far; none: erased. apply()'s thread.
  std::map<std::string, std::optional<Value>, std::less<>> changes_;
  std::size_t changed_bytes_ = 0;  ///< of the values in changes_

  // The first failure. A reader checks the flag first, so that the mutex is never touched while all
  // is well.
  mutable std::atomic<bool> failed_{false};
  mutable std::mutex failure_mutex_;
  mutable std::optional<Error> failure_;
};

Result<void> RocksdbStore::Impl::open() {
  if (options_.dir.empty() || options_.id == raft::kNobody) {
    return Error{ErrorCode::invalid_argument, "the store needs a folder and a node id above 0"};
  }
  const auto create = may_create(options_.dir);
  if (!create) return create.error();
  rocksdb::Options options = database_options();
  options.create_if_missing = create.value();
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, options_.dir, &db);
  if (!status.ok()) return status_error("RocksDB cannot open it", status);
  db_.reset(db);
  if (auto checked = check_identity(); !checked) return checked;
  return load_counters();
}

Result<void> RocksdbStore::Impl::check_identity() {
  std::string bytes;
  const std::string own = encode({options_.cluster_id, options_.id.value()});
  rocksdb::Status status = db_->Get(rocksdb::ReadOptions(), std::string(kIdentityKey), &bytes);
  if (status.IsNotFound()) {
    std::string counters;
    if (db_->Get(rocksdb::ReadOptions(), std::string(kCountersKey), &counters).ok()) {
      return Error{ErrorCode::corrupted, "the identity record is missing"};
    }
    // Flushed at once: a database with data has an identity.
    rocksdb::WriteOptions unlogged;
    unlogged.disableWAL = true;
    status = db_->Put(unlogged, std::string(kIdentityKey), own);
    if (status.ok()) status = db_->Flush(rocksdb::FlushOptions());
    if (!status.ok()) return status_error("cannot write the identity", status);
    return {};
  }
  if (!status.ok()) return status_error("cannot read the identity", status);
  const auto found = decode_whole("identity", bytes, 2);
  if (!found) return found.error();
  if (bytes == own) return {};
  const auto name = [](std::uint64_t cluster, std::uint64_t node) {
    std::string hex(16, '0');
    for (std::size_t i = hex.size(); i-- > 0; cluster >>= 4U) {
      hex[i] = "0123456789abcdef"[cluster & 0xfU];
    }
    return "node " + std::to_string(node) + " of cluster " + hex;
  };
  return Error{ErrorCode::wrong_cluster,
               "it belongs to " + name(found.value()[0], found.value()[1]) + ", but this is " +
                   name(options_.cluster_id, options_.id.value()) +
                   ": give this node its own folder, or start it with the id, the cluster name and "
                   "the initial peers it was made with"};
}

Result<void> RocksdbStore::Impl::load_counters() {
  std::string bytes;
  const rocksdb::Status status =
      db_->Get(rocksdb::ReadOptions(), std::string(kCountersKey), &bytes);
  if (status.IsNotFound()) return {};
  if (!status.ok()) return status_error("cannot read the counters", status);
  const auto found = decode_whole("counters", bytes, 3);
  if (!found) return found.error();
  durable_ = found.value()[0];
  applied_ = found.value()[0];
  revision_ = found.value()[1];
  keys_ = found.value()[2];
  return {};
}

RocksdbStore::Impl::~Impl() {
  if (!db_) return;
  // What cannot be flushed is applied again from the log.
  if (!failed_.load()) static_cast<void>(flush());
  static_cast<void>(db_->Close());
}

Result<void> RocksdbStore::Impl::flush() {
  const std::uint64_t applied = applied_.load();
  if (applied == durable_.load()) return {};
  const rocksdb::Status status = db_->Flush(rocksdb::FlushOptions());
  if (!status.ok()) return fail(status_error("a flush failed", status));
  // Another flush may have gone further meanwhile.
  std::uint64_t durable = durable_.load();
  while (durable < applied && !durable_.compare_exchange_weak(durable, applied)) {
  }
  return {};
}

/// Remembers the first failure and tells the owner; returns what to answer.
Error RocksdbStore::Impl::fail(const Error& error) const {
  Error named = in_folder(options_.dir, error);
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_) return *failure_;
    failure_ = named;
    failed_.store(true, std::memory_order_release);
  }
  if (options_.on_failure) options_.on_failure(named);
  return named;
}

std::optional<Error> RocksdbStore::Impl::failure() const {
  if (!failed_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(failure_mutex_);
  return failure_;
}

// The evaluation's view: this apply()'s own changes, then the database.

Result<std::optional<Value>> RocksdbStore::Impl::load(std::string_view key) {
  const auto changed = changes_.find(key);
  if (changed != changes_.end()) return changed->second;
  return get(key);
}

void RocksdbStore::Impl::put(std::string_view key, Value value) {
  changed_bytes_ += value.bytes.size();
  changes_.insert_or_assign(std::string(key), std::move(value));
}

void RocksdbStore::Impl::erase(std::string_view key) {
  changes_.insert_or_assign(std::string(key), std::nullopt);
}

std::vector<Bytes> RocksdbStore::Impl::apply(const std::vector<node::Command>& commands,
                                             raft::Index last) {
  raft::Index previous(applied_.load(std::memory_order_relaxed));
  LEASEHOLD_ASSERT(last > previous);
  std::vector<Bytes> replies;
  replies.reserve(commands.size());
  std::optional<Error> failed = failure();
  Counters counters{revision_.load(std::memory_order_relaxed),
                    keys_.load(std::memory_order_relaxed)};
  for (const node::Command& command : commands) {
    LEASEHOLD_ASSERT(command.id.index > previous);
    previous = command.id.index;
    if (failed) break;
    auto reply = evaluate(command.bytes, *this, counters);
    if (reply) {
      replies.push_back(encode_reply(reply.value()));
    } else {
      failed = fail(reply.error());
    }
    // A short command may write a long value (SetRange): what waits in memory is bounded.
    if (!failed && changed_bytes_ > kChangedBytesMax) {
      if (auto written = write_changes(counters, command.id.index); !written) {
        failed = fail(written.error());
      }
    }
  }
  LEASEHOLD_ASSERT(previous <= last);
  if (!failed) {
    if (auto written = write_changes(counters, last); !written) failed = fail(written.error());
  }
  if (failed) {
    changes_.clear();
    // What was written of this call is unknown, so none of its results is to be believed.
    replies.assign(commands.size(),
                   encode_reply(ErrorReply{ErrorKind::store_failed, failed->message}));
    return replies;
  }
  revision_.store(counters.revision, std::memory_order_release);
  keys_.store(counters.keys, std::memory_order_release);
  applied_.store(last.value(), std::memory_order_release);
  return replies;
}

Result<void> RocksdbStore::Impl::write_changes(const Counters& counters, raft::Index last) {
  rocksdb::WriteBatch batch;
  // A batch in memory without limits takes every record.
  for (const auto& [key, value] : changes_) {
    if (!value) {
      LEASEHOLD_ASSERT(batch.Delete(data_key(key)).ok());
      continue;
    }
    const std::string whole_key = data_key(key);
    const std::string head = encode({value->create_revision, value->mod_revision, value->version});
    const rocksdb::Slice key_part(whole_key);
    const rocksdb::Slice parts[] = {head, {value->bytes.data(), value->bytes.size()}};
    LEASEHOLD_ASSERT(
        batch.Put(rocksdb::SliceParts(&key_part, 1), rocksdb::SliceParts(parts, 2)).ok());
  }
  LEASEHOLD_ASSERT(
      batch.Put(std::string(kCountersKey), encode({last.value(), counters.revision, counters.keys}))
          .ok());
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  const rocksdb::Status status = db_->Write(options, &batch);
  if (!status.ok()) return status_error("a write failed", status);
  changes_.clear();
  changed_bytes_ = 0;
  return {};
}

Result<std::optional<Value>> RocksdbStore::Impl::get(std::string_view key) const {
  return get(key, rocksdb::ReadOptions());
}

Result<std::optional<Value>> RocksdbStore::Impl::get(std::string_view key,
                                                     const rocksdb::ReadOptions& options) const {
  if (auto failed = failure()) return *failed;
  rocksdb::PinnableSlice bytes;
  const rocksdb::Status status =
      db_->Get(options, db_->DefaultColumnFamily(), data_key(key), &bytes);
  if (status.IsNotFound()) return std::optional<Value>();
  if (!status.ok()) return fail(status_error("a read failed", status));
  auto value = decode_value({bytes.data(), bytes.size()});
  if (!value) return fail(value.error());
  return std::optional<Value>(std::move(value).value());
}

Result<std::vector<std::optional<Value>>> RocksdbStore::Impl::get_all(
    const std::vector<std::string_view>& keys, Load load) const {
  rocksdb::ManagedSnapshot snapshot(db_.get());
  rocksdb::ReadOptions options;
  options.snapshot = snapshot.snapshot();
  std::vector<std::optional<Value>> out;
  out.reserve(keys.size());
  std::size_t bytes = 0;
  for (const std::string_view key : keys) {
    auto value = get(key, options);
    if (!value) return value.error();
    out.push_back(std::move(value).value());
    if (!out.back()) continue;
    if (load == Load::revisions) out.back()->bytes = Bytes();
    bytes += out.back()->bytes.size();
    if (bytes > kReplyBytesMax) return values_too_large();
  }
  return out;
}

Result<std::vector<std::string>> RocksdbStore::Impl::keys_after(
    std::optional<std::string_view> after, std::size_t count) const {
  if (auto failed = failure()) return *failed;
  // An iterator sees one instant. The data is the last space of the database.
  const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator(rocksdb::ReadOptions()));
  const std::string from = data_key(after.value_or(std::string_view()));
  at->Seek(from);
  if (after && at->Valid() && at->key() == rocksdb::Slice(from)) at->Next();
  std::vector<std::string> out;
  for (; out.size() < count && at->Valid(); at->Next()) {
    out.emplace_back(at->key().data() + 1, at->key().size() - 1);
  }
  if (!at->status().ok()) return fail(status_error("a read failed", at->status()));
  return out;
}

Result<bool> RocksdbStore::Impl::exists(std::string_view key) const {
  if (auto failed = failure()) return *failed;
  rocksdb::PinnableSlice bytes;
  const rocksdb::Status status =
      db_->Get(rocksdb::ReadOptions(), db_->DefaultColumnFamily(), data_key(key), &bytes);
  if (status.ok() || status.IsNotFound()) return status.ok();
  return fail(status_error("a read failed", status));
}

Result<std::unique_ptr<RocksdbStore>> RocksdbStore::open(Options options) {
  const std::string dir = options.dir;
  auto impl = std::make_unique<Impl>(std::move(options));
  if (auto opened = impl->open(); !opened) return in_folder(dir, opened.error());
  return std::unique_ptr<RocksdbStore>(new RocksdbStore(std::move(impl)));
}

RocksdbStore::RocksdbStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RocksdbStore::~RocksdbStore() = default;

raft::Index RocksdbStore::durable_index() const {
  return raft::Index(impl_->durable_.load());
}
std::vector<Bytes> RocksdbStore::apply(const std::vector<node::Command>& commands,
                                       raft::Index last) {
  return impl_->apply(commands, last);
}
Result<std::optional<Value>> RocksdbStore::get(std::string_view key) const {
  return impl_->get(key);
}
Result<std::vector<std::optional<Value>>> RocksdbStore::get_all(
    const std::vector<std::string_view>& keys, Load load) const {
  return impl_->get_all(keys, load);
}
Result<std::vector<std::string>> RocksdbStore::keys_after(std::optional<std::string_view> after,
                                                          std::size_t count) const {
  return impl_->keys_after(after, count);
}
Result<bool> RocksdbStore::exists(std::string_view key) const {
  return impl_->exists(key);
}
std::uint64_t RocksdbStore::size() const {
  return impl_->keys_.load(std::memory_order_acquire);
}
std::uint64_t RocksdbStore::revision() const {
  return impl_->revision_.load(std::memory_order_acquire);
}
raft::Index RocksdbStore::applied_index() const {
  return raft::Index(impl_->applied_.load(std::memory_order_acquire));
}
Result<void> RocksdbStore::flush() {
  return impl_->flush();
}

}  // namespace leasehold::kv
