// Hosts of many groups in one process: real sockets on loopback, real logs in a temporary folder.
#pragma once

#include <leasehold/node/host.h>
#include <leasehold/tests/node/node_fixture.h>

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace leasehold::node {

/// A replica's state machine, and what it says.
struct Part {
  ListMachine machine;
  RecordingObserver observer;
  Group* group = nullptr;
};

class HostTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kHosts = 4;

  void SetUp() override {
    const auto ports = free_ports(kHosts);
    for (std::uint64_t id = 1; id <= kHosts; ++id) {
      all_.push_back({raft::NodeId(id), address_of(ports[id - 1])});
    }
    hosts_.resize(kHosts);
    parts_.resize(kHosts);
  }
  void TearDown() override { hosts_.clear(); }

  lease::Timing timing() const {
    lease::Timing timing;
    timing.lease = lease_;
    timing.heartbeat = std::chrono::milliseconds(40);
    timing.election_timeout = std::chrono::milliseconds(150);
    return timing;
  }
  HostOptions options(std::uint64_t id) const {
    HostOptions options;
    options.id = raft::NodeId(id);
    options.data_dir = folder_.path("host" + std::to_string(id));
    options.hosts = all_;
    options.timing = timing();
    return options;
  }
  void start(std::uint64_t id) {
    auto opened = Host::open(options(id), clock_, observer_);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    hosts_[id - 1] = std::move(opened).value();
  }
  void stop(std::uint64_t id) {
    hosts_[id - 1].reset();
    parts_[id - 1].clear();
  }
  Host& host(std::uint64_t id) { return *hosts_[id - 1]; }

  /// Replica 10 + n is at host n, of the first three.
  GroupOptions group_options(std::uint64_t group, std::uint64_t host) const {
    GroupOptions options;
    options.group = raft::GroupId(group);
    options.replica = raft::NodeId(10 + host);
    options.timing = timing();
    for (std::uint64_t id = 1; id <= 3; ++id) {
      options.members.push_back({raft::NodeId(10 + id), raft::NodeId(id)});
    }
    return options;
  }
  Result<Group*> try_open(std::uint64_t host_id, const GroupOptions& options) {
    auto& part = parts_[host_id - 1][options.group.value()];
    part = std::make_unique<Part>();
    auto opened = host(host_id).open_group(options, part->machine, part->observer);
    if (opened.ok()) part->group = opened.value();
    return opened;
  }
  void open(std::uint64_t host_id, const GroupOptions& options) {
    const auto opened = try_open(host_id, options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
  }
  void start_with(std::uint64_t id, std::uint64_t groups) {
    start(id);
    for (std::uint64_t group = 1; group <= groups; ++group) open(id, group_options(group, id));
  }
  Part& part(std::uint64_t host_id, std::uint64_t group) { return *parts_[host_id - 1].at(group); }

  /// The host whose replica holds a lease.
  std::uint64_t leader_of(std::uint64_t group) {
    std::uint64_t leader = 0;
    EXPECT_TRUE(eventually([this, group, &leader] {
      for (std::uint64_t id = 1; id <= kHosts; ++id) {
        const auto at = parts_[id - 1].find(group);
        if (at == parts_[id - 1].end() || at->second->group == nullptr) continue;
        if (at->second->group->lease_view().readable_index(clock_)) leader = id;
      }
      return leader != 0;
    })) << "group "
        << group;
    return leader;
  }
  static replica::ProposeResult propose(Part& at, const std::string& command) {
    return at.group->propose_and_wait(Bytes(command), kLong);
  }
  static NodeStatus status(Part& at) {
    std::promise<NodeStatus> answer;
    at.group->status([&answer](NodeStatus status) { answer.set_value(std::move(status)); });
    return answer.get_future().get();
  }
  HostStatus status(std::uint64_t id) {
    std::promise<HostStatus> answer;
    host(id).status([&answer](HostStatus status) { answer.set_value(std::move(status)); });
    return answer.get_future().get();
  }
  /// At the leader, again while that may pass later.
  void change(std::uint64_t group, const MemberEdit& edit) {
    MembersResult result;
    EXPECT_TRUE(eventually([&] {
      result = part(leader_of(group), group).group->change_members_and_wait({edit}, kLong);
      return result.status == replica::GroupCallStatus::done || !result.retryable;
    }));
    EXPECT_EQ(result.status, replica::GroupCallStatus::done) << result.reason;
  }

  lease::Duration lease_ = std::chrono::milliseconds(400);
  TemporaryFolder folder_;
  StoppableClock clock_;
  RecordingObserver observer_;
  std::vector<Peer> all_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::map<std::uint64_t, std::unique_ptr<Part>>> parts_;
};

}  // namespace leasehold::node
