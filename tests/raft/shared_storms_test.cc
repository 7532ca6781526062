// A group whose lease rests on promises between processes, under random schedules: there are never
// two leases.
#include "shared_group.h"

#include <leasehold/base/random.h>

namespace leasehold::raft::test {
namespace {

/// Beats, answers and messages of the group are late, come twice or never; disks are slow;
/// processes end and start again, with and without a notice; leaders transfer and are cut off.
class Storm {
 public:
  Storm(int size, std::uint64_t seed) : group_(size, timing(), seed), random_(seed) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      judge();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  /// The faults end: somebody leads soon, and holds a lease.
  bool settles() {
    group_.heal();
    phase_ = Phase::all;
    for (int i = 1; i <= group_.size(); ++i) {
      group_.replica(i).auto_sync = true;
      if (!group_.replica(i).up) group_.restart_process(i);
      group_.sync(i);
    }
    for (int turn = 0; turn < 400; ++turn) {
      pass(ms(10));
      for (int i = 1; i <= group_.size(); ++i) {
        if (turn % 4 == 0) group_.beat(i);
      }
      group_.settle();
      judge();
      for (int i = 1; i <= group_.size(); ++i) {
        if (turn > 300 && group_.replica(i).view.end > group_.now().holder) return true;
      }
    }
    return false;
  }
  std::uint64_t by_beats() const { return by_beats_; }
  std::uint64_t leaders() const { return leaders_; }

 private:
  static lease::Timing timing() {
    lease::Timing timing = exact();
    timing.lease = ms(400);
    timing.heartbeat = ms(40);
    timing.election_timeout = ms(60);
    timing.max_round_trip = ms(20);
    return timing;
  }
  struct Beat {
    int to;
    SharedGroup::BeatMessage message;
    int from;
  };
  struct Answer {
    int to;
    SharedGroup::BeatAnswer answer;
    int by;
  };

  enum class Phase : std::uint8_t { all, all_again, beats_only, no_beats };

  int any() {
    return 1 + static_cast<int>(random_.below(static_cast<std::uint64_t>(group_.size())));
  }

  void step() {
    const int node = any();
    if (random_.chance(1, 50)) phase_ = static_cast<Phase>(random_.below(4));
    if (random_.chance(1, 3)) return deliver();
    switch (random_.below(24)) {
      case 0:
      case 1:
      case 2: return pass(ms(static_cast<std::int64_t>(random_.below(30))));
      case 3:
        return pass(ms(static_cast<std::int64_t>(random_.below(random_.chance(1, 4) ? 600 : 60))));
      case 4:
      case 5:
      case 6: return send_beats(node);
      case 7:
        if (group_.replica(node).up) group_.sync(node);
        return;
      case 8: group_.replica(node).auto_sync = random_.chance(3, 4); return;
      case 9:
        if (group_.replica(node).up) group_.propose(node, "x");
        return;
      case 10:
        if (group_.replica(node).up && random_.chance(1, 3)) {
          (void)group_.core(node).transfer(group_.now(), kNobody);
          group_.drain(node);
        }
        return;
      case 11:
        if (random_.chance(1, 6)) end(node);
        return;
      case 12:
        if (!group_.replica(node).up) group_.restart_process(node);
        return;
      case 13:
        if (random_.chance(1, 8)) group_.isolate(node);
        if (random_.chance(1, 2)) group_.heal();
        return;
      default: return deliver();
    }
  }
  void deliver() {
    for (std::uint64_t i = random_.below(8); i > 0; --i) {
      if (phase_ != Phase::no_beats) {
        some_beat();
        some_answer();
      }
      if (phase_ != Phase::beats_only) some_message();
    }
  }
  void pass(Duration span) {
    group_.jump(span);
    for (int i = 1; i <= group_.size(); ++i) {
      if (group_.replica(i).up && group_.core(i).next_deadline() <= group_.now().promise) {
        group_.tick(i);
      }
    }
  }
  void send_beats(int node) {
    if (!group_.replica(node).up) return;
    // Some processes follow another D for a while.
    group_.begin_beat(node, random_.chance(1, 6) ? ms(1200) : Duration(0));
    for (const int to : group_.others(node)) beats_.push_back({to, group_.beat_to(node, to), node});
  }
  template <class T>
  std::optional<T> take(std::vector<T>& from) {
    if (from.empty()) return std::nullopt;
    const std::uint64_t back = random_.below(random_.chance(3, 4) ? 3 : from.size());
    const std::size_t i = from.size() - 1 - std::min<std::size_t>(back, from.size() - 1);
    T found = from[i];
    if (!random_.chance(1, 10)) from.erase(from.begin() + static_cast<std::ptrdiff_t>(i));
    if (from.size() > 60) from.erase(from.begin());
    if (random_.chance(1, 12)) return std::nullopt;  // lost
    return found;
  }
  void some_beat() {
    const auto beat = take(beats_);
    if (!beat || !group_.replica(beat->to).up) return;
    if (const auto answer = group_.hear(beat->to, beat->message)) {
      answers_.push_back({beat->from, *answer, beat->to});
    }
  }
  void some_answer() {
    const auto answer = take(answers_);
    if (answer && group_.replica(answer->to).up) {
      group_.acknowledge(answer->to, answer->by, answer->answer);
    }
  }
  void some_message() {
    auto& wire = group_.in_flight();
    while (!wire.empty()) {
      messages_.push_back(wire.front());
      wire.pop_front();
    }
    const auto sent = take(messages_);
    if (!sent) return;
    const int from = static_cast<int>(sent->from.value());
    Peer peer = group_.peer_of(from);
    peer.process = sent->process;
    group_.step(peer, static_cast<int>(sent->to.value()), sent->message);
  }
  void end(int node) {
    if (!group_.replica(node).up) return;
    const Peer gone = group_.peer_of(node);
    group_.crash(node);
    for (const int other : group_.others(node)) {
      if (!group_.replica(other).up || random_.chance(1, 2)) continue;
      group_.host(other).support_for(gone.uuid).end(gone.process, group_.now().promise);
      group_.core(other).ended(group_.now(), gone);
      group_.drain(other);
    }
  }

  void judge() {
    int holders = 0;
    for (int i = 1; i <= group_.size(); ++i) {
      if (!group_.replica(i).up) continue;
      const Core& core = group_.core(i);
      if (core.role() == Role::leader && core.term() > newest_) {
        newest_ = core.term();
        ++leaders_;
      }
      if (group_.replica(i).view.end <= group_.now().holder) continue;
      ++holders;
      ASSERT_EQ(core.term(), newest_) << "node " << i << " holds a lease of an earlier term";
      for (const auto& [id, progress] : core.progress()) {
        if (progress.bound &&
            (!progress.acked_round || progress.acked_round->end() <= group_.now().holder)) {
          ++by_beats_;
        }
      }
    }
    ASSERT_LE(holders, 1);
  }

  SharedGroup group_;
  Random random_;
  std::vector<Beat> beats_;
  std::vector<Answer> answers_;
  std::vector<Envelope> messages_;
  Phase phase_ = Phase::all;
  Term newest_;
  std::uint64_t leaders_ = 0;
  std::uint64_t by_beats_ = 0;
};

void storms(int size, std::uint64_t seeds, int steps) {
  std::uint64_t by_beats = 0;
  std::uint64_t leaders = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    Storm storm(size, seed);
    storm.run(steps);
    if (testing::Test::HasFatalFailure()) return;
    ASSERT_TRUE(storm.settles());
    by_beats += storm.by_beats();
    leaders += storm.leaders();
  }
  // Leases that no round of the group would carry any more.
  EXPECT_GT(by_beats, 5000U);
  EXPECT_GT(leaders, 700U);
}

TEST(SharedStorms, OfThreeNodesFindNoTwoLeases) {
  storms(3, 200, 2000);
}
TEST(SharedStorms, OfFiveNodesFindNoTwoLeases) {
  storms(5, 100, 2000);
}

}  // namespace
}  // namespace leasehold::raft::test
