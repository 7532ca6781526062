#include <leasehold/server/group_trace.h>
#include <leasehold/story/trace_file.h>

#include <fmt/format.h>

#include <utility>

namespace leasehold::server {
namespace {

/// Of one answer: some hundreds of kilobytes.
constexpr std::size_t kTakenMax = 2000;

}  // namespace

void GroupTrace::start(lease::Duration span, std::function<void(Result<TraceBegun>)> done) {
  group_.status([this, span, done = std::move(done)](const node::NodeStatus& status) {
    done(begin(span, status));
  });
}

Result<TraceBegun> GroupTrace::begin(lease::Duration span, const node::NodeStatus& status) {
  if (!status.formed) {
    return Error{ErrorCode::unavailable,
                 "the group has not formed on this node: there is nothing to record yet"};
  }
  const lease::HolderInstant now = group_.clock().now().holder;
  const std::lock_guard lock(mutex_);
  if (recorder_ && !recorder_->over(now)) {
    return Error{ErrorCode::in_use,
                 fmt::format("this group is being recorded already, for {} more: wait, or stop "
                             "the other leasehold trace",
                             story::format_time(recorder_->until() - now))};
  }
  // Another process of this node cannot have given it.
  id_ = static_cast<std::uint64_t>(now.since_origin().count());
  recorder_ = std::make_shared<TraceRecorder>(status.id, status.incarnation, now, span);
  group_.tap(recorder_);
  return TraceBegun{id_, status.id, status.incarnation, now};
}

std::shared_ptr<TraceRecorder> GroupTrace::find(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  return id == id_ ? recorder_ : nullptr;
}

Result<TraceTaken> GroupTrace::next(std::uint64_t id) {
  const std::shared_ptr<TraceRecorder> recorder = find(id);
  if (!recorder) return Error{ErrorCode::not_found, "there is no such recording, or no more"};
  TraceTaken out;
  out.at = group_.clock().now().holder;
  TraceRecorder::Taken taken = recorder->take(kTakenMax, out.at);
  out.dropped = taken.dropped;
  out.more = taken.more;
  out.ended = std::move(taken.ended);
  for (const story::Record& record : taken.records) {
    out.records.push_back(story::encode_record(record));
  }
  // A record may be younger than the instant above.
  out.at = group_.clock().now().holder;
  return out;
}

Result<void> GroupTrace::stop(std::uint64_t id) {
  const std::shared_ptr<TraceRecorder> recorder = find(id);
  if (!recorder) return Error{ErrorCode::not_found, "there is no such recording, or no more"};
  recorder->stop();
  return {};
}

void GroupTrace::look() {
  const lease::HolderInstant now = group_.clock().now().holder;
  const std::lock_guard lock(mutex_);
  if (!recorder_ || !recorder_->over(now)) return;
  // Who has asked for it takes the rest within a moment.
  if (now < recorder_->until() + TraceRecorder::kUnaskedMax) return;
  recorder_.reset();
  // A group at rest has no turn in which it would let it go.
  group_.tap(nullptr);
}

TraceCalls GroupTrace::calls() {
  return {[this](lease::Duration span, std::function<void(Result<TraceBegun>)> done) {
            start(span, std::move(done));
          },
          [this](std::uint64_t id) { return next(id); },
          [this](std::uint64_t id) { return stop(id); }};
}

}  // namespace leasehold::server
