// The threads of the log: the caller queues batches, the writer stores them in groups and notifies
// the sink, the reader answers from the stored and from the waiting entries.
#include <leasehold/base/assert.h>
#include <leasehold/storage/pending.h>
#include <leasehold/storage/posix_disk.h>
#include <leasehold/storage/segment_log.h>
#include <leasehold/storage/segment_store.h>

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace leasehold::storage {
namespace {

/// Bookkeeping of a batch and of an entry, as the queue's limit counts it.
constexpr std::size_t kBatchOverheadBytes = 256;
constexpr std::size_t kEntryOverheadBytes = 64;

}  // namespace

class SegmentLog::Impl {
 public:
  Impl(const Options& options, std::unique_ptr<SegmentStore> store);
  ~Impl();

  Result<void> confirm_set(std::vector<raft::Member> members,
                           const std::optional<raft::GroupSettings>& settings);
  Result<void> form(raft::LogId base);
  raft::InitialState take_initial_state();
  void start(StorageSink& sink);
  void persist(raft::PersistBatch batch);
  void read(const ReadRequest& request);

  const SegmentStore& store() const { return *store_; }
  Result<void> join();
  bool joined() const;
  bool formed() const { return store_->foundation().base.has_value(); }
  const raft::Membership& confirmed() const { return confirmed_; }

 private:
  using Lock = std::unique_lock<std::mutex>;

  void write_loop();
  std::vector<std::shared_ptr<const Pending>> next_to_write();
  bool idle();
  void written(std::size_t count, std::size_t bytes);
  void fail(Error error);
  void deliver_failure();
  void deliver_persisted(raft::ReadyId id);
  void deliver_space(bool full);
  void read_loop();
  Result<std::vector<raft::Entry>> answer(const ReadRequest& request);
  const Options options_;
  std::unique_ptr<SegmentStore> store_;
  raft::Membership confirmed_;
  StorageSink* sink_ = nullptr;

  // The caller's thread.
  Shape shape_;
  raft::HardState hard_state_;
  bool state_taken_ = false;

  /// Held while persisted() is called, so that nothing is persisted after failed(). Taken before
  /// mutex_.
  std::mutex delivery_;
  bool failure_delivered_ = false;

  std::mutex mutex_;
  std::condition_variable write_wanted_;
  std::condition_variable read_wanted_;
  // Under mutex_.
  PendingList pending_;  ///< what is being written stands in front
  std::size_t pending_bytes_ = 0;
  std::deque<ReadRequest> reads_;
  std::optional<Error> failure_;
  bool stopping_ = false;

  std::thread writer_;
  std::thread reader_;
};

SegmentLog::Impl::Impl(const Options& options, std::unique_ptr<SegmentStore> store)
    : options_(options), store_(std::move(store)) {
  confirmed_ = store_->foundation().confirmed.value_or(raft::Membership());
}

SegmentLog::Impl::~Impl() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  write_wanted_.notify_all();
  read_wanted_.notify_all();
  if (writer_.joinable()) writer_.join();
  store_->stop();
  if (reader_.joinable()) reader_.join();
}

// Before start().

Result<void> SegmentLog::Impl::confirm_set(std::vector<raft::Member> members,
                                           const std::optional<raft::GroupSettings>& settings) {
  LEASEHOLD_ASSERT(!writer_.joinable());
  std::sort(members.begin(), members.end(),
            [](const raft::Member& a, const raft::Member& b) { return a.id < b.id; });
  raft::Membership set;
  for (const raft::Member& member : members) set.voters.push_back(member.id);
  set.members = std::move(members);
  set.settings = settings;

  if (joined()) {
    return Error{ErrorCode::wrong_cluster, "this node joins a group that exists, and forms none"};
  }
  if (!confirmed_.members.empty()) {
    if (confirmed_ == set) return {};
    return Error{ErrorCode::wrong_cluster,
                 "this node has confirmed another set of initial members: all peers of a new "
                 "cluster have to start on empty folders, with the same peers"};
  }
  const raft::Member* self = set.find(options_.id);
  if (self == nullptr || self->uuid != store_->identity().uuid) {
    return Error{ErrorCode::invalid_argument, "this node is not in the set of initial members"};
  }
  // Stores nothing that the decoder would refuse.
  if (const auto decoded = raft::decode_membership(raft::encode_membership(set).view()); !decoded) {
    return Error{ErrorCode::invalid_argument,
                 "the set of initial members is not valid: " + decoded.error().message};
  }
  Foundation foundation = store_->foundation();
  foundation.confirmed = std::move(set);
  auto laid = store_->lay(std::move(foundation));
  if (laid) confirmed_ = *store_->foundation().confirmed;
  return laid;
}

Result<void> SegmentLog::Impl::form(raft::LogId base) {
  LEASEHOLD_ASSERT(!writer_.joinable());
  if (formed()) return {};
  Foundation foundation = store_->foundation();
  if (!foundation.confirmed) {
    return Error{ErrorCode::invalid_argument, "no set of initial members was confirmed"};
  }
  foundation.base = raft::LogBase{base, *foundation.confirmed};
  return store_->lay(std::move(foundation));
}

Result<void> SegmentLog::Impl::join() {
  LEASEHOLD_ASSERT(!writer_.joinable());
  if (joined()) return {};
  if (store_->foundation().confirmed) {
    return Error{
        ErrorCode::wrong_cluster,
        "this node has confirmed a set of initial members, and belongs to that group: start "
        "it as one of them, or with an empty folder"};
  }
  Foundation foundation;
  foundation.confirmed = raft::Membership{};
  foundation.base = raft::LogBase{};
  return store_->lay(std::move(foundation));
}

bool SegmentLog::Impl::joined() const {
  const Foundation& foundation = store_->foundation();
  return foundation.confirmed && foundation.confirmed->members.empty();
}

raft::InitialState SegmentLog::Impl::take_initial_state() {
  LEASEHOLD_ASSERT(formed());
  LEASEHOLD_ASSERT(!state_taken_);
  state_taken_ = true;
  shape_ = store_->shape();
  hard_state_ = store_->hard_state();

  raft::InitialState state;
  state.hard_state = hard_state_;
  state.base = shape_.base();
  state.base_membership = store_->foundation().base->membership;
  state.runs = shape_.runs();
  state.last_index = shape_.last().index;
  state.memberships = store_->memberships();
  state.bytes = store_->payload_bytes();
  return state;
}

void SegmentLog::Impl::start(StorageSink& sink) {
  LEASEHOLD_ASSERT(state_taken_);
  LEASEHOLD_ASSERT(sink_ == nullptr);
  sink_ = &sink;
  store_->start({[this](bool full) { deliver_space(full); },
                 [this](Error error) { fail(std::move(error)); }});
  writer_ = std::thread([this] { write_loop(); });
  reader_ = std::thread([this] { read_loop(); });
}

// Writing.

void SegmentLog::Impl::persist(raft::PersistBatch batch) {
  LEASEHOLD_ASSERT(sink_ != nullptr);
  LEASEHOLD_ASSERT(!(batch.reset && batch.cut));
  auto pending = std::make_shared<Pending>();
  if (batch.hard_state) hard_state_ = *batch.hard_state;
  if (batch.reset) {
    LEASEHOLD_ASSERT(batch.reset->id.index >= shape_.base().index);
    shape_ = Shape(batch.reset->id, {}, batch.reset->id);
  }
  if (batch.truncate_from) shape_.truncate(*batch.truncate_from);
  pending->previous_term = shape_.last().term;
  pending->bytes = kBatchOverheadBytes;
  for (const raft::Entry& entry : batch.entries) {
    shape_.append(entry.id);
    pending->bytes += kEntryOverheadBytes + entry.payload.size();
  }
  if (batch.cut) shape_.cut(batch.cut->id);
  if (batch.reset || batch.cut) {
    const auto& membership = (batch.reset ? batch.reset : batch.cut)->membership;
    pending->bytes += raft::encode_membership(membership).size() +
                      raft::encode_membership(*store_->foundation().confirmed).size();
  }
  pending->state = {hard_state_, shape_.last()};
  pending->batch = std::move(batch);
  bool fits = false;
  {
    const Lock lock(mutex_);
    if (failure_) return;
    pending_bytes_ += pending->bytes;
    pending_.push_back(std::move(pending));
    fits = pending_bytes_ <= options_.queue_bytes_max;
  }
  if (fits) {
    // Without the lock, or the writer would wake up to wait for it.
    write_wanted_.notify_one();
    return;
  }
  fail(Error{ErrorCode::overloaded,
             fmt::format("the log in {}: more than {} bytes wait for the disk, which does not keep "
                         "up: check the disk",
                         store_->path(), options_.queue_bytes_max)});
}

/// Waits for work. Empty: there is none and there will be none.
std::vector<std::shared_ptr<const Pending>> SegmentLog::Impl::next_to_write() {
  std::vector<std::shared_ptr<const Pending>> group;
  Lock lock(mutex_);
  write_wanted_.wait(lock, [this] { return !pending_.empty() || stopping_ || failure_; });
  if (failure_) return group;
  if (pending_.empty()) return group;
  const std::size_t bytes_max =
      std::min(options_.sync_bytes_max, store_->group_bytes_max(pending_.front()->bytes));
  std::size_t bytes = 0;
  for (const auto& pending : pending_) {
    bytes += pending->bytes;
    if (!group.empty() && bytes > bytes_max) break;
    group.push_back(pending);
  }
  return group;
}

void SegmentLog::Impl::write_loop() {
  for (;;) {
    auto group = next_to_write();
    if (group.empty()) return;
    auto done = store_->append(merge(group));
    if (!done && done.error().code == kNoSpace && group.size() > 1) {
      // The disk was not known to be full when the group was made. Now it is: groups that follow
      // fit, if they can.
      group.resize(1);
      done = store_->append(merge(group));
    }
    if (!done) {
      fail(Error{final_code(done.error().code), done.error().message});
      deliver_failure();
      return;
    }
    std::size_t bytes = 0;
    for (const auto& pending : group) bytes += pending->bytes;
    written(group.size(), bytes);
    deliver_persisted(group.back()->batch.id);
    if (!idle()) continue;
    if (auto rested = store_->rest(); !rested) {
      fail(rested.error());
      deliver_failure();
      return;
    }
  }
}

bool SegmentLog::Impl::idle() {
  const Lock lock(mutex_);
  return pending_.empty() && !failure_;
}

void SegmentLog::Impl::written(std::size_t count, std::size_t bytes) {
  const Lock lock(mutex_);
  if (failure_) return;  // the queue is empty already
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(count));
  pending_bytes_ -= bytes;
}

void SegmentLog::Impl::fail(Error error) {
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

void SegmentLog::Impl::deliver_failure() {
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

void SegmentLog::Impl::deliver_persisted(raft::ReadyId id) {
  const std::lock_guard delivering(delivery_);
  {
    const Lock lock(mutex_);
    if (failure_) return;
  }
  sink_->persisted(id);
}

void SegmentLog::Impl::deliver_space(bool full) {
  const std::lock_guard delivering(delivery_);
  {
    const Lock lock(mutex_);
    if (failure_) return;
  }
  sink_->space(full);
}

// Reading.

void SegmentLog::Impl::read(const ReadRequest& request) {
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

void SegmentLog::Impl::read_loop() {
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
  // The writer may hang in the disk: a failure that another thread found is delivered here.
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

Result<std::vector<raft::Entry>> SegmentLog::Impl::answer(const ReadRequest& request) {
  PendingList pending;
  ReadPlan plan;
  // Entries from `touched` on come from the pending batches, or are gone; those up to `base` are
  // gone, too.
  raft::Index touched = request.last.next();
  raft::Index base;
  {
    // Each batch is in one of the two, or in both with the same content.
    const Lock lock(mutex_);
    pending = pending_;
    for (const auto& at : pending) {
      if (at->batch.reset) base = at->batch.reset->id.index;
      if (at->batch.reset) touched = base.next();
      if (const auto lowest = at->lowest()) touched = std::min(touched, *lowest);
      if (at->batch.cut) base = at->batch.cut->id.index;
    }
    if (request.first > base && request.first < touched) {
      plan = store_->plan(request.first, touched.prev(), request.bytes_max);
    }
  }
  Collector out(request);
  if (auto collected = store_->read(plan, out); !collected) return collected.error();
  while (out.next() > base && out.next() >= touched && !out.full()) {
    const raft::Entry* found = nullptr;
    for (auto batch = pending.rbegin(); batch != pending.rend() && found == nullptr; ++batch) {
      found = (*batch)->find(out.next());
      const auto& truncated = (*batch)->batch.truncate_from;
      if ((truncated && *truncated <= out.next()) || (*batch)->batch.reset) break;
    }
    if (found == nullptr) break;
    out.add(*found);
  }
  return out.finish();
}

// The public face.

Result<std::unique_ptr<SegmentLog>> SegmentLog::open(const Options& options) {
  if (options.dir.empty()) {
    return Error{ErrorCode::invalid_argument, "the log needs a folder: give `dir`"};
  }
  auto disk = open_posix_disk(options.dir);
  if (!disk) {
    return Error{final_code(disk.error().code), disk.error().message};
  }
  return open(options, std::move(disk).value());
}

Result<std::unique_ptr<SegmentLog>> SegmentLog::open(const Options& options,
                                                     std::unique_ptr<Disk> disk) {
  auto store = SegmentStore::open(options, std::move(disk));
  if (!store) return store.error();
  return std::unique_ptr<SegmentLog>(
      new SegmentLog(std::make_unique<Impl>(options, std::move(store).value())));
}

SegmentLog::SegmentLog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SegmentLog::~SegmentLog() = default;

std::uint64_t SegmentLog::place() const {
  return impl_->store().place();
}

const NodeIdentity& SegmentLog::identity() const {
  return impl_->store().identity();
}
const std::vector<raft::Member>& SegmentLog::confirmed_set() const {
  return impl_->confirmed().members;
}
const std::optional<raft::GroupSettings>& SegmentLog::confirmed_settings() const {
  return impl_->confirmed().settings;
}
Result<void> SegmentLog::confirm_set(std::vector<raft::Member> members,
                                     const std::optional<raft::GroupSettings>& settings) {
  return impl_->confirm_set(std::move(members), settings);
}
Result<void> SegmentLog::form(raft::LogId base) {
  return impl_->form(base);
}
Result<void> SegmentLog::join() {
  return impl_->join();
}
bool SegmentLog::formed() const {
  return impl_->formed();
}
bool SegmentLog::joined() const {
  return impl_->joined();
}
raft::InitialState SegmentLog::take_initial_state() {
  return impl_->take_initial_state();
}
void SegmentLog::start(StorageSink& sink) {
  impl_->start(sink);
}
void SegmentLog::persist(raft::PersistBatch batch) {
  impl_->persist(std::move(batch));
}
void SegmentLog::read(const ReadRequest& request) {
  impl_->read(request);
}
std::uint64_t SegmentLog::syncs() const {
  return impl_->store().syncs();
}

}  // namespace leasehold::storage
