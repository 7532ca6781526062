#include <leasehold/base/assert.h>
#include <leasehold/sim/world/sim_snapshots.h>

#include <chrono>
#include <utility>

namespace leasehold::sim {
namespace {

constexpr Duration kRecently = std::chrono::seconds(1);

/// In place of a SHA-256: nobody looks for collisions here.
std::string sim_digest(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 1099511628211U;
  std::string digest;
  while (digest.size() < 32) digest += static_cast<char>(hash >> (8 * (digest.size() % 8)));
  return digest;
}

/// Blocks of one length, of which some are not there and some are other bytes.
class SimHeldBlocks final : public replica::HeldBlocks {
 public:
  SimHeldBlocks(World& world, Bytes truth, Random random)
      : world_(world),
        truth_(std::move(truth)),
        random_(random),
        block_(1 + static_cast<std::size_t>(random_.below(60))) {}
  std::optional<Block> next(std::uint64_t from) override {
    std::uint64_t at = from - from % block_;
    while (at < truth_.size() && !random_.chance(world_.plan.snapshots.held_percent, 100)) {
      at += block_;
    }
    if (at >= truth_.size()) return std::nullopt;
    const auto begin = static_cast<std::size_t>(at);
    const std::string_view bytes = truth_.view().substr(begin, block_);
    return Block{at, bytes.size(), sim_digest(bytes)};
  }
  Result<void> read(const Block& block, char* to) override {
    if (random_.chance(1, 10)) return Error{ErrorCode::io, "simulated: it is gone"};
    truth_.view().copy(to, block.size, static_cast<std::size_t>(block.offset));
    if (random_.chance(1, 5)) {
      char& wrong = to[random_.below(block.size)];
      wrong = static_cast<char>(wrong ^ 1);
    }
    return {};
  }

 private:
  World& world_;
  const Bytes truth_;
  Random random_;
  const std::size_t block_;
};

}  // namespace

/// The staged snapshot, as it is filled.
class SimSnapshots::Arriving final : public replica::ArrivingSnapshot {
 public:
  explicit Arriving(StagedSnapshot& staged) : staged_(staged) {}
  raft::Index last() const override { return staged_.id.last.index; }
  std::uint64_t size() const override { return staged_.size; }
  std::uint64_t received() const override { return staged_.bytes.size(); }
  Result<void> append(std::string_view data) override {
    staged_.bytes += data;
    return {};
  }
  Result<void> read(std::uint64_t offset, char* to, std::size_t bytes) const override {
    LEASEHOLD_ASSERT(offset + bytes <= staged_.bytes.size());
    staged_.bytes.copy(to, bytes, static_cast<std::size_t>(offset));
    return {};
  }

 private:
  StagedSnapshot& staged_;
};

/// A state machine that has met parts of the arriving snapshot before.
class SimSnapshots::Holder final : public replica::StateMachine {
 public:
  Holder(World& world, const std::optional<StagedSnapshot>& staged, Random random)
      : world_(world), staged_(staged), random_(random) {}
  raft::Index durable_index() const override { return raft::Index(0); }
  std::vector<Bytes> apply(const std::vector<replica::Command>& /*commands*/,
                           raft::Index /*last*/) override {
    return {};
  }
  replica::HeldAnswer held_blocks(const replica::Snapshot& arriving,
                                  std::uint64_t arrived) override {
    const auto truth = world_.taken_snapshots.find(staged_->id.tag);
    if (world_.plan.snapshots.held_percent == 0 || truth == world_.taken_snapshots.end()) return {};
    // As if a table stood in front, and had not arrived as a whole.
    const std::uint64_t table = 1 + random_.below(arriving.size());
    if (table > arrived && random_.chance(1, 2)) return {table, nullptr};
    return {0, std::make_unique<SimHeldBlocks>(world_, truth->second, Random(random_.next()))};
  }

 private:
  World& world_;
  const std::optional<StagedSnapshot>& staged_;
  Random random_;
};

SimSnapshots::SimSnapshots(World& world, raft::NodeId node, raft::Incarnation incarnation,
                           Ports ports)
    : world_(world),
      node_(node),
      ports_(std::move(ports)),
      random_(random_for(world.plan.seed, 100'000 * node.value() + incarnation.value())),
      holder_(std::make_unique<Holder>(
          world, ports_.staged,
          random_for(world.plan.seed, 100'000'000 + 100'000 * node.value() + incarnation.value()))),
      filler_(*holder_, sim_digest) {}

SimSnapshots::~SimSnapshots() = default;

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
    world_.taken_snapshots.emplace(tag, bytes->bytes());
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
    answer_waiting(false);
    filler_.reset();
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
  replica::ChunkStored now;
  now.stored.from = received.from;
  now.stored.request_term = chunk.term;
  now.stored.round = chunk.round;
  now.stored.id = chunk.id;
  now.stored.refused = !append(chunk);
  const bool same = staged && staged->id == chunk.id;
  if (same && !now.stored.refused) now.stored.offset = staged->bytes.size();
  const bool arrives = same && !now.stored.refused && !told_complete_;
  if (arrives && filler_.wants(Arriving(*staged))) {
    waiting_.push_back({now, chunk.offset});
    if (!std::exchange(filling_, true)) work(arriving_, draw_length(), [this] { fill(); });
  } else {
    answer_waiting(false);
    answer({std::move(now), chunk.offset});
  }
}

/// As production: one block, and now and then an answer before the end.
void SimSnapshots::fill() {
  filling_ = false;
  std::optional<StagedSnapshot>& staged = ports_.staged;
  if (waiting_.empty() || !staged || told_complete_) return;
  if (ports_.full()) return answer_waiting(true);
  Arriving arriving(*staged);
  if (filler_.wants(arriving)) {
    const Result<std::uint64_t> copied = filler_.copy(arriving);
    LEASEHOLD_ASSERT(copied.ok());
    world_.snapshots.copied += copied.value();
    if (copied.value() == 0) ++world_.snapshots.refused;
    any_part_ = true;
    last_part_ = world_.queue.now();
  }
  if (filler_.wants(arriving) && !random_.chance(1, 8)) {
    filling_ = true;
    work(arriving_, draw_length(), [this] { fill(); });
  } else {
    answer_waiting(false);
  }
}

/// All that wait are of the staged one, or of the one that was there before it.
void SimSnapshots::answer_waiting(bool refused) {
  for (Answer& waits : std::exchange(waiting_, {})) {
    waits.now.stored.refused = refused;
    waits.now.stored.offset = refused ? 0 : ports_.staged->bytes.size();
    answer(std::move(waits));
  }
}

void SimSnapshots::answer(Answer answer) {
  replica::ChunkStored& now = answer.now;
  std::optional<StagedSnapshot>& staged = ports_.staged;
  const raft::Core::StoredChunk& stored = now.stored;
  const bool whole = staged && staged->id == stored.id && staged->bytes.size() == staged->size;
  if (whole && !stored.refused && !told_complete_) {
    staged->complete = true;
    told_complete_ = true;
    filler_.reset();
    now.complete = staged->membership;
    ports_.arrived(*staged);
    ports_.moment(SnapshotMoment::complete);
  }
  world_.trace.add(TraceKind::chunk_stored, node_.value(), stored.from.value(), answer.chunk_at,
                   stored.offset, stored.refused ? 1 : 0, now.complete ? 1 : 0);
  ports_.post(std::move(now));
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
