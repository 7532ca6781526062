#include <leasehold/base/assert.h>
#include <leasehold/node/node_identity.h>
#include <leasehold/node/node_recovery.h>
#include <leasehold/replica/apply.h>
#include <leasehold/storage/group_log.h>
#include <leasehold/storage/segment_log.h>
#include <leasehold/storage/segment_record.h>
#include <leasehold/storage/shared_log.h>

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

Result<storage::FolderMark> mark_of(const std::string& data_dir) {
  auto mark = load_mark(data_dir);
  if (!mark.ok()) return mark.error();
  if (mark.value()) return *mark.value();
  return Error{ErrorCode::not_found,
               fmt::format("{} has no log of a node: name the --data-dir of a member", data_dir)};
}

storage::SegmentLogOptions log_options(const std::string& data_dir,
                                       const storage::FolderMark& mark) {
  storage::SegmentLogOptions options;
  options.dir = data_dir + "/log";
  options.group = kOnlyGroup;
  options.cluster_id = mark.cluster_id;
  options.id = mark.id;
  return options;
}

Error never_formed(const std::string& data_dir) {
  return {ErrorCode::not_found,
          fmt::format("{}: its group has never formed, so nothing is lost with it: make all "
                      "members again",
                      data_dir)};
}

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

StoppedLog::StoppedLog(std::unique_ptr<storage::SegmentLog> whole,
                       std::unique_ptr<storage::GroupLog> log)
    : answers_(std::make_unique<Answers>()), whole_(std::move(whole)), log_(std::move(log)) {}
StoppedLog::~StoppedLog() = default;

storage::GroupLog& StoppedLog::log() {
  return whole_ != nullptr ? whole_->group() : *log_;
}

Result<bool> has_many_groups(const std::string& data_dir) {
  const auto mark = mark_of(data_dir);
  if (!mark.ok()) return mark.error();
  return mark.value().format == storage::kSharedLogFormat;
}

Result<std::unique_ptr<StoppedLog>> StoppedLog::open(const std::string& data_dir) {
  const auto mark = mark_of(data_dir);
  if (!mark.ok()) return mark.error();
  if (mark.value().format == storage::kSharedLogFormat) {
    return Error{ErrorCode::unsupported,
                 fmt::format("{} is of a host with many groups: open all of it", data_dir)};
  }
  auto log = storage::SegmentLog::open(log_options(data_dir, mark.value()));
  if (!log.ok()) return log.error();
  if (!log.value()->formed()) return never_formed(data_dir);
  std::unique_ptr<StoppedLog> out(new StoppedLog(std::move(log).value(), nullptr));
  const storage::NodeIdentity self = out->whole_->identity();
  out->describe(self.cluster_id, self.id, self.uuid);
  return out;
}

void StoppedLog::describe(std::uint64_t cluster_id, raft::NodeId id, const raft::Uuid& uuid) {
  raft::InitialState state = log().take_initial_state();
  survivor_.cluster_id = cluster_id;
  survivor_.id = id;
  survivor_.uuid = uuid;
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

// ---- A host with many groups ----

StoppedHost::StoppedHost(std::unique_ptr<storage::SharedLog> shared) : shared_(std::move(shared)) {}
StoppedHost::~StoppedHost() = default;

Result<std::unique_ptr<StoppedHost>> StoppedHost::open(const std::string& data_dir) {
  const auto mark = mark_of(data_dir);
  if (!mark.ok()) return mark.error();
  if (mark.value().format != storage::kSharedLogFormat) {
    return Error{ErrorCode::unsupported,
                 fmt::format("{} is of a node with one group: open its log", data_dir)};
  }
  auto shared = storage::SharedLog::open(log_options(data_dir, mark.value()));
  if (!shared.ok()) return shared.error();
  std::unique_ptr<StoppedHost> out(new StoppedHost(std::move(shared).value()));
  if (auto opened = out->open_groups(); !opened.ok()) return opened.error();
  if (out->logs_.empty()) return never_formed(data_dir);
  return out;
}

Result<void> StoppedHost::open_groups() {
  const storage::NodeIdentity self = shared_->identity();
  survivor_.cluster_id = self.cluster_id;
  survivor_.id = self.id;
  survivor_.uuid = self.uuid;
  // The host's beats prolong the leases of all its groups.
  raft::Duration promise{0};
  for (const storage::SupportRecord& support : shared_->supports()) {
    promise = std::max(promise, support.duration);
  }
  for (const raft::GroupId group : shared_->groups()) {
    auto log = shared_->open_group(group);
    if (!log.ok()) return log.error();
    if (!log.value()->formed()) {
      shared_->give_back(std::move(log).value());
      continue;
    }
    std::unique_ptr<StoppedLog> one(new StoppedLog(nullptr, std::move(log).value()));
    one->describe(self.cluster_id, raft::kNobody, self.uuid);
    Survivor& survivor = one->survivor_;
    for (const raft::Member& member : survivor.membership.members) {
      if (member.uuid == self.uuid) survivor.id = member.id;
    }
    // It joins, or was removed, and is no member that anybody counts.
    if (survivor.id == raft::kNobody) continue;
    survivor.promise = std::max(survivor.promise, promise);
    survivor_.groups.push_back({group, survivor});
    logs_.emplace(group, std::move(one));
  }
  return {};
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
  if (!std::exchange(started_, true)) log().start(*answers_);
  while (applied < last) {
    log().read({1, applied.next(), last, kRestReadBytesMax});
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
