// A group that its leader lets rest.
#pragma once

#include "change_support.h"
#include "shared_group.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

namespace leasehold::raft::test {

inline constexpr auto kLease = std::chrono::milliseconds(1000);

/// One of `all`, which are the numbers from 1 on, does not vote.
inline WantedMembers with_learner(WantedMembers all, int pupil) {
  const auto number = static_cast<std::uint64_t>(pupil);
  all.at(number - 1) = learner(number);
  return all;
}

/// Counts what the cores send.
class Rest : public ::testing::Test {
 protected:
  void SetUp() override { start(); }
  void start() {
    leader = group.bound_leader();
    group.filter = [this](const Envelope& message) {
      ++sent;
      return let_through(message);
    };
  }
  /// Heartbeats of the process, and whatever the group does meanwhile. `without`: their processes
  /// are not heard.
  void beats(Duration span, const std::vector<int>& without = {}) {
    for (Duration at{0}; at < span; at += exact().heartbeat) {
      group.run(exact().heartbeat);
      group.beat(leader, without);
    }
  }
  /// What is sent in ten heartbeats.
  int sent_in_ten(const std::vector<int>& without = {}) {
    sent = 0;
    beats(10 * exact().heartbeat, without);
    return sent;
  }
  /// After this many heartbeats nothing is under way any more.
  void come_to_rest() { beats(4 * exact().heartbeat); }

  /// As a learner it asks for no votes, so its process never lets go.
  void demote(int member) {
    ASSERT_TRUE(std::holds_alternative<LogId>(
        group.change(leader, with_learner(voters({1, 2, 3}), member))));
    come_to_rest();
  }

  static NodeId id_of(int id) { return NodeId(static_cast<std::uint64_t>(id)); }

  SharedGroup group;
  int leader = 0;
  int sent = 0;
  std::function<bool(const Envelope&)> let_through = [](const Envelope&) { return true; };
};

}  // namespace leasehold::raft::test
