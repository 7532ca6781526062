#include <leasehold/base/assert.h>
#include <leasehold/base/coding.h>
#include <leasehold/kv/rocksdb/rocksdb_archive_env.h>
#include <leasehold/kv/rocksdb/rocksdb_folder.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/kv/rocksdb/rocksdb_slots.h>
#include <leasehold/kv/rocksdb/rocksdb_snapshot.h>
#include <leasehold/kv/rocksdb/rocksdb_sum.h>

#include <fmt/format.h>
#include <rocksdb/utilities/checkpoint.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace leasehold::kv {
namespace {

/// Space that an installed database needs in addition to its files: a first flush, a manifest.
constexpr std::uint64_t kSpareBytes = std::uint64_t{16} << 20U;

/// A database that is opened to look into it keeps no log of its own.
class NoLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
};

/// The archive of a checkpoint, computed while it is read. Holds one file open and one block.
class CheckpointSnapshot final : public replica::Snapshot {
 public:
  CheckpointSnapshot(std::string path, rocksdb::Env* env) : path_(std::move(path)), env_(env) {}
  ~CheckpointSnapshot() override {
    file_.reset();
    Folder::remove(env_, path_);
  }
  CheckpointSnapshot(const CheckpointSnapshot&) = delete;
  CheckpointSnapshot& operator=(const CheckpointSnapshot&) = delete;

  /// Reads what is in the checkpoint.
  Result<void> look();

  raft::Index last() const override { return raft::Index(head_.applied); }
  std::uint64_t size() const override { return starts_.back(); }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override;

 private:
  Result<void> list_files();
  Result<void> look_inside();
  Result<void> load_block(std::size_t file, std::uint64_t block) const;

  const std::string path_;
  rocksdb::Env* const env_;
  ArchiveHead head_;
  std::string head_bytes_;
  /// Where each file's blocks start in the archive; the last one is the archive's end.
  std::vector<std::uint64_t> starts_;

  // What the newest read() left: one call at a time.
  mutable std::unique_ptr<rocksdb::RandomAccessFile> file_;
  mutable std::size_t open_file_ = 0;  ///< number of file_
  mutable std::string block_;          ///< with its checksum; empty: none
  mutable std::size_t block_file_ = 0;
  mutable std::uint64_t block_number_ = 0;
};

Result<void> CheckpointSnapshot::look() {
  // First: to look inside may leave files that are not the database's.
  if (auto listed = list_files(); !listed) return listed;
  if (auto looked = look_inside(); !looked) return looked;
  head_bytes_ = encode_head(head_);
  starts_.push_back(head_bytes_.size());
  for (const ArchiveFile& file : head_.files) {
    starts_.push_back(starts_.back() + framed_bytes(file.size));
  }
  return {};
}

Result<void> CheckpointSnapshot::list_files() {
  std::vector<std::string> names;
  rocksdb::Status status = env_->GetChildren(path_, &names);
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    if (!archive_carries(name)) continue;
    ArchiveFile file{name, 0};
    if (status.ok()) status = env_->GetFileSize(fmt::format("{}/{}", path_, name), &file.size);
    head_.files.push_back(std::move(file));
  }
  if (!status.ok()) return status_error("cannot list a checkpoint", status);
  return {};
}

/// The live store may have changed meanwhile: the figures are read from the snapshot itself.
Result<void> CheckpointSnapshot::look_inside() {
  rocksdb::Options options = database_options(env_);
  options.info_log = std::make_shared<NoLog>();
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::OpenForReadOnly(options, path_, &opened);
  if (!status.ok()) return status_error("RocksDB cannot open a checkpoint", status);
  const std::unique_ptr<rocksdb::DB> db(opened);
  const auto identity = read_identity(*db);
  if (!identity) return identity.error();
  if (!identity.value()) return Error{ErrorCode::corrupted, "the identity record is missing"};
  const auto counters = read_counters(*db);
  if (!counters) return counters.error();
  head_.cluster_id = identity.value()->cluster_id;
  head_.applied = counters.value().applied;
  head_.revision = counters.value().revision;
  head_.keys = counters.value().keys;
  return {};
}

Result<void> CheckpointSnapshot::read(std::uint64_t offset, char* to, std::size_t bytes) const {
  LEASEHOLD_ASSERT(offset <= size() && bytes <= size() - offset);
  constexpr std::uint64_t kFramed = kArchiveBlockBytes + kArchiveCheckBytes;
  while (bytes > 0) {
    std::string_view from;
    if (offset < head_bytes_.size()) {
      from = std::string_view(head_bytes_).substr(offset);
    } else {
      // The last file that starts at or before the offset and is not empty.
      const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
      const auto file = static_cast<std::size_t>(after - starts_.begin()) - 1;
      const std::uint64_t in_file = offset - starts_[file];
      if (auto loaded = load_block(file, in_file / kFramed); !loaded) return loaded;
      from = std::string_view(block_).substr(in_file % kFramed);
    }
    const std::size_t taken = std::min(bytes, from.size());
    std::memcpy(to, from.data(), taken);
    to += taken;
    offset += taken;
    bytes -= taken;
  }
  return {};
}

Result<void> CheckpointSnapshot::load_block(std::size_t file, std::uint64_t block) const {
  if (!block_.empty() && block_file_ == file && block_number_ == block) return {};
  block_.clear();
  const std::string name = fmt::format("{}/{}", path_, head_.files[file].name);
  if (!file_ || open_file_ != file) {
    file_.reset();
    const rocksdb::Status status = env_->NewRandomAccessFile(name, &file_, rocksdb::EnvOptions());
    if (!status.ok()) return status_error("cannot open a file of a snapshot", status);
    open_file_ = file;
  }
  const std::uint64_t offset = block * kArchiveBlockBytes;
  const std::size_t bytes =
      std::min<std::uint64_t>(kArchiveBlockBytes, head_.files[file].size - offset);
  std::string loaded(bytes, '\0');
  rocksdb::Slice read;
  const rocksdb::Status status = file_->Read(offset, bytes, &read, loaded.data());
  if (!status.ok()) return status_error("cannot read " + name, status);
  if (read.size() != bytes) return Error{ErrorCode::corrupted, name + " has become shorter"};
  if (read.data() != loaded.data()) loaded.assign(read.data(), read.size());
  BigWriter(loaded).u32(block_check(file, offset, loaded));
  block_ = std::move(loaded);
  block_file_ = file;
  block_number_ = block;
  return {};
}

/// The bytes of a file, from `begin` on.
class FileSnapshot final : public replica::Snapshot {
 public:
  FileSnapshot(std::unique_ptr<rocksdb::RandomAccessFile> file, std::uint64_t begin,
               std::uint64_t size)
      : file_(std::move(file)), begin_(begin), size_(size) {}
  /// Reads the index from the head.
  Result<void> look();

  raft::Index last() const override { return last_; }
  std::uint64_t size() const override { return size_; }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    rocksdb::Slice read;
    const rocksdb::Status status = file_->Read(begin_ + offset, bytes, &read, to);
    if (!status.ok()) return status_error("cannot read the archive", status);
    if (read.size() != bytes) return Error{ErrorCode::io, "the archive has become shorter"};
    if (read.data() != to) std::memcpy(to, read.data(), bytes);
    return {};
  }

 private:
  const std::unique_ptr<rocksdb::RandomAccessFile> file_;
  const std::uint64_t begin_;
  const std::uint64_t size_;
  raft::Index last_;
};

/// Reads an archive from its front to its end.
class ArchiveReader {
 public:
  ArchiveReader(const replica::Snapshot& snapshot, std::uint64_t offset)
      : snapshot_(snapshot), offset_(offset) {}

  /// The next block of `bytes` bytes, which file number `file` holds at `at`. The view lives until
  /// the next call. Errors: corrupted, io.
  Result<std::string_view> next(std::size_t file, std::uint64_t at, std::size_t bytes) {
    buffer_.resize(bytes + kArchiveCheckBytes);
    if (auto read = snapshot_.read(offset_, buffer_.data(), buffer_.size()); !read) {
      return read.error();
    }
    offset_ += buffer_.size();
    const std::string_view block = std::string_view(buffer_).substr(0, bytes);
    if (BigReader(std::string_view(buffer_).substr(bytes)).u32() != block_check(file, at, block)) {
      return Error{ErrorCode::corrupted, "a block of the snapshot is damaged"};
    }
    return block;
  }

 private:
  const replica::Snapshot& snapshot_;
  std::uint64_t offset_;
  std::string buffer_;
};

Result<void> unpack_file(ArchiveReader& in, const ArchiveFile& file, std::size_t number,
                         const std::string& path, rocksdb::Env* env) {
  const Error cannot{ErrorCode::io, "cannot write " + path};
  std::unique_ptr<rocksdb::WritableFile> out;
  rocksdb::Status status = env->NewWritableFile(path, &out, rocksdb::EnvOptions());
  for (std::uint64_t at = 0; status.ok() && at < file.size; at += kArchiveBlockBytes) {
    const std::size_t bytes = std::min<std::uint64_t>(kArchiveBlockBytes, file.size - at);
    const auto block = in.next(number, at, bytes);
    if (!block) return block.error();
    status = out->Append({block.value().data(), block.value().size()});
  }
  if (status.ok()) status = out->Sync();
  if (status.ok()) status = out->Close();
  if (!status.ok()) return status_error(cannot.message, status);
  return {};
}

Result<void> check_space(const ArchiveHead& head, const std::string& folder, rocksdb::Env* env) {
  std::uint64_t needed = kSpareBytes;
  for (const ArchiveFile& file : head.files) needed += file.size;
  std::uint64_t free = 0;
  // If the file system does not report it, the snapshot is tried.
  if (!env->GetFreeSpace(folder, &free).ok() || free >= needed) return {};
  return Error{
      ErrorCode::io,
      fmt::format(
          "the snapshot needs {} bytes in addition to the present files, and its disk has {}: free "
          "some space on its disk",
          needed, free)};
}

/// The head, without a look at what follows it.
Result<ArchiveHead> read_bare_head(const replica::Snapshot& snapshot) {
  const Error ends{ErrorCode::corrupted, "the snapshot ends in its head"};
  if (snapshot.size() < kArchiveStartBytes) return ends;
  std::string bytes(kArchiveStartBytes, '\0');
  if (auto read = snapshot.read(0, bytes.data(), bytes.size()); !read) return read.error();
  const auto length = head_bytes(bytes);
  if (!length) return length.error();
  if (snapshot.size() < length.value()) return ends;
  bytes.resize(length.value());
  if (auto read = snapshot.read(0, bytes.data(), bytes.size()); !read) return read.error();
  return decode_head(bytes);
}

Result<void> FileSnapshot::look() {
  const auto head = read_bare_head(*this);
  if (!head) return head.error();
  last_ = raft::Index(head.value().applied);
  return {};
}

}  // namespace

Result<std::shared_ptr<const replica::Snapshot>> take_checkpoint(const Database& database,
                                                                 const std::string& path,
                                                                 rocksdb::Env* env) {
  rocksdb::Checkpoint* made = nullptr;
  rocksdb::Status status = rocksdb::Checkpoint::Create(&database.db(), &made);
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(made);
  // From here on its destructor removes what there is.
  auto snapshot = std::make_shared<CheckpointSnapshot>(path, env);
  if (status.ok()) status = checkpoint->CreateCheckpoint(path);
  if (!status.ok()) return status_error("cannot take a checkpoint", status);
  if (auto looked = snapshot->look(); !looked) return looked.error();
  return std::shared_ptr<const replica::Snapshot>(std::move(snapshot));
}

Result<std::shared_ptr<const replica::Snapshot>> open_archive_file(const std::string& path,
                                                                   std::uint64_t offset,
                                                                   rocksdb::Env* env) {
  std::uint64_t size = 0;
  std::unique_ptr<rocksdb::RandomAccessFile> file;
  rocksdb::Status status = env->GetFileSize(path, &size);
  if (status.ok()) status = env->NewRandomAccessFile(path, &file, rocksdb::EnvOptions());
  if (!status.ok())
    return Error{ErrorCode::io, fmt::format("cannot open {}: {}", path, status.ToString())};
  const std::uint64_t begin = std::min(offset, size);
  auto snapshot = std::make_shared<FileSnapshot>(std::move(file), begin, size - begin);
  if (auto looked = snapshot->look(); !looked) {
    return Error{looked.error().code, fmt::format("{}: {}", path, looked.error().message)};
  }
  return std::shared_ptr<const replica::Snapshot>(std::move(snapshot));
}

Result<ArchiveHead> read_head(const replica::Snapshot& snapshot) {
  auto head = read_bare_head(snapshot);
  if (!head) return head;
  const std::uint64_t expected = archive_bytes(head.value());
  if (expected != snapshot.size()) {
    return Error{
        ErrorCode::corrupted,
        fmt::format("the snapshot has {} bytes, but its head says {}", snapshot.size(), expected)};
  }
  if (head.value().applied != snapshot.last().value()) {
    return Error{ErrorCode::corrupted,
                 fmt::format("the snapshot is of index {}, and was sent as one of {}",
                             head.value().applied, snapshot.last().value())};
  }
  return head;
}

Result<void> verify_blocks(const replica::Snapshot& snapshot, const ArchiveHead& head) {
  ArchiveReader in(snapshot, encode_head(head).size());
  for (std::size_t i = 0; i < head.files.size(); ++i) {
    const ArchiveFile& file = head.files[i];
    for (std::uint64_t at = 0; at < file.size; at += kArchiveBlockBytes) {
      const auto block =
          in.next(i, at, std::min<std::uint64_t>(kArchiveBlockBytes, file.size - at));
      if (!block) {
        return Error{block.error().code, fmt::format("{}: byte {} of its file {}",
                                                     block.error().message, at, file.name)};
      }
    }
  }
  return {};
}

Result<SlotMap> read_archived_slots(const replica::Snapshot& snapshot, const ArchiveHead& head) {
  ArchiveEnv env(snapshot, head);
  rocksdb::Options options = database_options(&env);
  options.info_log = std::make_shared<NoLog>();
  rocksdb::DB* opened = nullptr;
  const rocksdb::Status status = rocksdb::DB::OpenForReadOnly(options, kArchiveFolder, &opened);
  if (!status.ok()) return status_error("RocksDB cannot look into an archive", status);
  const std::unique_ptr<rocksdb::DB> db(opened);
  return read_slots(*db);
}

Result<void> unpack(const replica::Snapshot& snapshot, const ArchiveHead& head,
                    const std::string& path, rocksdb::Env* env) {
  const std::string folder = path.substr(0, path.rfind('/'));
  if (auto space = check_space(head, folder, env); !space) return space;
  const rocksdb::Status status = env->CreateDir(path);
  if (!status.ok()) return status_error("cannot make the folder " + path, status);
  ArchiveReader in(snapshot, encode_head(head).size());
  Result<void> done;
  for (std::size_t i = 0; done && i < head.files.size(); ++i) {
    done = unpack_file(in, head.files[i], i, fmt::format("{}/{}", path, head.files[i].name), env);
  }
  if (done) done = sync_folder(env, path);
  if (!done) Folder::remove(env, path);
  return done;
}

Result<std::unique_ptr<Database>> open_unpacked(const ArchiveHead& head, const std::string& path,
                                                StoreIdentity owner, rocksdb::Env* env) {
  auto database = Database::open(path, false, env);
  if (!database) return database;
  rocksdb::DB& db = database.value()->db();
  // A table that was damaged before the snapshot was taken: the archive's own checksums fit.
  const rocksdb::Status status = db.VerifyChecksum();
  if (!status.ok()) return status_error("the snapshot holds a damaged table", status);
  const auto identity = read_identity(db);
  if (!identity) return identity.error();
  const Database& found = *database.value();
  if (!identity.value() || identity.value()->cluster_id != head.cluster_id ||
      found.applied_ != head.applied || found.revision_ != head.revision ||
      found.keys_ != head.keys) {
    return Error{ErrorCode::corrupted, "the snapshot's head and its database do not agree"};
  }
  const auto scanned = scan(db, {}, [](std::uint64_t) { return true; });
  if (!scanned) return scanned.error();
  const std::uint64_t keys = found.keys_ + scanned.value()->arriving;
  if (scanned.value()->sum != found.sum_ || scanned.value()->keys != keys) {
    const std::string why =
        "the snapshot that it was made of holds other records than were applied: the member that "
        "gave it has a damaged store";
    if (auto marked = database.value()->distrust(why); !marked) return marked.error();
  }
  if (auto owned = database.value()->own(owner); !owned) return owned.error();
  if (auto synced = sync_folder(env, path); !synced) return synced.error();
  return database;
}

}  // namespace leasehold::kv
