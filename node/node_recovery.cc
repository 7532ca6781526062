#include <leasehold/base/assert.h>
#include <leasehold/node/node_identity.h>
#include <leasehold/node/node_recovery.h>
#include <leasehold/replica/apply.h>
#include <leasehold/storage/segment_log.h>
#include <leasehold/storage/segment_record.h>

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace leasehold::node {
namespace {

constexpr std::size_t kRestReadBytesMax = std::size_t{4} << 20U;
constexpr raft::GroupId kOnlyGroup{1};

}  // namespace

/// Waits for one answer at a time.
class StoppedLog::Answers final : public storage::StorageSink {
 public:
  void persisted(raft::ReadyId) override {}
  void space(bool) override {}
  void entries_read(std::uint64_t, Result<std::vector<raft::Entry>> entries) override {
    put(std::move(entries));
  }
  void failed(Error error) override { put(std::move(error)); }

  Result<std::vector<raft::Entry>> take() {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [this] { return answer_.has_value(); });
    auto answer = std::move(*answer_);
    answer_.reset();
    return answer;
  }

 private:
  void put(Result<std::vector<raft::Entry>> answer) {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
    came_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable came_;
  std::optional<Result<std::vector<raft::Entry>>> answer_;
};

StoppedLog::StoppedLog(std::unique_ptr<storage::SegmentLog> log, std::unique_ptr<Answers> answers)
    : answers_(std::move(answers)), log_(std::move(log)) {
  describe();
}
StoppedLog::~StoppedLog() = default;

Result<std::unique_ptr<StoppedLog>> StoppedLog::open(const std::string& data_dir) {
  const auto mark = load_mark(data_dir);
  if (!mark.ok()) return mark.error();
  if (!mark.value()) {
    return Error{ErrorCode::not_found,
                 fmt::format("{} has no log of a node: name the --data-dir of a member", data_dir)};
  }
  if (mark.value()->format == storage::kSharedLogFormat) {
    return Error{
        ErrorCode::unsupported,
        fmt::format("{} is of a node with many groups (--groups), which leasehold recover does not "
                    "take yet: restore them from a backup, or start the members that are left "
                    "with others at the places of the lost ones",
                    data_dir)};
  }
  storage::SegmentLogOptions options;
  options.dir = data_dir + "/log";
  options.group = kOnlyGroup;
  options.cluster_id = mark.value()->cluster_id;
  options.id = mark.value()->id;
  auto log = storage::SegmentLog::open(options);
  if (!log.ok()) return log.error();
  if (!log.value()->formed()) {
    return Error{ErrorCode::not_found,
                 fmt::format("{}: its group has never formed, so nothing is lost with it: make all "
                             "members again",
                             data_dir)};
  }
  return std::unique_ptr<StoppedLog>(
      new StoppedLog(std::move(log).value(), std::make_unique<Answers>()));
}

void StoppedLog::describe() {
  const storage::NodeIdentity& self = log_->identity();
  raft::InitialState state = log_->take_initial_state();
  survivor_.cluster_id = self.cluster_id;
  survivor_.id = self.id;
  survivor_.uuid = self.uuid;
  survivor_.base = state.base;
  survivor_.last = state.base;
  if (!state.runs.empty()) survivor_.last = {state.runs.back().term, state.last_index};
  survivor_.membership_index = state.base.index;
  survivor_.membership = std::move(state.base_membership);
  if (!state.memberships.empty()) {
    survivor_.membership_index = state.memberships.back().index;
    survivor_.membership = std::move(state.memberships.back().membership);
  }
  survivor_.promise = state.hard_state.promise.duration;
}

Result<void> StoppedLog::apply_rest(replica::StateMachine& machine, raft::Index applied,
                                    const std::function<void(raft::Index)>& step) {
  const raft::Index last = survivor_.last.index;
  if (applied < survivor_.base.index || applied > last) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("the state is at entry {}, and the log goes from {} to {}",
                             applied.value(), survivor_.base.index.value(), last.value())};
  }
  if (applied == last) return {};
  if (!std::exchange(started_, true)) log_->start(*answers_);
  while (applied < last) {
    log_->read({1, applied.next(), last, kRestReadBytesMax});
    const auto entries = answers_->take();
    if (!entries.ok()) return entries.error();
    LEASEHOLD_ASSERT(!entries.value().empty());
    const auto done =
        replica::apply_entries(entries.value(), raft::kNobody, raft::Incarnation(0), machine);
    if (!done.ok()) return done.error();
    applied = done.value().last;
    if (step) step(applied);
  }
  return {};
}

}  // namespace leasehold::node
