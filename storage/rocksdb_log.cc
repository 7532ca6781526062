#include <leasehold/base/assert.h>
#include <leasehold/storage/rocksdb_database.h>
#include <leasehold/storage/rocksdb_log.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace leasehold::storage {
namespace {

/// Bookkeeping of a batch and of an entry, as the queue's limit counts it.
constexpr std::size_t kBatchOverheadBytes = 256;
constexpr std::size_t kEntryOverheadBytes = 64;

/// A batch that waits for the disk, with what the writer has to know of the log at its place.
struct Pending {
  raft::PersistBatch batch;
  raft::Term previous_term;  ///< of the entry before the first one
  /// Entries that the truncation leaves without a successor at their index; none if first > last.
  raft::Index erase_first{1};
  raft::Index erase_last{0};
  StateRecord state;  ///< after the batch
  std::size_t bytes = 0;

  /// The lowest index that the batch changes; none if it changes no entry.
  std::optional<raft::Index> lowest() const {
    if (batch.truncate_from) return batch.truncate_from;
    if (!batch.entries.empty()) return batch.entries.front().id.index;
    return std::nullopt;
  }
  const raft::Entry* find(raft::Index index) const {
    if (batch.entries.empty() || index < batch.entries.front().id.index) return nullptr;
    const std::uint64_t offset = index - batch.entries.front().id.index;
    return offset < batch.entries.size() ? &batch.entries[offset] : nullptr;
  }
};
using PendingList = std::deque<std::shared_ptr<const Pending>>;

/// The end of the log as the caller knows it, and the terms below it.
class Shape {
 public:
  Shape() = default;
  Shape(raft::LogId base, std::vector<raft::TermRun> runs, raft::LogId last)
      : base_(base), runs_(std::move(runs)), last_(last) {}

  raft::LogId last() const { return last_; }

  void truncate(raft::Index from) {
    LEASEHOLD_ASSERT(from > base_.index);
    LEASEHOLD_ASSERT(from <= last_.index.next());
    while (!runs_.empty() && runs_.back().first >= from) runs_.pop_back();
    last_ = {runs_.empty() ? base_.term : runs_.back().term, from.prev()};
  }

  void append(raft::LogId id) {
    LEASEHOLD_ASSERT(id.index == last_.index.next());
    LEASEHOLD_ASSERT(id.term >= last_.term);
    LEASEHOLD_ASSERT(id.term > raft::Term(0));
    if (runs_.empty() || runs_.back().term != id.term) {
      runs_.push_back(raft::TermRun{id.term, id.index});
    }
    last_ = id;
  }

 private:
  raft::LogId base_;
  std::vector<raft::TermRun> runs_;
  raft::LogId last_;
};

void add_to(rocksdb::WriteBatch& out, raft::GroupId group, const Pending& pending) {
  // A batch in memory without limits takes every record.
  for (raft::Index i = pending.erase_first; i <= pending.erase_last; i = i.next()) {
    LEASEHOLD_ASSERT(out.Delete(entry_key(group, i)).ok());
  }
  raft::Term previous = pending.previous_term;
  for (const raft::Entry& entry : pending.batch.entries) {
    const std::string key = entry_key(group, entry.id.index);
    const std::string head = encode_entry_head({entry.id.term, previous, entry.kind});
    const rocksdb::Slice key_part(key);
    const rocksdb::Slice parts[] = {head, {entry.payload.data(), entry.payload.size()}};
    LEASEHOLD_ASSERT(
        out.Put(rocksdb::SliceParts(&key_part, 1), rocksdb::SliceParts(parts, 2)).ok());
    previous = entry.id.term;
  }
}

/// Collects entries up to the limits of a request.
class Collector {
 public:
  explicit Collector(const ReadRequest& request) : request_(request), next_(request.first) {}

  raft::Index next() const { return next_; }
  bool full() const { return full_ || next_ > request_.last; }

  void add(raft::Entry entry) {
    bytes_ += entry.payload.size();
    full_ = !entries_.empty() && bytes_ > request_.bytes_max;
    if (full_) return;
    entries_.push_back(std::move(entry));
    next_ = next_.next();
  }

  Result<std::vector<raft::Entry>> finish() {
    if (!entries_.empty()) return std::move(entries_);
    return Error{ErrorCode::not_found, "entry " + std::to_string(request_.first.value()) +
                                           " is not in the log: it was cut or truncated"};
  }

 private:
  const ReadRequest& request_;
  raft::Index next_;
  std::vector<raft::Entry> entries_;
  std::size_t bytes_ = 0;
  bool full_ = false;
};

}  // namespace

class RocksdbLog::Impl {
 public:
  Impl(const Options& options, std::unique_ptr<Database> database);
  ~Impl();

  Result<void> confirm_set(std::vector<raft::Member> members);
  Result<void> form();
  raft::InitialState take_initial_state();
  void start(StorageSink& sink);
  void persist(raft::PersistBatch batch);
  void read(const ReadRequest& request);

  Database& database() { return *database_; }
  const std::vector<raft::Member>& confirmed() const { return confirmed_; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  Result<void> write_records(std::initializer_list<std::pair<RecordKind, std::string>> records);
  void write_loop();
  std::vector<std::shared_ptr<const Pending>> next_to_write();
  void written(std::size_t count, std::size_t bytes);
  void fail(Error error);
  void deliver_failure();
  void deliver_persisted(raft::ReadyId id);
  void read_loop();
  Result<std::vector<raft::Entry>> answer(const ReadRequest& request);
  std::unique_ptr<rocksdb::Iterator> view(PendingList& pending);
  Result<void> collect_durable(rocksdb::Iterator& at, raft::Index limit, Collector& out);

  const Options options_;
  std::unique_ptr<Database> database_;
  std::vector<raft::Member> confirmed_;
  StorageSink* sink_ = nullptr;

  // The caller's thread.
  Shape shape_;
  raft::HardState hard_state_;
  bool state_taken_ = false;

  /// Held while the sink hears of durability, so that nothing is persisted after failed(). Taken
  /// before mutex_.
  std::mutex delivery_;
  bool failure_delivered_ = false;

  std::mutex mutex_;
  std::condition_variable write_wanted_;
  std::condition_variable read_wanted_;
  // Under mutex_.
  PendingList pending_;  ///< what is being written stands in front
  std::size_t pending_bytes_ = 0;
  std::uint64_t batches_written_ = 0;
  std::deque<ReadRequest> reads_;
  std::optional<Error> failure_;
  bool stopping_ = false;

  std::thread writer_;
  std::thread reader_;
};

RocksdbLog::Impl::Impl(const Options& options, std::unique_ptr<Database> database)
    : options_(options), database_(std::move(database)) {
  if (database_->log().confirmed) confirmed_ = database_->log().confirmed->members;
}

RocksdbLog::Impl::~Impl() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  write_wanted_.notify_all();
  read_wanted_.notify_all();
  if (writer_.joinable()) writer_.join();
  if (reader_.joinable()) reader_.join();
}

// Before start().

Result<void> RocksdbLog::Impl::write_records(
    std::initializer_list<std::pair<RecordKind, std::string>> records) {
  rocksdb::WriteBatch batch;
  for (const auto& record : records) {
    LEASEHOLD_ASSERT(batch.Put(record_key(options_.group, record.first), record.second).ok());
  }
  return database_->write(batch);
}

Result<void> RocksdbLog::Impl::confirm_set(std::vector<raft::Member> members) {
  LEASEHOLD_ASSERT(!writer_.joinable());
  std::sort(members.begin(), members.end(),
            [](const raft::Member& a, const raft::Member& b) { return a.id < b.id; });
  raft::Membership set;
  for (const raft::Member& member : members) set.voters.push_back(member.id);
  set.members = std::move(members);

  if (!confirmed_.empty()) {
    if (confirmed_ == set.members) return {};
    return Error{ErrorCode::wrong_cluster,
                 "this node has confirmed another set of initial members: all peers of a new "
                 "cluster have to start on empty folders, with the same peers"};
  }
  const raft::Member* self = set.find(options_.id);
  if (self == nullptr || self->uuid != database_->identity().uuid) {
    return Error{ErrorCode::invalid_argument, "this node is not in the set of initial members"};
  }
  // The decoder knows what a membership has to be; nothing is stored that it would refuse.
  const std::string record = encode_confirmed(set);
  if (const auto decoded = decode_confirmed(record); !decoded) {
    return Error{ErrorCode::invalid_argument,
                 "the set of initial members is not valid: " + decoded.error().message};
  }
  auto written = write_records({{RecordKind::confirmed, record}});
  if (!written) return written;
  confirmed_ = set.members;
  database_->log().confirmed = std::move(set);
  return {};
}

Result<void> RocksdbLog::Impl::form() {
  LEASEHOLD_ASSERT(!writer_.joinable());
  LoadedLog& log = database_->log();
  if (log.base) return {};
  if (!log.confirmed) {
    return Error{ErrorCode::invalid_argument, "no set of initial members was confirmed"};
  }
  BaseRecord base;
  base.membership = *log.confirmed;
  auto written = write_records(
      {{RecordKind::base, encode_base(base)}, {RecordKind::state, encode_state(log.state)}});
  if (written) log.base = std::move(base);
  return written;
}

raft::InitialState RocksdbLog::Impl::take_initial_state() {
  LoadedLog& log = database_->log();
  LEASEHOLD_ASSERT(log.base.has_value());
  LEASEHOLD_ASSERT(!state_taken_);
  state_taken_ = true;
  shape_ = Shape(log.base->base, log.runs, log.state.last);
  hard_state_ = log.state.hard_state;

  raft::InitialState state;
  state.hard_state = log.state.hard_state;
  state.base = log.base->base;
  state.base_membership = log.base->membership;
  state.runs = std::move(log.runs);
  state.last_index = log.state.last.index;
  state.memberships = std::move(log.memberships);
  return state;
}

void RocksdbLog::Impl::start(StorageSink& sink) {
  LEASEHOLD_ASSERT(state_taken_);
  LEASEHOLD_ASSERT(sink_ == nullptr);
  sink_ = &sink;
  writer_ = std::thread([this] { write_loop(); });
  reader_ = std::thread([this] { read_loop(); });
}

// Writing.

void RocksdbLog::Impl::persist(raft::PersistBatch batch) {
  LEASEHOLD_ASSERT(sink_ != nullptr);
  auto pending = std::make_shared<Pending>();
  const raft::Index old_last = shape_.last().index;
  if (batch.hard_state) hard_state_ = *batch.hard_state;
  if (batch.truncate_from) shape_.truncate(*batch.truncate_from);
  pending->previous_term = shape_.last().term;
  pending->bytes = kBatchOverheadBytes;
  for (const raft::Entry& entry : batch.entries) {
    shape_.append(entry.id);
    pending->bytes += kEntryOverheadBytes + entry.payload.size();
  }
  if (batch.truncate_from) {
    pending->erase_first = shape_.last().index.next();
    pending->erase_last = old_last;
  }
  pending->state = {hard_state_, shape_.last()};
  pending->batch = std::move(batch);
  {
    const Lock lock(mutex_);
    if (failure_) return;
    pending_bytes_ += pending->bytes;
    pending_.push_back(std::move(pending));
    if (pending_bytes_ <= options_.queue_bytes_max) {
      write_wanted_.notify_one();
      return;
    }
  }
  fail(Error{ErrorCode::overloaded,
             "the log in " + options_.dir + ": more than " +
                 std::to_string(options_.queue_bytes_max) +
                 " bytes wait for the disk, which does not keep up: check the disk"});
}

/// Waits for work. Empty: there is none and there will be none.
std::vector<std::shared_ptr<const Pending>> RocksdbLog::Impl::next_to_write() {
  std::vector<std::shared_ptr<const Pending>> group;
  Lock lock(mutex_);
  write_wanted_.wait(lock, [this] { return !pending_.empty() || stopping_ || failure_; });
  if (failure_) return group;
  std::size_t bytes = 0;
  for (const auto& pending : pending_) {
    bytes += pending->bytes;
    if (!group.empty() && bytes > options_.sync_bytes_max) break;
    group.push_back(pending);
  }
  return group;
}

void RocksdbLog::Impl::write_loop() {
  for (;;) {
    const auto group = next_to_write();
    if (group.empty()) return;
    std::size_t bytes = 0;
    for (const auto& pending : group) bytes += pending->bytes;
    // Made anew each time, so that one large write does not hold its memory for ever.
    rocksdb::WriteBatch batch(bytes);
    for (const auto& pending : group) add_to(batch, options_.group, *pending);
    LEASEHOLD_ASSERT(
        batch.Put(record_key(options_.group, RecordKind::state), encode_state(group.back()->state))
            .ok());
    if (auto result = database_->write(batch); !result) {
      fail(result.error());
      deliver_failure();
      return;
    }
    written(group.size(), bytes);
    deliver_persisted(group.back()->batch.id);
  }
}

void RocksdbLog::Impl::written(std::size_t count, std::size_t bytes) {
  const Lock lock(mutex_);
  if (failure_) return;  // the queue is empty already
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(count));
  pending_bytes_ -= bytes;
  batches_written_ += count;
}

void RocksdbLog::Impl::fail(Error error) {
  {
    const Lock lock(mutex_);
    if (failure_) return;
    failure_ = std::move(error);
    pending_.clear();
    pending_bytes_ = 0;
  }
  write_wanted_.notify_all();
  read_wanted_.notify_all();
}

void RocksdbLog::Impl::deliver_failure() {
  const std::lock_guard delivering(delivery_);
  if (failure_delivered_) return;
  failure_delivered_ = true;
  std::optional<Error> failure;
  {
    const Lock lock(mutex_);
    failure = failure_;
  }
  sink_->failed(*failure);
}

void RocksdbLog::Impl::deliver_persisted(raft::ReadyId id) {
  const std::lock_guard delivering(delivery_);
  {
    const Lock lock(mutex_);
    if (failure_) return;
  }
  sink_->persisted(id);
}

// Reading.

void RocksdbLog::Impl::read(const ReadRequest& request) {
  LEASEHOLD_ASSERT(sink_ != nullptr);
  LEASEHOLD_ASSERT(request.first <= request.last);
  {
    const Lock lock(mutex_);
    if (reads_.size() < options_.reads_max) {
      reads_.push_back(request);
      read_wanted_.notify_one();
      return;
    }
  }
  sink_->entries_read(request.token,
                      Error{ErrorCode::overloaded, "too many reads of the log are waiting"});
}

void RocksdbLog::Impl::read_loop() {
  Lock lock(mutex_);
  for (;;) {
    read_wanted_.wait(lock, [this] { return !reads_.empty() || stopping_ || failure_; });
    if (failure_ || stopping_) break;
    const ReadRequest request = reads_.front();
    reads_.pop_front();
    lock.unlock();
    sink_->entries_read(request.token, answer(request));
    lock.lock();
  }
  // The writer may hang in the disk: a failure that others found is told from here.
  if (failure_) {
    lock.unlock();
    deliver_failure();
    lock.lock();
  }
  for (;;) {
    read_wanted_.wait(lock, [this] { return !reads_.empty() || stopping_; });
    if (reads_.empty()) return;
    const ReadRequest request = reads_.front();
    reads_.pop_front();
    lock.unlock();
    sink_->entries_read(request.token, Error{ErrorCode::stopped, "the log has stopped"});
    lock.lock();
  }
}

/// A view of the database that fits what `pending` then holds: each batch handed over so far is in
/// one of them (or in both, which is the same).
std::unique_ptr<rocksdb::Iterator> RocksdbLog::Impl::view(PendingList& pending) {
  for (;;) {
    std::uint64_t before = 0;
    {
      const Lock lock(mutex_);
      pending = pending_;
      before = batches_written_;
    }
    auto at = database_->iterator();
    const Lock lock(mutex_);
    if (batches_written_ == before) return at;
  }
}

Result<std::vector<raft::Entry>> RocksdbLog::Impl::answer(const ReadRequest& request) {
  PendingList pending;
  const auto at = view(pending);
  // Entries from `touched` on are those of the pending batches, or are gone.
  raft::Index touched = request.last.next();
  for (const auto& batch : pending) {
    if (const auto lowest = batch->lowest()) touched = std::min(touched, *lowest);
  }
  Collector out(request);
  if (auto collected = collect_durable(*at, touched, out); !collected) return collected.error();
  while (out.next() >= touched && !out.full()) {
    const raft::Entry* found = nullptr;
    for (auto batch = pending.rbegin(); batch != pending.rend() && found == nullptr; ++batch) {
      found = (*batch)->find(out.next());
      const auto& truncated = (*batch)->batch.truncate_from;
      if (truncated && *truncated <= out.next()) break;
    }
    if (found == nullptr) break;
    out.add(*found);
  }
  return out.finish();
}

/// Adds the entries that the database holds below `limit`.
Result<void> RocksdbLog::Impl::collect_durable(rocksdb::Iterator& at, raft::Index limit,
                                               Collector& out) {
  if (out.next() >= limit) return {};
  const auto failed = [this](const Error& error) {
    return Error{error.code, "the log in " + options_.dir + ": " + error.message};
  };
  for (at.Seek(entry_key(options_.group, out.next())); at.Valid(); at.Next()) {
    if (out.full() || out.next() >= limit) return {};
    if (at.key() != rocksdb::Slice(entry_key(options_.group, out.next()))) return {};
    const std::string_view record(at.value().data(), at.value().size());
    const auto head = decode_entry_head(record);
    if (!head) return failed(head.error());
    raft::Entry entry;
    entry.id = {head.value().term, out.next()};
    entry.kind = head.value().kind;
    entry.payload = Bytes(record.substr(kEntryHeadBytes));
    out.add(std::move(entry));
  }
  if (!at.status().ok()) return failed(status_error("a read failed", at.status()));
  return {};
}

// The public face.

Result<std::unique_ptr<RocksdbLog>> RocksdbLog::open(const Options& options) {
  auto database = Database::open(options);
  if (!database) return database.error();
  return std::unique_ptr<RocksdbLog>(
      new RocksdbLog(std::make_unique<Impl>(options, std::move(database).value())));
}

RocksdbLog::RocksdbLog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RocksdbLog::~RocksdbLog() = default;

const NodeIdentity& RocksdbLog::identity() const {
  return impl_->database().identity();
}
const std::vector<raft::Member>& RocksdbLog::confirmed_set() const {
  return impl_->confirmed();
}
Result<void> RocksdbLog::confirm_set(std::vector<raft::Member> members) {
  return impl_->confirm_set(std::move(members));
}
Result<void> RocksdbLog::form() {
  return impl_->form();
}
bool RocksdbLog::formed() const {
  return impl_->database().log().base.has_value();
}
raft::InitialState RocksdbLog::take_initial_state() {
  return impl_->take_initial_state();
}
void RocksdbLog::start(StorageSink& sink) {
  impl_->start(sink);
}
void RocksdbLog::persist(raft::PersistBatch batch) {
  impl_->persist(std::move(batch));
}
void RocksdbLog::read(const ReadRequest& request) {
  impl_->read(request);
}
std::uint64_t RocksdbLog::syncs() const {
  return impl_->database().syncs();
}

}  // namespace leasehold::storage
