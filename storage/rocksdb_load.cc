#include <leasehold/storage/rocksdb_load.h>

#include <rocksdb/cache.h>
#include <rocksdb/table.h>

#include <utility>

namespace leasehold::storage {
namespace {

constexpr std::size_t kMemtableBytes = std::size_t{4} << 20U;
constexpr std::size_t kCacheBytes = std::size_t{2} << 20U;
constexpr std::size_t kInfoLogBytes = std::size_t{1} << 20U;

Error corrupted(const std::string& message) {
  return {ErrorCode::corrupted, message};
}

/// Decodes the record under `key`, if there is one.
template <class Record>
Result<std::optional<Record>> load_decoded(rocksdb::DB& db, const std::string& key,
                                           Result<Record> (*decode)(std::string_view)) {
  const auto bytes = load_record(db, key);
  if (!bytes) return bytes.error();
  if (!bytes.value()) return std::optional<Record>();
  auto record = decode(*bytes.value());
  if (!record) return record.error();
  return std::optional<Record>(std::move(record).value());
}

/// Takes the entries one by one and keeps the shape.
class ShapeBuilder {
 public:
  ShapeBuilder(LoadedLog& log, raft::LogId base) : log_(log), last_(base) {}

  raft::LogId last() const { return last_; }

  Result<void> add(raft::Index index, std::string_view record) {
    if (index != last_.index.next()) {
      return corrupted("entry " + std::to_string(last_.index.next().value()) + " is missing");
    }
    const auto head = decode_entry_head(record);
    if (!head) return head.error();
    const raft::Term term = head.value().term;
    if (head.value().previous_term != last_.term || term < last_.term || term == raft::Term(0)) {
      return corrupted("entry " + std::to_string(index.value()) +
                       " does not follow from the one before");
    }
    // A run of the base's own term begins anew: the runs cover what the log holds.
    if (log_.runs.empty() || log_.runs.back().term != term) {
      log_.runs.push_back(raft::TermRun{term, index});
    }
    if (head.value().kind == raft::EntryKind::membership) {
      auto membership = raft::decode_membership(record.substr(kEntryHeadBytes));
      if (!membership) {
        return Error{membership.error().code == ErrorCode::unsupported_format
                         ? ErrorCode::unsupported_format
                         : ErrorCode::corrupted,
                     "entry " + std::to_string(index.value()) + ": " + membership.error().message};
      }
      log_.memberships.push_back(raft::MembershipAt{index, std::move(membership).value()});
    }
    last_ = {term, index};
    return {};
  }

 private:
  LoadedLog& log_;
  raft::LogId last_;
};

std::string_view view(const rocksdb::Slice& slice) {
  return {slice.data(), slice.size()};
}

Result<void> load_entries(rocksdb::DB& db, raft::GroupId group, LoadedLog& log) {
  ShapeBuilder shape(log, log.base ? log.base->base : raft::LogId{});
  const std::string begin = record_key(group, RecordKind::entry);
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  options.readahead_size = std::size_t{1} << 20U;
  const std::unique_ptr<rocksdb::Iterator> at(db.NewIterator(options));
  for (at->Seek(begin); at->Valid() && at->key().starts_with(begin); at->Next()) {
    const auto index = decode_entry_key(group, view(at->key()));
    if (!index) return index.error();
    if (auto added = shape.add(index.value(), view(at->value())); !added) return added;
  }
  if (!at->status().ok()) return status_error("cannot read the entries", at->status());
  if (shape.last() == log.state.last) return {};
  return corrupted("the log ends at entry " + std::to_string(shape.last().index.value()) +
                   " of term " + std::to_string(shape.last().term.value()) + ", but entry " +
                   std::to_string(log.state.last.index.value()) + " of term " +
                   std::to_string(log.state.last.term.value()) + " was written");
}

}  // namespace

rocksdb::Options log_database_options(bool create) {
  rocksdb::Options options;
  options.create_if_missing = create;
  // rocksdb_wal.cc has checked the files and cut a torn end off: whatever is still wrong is damage.
  options.wal_recovery_mode = rocksdb::WALRecoveryMode::kAbsoluteConsistency;
  options.paranoid_checks = true;
  // Never retried: after a failed write nobody knows what the kernel still holds.
  options.max_bgerror_resume_count = 0;

  options.write_buffer_size = kMemtableBytes;
  options.max_write_buffer_number = 2;
  options.max_background_jobs = 2;
  options.compression = rocksdb::kNoCompression;
  // There is one writer.
  options.allow_concurrent_memtable_write = false;
  options.enable_write_thread_adaptive_yield = false;

  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(kCacheBytes);
  table.cache_index_and_filter_blocks = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.max_open_files = 256;

  options.info_log_level = rocksdb::InfoLogLevel::WARN_LEVEL;
  options.max_log_file_size = kInfoLogBytes;
  options.keep_log_file_num = 2;
  options.stats_dump_period_sec = 0;
  options.stats_persist_period_sec = 0;
  return options;
}

Error status_error(const std::string& what, const rocksdb::Status& status) {
  const std::string message = what + ": " + status.ToString();
  if (status.IsCorruption() || status.IsInvalidArgument() || status.IsNotFound() ||
      status.IsPathNotFound()) {
    return {ErrorCode::corrupted, message};
  }
  if (status.IsIOError() && message.find("LOCK") != std::string::npos) {
    return {ErrorCode::in_use, message + ": another process has the database open, stop it"};
  }
  if (status.IsNoSpace()) return {ErrorCode::io, message + ": free some space on its disk"};
  return {ErrorCode::io, message};
}

Result<std::optional<std::string>> load_record(rocksdb::DB& db, const std::string& key) {
  std::string value;
  const rocksdb::Status status = db.Get(rocksdb::ReadOptions(), key, &value);
  if (status.IsNotFound()) return std::optional<std::string>();
  if (!status.ok()) return status_error("cannot read a record", status);
  return std::optional<std::string>(std::move(value));
}

Result<LoadedLog> load_log(rocksdb::DB& db, raft::GroupId group) {
  auto confirmed = load_decoded(db, record_key(group, RecordKind::confirmed), decode_confirmed);
  if (!confirmed) return confirmed.error();
  auto base = load_decoded(db, record_key(group, RecordKind::base), decode_base);
  if (!base) return base.error();
  const auto state = load_decoded(db, record_key(group, RecordKind::state), decode_state);
  if (!state) return state.error();

  LoadedLog log;
  log.confirmed = std::move(confirmed.value());
  log.base = std::move(base.value());
  // The two are written together when the group forms.
  if (log.base.has_value() != state.value().has_value()) {
    return corrupted(log.base ? "the state record is missing" : "the base record is missing");
  }
  if (state.value()) {
    log.state = *state.value();
  }
  if (auto loaded = load_entries(db, group, log); !loaded) return loaded.error();
  return log;
}

}  // namespace leasehold::storage
