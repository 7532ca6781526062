#include <leasehold/base/assert.h>
#include <leasehold/replica/apply_queue.h>

#include <algorithm>
#include <string>
#include <utility>

namespace leasehold::replica {

void ApplyQueue::raise_target(raft::Index target) {
  target_ = std::max(target_, target);
}

void ApplyQueue::pump() {
  const Limits& limits = context_.limits;
  if (handed_ < context_.core.log().base().index) return;  // the snapshot comes first
  while (handed_ < target_ && under_way_ < limits.applies_max && token_ == 0) {
    const raft::Index first = handed_.next();
    if (!cache_.contains(first)) {
      raft::Index last = target_;
      if (!cache_.empty()) last = std::min(last, cache_.first().prev());
      token_ = ++context_.last_read_token;
      context_.ports.storage.read({token_, first, last, limits.apply_bytes_max});
      return;
    }
    std::vector<raft::Entry> entries;
    cache_.copy(first, target_, limits.apply_bytes_max, entries);
    pass_on(std::move(entries));
  }
}

void ApplyQueue::pass_on(std::vector<raft::Entry> entries) {
  handed_ = entries.back().id.index;
  ++under_way_;
  context_.ports.applier.apply(std::move(entries));
}

void ApplyQueue::install(const raft::SnapshotId& id) {
  LEASEHOLD_ASSERT(id.last.index > handed_);
  LEASEHOLD_ASSERT(installing_.empty() || context_.core.options().witness);
  handed_ = id.last.index;
  raise_target(handed_);
  token_ = 0;  // the snapshot has what it reads
  installing_.push_back(id.last);
  ++under_way_;
  context_.ports.applier.install(id);
}

std::optional<raft::LogId> ApplyQueue::applied(raft::Index last) {
  LEASEHOLD_ASSERT(under_way_ > 0);
  --under_way_;
  if (installing_.empty() || installing_.front().index != last) return std::nullopt;
  const raft::LogId installed = installing_.front();
  installing_.erase(installing_.begin());
  return installed;
}

bool ApplyQueue::entries_read(EntriesRead& event, std::optional<Error>& failure) {
  if (token_ == 0 || event.token != token_) return false;
  token_ = 0;
  // A snapshot has replaced the log meanwhile: install() follows.
  if (handed_ < context_.core.log().base().index) return true;
  if (!event.entries.ok()) {
    failure = event.entries.error();
    return true;
  }
  std::vector<raft::Entry>& entries = event.entries.value();
  raft::Index expected = handed_.next();
  for (const raft::Entry& entry : entries) {
    // Committed entries never change, so a difference can only be damage.
    if (entry.id.index != expected || !context_.core.log().matches(entry.id)) {
      failure = Error{ErrorCode::corrupted,
                      "the log on disk does not hold committed entry " +
                          std::to_string(expected.value()) +
                          " as it was written; restore this node from a healthy member"};
      return true;
    }
    expected = expected.next();
  }
  if (!entries.empty()) pass_on(std::move(entries));
  return true;
}

}  // namespace leasehold::replica
