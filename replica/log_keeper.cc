#include <leasehold/base/assert.h>
#include <leasehold/replica/log_keeper.h>

#include <algorithm>
#include <utility>

namespace leasehold::replica {
namespace {

constexpr std::size_t kMarksMax = 1024;
/// The weight of an entry without a payload in the log.
constexpr std::uint64_t kEntryBytes = 32;
/// The pause between two questions to the state machine.
constexpr lease::Duration kAskPause = std::chrono::seconds(1);

}  // namespace

LogKeeper::LogKeeper(DriverContext& context, lease::Now now, std::uint64_t bytes,
                     raft::Index durable)
    : context_(context), machine_durable_(durable) {
  const Limits& limits = context.limits;
  const raft::Log& log = context.core.log();
  const raft::Index base = log.base().index;
  mark_bytes_ = std::max<std::uint64_t>(1, (limits.log_tail_bytes + limits.log_cut_bytes) / 256);
  marks_.push_back({base, 0, now.promise});
  tail_ = {log.last_index(), bytes + kEntryBytes * (log.last_index() - base), now.promise};
}

void LogKeeper::appended(lease::Now now, const std::vector<raft::Entry>& entries) {
  for (const raft::Entry& entry : entries) {
    tail_ = {entry.id.index, tail_.bytes + entry.payload.size() + kEntryBytes, now.promise};
    const lease::Duration apart = context_.limits.log_age_max / 16;
    const Mark& newest = marks_.back();
    if (tail_.bytes - newest.bytes >= mark_bytes_ ||
        (apart.count() > 0 && now.promise - newest.at >= apart)) {
      marks_.push_back(tail_);
      if (marks_.size() > kMarksMax) thin_out();
    }
  }
}

/// In a log that is never cut the marks get further and further apart.
void LogKeeper::thin_out() {
  std::vector<Mark> kept;
  for (std::size_t i = 0; i < marks_.size(); i += 2) kept.push_back(marks_[i]);
  marks_ = std::move(kept);
  mark_bytes_ *= 2;
}

void LogKeeper::truncated(raft::Index from) {
  const raft::Index last = std::max(from.prev(), marks_.front().index);
  const std::uint64_t bytes = bytes_up_to(last);
  while (marks_.back().index > last) marks_.pop_back();
  tail_ = {last, bytes, tail_.at};
}

void LogKeeper::reset(lease::Now now, raft::Index base) {
  tail_ = {base, tail_.bytes, now.promise};
  marks_.assign(1, tail_);
}

/// Between two marks every entry is taken to be as large as their average, rounded up.
std::uint64_t LogKeeper::bytes_up_to(raft::Index index) const {
  if (index <= marks_.front().index) return marks_.front().bytes;
  if (index >= tail_.index) return tail_.bytes;
  const auto above =
      std::upper_bound(marks_.begin(), marks_.end(), index,
                       [](raft::Index wanted, const Mark& mark) { return wanted < mark.index; });
  const Mark& low = *std::prev(above);
  const Mark& high = above == marks_.end() ? tail_ : *above;
  const std::uint64_t each = (high.bytes - low.bytes) / (high.index - low.index) + 1;
  return std::min(low.bytes + each * (index - low.index), high.bytes);
}

/// The last index with at most this many bytes up to it.
raft::Index LogKeeper::index_at(std::uint64_t bytes) const {
  if (bytes <= marks_.front().bytes) return marks_.front().index;
  if (bytes >= tail_.bytes) return tail_.index;
  const auto above =
      std::upper_bound(marks_.begin(), marks_.end(), bytes,
                       [](std::uint64_t wanted, const Mark& mark) { return wanted < mark.bytes; });
  const Mark& low = *std::prev(above);
  const Mark& high = above == marks_.end() ? tail_ : *above;
  const std::uint64_t each = (high.bytes - low.bytes) / (high.index - low.index) + 1;
  return std::min(low.index + (bytes - low.bytes) / each, high.index);
}

raft::Index LogKeeper::old_up_to(lease::Now now) const {
  const lease::Duration age = context_.limits.log_age_max;
  raft::Index old = marks_.front().index;
  if (age.count() == 0) return old;
  const raft::PromiseInstant limit = now.promise - age;
  if (tail_.at <= limit) return tail_.index;
  for (const Mark& mark : marks_) {
    if (mark.at > limit) break;
    old = mark.index;
  }
  return old;
}

/// Never cuts an entry that is not applied, or that a peer needs after the snapshot that it gets.
raft::Index LogKeeper::allowed(raft::Index want, std::optional<raft::Index> holds) const {
  want = std::min({want, context_.applied, context_.core.cut_limit()});
  if (holds && tail_.bytes - bytes_up_to(*holds) <= context_.limits.log_held_bytes_max) {
    want = std::min(want, *holds);
  }
  return want;
}

std::optional<raft::Index> LogKeeper::wanted(lease::Now now,
                                             std::optional<raft::Index> holds) const {
  const Limits& limits = context_.limits;
  raft::Index want = old_up_to(now);
  if (bytes() >= limits.log_tail_bytes + limits.log_cut_bytes) {
    want = std::max(want, index_at(tail_.bytes - limits.log_tail_bytes));
  }
  want = allowed(want, holds);
  if (want <= marks_.front().index) return std::nullopt;
  return want;
}

void LogKeeper::ask(lease::Now now) {
  asking_ = true;
  ask_at_ = now.promise + kAskPause;
  demands_asked_ = demands_.size();
  context_.ports.snapshots.make_durable();
}

void LogKeeper::cut(lease::Now now, raft::Index to) {
  context_.core.cut_log(now, to);
  ++context_.counters.log_cuts;
  const Mark mark{to, bytes_up_to(to), marks_.front().at};
  const auto above =
      std::find_if(marks_.begin(), marks_.end(), [to](const Mark& one) { return one.index > to; });
  marks_.erase(marks_.begin(), above);
  marks_.insert(marks_.begin(), mark);
}

void LogKeeper::demanded(CutLog& event) {
  if (unsupported_) {
    context_.completions.add(
        event.done, Error{ErrorCode::unsupported,
                          "the log is never cut: the state machine does not make itself durable"});
  } else if (demands_.size() >= context_.limits.cuts_waiting_max) {
    context_.completions.add(event.done,
                             Error{ErrorCode::overloaded, "too many callers wait for a snapshot"});
  } else {
    demands_.push_back(std::move(event.done));
  }
}

/// True: the core got an input.
bool LogKeeper::meet_demands(lease::Now now, std::optional<raft::Index> holds) {
  LogCut done;
  done.durable = machine_durable_;
  done.first_before = marks_.front().index.next();
  done.bytes_before = bytes();
  const std::uint64_t tail = std::min(bytes(), context_.limits.log_tail_bytes);
  const raft::Index want = std::max(old_up_to(now), index_at(tail_.bytes - tail));
  const raft::Index to =
      std::min({allowed(want, holds), machine_durable_, context_.core.durable_index()});
  const bool cuts = to > marks_.front().index;
  if (cuts) cut(now, to);
  done.first = marks_.front().index.next();
  done.bytes = bytes();
  for (std::size_t i = 0; i < demands_answered_; ++i) context_.completions.add(demands_[i], done);
  demands_.erase(demands_.begin(),
                 demands_.begin() + static_cast<std::ptrdiff_t>(demands_answered_));
  demands_asked_ -= std::min(demands_asked_, demands_answered_);
  demands_answered_ = 0;
  return cuts;
}

void LogKeeper::complete_all() {
  for (LogCutCompletion& demand : demands_) {
    context_.completions.add(demand, Error{ErrorCode::stopped, "the node is stopping"});
  }
  demands_.clear();
  demands_asked_ = 0;
  demands_answered_ = 0;
}

bool LogKeeper::turn(lease::Now now, std::optional<raft::Index> holds) {
  // On a full disk the question could only fail: cut what is durable already.
  if (context_.disk_full) demands_answered_ = demands_.size();
  if (demands_answered_ > 0 && meet_demands(now, holds)) return true;
  if (unsupported_ || asking_) return false;
  if (!demands_.empty()) {
    ask(now);
    return false;
  }
  const std::optional<raft::Index> want = wanted(now, holds);
  if (!want) return false;
  const raft::Index base = marks_.front().index;
  const raft::Index to = std::min({*want, machine_durable_, context_.core.durable_index()});
  const std::uint64_t freed = bytes_up_to(to) - marks_.front().bytes;
  if (to > base && (to == *want || freed >= context_.limits.log_cut_bytes / 2)) {
    cut(now, to);
    return true;
  }
  // On a full disk the question could only fail.
  if (machine_durable_ < *want && !context_.disk_full && now.promise >= ask_at_) {
    ask(now);
  }
  return false;
}

void LogKeeper::answered(MachineDurable& event, std::optional<Error>& failure) {
  LEASEHOLD_ASSERT(asking_);
  asking_ = false;
  if (event.index.ok()) {
    machine_durable_ = std::max(machine_durable_, event.index.value());
    demands_answered_ = demands_asked_;
  } else if (event.index.error().code == ErrorCode::unsupported) {
    unsupported_ = true;
    demands_asked_ = 0;
    for (LogCutCompletion& demand : std::exchange(demands_, {})) {
      CutLog again{std::move(demand)};
      demanded(again);
    }
  } else {
    failure = event.index.error();
  }
}

void LogKeeper::installed(raft::Index index) {
  machine_durable_ = std::max(machine_durable_, index);
}

}  // namespace leasehold::replica
