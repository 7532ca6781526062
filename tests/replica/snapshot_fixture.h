// Drivers whose logs are cut after a few commands.
#pragma once

#include <leasehold/tests/replica/driver_cluster.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace leasehold::replica::testing {

inline DriverOptions small_limits() {
  DriverOptions options;
  options.log_tail_bytes = 4000;
  options.log_cut_bytes = 4000;
  options.snapshot_chunk_bytes = 500;
  options.snapshot_window_bytes = 2000;
  return options;
}

inline const raft::SnapshotChunk* chunk_in(const Rig::Sent& sent) {
  const auto* message = std::get_if<raft::Message>(&sent.message.payload);
  return message == nullptr ? nullptr : std::get_if<raft::SnapshotChunk>(message);
}
inline const raft::SnapshotReply* reply_in(const Rig::Sent& sent) {
  const auto* message = std::get_if<raft::Message>(&sent.message.payload);
  return message == nullptr ? nullptr : std::get_if<raft::SnapshotReply>(message);
}

class SnapshotTest : public ::testing::Test {
 protected:
  Rig& leader() { return cluster.await_leader(); }
  static raft::Index base_of(Rig& rig) { return rig.driver().core().log().base().index; }

  /// Commands of 100 bytes, each committed before the next.
  void write(Rig& at, int count) {
    for (int i = 0; i < count; ++i) {
      Answer<ProposeResult> answer;
      std::string command = std::to_string(++written) + ".";
      command.resize(100, 'x');
      at.handle(cluster.now(), Propose{Bytes(std::move(command)),
                                       cluster.in(std::chrono::seconds(30)), answer.completion()});
      cluster.advance(milliseconds(5));
      ASSERT_EQ(answer.value.status, ProposeStatus::committed);
    }
  }
  /// A leader whose log no longer holds what the returned follower needs, which is cut off.
  Rig& strand_one() {
    Rig& leads = leader();
    cluster.advance(milliseconds(300));
    Rig& stranded = cluster.node(leads.id() == raft::NodeId(1) ? 2 : 1);
    cluster.cut(stranded.id().value());
    write(leads, 200);
    EXPECT_GT(base_of(leads), stranded.driver().core().log().last_index());
    return stranded;
  }
  /// The same, and its snapshot takes a second or more.
  Rig& strand_slowly() {
    DriverOptions options = small_limits();
    options.snapshot_bytes_per_second = 20'000;
    cluster = Cluster(3, options);
    return strand_one();
  }
  /// There are entries behind the snapshot when it has arrived.
  void write_until_one_arrives(Rig& stranded) {
    cluster.heal();
    const DriverCounters& counters = stranded.driver().counters();
    while (written < 3000 && counters.snapshots_installed == 0) write(leader(), 1);
    ASSERT_EQ(counters.snapshots_installed, 1U);
  }
  void change_settings(const raft::SettingsEdit& edit) {
    Answer<SettingsResult> changed;
    leader().handle(cluster.now(), ChangeSettings{edit, cluster.in(std::chrono::seconds(5)),
                                                  changed.completion()});
    ASSERT_TRUE(cluster.advance_until([&] { return changed.calls > 0; }));
    ASSERT_EQ(changed.value.status, GroupCallStatus::done);
  }
  bool catches_up(Rig& rig) {
    return cluster.advance_until([&] {
      return rig.driver().applied() == cluster.await_leader().driver().core().commit_index();
    });
  }

  /// Asks for a cut and notes the answer.
  void demand(Rig& at) {
    at.handle(cluster.now(), CutLog{[this](Result<LogCut> result) { cuts.push_back(result); }});
  }

  Cluster cluster{3, small_limits()};
  int written = 0;
  std::vector<Result<LogCut>> cuts;
};

}  // namespace leasehold::replica::testing
