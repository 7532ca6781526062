#include <leasehold/storage/posix_disk.h>
#include <leasehold/storage/shared_log.h>

#include <fmt/format.h>

#include <utility>

namespace leasehold::storage {
namespace {

/// Bookkeeping of a record, as the queue's limit counts it.
constexpr std::size_t kRecordOverheadBytes = 256;

}  // namespace

Result<std::unique_ptr<SharedLog>> SharedLog::open(const SegmentLogOptions& options) {
  if (options.dir.empty()) {
    return Error{ErrorCode::invalid_argument, "the log needs a folder: give `dir`"};
  }
  auto disk = open_posix_disk(options.dir);
  if (!disk) return Error{final_code(disk.error().code), disk.error().message};
  return open(options, std::move(disk).value());
}

Result<std::unique_ptr<SharedLog>> SharedLog::open(const SegmentLogOptions& options,
                                                   std::unique_ptr<Disk> disk) {
  auto store = SegmentStore::open(options, std::move(disk), Sharing::shared);
  if (!store) return store.error();
  return std::unique_ptr<SharedLog>(new SharedLog(options, std::move(store).value()));
}

SharedLog::SharedLog(const SegmentLogOptions& options, std::unique_ptr<SegmentStore> store)
    : threads_(options, std::move(store)), supports_(threads_.store().process().supports) {
  threads_.start();
}

Result<std::unique_ptr<GroupLog>> SharedLog::open_group(raft::GroupId group) {
  {
    const std::lock_guard lock(mutex_);
    if (!opened_.insert(group).second) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("group {} was open in this process before: start the process again",
                               group.value())};
    }
  }
  return std::make_unique<GroupLog>(threads_, group);
}

Result<void> SharedLog::remove_group(raft::GroupId group) {
  auto pending = std::make_shared<Pending>();
  pending->group = group;
  pending->removed = true;
  pending->bytes = kRecordOverheadBytes;
  if (auto done = threads_.write_now(std::move(pending)); !done) return done;
  static_cast<void>(threads_.store().take_group(group));
  const std::lock_guard lock(mutex_);
  opened_.erase(group);
  return {};
}

void SharedLog::remember(std::vector<SupportRecord> supports, std::uint64_t write) {
  supports_ = supports;
  auto pending = std::make_shared<Pending>();
  pending->bytes = kRecordOverheadBytes + supports.size() * sizeof(SupportRecord);
  pending->process = ProcessRecord{std::move(supports)};
  pending->process_write = write;
  threads_.persist(std::move(pending));
}

}  // namespace leasehold::storage
