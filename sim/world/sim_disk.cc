#include <leasehold/base/assert.h>
#include <leasehold/sim/world/sim_disk.h>

#include <algorithm>
#include <string>
#include <utility>

namespace leasehold::sim {

void DiskImage::apply(const raft::PersistBatch& batch) {
  if (batch.hard_state) hard_state = *batch.hard_state;
  if (batch.reset) {
    LEASEHOLD_ASSERT(!batch.cut);
    base = *batch.reset;
    entries.clear();
  }
  const std::uint64_t front = base_id().index.value();
  if (batch.truncate_from) {
    LEASEHOLD_ASSERT(batch.truncate_from->value() > front);
    if (*batch.truncate_from <= last_index()) {
      entries.resize(batch.truncate_from->value() - front - 1);
    }
  }
  for (const raft::Entry& entry : batch.entries) {
    LEASEHOLD_ASSERT(entry.id.index == last_index().next());
    entries.push_back(entry);
  }
  if (batch.cut) cut(*batch.cut);
}

void DiskImage::cut(const raft::LogBase& to) {
  LEASEHOLD_ASSERT(to.id.index > base_id().index && to.id.index <= last_index());
  LEASEHOLD_ASSERT(entry(to.id.index).id == to.id);
  const std::uint64_t gone = to.id.index.value() - base_id().index.value();
  entries.erase(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(gone));
  base = to;
}

const raft::Entry& DiskImage::entry(raft::Index index) const {
  LEASEHOLD_ASSERT(index > base_id().index);
  LEASEHOLD_ASSERT(index <= last_index());
  return entries[index.value() - base_id().index.value() - 1];
}

SimDisk::SimDisk(World& world, std::uint64_t node,
                 std::function<void(const raft::PersistBatch&)> watch, std::uint64_t salt)
    : world_(world),
      node_(node),
      watch_(std::move(watch)),
      random_(random_for(world.plan.seed, salt + 100 + node)) {}

void SimDisk::open(storage::StorageSink& sink, RunInProcess run) {
  sink_ = &sink;
  run_ = std::move(run);
  if (!full_) return;
  // Reported when the process runs, not while it is being made.
  world_.queue.after(Duration{0}, [this, life = life_] {
    if (life == life_) tell_space();
  });
}

std::pair<std::size_t, std::size_t> SimDisk::crash() {
  ++life_;
  sink_ = nullptr;
  run_ = nullptr;
  syncing_ = false;
  broken_ = false;
  const std::size_t waiting = waiting_.size();
  std::size_t survive = waiting;
  if (world_.plan.disk.loses_unsynced && waiting > 0) {
    // Often all of it is lost.
    const std::size_t drawn = static_cast<std::size_t>(random_.below(waiting + 1));
    survive = random_.chance(1, 2) ? 0 : drawn;
    if (survive < waiting) world_.used(FaultClass::unsynced_loss);
  }
  for (std::size_t i = 0; i < survive; ++i) durable_.apply(waiting_[i]);
  waiting_.clear();
  written_ = durable_;
  return {waiting, survive};
}

raft::InitialState SimDisk::initial_state(const raft::Membership& formed_with) const {
  raft::InitialState state;
  state.hard_state = durable_.hard_state;
  state.base = durable_.base_id();
  state.base_membership = durable_.base ? durable_.base->membership : formed_with;
  for (const raft::Entry& entry : durable_.entries) {
    if (state.runs.empty() || state.runs.back().term != entry.id.term) {
      state.runs.push_back({entry.id.term, entry.id.index});
    }
    state.bytes += entry.payload.size();
    if (entry.kind != raft::EntryKind::membership) continue;
    Result<raft::Membership> membership = raft::decode_membership(entry.payload.view());
    LEASEHOLD_ASSERT(membership.ok());
    state.memberships.push_back({entry.id.index, std::move(membership).value()});
  }
  state.last_index = durable_.last_index();
  return state;
}

void SimDisk::persist(raft::PersistBatch batch) {
  watch_(batch);
  written_.apply(batch);
  use_reserve(batch);
  waiting_.push_back(std::move(batch));
  ++given_;
  if (!syncing_ && !broken_) start_sync();
}

// ---- A full disk ----

void SimDisk::fill(Duration length) {
  if (full_) return;
  world_.used(FaultClass::full_disk);
  ++world_.snapshots.full_disks;
  full_ = true;
  // From a few heartbeats' worth to more than is used until there is space again.
  reserve_ = static_cast<std::uint64_t>(random_.between(300, 60'000));
  world_.trace.add(TraceKind::space, node_, 0, reserve_);
  tell_space();
  world_.queue.after(length, [this, filling = ++fillings_] {
    if (filling == fillings_) empty();
  });
}

void SimDisk::empty() {
  if (!full_) return;
  full_ = false;
  ++fillings_;
  world_.trace.add(TraceKind::space, node_, 1, reserve_);
  tell_space();
}

void SimDisk::heal() {
  empty();
  if (!syncing_ || broken_) return;
  if (sync_ends_ > world_.queue.now() + world_.plan.disk.sync_max) end_sync_after(draw_sync_time());
}

void SimDisk::tell_space() {
  if (sink_ == nullptr) return;
  run_([this, full = full_] { sink_->space(full); });
}

void SimDisk::use_reserve(const raft::PersistBatch& batch) {
  if (!full_ || broken_) return;
  std::uint64_t bytes = 20;
  for (const raft::Entry& entry : batch.entries) bytes += 20 + entry.payload.size();
  reserve_ -= std::min(reserve_, bytes);
  if (reserve_ > 0) return;
  broken_ = true;
  run_([this] { sink_->failed({ErrorCode::io, "simulated: the disk is full"}); });
}

// ---- Syncs and reads ----

Duration SimDisk::draw_sync_time() {
  const DiskPlan& plan = world_.plan.disk;
  if (world_.healed) return draw_duration(random_, plan.sync_min, plan.sync_max);
  const Duration longest = world_.plan.nodes[node_ - 1].sync_max;
  if (plan.stall_ppm > 0 && random_.chance_ppm(plan.stall_ppm)) {
    world_.used(FaultClass::disk_stall);
    return draw_duration(random_, longest, longest + plan.stall_max);
  }
  return draw_duration(random_, plan.sync_min, longest);
}

void SimDisk::start_sync() {
  syncing_ = true;
  sync_batches_ = waiting_.size();
  Duration length = draw_sync_time();
  if (!world_.healed) length = std::max(length, std::exchange(stall_next_, Duration{0}));
  end_sync_after(length);
}

void SimDisk::end_sync_after(Duration length) {
  sync_ends_ = world_.queue.now() + length;
  const std::uint64_t life = life_;
  const std::uint64_t decision = ++sync_decisions_;
  world_.queue.after(length, [this, life, decision] {
    if (life == life_ && decision == sync_decisions_) finish_sync(sync_batches_);
  });
}

void SimDisk::finish_sync(std::size_t batches) {
  if (broken_) return;  // the reserve of a full disk was used up in between
  const std::uint64_t error_ppm = world_.healed ? 0 : world_.plan.disk.error_ppm;
  if (error_ppm > 0 && random_.chance_ppm(error_ppm)) {
    world_.used(FaultClass::disk_error);
    broken_ = true;
    run_([this] { sink_->failed({ErrorCode::io, "simulated: the sync of the log failed"}); });
    return;
  }
  raft::ReadyId newest;
  for (std::size_t i = 0; i < batches; ++i) {
    durable_.apply(waiting_.front());
    newest = waiting_.front().id;
    waiting_.pop_front();
  }
  world_.trace.add(TraceKind::synced, node_, batches, newest.value());
  run_([this, newest] {
    syncing_ = false;
    sink_->persisted(newest);
    if (!waiting_.empty() && !syncing_) start_sync();
  });
}

void SimDisk::read(const storage::ReadRequest& request) {
  const std::uint64_t life = life_;
  const Duration delay = draw_sync_time();
  world_.queue.after(delay, [this, life, request] {
    if (life != life_) return;
    run_([this, request] { deliver_entries(request); });
  });
}

void SimDisk::deliver_entries(const storage::ReadRequest& request) {
  std::vector<raft::Entry> entries;
  std::size_t bytes = 0;
  const bool there = request.first > written_.base_id().index;
  for (raft::Index i = request.first; there && i <= request.last && i <= written_.last_index();
       i = i.next()) {
    const raft::Entry& entry = written_.entry(i);
    bytes += entry.payload.size();
    if (!entries.empty() && bytes > request.bytes_max) break;
    entries.push_back(entry);
  }
  if (entries.empty()) {
    sink_->entries_read(request.token, Error{ErrorCode::not_found, "it is cut off or truncated"});
    return;
  }
  sink_->entries_read(request.token, std::move(entries));
}

}  // namespace leasehold::sim
