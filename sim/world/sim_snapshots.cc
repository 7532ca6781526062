#include <leasehold/base/assert.h>
#include <leasehold/sim/world/sim_snapshots.h>

#include <chrono>
#include <utility>

namespace leasehold::sim {
namespace {

constexpr Duration kRecently = std::chrono::seconds(1);

}  // namespace

SimSnapshots::SimSnapshots(World& world, raft::NodeId node, raft::Incarnation incarnation,
                           Ports ports)
    : world_(world),
      node_(node),
      ports_(std::move(ports)),
      random_(random_for(world.plan.seed, 100'000 * node.value() + incarnation.value())) {}

void SimSnapshots::crash(World& world, Random& random, std::optional<StagedSnapshot>& staged) {
  if (!staged || staged->complete || !world.plan.disk.loses_unsynced) return;
  // Any length of what was written may have reached the disk.
  const std::size_t kept = static_cast<std::size_t>(random.below(staged->bytes.size() + 1));
  const bool nothing = random.chance(1, 4);
  if (kept < staged->bytes.size() || nothing) world.used(FaultClass::unsynced_loss);
  staged->bytes.resize(kept);
  if (nothing) staged = std::nullopt;
}

// ---- Lanes ----

Duration SimSnapshots::draw_length() {
  const SnapshotPlan& plan = world_.plan.snapshots;
  const Duration longest = world_.healed ? plan.work_min : plan.work_max;
  return draw_duration(random_, plan.work_min, longest);
}

void SimSnapshots::work(Lane& lane, Duration length, EventQueue::Action done) {
  lane.jobs.push_back({length, std::move(done)});
  if (!lane.busy) start_next(lane);
}

void SimSnapshots::start_next(Lane& lane) {
  if (lane.jobs.empty()) return;
  lane.busy = true;
  // The process may die in the meantime, and this object with it: `run` knows.
  world_.queue.after(lane.jobs.front().length, [this, &lane, run = ports_.run] {
    run([this, &lane] {
      const Job job = std::move(lane.jobs.front());
      lane.jobs.pop_front();
      lane.busy = false;
      start_next(lane);
      job.done();
    });
  });
}

// ---- The own state machine ----

// What was applied when it was asked for becomes durable, at some later instant, and not before.
void SimSnapshots::make_durable() {
  if (ports_.witness != nullptr) {
    work(own_, draw_length(), [this, applied = ports_.witness->durable_index()] {
      ports_.post(replica::MachineDurable{applied});
    });
    return;
  }
  work(own_, draw_length(), [this, state = ports_.machine.present()] {
    ports_.machine.make_durable(state);
    world_.trace.add(TraceKind::machine_durable, node_.value(), state.applied.value());
    // It may have become durable beyond that by itself, which changes nothing.
    ports_.post(replica::MachineDurable{state.applied});
  });
}

void SimSnapshots::take() {
  ++taking_;
  ports_.moment(SnapshotMoment::taking);
  work(own_, draw_length(), [this] {
    --taking_;
    const std::uint64_t tag = random_.next();
    if (world_.plan.snapshots.failure_ppm > 0 && !world_.healed &&
        random_.chance_ppm(world_.plan.snapshots.failure_ppm)) {
      world_.used(FaultClass::disk_error);
      ports_.post(
          replica::SnapshotTaken{Error{ErrorCode::io, "simulated: no snapshot could be taken"}});
      return;
    }
    Result<std::shared_ptr<const replica::Snapshot>> snapshot = ports_.machine.take_snapshot();
    LEASEHOLD_ASSERT(snapshot.ok());
    const auto bytes = std::static_pointer_cast<const SnapshotBytes>(std::move(snapshot).value());
    taken_[tag] = bytes;
    ++world_.snapshots.taken;
    ports_.taken(tag, *bytes);
    world_.trace.add(TraceKind::snapshot_taken, node_.value(), bytes->last().value(), tag,
                     bytes->size());
    ports_.post(replica::SnapshotTaken{replica::TakenSnapshot{bytes->last(), tag, bytes->size()}});
  });
}

void SimSnapshots::read(std::uint64_t token, std::uint64_t tag, std::uint64_t offset,
                        std::size_t bytes) {
  const auto found = taken_.find(tag);
  LEASEHOLD_ASSERT(found != taken_.end());
  LEASEHOLD_ASSERT(offset < found->second->size());
  LEASEHOLD_ASSERT(bytes > 0 && bytes <= found->second->size() - offset);
  ports_.moment(SnapshotMoment::sending);
  work(own_, draw_length(), [this, token, part = found->second->bytes().slice(offset, bytes)] {
    ports_.post(replica::SnapshotRead{token, part});
  });
}

void SimSnapshots::release(std::uint64_t tag) {
  const std::size_t released = taken_.erase(tag);
  LEASEHOLD_ASSERT(released == 1);
}

// ---- What arrives ----

bool SimSnapshots::receiving() const {
  if (told_complete_) return true;
  return ports_.staged && any_part_ && world_.queue.now() < last_part_ + kRecently;
}

void SimSnapshots::store(const raft::ReceivedChunk& received) {
  ports_.moment(SnapshotMoment::storing);
  work(arriving_, draw_length(), [this, received] { stored(received); });
}

/// False: it is not wanted now.
bool SimSnapshots::append(const raft::SnapshotChunk& chunk) {
  std::optional<StagedSnapshot>& staged = ports_.staged;
  const bool same = staged && staged->id == chunk.id;
  if (told_complete_) return same;
  if (ports_.full()) return false;
  if (!same) {
    if (chunk.offset > 0) return true;  // it has to begin at the front
    if (staged && staged->complete) ports_.deleting();
    staged = StagedSnapshot{chunk.id, chunk.membership, chunk.size, {}, false};
    continued_ = true;
  }
  if (!continued_ && !staged->bytes.empty()) {
    // An earlier process of this machine has stored the beginning.
    ++world_.snapshots.resumed;
    continued_ = true;
  }
  if (chunk.offset == staged->bytes.size()) {
    const std::string_view data = chunk.data.view();
    staged->bytes.append(data.data(), data.size());
    world_.snapshots.bytes += data.size();
  }
  any_part_ = true;
  last_part_ = world_.queue.now();
  return true;
}

void SimSnapshots::stored(const raft::ReceivedChunk& received) {
  const raft::SnapshotChunk& chunk = received.chunk;
  std::optional<StagedSnapshot>& staged = ports_.staged;
  replica::ChunkStored answer;
  answer.stored.from = received.from;
  answer.stored.request_term = chunk.term;
  answer.stored.round = chunk.round;
  answer.stored.id = chunk.id;
  answer.stored.refused = !append(chunk);
  const bool same = staged && staged->id == chunk.id;
  if (same && !answer.stored.refused) answer.stored.offset = staged->bytes.size();
  if (same && !told_complete_ && staged->bytes.size() == staged->size) {
    staged->complete = true;
    told_complete_ = true;
    answer.complete = staged->membership;
    ports_.arrived(*staged);
    ports_.moment(SnapshotMoment::complete);
  }
  world_.trace.add(TraceKind::chunk_stored, node_.value(), received.from.value(), chunk.offset,
                   answer.stored.offset, answer.stored.refused ? 1 : 0, answer.complete ? 1 : 0);
  ports_.post(std::move(answer));
}

void SimSnapshots::discard() {
  LEASEHOLD_ASSERT(told_complete_);
  work(arriving_, Duration{0}, [this] { installed(); });
}

void SimSnapshots::installed() {
  ports_.deleting();
  ports_.staged = std::nullopt;
  told_complete_ = false;
  continued_ = false;
}

}  // namespace leasehold::sim
