// Hosts of many groups that have lost their majority: their logs, and the hosts that go on from
// them, with a state machine of the host's own.
#include <leasehold/node/node_recovery.h>
#include <leasehold/node/node_restored.h>
#include <leasehold/node/node_retired.h>
#include <leasehold/storage/shared_log.h>
#include <leasehold/tests/node/host_fixture.h>

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::node {
namespace {

constexpr std::uint64_t kPartGroups = 3;

/// A ListMachine that is durable where a recovery has left it.
class LeftList final : public ListMachine {
 public:
  raft::Index durable_index() const override { return raft::Index(left_.load()); }
  std::vector<Bytes> apply(const std::vector<replica::Command>& commands,
                           raft::Index last) override {
    auto results = ListMachine::apply(commands, last);
    left_ = last.value();
    return results;
  }

 private:
  std::atomic<std::uint64_t> left_{0};
};

class StoppedHostTest : public HostTest {
 protected:
  /// What a host that follows has left of groups with one command each.
  HostSurvivor lose_all_but_one() {
    for (std::uint64_t id = 1; id <= 3; ++id) start_with(id, kPartGroups);
    for (std::uint64_t group = 1; group <= kPartGroups; ++group) {
      const auto done = propose(part(leader_of(group), group), "of " + std::to_string(group));
      EXPECT_EQ(done.status, replica::ProposeStatus::committed);
    }
    left_ = leader_of(1) % 3 + 1;
    dir_ = options(left_).data_dir;
    for (std::uint64_t group = 1; group <= kPartGroups; ++group) {
      // It may have been the one that was not needed.
      EXPECT_TRUE(
          eventually([this, group] { return part(left_, group).machine.list().size() == 1; }));
    }
    EXPECT_EQ(StoppedHost::open(dir_).error().code, ErrorCode::in_use) << "its host runs";
    for (std::uint64_t id = 1; id <= 3; ++id) stop(id);
    stopped_ = std::move(StoppedHost::open(dir_)).value();
    return stopped_->survivor();
  }
  /// Writes into the host's log that it has promised for `duration`.
  void promise_more(const HostSurvivor& self, raft::Duration duration) {
    stopped_.reset();
    storage::SegmentLogOptions log_options;
    log_options.dir = dir_ + "/log";
    log_options.cluster_id = self.cluster_id;
    log_options.id = self.id;
    const auto log = std::move(storage::SharedLog::open(log_options)).value();
    std::promise<void> durable;
    log->set_process_sink([&durable](std::uint64_t /*write*/) { durable.set_value(); });
    auto supports = log->supports();
    ASSERT_FALSE(supports.empty());
    supports.front().duration = duration;
    log->remember(std::move(supports), 1);
    durable.get_future().wait();
  }
  /// Completes a machine, and makes the folder of its group.
  void go_on(const GroupRecovery& group, std::uint64_t number) {
    LeftList& machine = machines_[group.group.value()];
    ASSERT_TRUE(stopped_->log(group.group).apply_rest(machine, machine.durable_index()));
    EXPECT_EQ(machine.list(), std::vector{"of " + std::to_string(group.group.value())});
    EXPECT_TRUE(machine.apply({}, group.plan.base).empty());
    Restored restored{number, group.plan.base};
    restored.recovered =
        Recovered{stopped_->survivor().cluster_id, {raft::Term(1), raft::Index(1)}, 1};
    const std::string folder = fresh_ + "/groups/" + std::to_string(group.group.value());
    ASSERT_TRUE(begin_restoration(folder));
    ASSERT_TRUE(finish_restoration(folder, restored));
  }

  std::uint64_t left_ = 1;
  std::string dir_ = options(1).data_dir;
  const std::string fresh_ = folder_.path("fresh");
  std::map<std::uint64_t, LeftList> machines_;
  std::unique_ptr<StoppedHost> stopped_;
};

TEST_F(StoppedHostTest, GroupsOfAnyMachineGoOnFromOneHost) {
  HostSurvivor survivor = lose_all_but_one();
  ASSERT_EQ(survivor.groups.size(), kPartGroups);
  RecoveryScope scope;
  for (GroupSurvivor& one : survivor.groups) {
    EXPECT_EQ(one.survivor.id, raft::NodeId(10 + left_)) << "the replica's number";
    EXPECT_GE(one.survivor.promise, lease_) << "the host has promised for all of them";
    one.survivor.applied = raft::Index(0);  // this machine keeps nothing
    scope.all.push_back(one.group);
  }
  const auto plan = plan_host_recovery({survivor}, scope).value();
  ASSERT_TRUE(begin_restoration(fresh_));
  for (const GroupRecovery& one : plan.groups) {
    ASSERT_EQ(one.fate, GroupFate::lost_majority);
    go_on(one, plan.number);
  }
  Restored whole{plan.number, raft::Index(0)};
  whole.recovered = Recovered{survivor.cluster_id, {}, 1};
  ASSERT_TRUE(finish_restoration(fresh_, whole));
  stopped_.reset();
  ASSERT_TRUE(retire(dir_, {survivor.cluster_id, plan.number, "why"}));
  EXPECT_EQ(Host::open(options(left_), clock_, observer_).error().code, ErrorCode::wrong_cluster);

  // The new groups have one member each, at the address of the old host.
  HostOptions again = options(left_);
  again.data_dir = fresh_;
  RecordingObserver quiet;
  const auto host = std::move(Host::open(again, clock_, observer_)).value();
  for (std::uint64_t group = 1; group <= kPartGroups; ++group) {
    GroupOptions alone = group_options(group, left_);
    alone.members = {{raft::NodeId(10 + left_), raft::NodeId(left_)}};
    Group* const opened = host->open_group(alone, machines_[group], quiet).value();
    const auto more = opened->propose_and_wait(Bytes("more"), kLong);
    ASSERT_EQ(more.status, replica::ProposeStatus::committed);
    EXPECT_GT(more.id.index, raft::Index(kRecoveryGap));
  }

  // A lost host that was not lost is refused, and its groups stop.
  const std::uint64_t back = left_ % 3 + 1;
  start(back);
  open(back, group_options(1, back));
  std::promise<Error> failed;
  auto failure = failed.get_future();
  part(back, 1).group->on_failure([&failed](Error error) { failed.set_value(std::move(error)); });
  ASSERT_EQ(failure.wait_for(kPatience), std::future_status::ready);
  const Error why = failure.get();
  EXPECT_EQ(why.code, ErrorCode::wrong_cluster);
  EXPECT_NE(why.message.find("was given up"), std::string::npos) << why.message;
  stop(back);
}

TEST_F(StoppedHostTest, WhatTheHostHasPromisedCountsForEachGroup) {
  const HostSurvivor before = lose_all_but_one();
  promise_more(before, 3 * lease_);
  const HostSurvivor survivor = std::move(StoppedHost::open(dir_)).value()->survivor();
  ASSERT_EQ(survivor.groups.size(), kPartGroups);
  for (const GroupSurvivor& one : survivor.groups) EXPECT_EQ(one.survivor.promise, 3 * lease_);
}

TEST_F(StoppedHostTest, IsNotANodeOfOneGroup) {
  start_with(1, 1);
  stop(1);
  EXPECT_TRUE(has_many_groups(dir_).value());
  EXPECT_EQ(StoppedLog::open(dir_).error().code, ErrorCode::unsupported);
  EXPECT_EQ(StoppedHost::open(dir_).error().code, ErrorCode::not_found) << "it has not formed";
  EXPECT_EQ(StoppedHost::open(folder_.path("none")).error().code, ErrorCode::not_found);
  EXPECT_EQ(has_many_groups(folder_.path("none")).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace leasehold::node
