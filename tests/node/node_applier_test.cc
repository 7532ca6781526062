// What holds when the applier completes the waiting callers.
#include <leasehold/node/node_applier.h>
#include <leasehold/replica/command_envelope.h>

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace leasehold::node {
namespace {

constexpr raft::NodeId kSelf{1};
constexpr raft::Incarnation kLife{3};

class LastCommand : public replica::StateMachine {
 public:
  raft::Index durable_index() const override { return raft::Index(0); }
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands, raft::Index) override {
    std::vector<Bytes> results;
    for (const replica::Command& command : commands)
      results.emplace_back(std::string(command.bytes));
    return results;
  }
};

std::vector<raft::Entry> command_at(std::uint64_t index, Bytes payload) {
  raft::Entry entry;
  entry.id = {raft::Term(1), raft::Index(index)};
  entry.kind = raft::EntryKind::command;
  entry.payload = std::move(payload);
  return {entry};
}

Bytes envelope(std::uint64_t sequence) {
  return replica::encode_envelope({kSelf, kLife, sequence, Bytes(std::string("x"))});
}

/// A command of sequence 9.
std::unique_ptr<replica::Proposal> waiting(replica::ProposeCompletion done) {
  auto proposal = std::make_unique<replica::Proposal>();
  proposal->sequence = 9;
  proposal->done = std::move(done);
  return proposal;
}

struct Told {
  replica::ProposeResult result;
  raft::Index applied;
  std::thread::id by;
};

TEST(GroupApplier, CompletesTheCallerOnceTheEffectShows) {
  LastCommand machine;
  replica::LeaseView view;
  replica::Callers callers;
  std::promise<Told> told;
  std::promise<Result<replica::Applied>> news;
  callers.add(waiting([&](replica::ProposeResult result) {
    told.set_value({std::move(result), view.applied(), std::this_thread::get_id()});
  }));
  WorkPool pool("lh-apply", 1);
  GroupApplier applier(
      pool, machine, view, callers, kSelf, kLife,
      [](const raft::SnapshotId&) { return Result<void>(); },
      [&](Result<replica::Applied> applied) { news.set_value(std::move(applied)); });
  applier.apply(command_at(5, envelope(9)));

  const Told first = told.get_future().get();
  EXPECT_EQ(first.result.status, replica::ProposeStatus::committed);
  EXPECT_EQ(first.result.id, (raft::LogId{raft::Term(1), raft::Index(5)}));
  EXPECT_EQ(first.result.result.view(), "x");
  EXPECT_EQ(first.applied, raft::Index(5)) << "a caller that gets the answer may read it";
  EXPECT_NE(first.by, std::this_thread::get_id());
  const Result<replica::Applied> applied = news.get_future().get();
  ASSERT_TRUE(applied.ok());
  EXPECT_EQ(applied.value().own, (std::vector<std::uint64_t>{9}));
}

TEST(GroupApplier, NothingThatAMachineWasGivenWhenItFailedIsApplied) {
  class Failed : public LastCommand {
    std::optional<Error> failure() const override { return Error{ErrorCode::io, "no disk"}; }
  };
  Failed machine;
  replica::LeaseView view;
  replica::Callers callers;
  callers.add(waiting([](const replica::ProposeResult&) { ADD_FAILURE(); }));
  std::promise<Result<replica::Applied>> news;
  WorkPool pool("lh-apply", 1);
  GroupApplier applier(
      pool, machine, view, callers, kSelf, kLife,
      [](const raft::SnapshotId&) { return Result<void>(); },
      [&](Result<replica::Applied> applied) { news.set_value(std::move(applied)); });
  applier.apply(command_at(5, envelope(9)));
  EXPECT_EQ(news.get_future().get().error().message, "no disk");
  EXPECT_EQ(view.applied(), raft::Index(0)) << "no read may count on it";
}

TEST(GroupApplier, ACommandThatDoesNotDecodeIsReportedOnlyToTheNode) {
  LastCommand machine;
  replica::LeaseView view;
  replica::Callers callers;
  callers.add(waiting([](const replica::ProposeResult&) { ADD_FAILURE(); }));
  std::promise<Result<replica::Applied>> news;
  WorkPool pool("lh-apply", 1);
  GroupApplier applier(
      pool, machine, view, callers, kSelf, kLife,
      [](const raft::SnapshotId&) { return Result<void>(); },
      [&](Result<replica::Applied> applied) { news.set_value(std::move(applied)); });
  applier.apply(command_at(5, Bytes(std::string("\xff no envelope"))));
  const Result<replica::Applied> applied = news.get_future().get();
  ASSERT_FALSE(applied.ok());
  EXPECT_NE(applied.error().message.find("entry 5 is committed"), std::string::npos)
      << applied.error().message;
  EXPECT_EQ(view.applied(), raft::Index(0));
  EXPECT_EQ(callers.table().size(), 1U);
}

// A turn that takes long gives the threads what there is, and its end the rest.
TEST(WorkPool, RunsManyBeforeTheReleaseAndAllBehindIt) {
  WorkPool pool("lh-apply", 2);
  std::atomic<int> ran = 0;
  std::vector<std::unique_ptr<WorkPool::Line>> lines;
  pool.hold();
  for (int i = 0; i < 40; ++i) {
    lines.push_back(std::make_unique<WorkPool::Line>(pool));
    lines.back()->add([&ran] { ++ran; });
  }
  while (ran < 32) std::this_thread::yield();
  lines.push_back(std::make_unique<WorkPool::Line>(pool));
  lines.back()->add([] {});
  lines.pop_back();  // it leaves before its turn
  lines.front()->add([&ran] { ++ran; });
  pool.release();
  while (ran < 41) std::this_thread::yield();
}

}  // namespace
}  // namespace leasehold::node
