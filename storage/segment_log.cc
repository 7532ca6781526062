#include <leasehold/storage/group_log.h>
#include <leasehold/storage/log_threads.h>
#include <leasehold/storage/posix_disk.h>
#include <leasehold/storage/segment_log.h>

#include <utility>

namespace leasehold::storage {

class SegmentLog::Impl {
 public:
  Impl(const Options& options, std::unique_ptr<SegmentStore> store)
      : threads(options, std::move(store)), log(threads, options.group) {}

  LogThreads threads;
  GroupLog log;
};

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
  auto store = SegmentStore::open(options, std::move(disk), Sharing::one_group);
  if (!store) return store.error();
  return std::unique_ptr<SegmentLog>(
      new SegmentLog(std::make_unique<Impl>(options, std::move(store).value())));
}

SegmentLog::SegmentLog(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SegmentLog::~SegmentLog() = default;

const NodeIdentity& SegmentLog::identity() const {
  return impl_->threads.store().identity();
}
std::uint64_t SegmentLog::place() const {
  return impl_->threads.store().place();
}
const std::vector<raft::Member>& SegmentLog::confirmed_set() const {
  return impl_->log.confirmed_set();
}
const std::optional<raft::GroupSettings>& SegmentLog::confirmed_settings() const {
  return impl_->log.confirmed_settings();
}
Result<void> SegmentLog::confirm_set(std::vector<raft::Member> members,
                                     const std::optional<raft::GroupSettings>& settings) {
  return impl_->log.confirm_set(std::move(members), settings);
}
Result<void> SegmentLog::form(raft::LogId base) {
  return impl_->log.form(base);
}
Result<void> SegmentLog::join() {
  return impl_->log.join();
}
bool SegmentLog::formed() const {
  return impl_->log.formed();
}
bool SegmentLog::joined() const {
  return impl_->log.joined();
}
raft::InitialState SegmentLog::take_initial_state() {
  return impl_->log.take_initial_state();
}
void SegmentLog::start(StorageSink& sink) {
  impl_->log.start(sink);
}
void SegmentLog::persist(raft::PersistBatch batch) {
  impl_->log.persist(std::move(batch));
}
void SegmentLog::read(const ReadRequest& request) {
  impl_->log.read(request);
}
bool SegmentLog::behind() const {
  return impl_->log.behind();
}
GroupLog& SegmentLog::group() {
  return impl_->log;
}
std::uint64_t SegmentLog::syncs() const {
  return impl_->log.syncs();
}

}  // namespace leasehold::storage
