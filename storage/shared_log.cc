#include <leasehold/storage/posix_disk.h>
#include <leasehold/storage/shared_log.h>

#include <fmt/format.h>

#include <algorithm>
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
    : threads_(options, std::move(store)), process_(threads_.store().process()) {
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

void SharedLog::give_back(std::unique_ptr<GroupLog> log) {
  const raft::GroupId group = log->group();
  threads_.store().give_back(group, std::move(*log).found());
  const std::lock_guard lock(mutex_);
  opened_.erase(group);
}

Result<void> SharedLog::remove_group(raft::GroupId group, raft::NodeId replica) {
  {
    const std::lock_guard lock(mutex_);
    auto known = std::find_if(process_.retired.begin(), process_.retired.end(),
                              [group](const RetiredRecord& one) { return one.group == group; });
    if (known == process_.retired.end()) {
      known = process_.retired.insert(known, {group, raft::kNobody});
    }
    known->highest = std::max(known->highest, replica);
    // In one write: a crash between the two would leave a log whose replica is gone.
    auto pending = process_record();
    pending->group = group;
    pending->removed = true;
    threads_.persist(std::move(pending));
  }
  if (auto done = threads_.flush(); !done) return done;
  static_cast<void>(threads_.store().take_group(group));
  const std::lock_guard lock(mutex_);
  opened_.erase(group);
  return {};
}

raft::NodeId SharedLog::retired(raft::GroupId group) {
  const std::lock_guard lock(mutex_);
  for (const RetiredRecord& one : process_.retired) {
    if (one.group == group) return one.highest;
  }
  return raft::kNobody;
}

std::vector<SupportRecord> SharedLog::supports() {
  const std::lock_guard lock(mutex_);
  return process_.supports;
}

void SharedLog::remember(std::vector<SupportRecord> supports, std::uint64_t write) {
  const std::lock_guard lock(mutex_);
  process_.supports = std::move(supports);
  auto pending = process_record();
  pending->process_write = write;
  threads_.persist(std::move(pending));
}

/// Under mutex_.
std::shared_ptr<Pending> SharedLog::process_record() const {
  auto pending = std::make_shared<Pending>();
  pending->bytes = kRecordOverheadBytes + process_.supports.size() * sizeof(SupportRecord) +
                   process_.retired.size() * sizeof(RetiredRecord);
  pending->process = process_;
  return pending;
}

}  // namespace leasehold::storage
