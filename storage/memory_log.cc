#include <leasehold/base/assert.h>
#include <leasehold/storage/memory_log.h>

#include <algorithm>
#include <utility>

namespace leasehold::storage {

MemoryLog::MemoryLog(raft::Membership base_membership) {
  durable_.base.membership = std::move(base_membership);
  newest_ = durable_;
}

void MemoryLog::start(StorageSink& sink) {
  sink_ = &sink;
}

void MemoryLog::Image::apply(const raft::PersistBatch& batch) {
  LEASEHOLD_ASSERT(!(batch.reset && batch.cut));
  if (batch.hard_state) hard_state = *batch.hard_state;
  if (batch.reset) {
    LEASEHOLD_ASSERT(batch.reset->id.index >= base.id.index);
    entries.clear();
    base = *batch.reset;
  }
  if (batch.truncate_from) truncate(*batch.truncate_from);
  for (const raft::Entry& entry : batch.entries) {
    LEASEHOLD_ASSERT(entry.id.index == last().index.next());
    LEASEHOLD_ASSERT(entry.id.term >= last().term);
    entries.push_back(entry);
  }
  if (batch.cut) cut(*batch.cut);
}

void MemoryLog::Image::truncate(raft::Index from) {
  LEASEHOLD_ASSERT(from > base.id.index);
  LEASEHOLD_ASSERT(from <= last().index.next());
  entries.resize(from - base.id.index - 1);
}

void MemoryLog::Image::cut(const raft::LogBase& to) {
  LEASEHOLD_ASSERT(to.id.index >= base.id.index);
  LEASEHOLD_ASSERT(to.id.index <= last().index);
  const std::uint64_t count = to.id.index - base.id.index;
  LEASEHOLD_ASSERT((count == 0 ? base.id : entries[count - 1].id) == to.id);
  entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(count));
  base = to;
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
  // What the sink requests inside its callbacks belongs to the next pump().
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
  const raft::Index base = newest_.base.id.index;
  for (raft::Index i = request.first; i > base && i <= request.last && i <= newest_.last().index;
       i = i.next()) {
    const raft::Entry& entry = newest_.entries[i - base - 1];
    bytes += entry.payload.size();
    if (!found.empty() && bytes > request.bytes_max) break;
    found.push_back(entry);
  }
  if (found.empty()) {
    sink_->entries_read(request.token,
                        Error{ErrorCode::not_found, "the log was cut or truncated meanwhile"});
    return;
  }
  sink_->entries_read(request.token, std::move(found));
}

void MemoryLog::announce_space(bool full) {
  LEASEHOLD_ASSERT(sink_ != nullptr);
  if (!failed_) sink_->space(full);
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
  state.base = durable_.base.id;
  state.base_membership = durable_.base.membership;
  state.last_index = durable_.base.id.index;
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
    state.bytes += entry.payload.size();
  }
  return state;
}

}  // namespace leasehold::storage
