// What the simulator does with snapshots, logs that are cut and disks that are full.
#include <gtest/gtest.h>
#include <leasehold/sim/plan/draw_plan.h>
#include <leasehold/sim/world/register_machine.h>
#include <leasehold/sim/world/sim_disk.h>
#include <leasehold/sim/world/sim_snapshots.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace leasehold::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

raft::LogId id(std::uint64_t term, std::uint64_t index) {
  return {raft::Term(term), raft::Index(index)};
}

raft::PersistBatch batch(std::uint64_t ready, std::uint64_t first, std::uint64_t last) {
  raft::PersistBatch made;
  made.id = raft::ReadyId(ready);
  for (std::uint64_t i = first; i <= last; ++i) {
    made.entries.push_back({id(1, i), raft::EntryKind::empty, {}});
  }
  return made;
}

void pass(EventQueue& queue, Duration length) {
  const TrueInstant end = queue.now() + length;
  while (queue.run_next(end)) {
  }
}

void run_now(const EventQueue::Action& action) {
  action();
}

struct Sink : storage::StorageSink {
  void persisted(raft::ReadyId ready) override { newest = ready; }
  void entries_read(std::uint64_t, Result<std::vector<raft::Entry>> entries) override {
    read.push_back(entries.ok() ? entries.value().size() : 0);
  }
  void space(bool full) override { spaces.push_back(full); }
  void failed(Error) override { ++failures; }
  raft::ReadyId newest;
  std::vector<std::size_t> read;
  std::vector<bool> spaces;
  int failures = 0;
};

/// A world without chance failures.
struct Fixture {
  Fixture() : world(draw_plan(1, {}), {}) {
    world.plan.disk.loses_unsynced = true;
    world.plan.disk.stall_ppm = 0;
    world.plan.disk.error_ppm = 0;
    world.plan.snapshots.failure_ppm = 0;
  }
  World world;
};

TEST(DiskImage, ACutTakesTheFrontAndAResetEverything) {
  DiskImage image;
  image.apply(batch(1, 1, 5));
  raft::PersistBatch cut = batch(2, 6, 6);
  cut.cut = raft::LogBase{id(1, 4), {}};
  image.apply(cut);
  EXPECT_EQ(image.last_index(), raft::Index(6));
  EXPECT_EQ(image.entries.size(), 2U);
  EXPECT_EQ(image.entry(raft::Index(5)).id, id(1, 5));
  EXPECT_TRUE(image.holds(id(1, 3)));
  EXPECT_TRUE(image.holds(id(1, 4)));
  EXPECT_FALSE(image.holds(id(2, 4)));
  EXPECT_FALSE(image.holds(id(1, 7)));

  raft::PersistBatch reset = batch(3, 11, 12);
  reset.reset = raft::LogBase{id(1, 10), {}};
  image.apply(reset);
  EXPECT_EQ(image.base_id(), id(1, 10));
  EXPECT_EQ(image.last_index(), raft::Index(12));
}

TEST(SimDisk, ACrashLosesACutOrAResetAsAWhole) {
  Fixture fixture;
  fixture.world.plan.disk.loses_unsynced = false;
  SimDisk disk(fixture.world, 1, [](const raft::PersistBatch&) {});
  Sink sink;
  disk.open(sink, run_now);
  disk.persist(batch(1, 1, 9));
  pass(fixture.world.queue, seconds(1));
  raft::PersistBatch cut;
  cut.id = raft::ReadyId(2);
  cut.cut = raft::LogBase{id(1, 7), {}};
  disk.persist(cut);
  disk.read({1, raft::Index(7), raft::Index(9), 1000});
  disk.read({2, raft::Index(8), raft::Index(9), 1000});
  EXPECT_EQ(disk.durable().base_id(), id(0, 0));
  pass(fixture.world.queue, seconds(1));
  EXPECT_EQ(disk.durable().base_id(), id(1, 7));
  EXPECT_EQ(sink.read.size(), 2U);
  EXPECT_EQ(sink.read[0] + sink.read[1], 2U) << "an entry below the base was read";
  disk.crash();
  const raft::InitialState state = disk.initial_state({});
  EXPECT_EQ(state.base, id(1, 7));
  EXPECT_EQ(state.last_index, raft::Index(9));
  ASSERT_EQ(state.runs.size(), 1U);
  EXPECT_EQ(state.runs[0].first, raft::Index(8));
}

TEST(SimDisk, AFullDiskTakesWhatFitsIntoItsReserve) {
  Fixture fixture;
  SimDisk disk(fixture.world, 1, [](const raft::PersistBatch&) {});
  Sink sink;
  disk.open(sink, run_now);
  disk.fill(milliseconds(100));
  EXPECT_EQ(sink.spaces, (std::vector<bool>{true}));
  disk.persist(batch(1, 1, 1));
  pass(fixture.world.queue, seconds(1));
  EXPECT_EQ(sink.newest, raft::ReadyId(1));
  EXPECT_EQ(sink.spaces, (std::vector<bool>{true, false}));
  EXPECT_FALSE(disk.exhausted());

  disk.fill(seconds(100));
  for (std::uint64_t i = 2; sink.failures == 0 && i < 10'000; ++i) disk.persist(batch(i, i, i));
  EXPECT_EQ(sink.failures, 1);
  EXPECT_TRUE(disk.exhausted());
  const raft::ReadyId newest = sink.newest;
  pass(fixture.world.queue, seconds(1));
  EXPECT_EQ(sink.newest, newest) << "something became durable after the disk had failed";
  disk.empty();
  EXPECT_FALSE(disk.exhausted());
}

RegisterMachine::State state(std::uint64_t applied) {
  RegisterMachine::State made;
  for (std::uint64_t i = 1; i <= applied; ++i) {
    RegisterMachine::apply_to(made, {raft::Term(1), raft::Index(i)},
                              {RegisterMachine::Kind::set, i % 3, 100 + i});
  }
  const replica::SessionId session = *made.sessions.open();
  RegisterMachine::apply_to(made, {raft::Term(1), raft::Index(applied)},
                            {RegisterMachine::Kind::once, 1, 200, session, 1, 1});
  made.applied = raft::Index(applied);
  return made;
}

TEST(RegisterMachine, ASnapshotIsTheWholeStateAndAMixtureIsNone) {
  const RegisterMachine::State given = state(7);
  const std::string one = RegisterMachine::encode(given, 1);
  const std::string two = RegisterMachine::encode(given, 2);
  ASSERT_EQ(one.size(), two.size());
  EXPECT_TRUE(RegisterMachine::decode(one) == given);
  EXPECT_TRUE(RegisterMachine::decode(two) == given);
  for (std::size_t at = 2; at < one.size(); ++at) {
    EXPECT_FALSE(RegisterMachine::decode(one.substr(0, at) + two.substr(at)) == given) << at;
  }
  EXPECT_FALSE(RegisterMachine::decode(one.substr(1)).has_value());
  EXPECT_FALSE(RegisterMachine::decode("").has_value());
}

TEST(RegisterMachine, AnInstalledStateIsDurableAndABadOneChangesNothing) {
  RegisterMachine machine;
  const Bytes good(RegisterMachine::encode(state(7), 1));
  EXPECT_FALSE(machine.install_snapshot(SnapshotBytes(raft::Index(8), good)).ok());
  EXPECT_FALSE(machine.install_snapshot(SnapshotBytes(raft::Index(7), good.slice(1))).ok());
  EXPECT_EQ(machine.applied(), raft::Index(0));
  EXPECT_TRUE(machine.install_snapshot(SnapshotBytes(raft::Index(7), good)).ok());
  machine.crash();
  EXPECT_TRUE(machine.present() == state(7));
  EXPECT_EQ(machine.durable_index(), raft::Index(7));
}

/// One machine's port, and what its process got from it.
struct Port : Fixture {
  Port() { start(); }
  void start() {
    told.clear();
    SimSnapshots::Ports ports{machine, staged, run_now, {}, {}, {}, {}, {}, {}};
    ports.post = [this](replica::Event event) { told.push_back(std::move(event)); };
    ports.moment = [](SnapshotMoment) {};
    ports.taken = [](std::uint64_t, const SnapshotBytes&) {};
    ports.arrived = [](const StagedSnapshot&) {};
    ports.deleting = [] {};
    ports.full = [this] { return full; };
    port.emplace(world, raft::NodeId(1), raft::Incarnation(1), std::move(ports));
  }
  /// The answer to bytes [offset, offset + bytes) of the snapshot `tag`.
  replica::ChunkStored store(std::uint64_t tag, std::uint64_t offset, std::size_t bytes) {
    raft::ReceivedChunk received;
    received.chunk.id = {id(1, 9), tag};
    received.chunk.size = 30;
    received.chunk.offset = offset;
    received.chunk.data = Bytes(std::string(bytes, static_cast<char>('a' + tag)));
    port->store(received);
    pass(world.queue, seconds(2));
    return std::get<replica::ChunkStored>(told.back());
  }

  RegisterMachine machine;
  std::optional<StagedSnapshot> staged;
  bool full = false;
  std::vector<replica::Event> told;
  std::optional<SimSnapshots> port;
};

TEST(SimSnapshots, ChunksContinueWhatIsThereAndNothingElse) {
  Port port;
  EXPECT_EQ(port.store(1, 10, 10).stored.offset, 0U) << "it has to begin at the front";
  EXPECT_EQ(port.store(1, 0, 10).stored.offset, 10U);
  EXPECT_EQ(port.store(1, 0, 10).stored.offset, 10U);
  EXPECT_EQ(port.store(1, 20, 10).stored.offset, 10U);
  EXPECT_EQ(port.store(2, 10, 10).stored.offset, 0U) << "another snapshot continues nothing";
  EXPECT_EQ(port.store(1, 10, 10).stored.offset, 20U);
  EXPECT_EQ(port.store(2, 0, 20).stored.offset, 20U) << "another one takes its place";
  EXPECT_EQ(port.store(1, 20, 10).stored.offset, 0U);
  const replica::ChunkStored last = port.store(2, 20, 10);
  EXPECT_EQ(last.stored.offset, 30U);
  EXPECT_TRUE(last.complete.has_value());
  EXPECT_EQ(port.staged->bytes, std::string(30, 'c'));
  EXPECT_TRUE(port.store(1, 0, 10).stored.refused) << "while a complete one waits";
  EXPECT_FALSE(port.store(2, 0, 10).complete.has_value()) << "it is said once";
  port.port->discard();
  pass(port.world.queue, seconds(1));
  EXPECT_FALSE(port.staged.has_value());
  EXPECT_EQ(port.store(1, 0, 10).stored.offset, 10U);
  port.full = true;
  EXPECT_TRUE(port.store(1, 10, 10).stored.refused);
}

TEST(SimSnapshots, APartSurvivesARestartAndIsContinued) {
  Port port;
  port.store(1, 0, 20);
  port.start();
  const replica::ChunkStored answer = port.store(1, 0, 10);
  EXPECT_EQ(answer.stored.offset, 20U);
  EXPECT_EQ(port.world.snapshots.resumed, 1U);
  EXPECT_TRUE(port.store(1, 20, 10).complete.has_value());
  // A process that does not know of it gets it again.
  port.start();
  EXPECT_TRUE(port.store(1, 0, 10).complete.has_value());
}

TEST(SimSnapshots, ACrashLeavesAPrefixOfAPartAndAllOfAWhole) {
  Port port;
  Random random(1);
  for (int i = 0; i < 100; ++i) {
    std::optional<StagedSnapshot> part = StagedSnapshot{{}, {}, 30, std::string(20, 'x'), false};
    SimSnapshots::crash(port.world, random, part);
    EXPECT_LE(part ? part->bytes.size() : 0, 20U);
    std::optional<StagedSnapshot> whole = StagedSnapshot{{}, {}, 20, std::string(20, 'x'), true};
    SimSnapshots::crash(port.world, random, whole);
    ASSERT_TRUE(whole.has_value());
    EXPECT_EQ(whole->bytes.size(), 20U);
  }
}

// What is applied after the call may be in a snapshot, but is not what was made durable.
TEST(SimSnapshots, OnlyWhatWasAppliedAtTheCallBecomesDurable) {
  Port port;
  const Bytes set = RegisterMachine::encode({RegisterMachine::Kind::set, 5, 1});
  port.machine.apply({{id(1, 1), set.view()}}, raft::Index(1));
  port.port->make_durable();
  port.machine.apply({{id(1, 2), set.view()}}, raft::Index(2));
  port.port->take();
  pass(port.world.queue, seconds(2));
  ASSERT_EQ(port.told.size(), 2U);
  EXPECT_EQ(std::get<replica::MachineDurable>(port.told[0]).index.value(), raft::Index(1));
  EXPECT_EQ(port.machine.durable_index(), raft::Index(1));
  const replica::TakenSnapshot taken =
      std::get<replica::SnapshotTaken>(port.told[1]).snapshot.value();
  EXPECT_EQ(taken.last, raft::Index(2));
  port.port->read(7, taken.tag, 3, 4);
  pass(port.world.queue, seconds(2));
  EXPECT_EQ(std::get<replica::SnapshotRead>(port.told[2]).data.value().size(), 4U);
  EXPECT_TRUE(port.port->keeps());
  port.port->release(taken.tag);
  EXPECT_FALSE(port.port->keeps());
}

}  // namespace
}  // namespace leasehold::sim
