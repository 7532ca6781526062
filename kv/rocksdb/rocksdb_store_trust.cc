// Whether a store's state is the group's: the scrub, what happens to a store that is not trusted
// any more, and the state of another member that replaces it.
#include <leasehold/base/assert.h>
#include <leasehold/kv/reply.h>
#include <leasehold/kv/rocksdb/rocksdb_pinned.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/kv/rocksdb/rocksdb_snapshot.h>
#include <leasehold/kv/rocksdb/rocksdb_store_impl.h>
#include <leasehold/kv/rocksdb/rocksdb_sum.h>

#include <fmt/format.h>
#include <rocksdb/env.h>
#include <rocksdb/snapshot.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace leasehold::kv {
namespace {

/// The archive that waits in a store's folder.
constexpr std::string_view kSuccessorName = "SUCCESSOR";
constexpr std::string_view kNewSuccessorName = "SUCCESSOR.new";
constexpr std::size_t kCopiedBytes = std::size_t{1} << 20U;
/// What a scrub reads between two steps.
constexpr std::uint64_t kScrubStepBytes = std::uint64_t{64} << 10U;

std::string path_in(const std::string& dir, std::string_view name) {
  return fmt::format("{}/{}", dir, name);
}

Result<void> copy_archive(const replica::Snapshot& archive, const std::string& path,
                          rocksdb::Env* env) {
  std::unique_ptr<rocksdb::WritableFile> file;
  rocksdb::Status status = env->NewWritableFile(path, &file, rocksdb::EnvOptions());
  std::string part;
  for (std::uint64_t at = 0; status.ok() && at < archive.size(); at += part.size()) {
    part.resize(std::min<std::uint64_t>(kCopiedBytes, archive.size() - at));
    if (auto read = archive.read(at, part.data(), part.size()); !read) return read;
    status = file->Append(part);
  }
  if (status.ok()) status = file->Sync();
  if (status.ok()) status = file->Close();
  if (!status.ok()) return status_error("cannot write " + path, status);
  return {};
}

}  // namespace

// ---- The scrub ----

Result<std::optional<Scrubbed>> RocksdbStore::Impl::scrub(
    const std::function<bool(std::uint64_t bytes)>& step) const {
  using Found = std::optional<Scrubbed>;
  if (auto failed = failure()) return *failed;
  const Pinned pinned(live_);
  rocksdb::DB& db = pinned.db();
  rocksdb::ManagedSnapshot snapshot(&db);
  rocksdb::ReadOptions options;
  options.snapshot = snapshot.snapshot();
  const auto kept = read_sum(db, options);
  if (!kept) return kept.error();
  const auto counters = read_counters(db, options);
  if (!counters) return counters.error();
  if (!kept.value() || kept.value()->applied != counters.value().applied) {
    return Error{ErrorCode::corrupted, "the record of the sum is damaged"};
  }
  std::uint64_t next = 0;
  const Database* const database = &live();
  const auto scanned = scan(db, options, [&](std::uint64_t bytes) {
    if (bytes < next) return true;
    next = bytes + kScrubStepBytes;
    // install_snapshot() waits for those who read the old database.
    return step(bytes) && database == &live() && !waits_.load();
  });
  if (!scanned) return scanned.error();
  if (!scanned.value()) return Found();
  const Scanned& all = *scanned.value();
  if (const std::uint64_t keys = counters.value().keys + all.arriving; all.keys != keys) {
    return Error{ErrorCode::corrupted,
                 fmt::format("there are {} keys instead of {}", all.keys, keys)};
  }
  return Found(Scrubbed{raft::Index(kept.value()->applied), kept.value()->sum, all.sum, all.keys,
                        all.bytes});
}

std::uint64_t RocksdbStore::Impl::stored_bytes() const {
  const Pinned pinned(live_);
  std::uint64_t tables = 0;
  std::uint64_t memory = 0;
  static_cast<void>(pinned.db().GetIntProperty("rocksdb.estimate-live-data-size", &tables));
  static_cast<void>(pinned.db().GetIntProperty("rocksdb.cur-size-all-mem-tables", &memory));
  return tables + memory;
}

// ---- A store that is not trusted ----

void RocksdbStore::Impl::distrust(const std::string& why) {
  {
    const std::lock_guard lock(failure_mutex_);
    if (distrusted_.load()) return;
    distrust_ = why;
    distrusted_.store(true, std::memory_order_release);
  }
  const std::lock_guard lock(replaced_);
  // If the disk does not take it, the next process finds out by itself.
  static_cast<void>(live().distrust(why));
}

std::string RocksdbStore::Impl::distrusted() const {
  if (!distrusted_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(failure_mutex_);
  return distrust_;
}

/// Why nobody may read, or none.
std::optional<Error> RocksdbStore::Impl::refusal() const {
  if (auto failed = failure()) return failed;
  if (!distrusted_.load(std::memory_order_acquire)) return std::nullopt;
  return Error{ErrorCode::unavailable,
               fmt::format("this replica's state is not served: {}; rebuild it from another member "
                           "(leasehold rebuild)",
                           distrusted())};
}

// ---- The state of another member ----

/// Takes the folder of a store that no process has open, and that has a state.
Result<void> RocksdbStore::Impl::open_folder_of_stopped() {
  const Error nothing{ErrorCode::invalid_argument, "there is no store to rebuild"};
  if (!options_.env->FileExists(options_.dir).ok()) return nothing;
  auto folder = Folder::open(options_.dir, options_.env);
  if (!folder) return folder.error();
  folder_ = std::move(folder).value();
  if (!folder_->has_live()) return nothing;
  return {};
}

Result<raft::Index> RocksdbStore::Impl::stage_successor(const replica::Snapshot& archive) {
  if (auto opened = open_folder_of_stopped(); !opened) return opened.error();
  const auto head = read_head(archive);
  if (!head) return head.error();
  const auto database = Database::open(folder_->live(), false, options_.env);
  if (!database) return database.error();
  const auto identity = read_identity(database.value()->db());
  if (!identity) return identity.error();
  if (!identity.value() || identity.value()->cluster_id != head.value().cluster_id) {
    return Error{ErrorCode::wrong_cluster, "the backup is another group's"};
  }
  const std::uint64_t applied = database.value()->applied_.load();
  if (head.value().applied < applied) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the backup is of entry {}, and this store has applied entry {}: take "
                             "a newer backup of another member",
                             head.value().applied, applied)};
  }
  const std::string fresh = path_in(options_.dir, kNewSuccessorName);
  if (auto copied = copy_archive(archive, fresh, options_.env); !copied) return copied.error();
  const rocksdb::Status renamed =
      options_.env->RenameFile(fresh, path_in(options_.dir, kSuccessorName));
  if (!renamed.ok()) return status_error("cannot rename " + fresh, renamed);
  if (auto synced = sync_folder(options_.env, options_.dir); !synced) return synced.error();
  return raft::Index(head.value().applied);
}

/// Opens the one that stage_successor() has left, if its index is still to come.
Result<void> RocksdbStore::Impl::load_successor() {
  const std::string path = path_in(options_.dir, kSuccessorName);
  if (!options_.env->FileExists(path).ok()) return {};
  const auto archive = open_archive_file(path, 0, options_.env);
  if (!archive) return archive.error();
  const raft::Index last = archive.value()->last();
  if (last.value() >= live().applied_.load()) {
    auto made = unpack_database(*archive.value(), false);
    if (!made) return made.error();
    if (const std::string why = made.value()->distrust_; !why.empty()) {
      const std::string unpacked = made.value()->path();
      made.value().reset();
      Folder::remove(options_.env, unpacked);
      static_cast<void>(options_.env->DeleteFile(path));
      distrust("it cannot be rebuilt: " + why);
      return {};
    }
    successor_ = std::move(made).value();
    waits_.store(true);
    if (last.value() == live().applied_.load()) return switch_to_successor();
    const std::lock_guard lock(failure_mutex_);
    distrust_ = fmt::format("it is being rebuilt, and waits for entry {}", last.value());
    distrusted_.store(true, std::memory_order_release);
    return {};
  }
  // It was switched to before the last crash.
  static_cast<void>(options_.env->DeleteFile(path));
  return {};
}

Result<void> RocksdbStore::Impl::switch_to_successor() {
  if (auto switched = folder_->make_live(); !switched) return switched;
  take_over(std::move(successor_));
  waits_.store(false);
  static_cast<void>(options_.env->DeleteFile(path_in(options_.dir, kSuccessorName)));
  return {};
}

/// Another state makes it needless.
void RocksdbStore::Impl::drop_successor() {
  if (!successor_) return;
  const std::string path = successor_->path();
  successor_.reset();
  waits_.store(false);
  Folder::remove(options_.env, path);
}

/// Commands that the successor contains are passed over: the node hands on only what is committed
/// and durable in its log, so that the log reaches as far as the state that becomes the live one.
std::vector<Bytes> RocksdbStore::Impl::apply_until_successor(
    const std::vector<replica::Command>& commands, raft::Index last) {
  const raft::Index reached(successor_->applied_.load());
  const Bytes passed = encode_reply(
      ErrorReply{ErrorKind::store_failed, "this replica is being rebuilt; the outcome is unknown"});
  if (last < reached) {
    live().applied_.store(last.value(), std::memory_order_release);
    return std::vector<Bytes>(commands.size(), passed);
  }
  if (auto switched = switch_to_successor(); !switched) {
    const Error failed = fail(switched.error());
    return std::vector<Bytes>(commands.size(),
                              encode_reply(ErrorReply{ErrorKind::store_failed, failed.message}));
  }
  std::vector<replica::Command> rest;
  for (const replica::Command& command : commands) {
    if (command.id.index > reached) rest.push_back(command);
  }
  std::vector<Bytes> replies(commands.size() - rest.size(), passed);
  if (last == reached) return replies;
  for (Bytes& reply : apply(rest, last)) replies.push_back(std::move(reply));
  return replies;
}

}  // namespace leasehold::kv
