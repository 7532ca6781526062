#include <leasehold/base/assert.h>
#include <leasehold/storage/memory_log.h>

#include <algorithm>
#include <utility>

namespace leasehold::storage {

MemoryLog::MemoryLog(raft::Membership base_membership)
    : base_membership_(std::move(base_membership)) {}

void MemoryLog::start(StorageSink& sink) {
  sink_ = &sink;
}

void MemoryLog::Image::apply(const raft::PersistBatch& batch) {
  if (batch.hard_state) hard_state = *batch.hard_state;
  if (batch.truncate_from) {
    LEASEHOLD_ASSERT(batch.truncate_from->value() >= 1);
    LEASEHOLD_ASSERT(batch.truncate_from->value() <= entries.size());
    entries.resize(batch.truncate_from->value() - 1);
  }
  for (const raft::Entry& entry : batch.entries) {
    LEASEHOLD_ASSERT(entry.id.index.value() == entries.size() + 1);
    LEASEHOLD_ASSERT(entries.empty() || entry.id.term >= entries.back().id.term);
    entries.push_back(entry);
  }
}

void MemoryLog::persist(raft::PersistBatch batch) {
  LEASEHOLD_ASSERT(sink_ != nullptr);
  if (failed_) return;
  newest_.apply(batch);
  waiting_.push_back(std::move(batch));
}

void MemoryLog::read(const ReadRequest& request) {
  LEASEHOLD_ASSERT(sink_ != nullptr);
  LEASEHOLD_ASSERT(request.first.value() >= 1);
  LEASEHOLD_ASSERT(request.first <= request.last);
  reads_.push_back(request);
}

bool MemoryLog::pump(std::size_t batches_max) {
  LEASEHOLD_ASSERT(sink_ != nullptr);
  // What the sink asks for from inside its callbacks belongs to the next pump.
  const std::size_t reads = reads_.size();
  const std::size_t batches = std::min(batches_max, waiting_.size());
  if (batches > 0) {
    raft::ReadyId newest;
    for (std::size_t i = 0; i < batches; ++i) {
      newest = waiting_.front().id;
      durable_.apply(waiting_.front());
      waiting_.pop_front();
    }
    ++syncs_;
    sink_->persisted(newest);
  }
  for (std::size_t i = 0; i < reads; ++i) {
    const ReadRequest request = reads_.front();
    reads_.pop_front();
    answer(request);
  }
  return batches + reads > 0;
}

void MemoryLog::answer(const ReadRequest& request) {
  if (failed_) {
    sink_->entries_read(request.token, Error{ErrorCode::stopped, "the log has failed"});
    return;
  }
  std::vector<raft::Entry> found;
  std::size_t bytes = 0;
  for (std::uint64_t i = request.first.value();
       i <= request.last.value() && i <= newest_.entries.size(); ++i) {
    const raft::Entry& entry = newest_.entries[i - 1];
    bytes += entry.payload.size();
    if (!found.empty() && bytes > request.bytes_max) break;
    found.push_back(entry);
  }
  if (found.empty()) {
    sink_->entries_read(request.token,
                        Error{ErrorCode::not_found, "the log was truncated meanwhile"});
    return;
  }
  sink_->entries_read(request.token, std::move(found));
}

void MemoryLog::fail(Error error) {
  LEASEHOLD_ASSERT(sink_ != nullptr);
  if (failed_) return;
  failed_ = true;
  waiting_.clear();
  sink_->failed(std::move(error));
}

void MemoryLog::crash() {
  waiting_.clear();
  reads_.clear();
  newest_ = durable_;
  sink_ = nullptr;
  failed_ = false;
}

raft::InitialState MemoryLog::initial_state() const {
  raft::InitialState state;
  state.hard_state = durable_.hard_state;
  state.base_membership = base_membership_;
  for (const raft::Entry& entry : durable_.entries) {
    if (state.runs.empty() || state.runs.back().term != entry.id.term) {
      state.runs.push_back(raft::TermRun{entry.id.term, entry.id.index});
    }
    if (entry.kind == raft::EntryKind::membership) {
      auto membership = raft::decode_membership(entry.payload.view());
      LEASEHOLD_ASSERT(membership.ok());  // it was encoded in this process
      state.memberships.push_back(
          raft::MembershipAt{entry.id.index, std::move(membership).value()});
    }
    state.last_index = entry.id.index;
  }
  return state;
}

}  // namespace leasehold::storage
