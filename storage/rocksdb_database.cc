// Opening is a row of steps, each of which a crash may interrupt:
//
//   1. lock the folder; read its mark, or make one with a new uuid; compare it with the caller
//   2. check the write-ahead files against the mark, cut a torn end off
//   3. write the mark with the next incarnation
//   4. open RocksDB, which flushes what the write-ahead files held and begins a new one
//   5. check the identity record, load the log
//   6. write all small records again, so that the new write-ahead file alone tells how much must be
//      there, whatever of the older files is lost
//   7. write the mark with the number of that file
#include <leasehold/storage/rocksdb_database.h>
#include <leasehold/storage/rocksdb_wal.h>

#include <rocksdb/listener.h>
#include <sys/random.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace leasehold::storage {
namespace {

Result<raft::Uuid> new_uuid() {
  raft::Uuid uuid;
  static_assert(sizeof(uuid) == 16);
  for (;;) {
    const ssize_t count = ::getrandom(&uuid, sizeof(uuid), 0);
    if (count == static_cast<ssize_t>(sizeof(uuid))) return uuid;
    if (count < 0 && errno != EINTR) {
      return Error{ErrorCode::io, "cannot get random bytes from the kernel: " +
                                      std::generic_category().message(errno)};
    }
  }
}

std::string name_of(std::uint64_t cluster_id, raft::NodeId id) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex(16, '0');
  for (std::size_t i = hex.size(); i-- > 0; cluster_id >>= 4U) hex[i] = kDigits[cluster_id & 0xfU];
  return "node " + std::to_string(id.value()) + " of cluster " + hex;
}

/// Says which folder, and for damage what to do.
Error in_folder(const std::string& dir, const Error& error) {
  std::string message = "the log in " + dir + ": " + error.message;
  if (error.code == ErrorCode::corrupted) {
    message +=
        ". This log cannot be trusted: wipe the node's data folder and let the node join again as "
        "a new member";
  }
  return {error.code, std::move(message)};
}

/// The mark of a folder that may be used by this node; a new one if the folder is blank.
Result<FolderMark> adopt(const Folder& folder, const RocksdbLogOptions& options) {
  const auto read = folder.read_mark();
  if (!read) return read.error();
  if (read.value()) {
    const FolderMark& mark = *read.value();
    if (mark.cluster_id == options.cluster_id && mark.id == options.id) return mark;
    return Error{ErrorCode::wrong_cluster,
                 "it belongs to " + name_of(mark.cluster_id, mark.id) + ", but this is " +
                     name_of(options.cluster_id, options.id) +
                     ": give this node its own folder, or start it with the id, the cluster name "
                     "and the initial peers it was made with"};
  }
  const auto blank = folder.blank();
  if (!blank) return blank.error();
  if (!blank.value()) {
    return Error{ErrorCode::corrupted,
                 "it is not empty and holds no file LEASEHOLD: it is no log, or has lost its mark"};
  }
  const auto uuid = new_uuid();
  if (!uuid) return uuid.error();
  FolderMark mark;
  mark.cluster_id = options.cluster_id;
  mark.id = options.id;
  mark.uuid = uuid.value();
  return mark;
}

Result<void> check_options(const RocksdbLogOptions& options) {
  const auto invalid = [](const char* message) {
    return Error{ErrorCode::invalid_argument, message};
  };
  if (options.dir.empty()) return invalid("the log needs a folder: give `dir`");
  if (options.id == raft::kNobody) return invalid("the node id has to be above 0");
  if (options.queue_bytes_max == 0 || options.sync_bytes_max == 0 || options.reads_max == 0) {
    return invalid("the limits of the log have to be above 0");
  }
  return {};
}

}  // namespace

/// Hears when RocksDB begins a new write-ahead file, which it does inside write(), before it puts
/// anything there and before the old one can go away.
class Database::WalWatch final : public rocksdb::EventListener {
 public:
  explicit WalWatch(Database& owner) : owner_(owner) {}

  void OnMemTableSealed(const rocksdb::MemTableInfo&) override {
    if (!armed_) return;
    if (auto marked = owner_.mark_newest_wal(); !marked) failure_ = marked.error();
  }

  // Touched by the thread that opens, writes and closes.
  bool armed_ = false;
  std::optional<Error> failure_;

 private:
  Database& owner_;
};

Database::Database(Folder folder, FolderMark mark, RocksdbLogOptions options)
    : folder_(std::move(folder)), mark_(std::move(mark)), options_(std::move(options)) {}

Result<std::unique_ptr<Database>> Database::open(const RocksdbLogOptions& options) {
  if (auto checked = check_options(options); !checked) return checked.error();
  auto folder = Folder::open(options.dir);
  if (!folder) return folder.error();
  auto mark = adopt(folder.value(), options);
  if (!mark) return in_folder(options.dir, mark.error());

  std::unique_ptr<Database> database(
      new Database(std::move(folder).value(), mark.value(), options));
  const WalExpectation expected{mark.value().wal_number, mark.value().wal_size};
  const bool create = expected.number == 0;
  auto opened = check_wals(options.dir, expected);
  if (opened) opened = database->open_database(create);
  if (opened) opened = database->check_identity(create);
  if (opened) {
    auto log = load_log(*database->db_, options.group);
    if (!log) return in_folder(options.dir, log.error());
    database->log_ = std::move(log).value();
    opened = database->begin_wal();
  }
  if (!opened) return in_folder(options.dir, opened.error());
  return database;
}

Result<void> Database::open_database(bool create) {
  mark_.incarnation = mark_.incarnation.next();
  mark_.wal_size.reset();
  if (auto written = folder_.write_mark(mark_); !written) return written;
  identity_ = {mark_.cluster_id, mark_.id, mark_.uuid, mark_.incarnation};

  rocksdb::Options options = log_database_options(create);
  watch_ = std::make_shared<WalWatch>(*this);
  options.listeners.push_back(watch_);
  rocksdb::DB* db = nullptr;
  const rocksdb::Status status = rocksdb::DB::Open(options, folder_.path(), &db);
  if (!status.ok()) return status_error("RocksDB cannot open it", status);
  db_.reset(db);
  return {};
}

Result<void> Database::check_identity(bool create) {
  const auto bytes = load_record(*db_, identity_key());
  if (!bytes) return bytes.error();
  if (!bytes.value()) {
    if (create) return {};
    return Error{ErrorCode::corrupted, "the identity record is missing"};
  }
  const auto identity = decode_identity(*bytes.value());
  if (!identity) return identity.error();
  if (identity.value() == IdentityRecord{mark_.cluster_id, mark_.id, mark_.uuid}) return {};
  return Error{ErrorCode::corrupted, "the database and the file LEASEHOLD are of different logs"};
}

Result<void> Database::begin_wal() {
  healthy_ = true;
  rocksdb::WriteBatch batch;
  const auto put = [&](const std::string& key, const std::string& value) {
    // A batch in memory without limits takes every record.
    LEASEHOLD_ASSERT(batch.Put(key, value).ok());
  };
  const raft::GroupId group = options_.group;
  put(identity_key(), encode_identity({mark_.cluster_id, mark_.id, mark_.uuid}));
  if (log_.confirmed) {
    put(record_key(group, RecordKind::confirmed), encode_confirmed(*log_.confirmed));
  }
  if (log_.base) {
    put(record_key(group, RecordKind::base), encode_base(*log_.base));
    put(record_key(group, RecordKind::state), encode_state(log_.state));
  }
  if (auto written = write(batch); !written) return written;
  auto marked = mark_newest_wal();
  watch_->armed_ = marked.ok();
  healthy_ = marked.ok();
  return marked;
}

Result<void> Database::mark_newest_wal() {
  const auto newest = newest_wal(folder_.path());
  if (!newest) return newest.error();
  if (!newest.value()) {
    return Error{ErrorCode::io, "its write-ahead file has vanished: something else deletes files"};
  }
  mark_.wal_number = newest.value()->number;
  return folder_.write_mark(mark_);
}

Result<void> Database::write(rocksdb::WriteBatch& batch) {
  LEASEHOLD_ASSERT(healthy_);
  rocksdb::WriteOptions options;
  options.sync = true;
  const rocksdb::Status status = db_->Write(options, &batch);
  if (status.ok() && !watch_->failure_) {
    syncs_.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  healthy_ = false;
  if (!status.ok()) return in_folder(path(), status_error("a write failed", status));
  return in_folder(path(), *watch_->failure_);
}

std::unique_ptr<rocksdb::Iterator> Database::iterator() const {
  rocksdb::ReadOptions options;
  options.fill_cache = false;
  return std::unique_ptr<rocksdb::Iterator>(db_->NewIterator(options));
}

Database::~Database() {
  close();
}

void Database::close() {
  if (!db_) return;
  watch_->armed_ = false;
  const bool closed = db_->Close().ok();
  db_.reset();
  if (!healthy_ || !closed) return;
  const auto newest = newest_wal(folder_.path());
  if (!newest || !newest.value()) return;
  mark_.wal_number = newest.value()->number;
  mark_.wal_size = newest.value()->size;
  // If this fails, the next open treats the log as after a crash, which is right too.
  static_cast<void>(folder_.write_mark(mark_));
}

}  // namespace leasehold::storage
