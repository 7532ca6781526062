// A store opens its database, and puts another in its place when it takes a snapshot over.
#include <leasehold/base/assert.h>
#include <leasehold/kv/rocksdb/rocksdb_record.h>
#include <leasehold/kv/rocksdb/rocksdb_snapshot.h>
#include <leasehold/kv/rocksdb/rocksdb_store_impl.h>

#include <fmt/format.h>

#include <thread>
#include <utility>

namespace leasehold::kv {
namespace {

std::string name_of(std::uint64_t cluster, raft::NodeId node) {
  std::string hex(16, '0');
  for (std::size_t i = hex.size(); i-- > 0; cluster >>= 4U) {
    hex[i] = "0123456789abcdef"[cluster & 0xfU];
  }
  return fmt::format("node {} of cluster {}", node.value(), hex);
}

Result<void> validate(const RocksdbStoreOptions& options) {
  if (options.dir.empty() || options.id == raft::kNobody) {
    return Error{ErrorCode::invalid_argument, "the store needs a folder and a node id above 0"};
  }
  if (options.full_retry <= std::chrono::milliseconds(0)) {
    return Error{ErrorCode::invalid_argument, "a full disk is tried again after more than 0 ms"};
  }
  return {};
}

}  // namespace

Result<void> RocksdbStore::Impl::open() {
  if (auto opened = open_folder(); !opened) return opened;
  if (!folder_->has_live()) return make_first_database();
  auto database = Database::open(folder_->live(), false, options_.env);
  if (!database) return database.error();
  if (auto checked = check_identity(database.value()->db()); !checked) return checked;
  take_over(std::move(database).value());
  return load_successor();
}

Result<void> RocksdbStore::Impl::open_folder() {
  if (auto valid = validate(options_); !valid) return valid;
  auto folder = Folder::open(options_.dir, options_.env);
  if (!folder) return folder.error();
  folder_ = std::move(folder).value();
  return {};
}

Result<void> RocksdbStore::Impl::make_first_database() {
  auto database = Database::open(folder_->new_database(), true, options_.env);
  if (!database) return database.error();
  if (auto owned = database.value()->own({options_.cluster_id, options_.id}); !owned) return owned;
  if (auto made = folder_->make_live(); !made) return made;
  take_over(std::move(database).value());
  return {};
}

Result<void> RocksdbStore::Impl::check_identity(rocksdb::DB& db) const {
  const auto found = read_identity(db);
  if (!found) return found.error();
  if (!found.value()) return Error{ErrorCode::corrupted, "the identity record is missing"};
  const StoreIdentity& owner = *found.value();
  if (owner.cluster_id == options_.cluster_id && owner.id == options_.id) return {};
  return Error{
      ErrorCode::wrong_cluster,
      fmt::format("it belongs to {}, but this is {}: give this node its own folder, or start it "
                  "with the id, the cluster name and the initial peers it was made with",
                  name_of(owner.cluster_id, owner.id), name_of(options_.cluster_id, options_.id))};
}

RocksdbStore::Impl::~Impl() {
  // What cannot be flushed is applied again from the log.
  if (databases_.empty() || failed_.load() || live().full()) return;
  static_cast<void>(live().db().Flush(rocksdb::FlushOptions()));
}

// ---- Snapshots ----

/// Flushes until everything applied before the call is durable.
Result<void> RocksdbStore::Impl::flush(Database& database) {
  const std::uint64_t applied = database.applied_.load();
  Result<void> raised;
  const rocksdb::Status status = with_space(database, [&] {
    const rocksdb::Status flushed = database.db().Flush(rocksdb::FlushOptions());
    if (!flushed.ok()) return flushed;
    // The result of Flush() proves nothing: while another thread's Resume() fails, Flush() returns
    // ok without a flush. The contents of the tables prove it.
    raised = database.raise_durable();
    if (!raised || database.durable_.load() >= applied) return rocksdb::Status::OK();
    return rocksdb::Status::NoSpace("a flush was given up");
  });
  if (!status.ok()) return fail(status_error("a flush failed", status));
  if (!raised) return fail(raised.error());
  return {};
}

Result<raft::Index> RocksdbStore::Impl::make_durable() {
  if (auto failed = failure()) return *failed;
  const std::lock_guard lock(replaced_);
  Database& database = live();
  // One that waits for its successor does not apply what it is given.
  if (!waits_.load() && database.durable_.load() < database.applied_.load()) {
    if (auto flushed = flush(database); !flushed) return flushed.error();
  }
  return raft::Index(database.durable_.load());
}

Result<std::shared_ptr<const replica::Snapshot>> RocksdbStore::Impl::take_snapshot() {
  if (auto refused = refusal()) return *refused;
  const std::lock_guard lock(replaced_);
  Database& database = live();
  // A separate flush first: then only the hard links and a copy of the manifest remain to be made.
  if (auto flushed = flush(database); !flushed) return flushed.error();
  auto taken = take_checkpoint(database, folder_->new_snapshot(), options_.env);
  if (!taken) return in_folder(options_.dir, taken.error());
  return taken;
}

Result<void> RocksdbStore::Impl::install_snapshot(const replica::Snapshot& snapshot) {
  if (auto failed = failure()) return *failed;
  LEASEHOLD_ASSERT(touched_.empty());
  if (snapshot.last().value() < live().applied_.load()) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the snapshot is of index {}, and index {} is applied",
                             snapshot.last().value(), live().applied_.load())};
  }
  drop_successor();
  auto made = unpack_database(snapshot, false);
  if (!made) return made.error();
  if (auto switched = folder_->make_live(); !switched) return fail(switched.error());
  take_over(std::move(made).value());
  return {};
}

Result<void> RocksdbStore::Impl::clear() {
  if (auto failed = failure()) return *failed;
  LEASEHOLD_ASSERT(touched_.empty());
  drop_successor();
  auto made = make_first_database();
  return made ? made : fail(made.error());
}

Result<raft::Index> RocksdbStore::Impl::restore(const replica::Snapshot& snapshot) {
  if (auto opened = open_folder(); !opened) return opened.error();
  if (folder_->has_live()) {
    return Error{ErrorCode::in_use, "there is a store already: choose a new folder"};
  }
  auto made = unpack_database(snapshot, true);
  if (!made) return made.error();
  if (const std::string& why = made.value()->distrust_; !why.empty()) {
    return Error{ErrorCode::corrupted, why};
  }
  if (auto switched = folder_->make_live(); !switched) return switched.error();
  take_over(std::move(made).value());
  return raft::Index(live().applied_.load());
}

/// Everything that can be wrong is found before anything is replaced.
Result<std::unique_ptr<Database>> RocksdbStore::Impl::unpack_database(
    const replica::Snapshot& snapshot, bool any_cluster) {
  const auto head = read_head(snapshot);
  if (!head) return head.error();
  if (!any_cluster && head.value().cluster_id != options_.cluster_id) {
    return Error{ErrorCode::wrong_cluster,
                 fmt::format("the snapshot was taken by a {}, but this is {}",
                             name_of(head.value().cluster_id, raft::kNobody).substr(5),
                             name_of(options_.cluster_id, options_.id))};
  }
  const std::string path = folder_->new_database();
  if (auto unpacked = unpack(snapshot, head.value(), path, options_.env); !unpacked) {
    return unpacked.error();
  }
  auto opened = open_unpacked(head.value(), path, {options_.cluster_id, options_.id}, options_.env);
  if (!opened) Folder::remove(options_.env, path);
  return opened;
}

/// Shows readers the new database, waits for those of the old one, and removes it.
void RocksdbStore::Impl::take_over(std::unique_ptr<Database> database) {
  const std::lock_guard lock(replaced_);
  if (live_.load() != nullptr) database->leases_.follow(live().leases_);
  slots_.about_to_replace(database->moved_slots_);
  database->records_.keep_in(options_.cache);
  databases_.push_back(std::move(database));
  Database* const old = live_.exchange(databases_.back().get());
  comparison_.forget_own();
  {
    const std::lock_guard failure_lock(failure_mutex_);
    distrust_ = live().distrust_;
    distrusted_.store(!distrust_.empty(), std::memory_order_release);
  }
  events_.restart(live().revision_.load());
  users_.replace(std::exchange(live().users_, {}));
  slots_.replace(std::exchange(live().moved_slots_, {}));
  if (old == nullptr) return;
  // As long as the longest read: none of them blocks on anything but the disk.
  while (!old->read_by_nobody()) std::this_thread::yield();
  old->retire();
}

// ---- What the users see ----

Result<std::unique_ptr<RocksdbStore>> RocksdbStore::open(Options options) {
  const std::string dir = options.dir;
  auto impl = std::make_unique<Impl>(std::move(options));
  if (auto opened = impl->open(); !opened) return in_folder(dir, opened.error());
  return std::unique_ptr<RocksdbStore>(new RocksdbStore(std::move(impl)));
}

Result<std::shared_ptr<const replica::Snapshot>> RocksdbStore::open_archive(const std::string& path,
                                                                            std::uint64_t offset) {
  return open_archive_file(path, offset, rocksdb::Env::Default());
}
Result<ArchiveInfo> RocksdbStore::describe(const replica::Snapshot& archive) {
  const auto head = read_head(archive);
  if (!head) return head.error();
  return ArchiveInfo{head.value().cluster_id, raft::Index(head.value().applied),
                     head.value().revision, head.value().keys};
}
Result<ArchiveInfo> RocksdbStore::verify(const replica::Snapshot& archive) {
  const auto head = read_head(archive);
  if (!head) return head.error();
  if (auto whole = verify_blocks(archive, head.value()); !whole) return whole.error();
  return describe(archive);
}
Result<SlotMap> RocksdbStore::slots_of(const replica::Snapshot& archive) {
  const auto head = read_head(archive);
  if (!head) return head.error();
  return read_archived_slots(archive, head.value());
}
Result<raft::Index> RocksdbStore::restore(Options options, const replica::Snapshot& snapshot) {
  const std::string dir = options.dir;
  Impl impl(std::move(options));
  auto restored = impl.restore(snapshot);
  if (!restored && restored.error().code == ErrorCode::corrupted) {
    return Error{ErrorCode::corrupted,
                 fmt::format("cannot restore to {}: {}", dir, restored.error().message)};
  }
  if (!restored) return in_folder(dir, restored.error());
  return restored;
}

RocksdbStore::RocksdbStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RocksdbStore::~RocksdbStore() = default;

raft::Index RocksdbStore::durable_index() const {
  return raft::Index(impl_->live().durable_.load());
}
std::vector<Bytes> RocksdbStore::apply(const std::vector<replica::Command>& commands,
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
Result<Rows> RocksdbStore::rows(std::string_view prefix, std::optional<std::string_view> after,
                                std::size_t count, Load load) const {
  return impl_->rows(prefix, after, count, load);
}
Result<SlotRows> RocksdbStore::slot_rows(const SlotSet& slots,
                                         std::optional<std::string_view> after, Load load) const {
  return impl_->slot_rows(slots, after, load);
}
Result<SlotFences> RocksdbStore::slot_fences(const SlotSet& slots,
                                             std::optional<std::string_view> after) const {
  return impl_->slot_fences(slots, after);
}
Result<grant::FencingToken> RocksdbStore::fence(std::string_view key) const {
  return impl_->stored_fence(key);
}
Result<std::optional<std::size_t>> RocksdbStore::length(std::string_view key) const {
  return impl_->length(key);
}
Result<std::vector<replica::SessionTable::Session>> RocksdbStore::sessions() const {
  return impl_->sessions();
}
Result<std::optional<FoundLease>> RocksdbStore::find_lease(grant::LeaseId id,
                                                           std::string_view name) const {
  return impl_->find_lease(id, name);
}
Result<std::optional<grant::LeaseTable::Lease>> RocksdbStore::lease_terms(
    grant::LeaseId id, std::string_view name) const {
  return impl_->lease_terms(id, name);
}
Result<std::vector<grant::LeaseTable::Lease>> RocksdbStore::leases_after(grant::LeaseId after,
                                                                         std::size_t count) const {
  return impl_->leases_after(after, count);
}
Result<LeaseChanges> RocksdbStore::lease_changes(std::uint64_t cursor) const {
  return impl_->lease_changes(cursor);
}
const EventHistory& RocksdbStore::events() const {
  return impl_->events();
}
const Users& RocksdbStore::users() const {
  return impl_->users_seen();
}
const Slots& RocksdbStore::slots() const {
  return impl_->slots_seen();
}
std::uint64_t RocksdbStore::size() const {
  return impl_->live().keys_.load(std::memory_order_acquire);
}
std::uint64_t RocksdbStore::fences() const {
  return impl_->live().fences_.load(std::memory_order_acquire);
}
std::uint64_t RocksdbStore::revision() const {
  return impl_->live().revision_.load(std::memory_order_acquire);
}
raft::Index RocksdbStore::applied_index() const {
  return raft::Index(impl_->live().applied_.load(std::memory_order_acquire));
}
std::optional<Error> RocksdbStore::failure() const {
  return impl_->failure();
}
Result<raft::Index> RocksdbStore::make_durable() {
  return impl_->make_durable();
}
Result<std::shared_ptr<const replica::Snapshot>> RocksdbStore::take_snapshot() {
  return impl_->take_snapshot();
}
Result<void> RocksdbStore::install_snapshot(const replica::Snapshot& snapshot) {
  return impl_->install_snapshot(snapshot);
}
Result<void> RocksdbStore::leave_gap(const NumberGap& gap) {
  return impl_->leave_gap(gap);
}
Result<void> RocksdbStore::clear() {
  return impl_->clear();
}
void RocksdbStore::interrupt() {
  impl_->interrupt();
}
const Comparison& RocksdbStore::comparison() const {
  return impl_->comparison();
}
Result<std::optional<Scrubbed>> RocksdbStore::scrub(
    const std::function<bool(std::uint64_t bytes)>& step) const {
  return impl_->scrub(step);
}
void RocksdbStore::distrust(const std::string& why) {
  impl_->distrust(why);
}
std::string RocksdbStore::distrusted() const {
  return impl_->distrusted();
}
bool RocksdbStore::rebuilding() const {
  return impl_->rebuilding();
}
std::uint64_t RocksdbStore::stored_bytes() const {
  return impl_->stored_bytes();
}

Result<void> RocksdbStore::check_rebuildable(const std::string& dir) {
  Options options;
  options.dir = dir;
  Impl impl(std::move(options));
  auto able = impl.open_folder_of_stopped();
  if (!able) return in_folder(dir, able.error());
  return able;
}

Result<raft::Index> RocksdbStore::stage_successor(const std::string& dir,
                                                  const replica::Snapshot& archive) {
  Options options;
  options.dir = dir;
  Impl impl(std::move(options));
  auto staged = impl.stage_successor(archive);
  if (!staged) return in_folder(dir, staged.error());
  return staged;
}

}  // namespace leasehold::kv
