// Groups whose leases rest on promises between processes, under random schedules: no group ever has
// two leases.
#include "change_support.h"
#include "shared_group.h"

#include <leasehold/base/random.h>

namespace leasehold::raft::test {
namespace {

/// Beats, replies and messages of the groups are late, come twice or never; disks are slow;
/// processes end and start again, with and without a notice; leaders transfer and are cut off.
class Storm {
 public:
  Storm(int groups, int size, std::uint64_t seed)
      : processes_(std::make_shared<Processes>(size, timing())), size_(size), random_(seed) {
    for (int i = 1; i <= groups; ++i) {
      const auto number = static_cast<std::uint64_t>(i);
      groups_.push_back({std::make_unique<SharedGroup>(processes_, GroupId(number), size, timing(),
                                                       seed + 7 * (number - 1))});
    }
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      judge();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  /// The faults end: somebody leads each group soon, and holds a lease.
  bool settles() {
    phase_ = Phase::all;
    for (int i = 1; i <= size_; ++i) {
      processes_->host(i).auto_sync = true;
      if (!up(i)) processes_->restart(i);
      processes_->sync(i);
    }
    for (Member& member : groups_) {
      member.group->heal();
      for (int i = 1; i <= size_; ++i) {
        member.group->replica(i).auto_sync = true;
        member.group->sync(i);
      }
    }
    for (int turn = 0; turn < 400; ++turn) {
      pass(ms(10));
      for (int i = 1; i <= size_; ++i) {
        if (turn % 4 == 0) groups_.front().group->beat(i);
      }
      for (Member& member : groups_) member.group->settle();
      judge();
      if (turn > 300 && all_hold() && all_follow()) return true;
    }
    return false;
  }
  std::uint64_t by_beats() const { return by_beats_; }
  /// Leases that the end of a class alone has carried.
  std::uint64_t by_classes() const { return by_classes_; }
  std::uint64_t leaders() const { return leaders_; }
  /// How often a node let go of a promise that rested on another's process.
  std::uint64_t let_go() const { return let_go_; }

 private:
  /// Of a view, by a reader that is slow to look at the end of the class and the clock.
  struct Copy {
    int node;
    LeaseState view;
    Term newest;  ///< of any leader, when the copy was made
  };
  struct Member {
    std::unique_ptr<SharedGroup> group;
    std::vector<Envelope> messages{};
    Term newest{};
    std::vector<Copy> copies{};
  };
  struct Beat {
    int to;
    Processes::Beat beat;
  };
  enum class Phase : std::uint8_t { all, all_again, beats_only, no_beats };

  static lease::Timing timing() {
    lease::Timing timing = exact();
    timing.lease = ms(400);
    timing.heartbeat = ms(40);
    timing.election_timeout = ms(60);
    timing.max_round_trip = ms(20);
    return timing;
  }
  int any() { return 1 + static_cast<int>(random_.below(static_cast<std::uint64_t>(size_))); }
  Member& any_group() { return groups_[random_.below(groups_.size())]; }
  bool up(int node) { return groups_.front().group->replica(node).up; }
  Now now() { return groups_.front().group->now(); }

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
      case 7: return sync(node);
      case 8: return change_disk(node);
      case 9:
        if (up(node)) any_group().group->propose(node, "x");
        return;
      case 10: return transfer(node, *any_group().group);
      case 11:
        if (random_.chance(1, 6)) end(node);
        return;
      case 12:
        if (!up(node)) processes_->restart(node);
        return;
      case 13: return cut(node, *any_group().group);
      case 14: return change(node, *any_group().group);
      default: return deliver();
    }
  }
  void sync(int node) {
    if (!up(node)) return;
    if (random_.chance(1, 2)) return processes_->sync(node);
    any_group().group->sync(node);
  }
  void change_disk(int node) {
    const bool quick = random_.chance(3, 4);
    if (random_.chance(1, 3)) {
      processes_->host(node).auto_sync = quick;
    } else {
      any_group().group->replica(node).auto_sync = quick;
    }
  }
  void transfer(int node, SharedGroup& group) {
    if (!up(node) || !random_.chance(1, 3)) return;
    (void)group.core(node).transfer(group.now(), kNobody);
    group.drain(node);
  }
  /// Its numbers, or who votes.
  void change(int node, SharedGroup& group) {
    if (!up(node) || !random_.chance(1, 3)) return;
    if (random_.chance(1, 2)) {
      GroupSettings wanted;
      wanted.timing = timing();
      if (random_.chance(1, 2)) wanted.timing.lease = ms(800);
      if (random_.chance(1, 2)) wanted.timing.margin = ms(60);
      static_cast<void>(group.change_settings(node, wanted));
    } else {
      WantedMembers wanted;
      for (int id = 1; id <= size_; ++id) wanted.push_back(voter(static_cast<std::uint64_t>(id)));
      if (random_.chance(1, 2)) {
        wanted.back() = learner(static_cast<std::uint64_t>(size_));
      }
      static_cast<void>(group.change(node, wanted));
    }
  }
  void cut(int node, SharedGroup& group) {
    if (random_.chance(1, 8)) group.isolate(node);
    if (random_.chance(1, 2)) group.heal();
  }
  void deliver() {
    for (std::uint64_t i = random_.below(8); i > 0; --i) {
      if (phase_ != Phase::no_beats) {
        some_beat();
        some_reply();
      }
      if (phase_ != Phase::beats_only) some_message(any_group());
    }
  }
  void pass(Duration span) {
    for (Member& member : groups_) member.group->jump(span);
    // A loop may be late, and take up acknowledgements before it looks.
    if (random_.chance(1, 3)) processes_->look_at_ends();
    for (Member& member : groups_) {
      for (int i = 1; i <= size_; ++i) {
        if (!up(i)) continue;
        const Core& core = member.group->core(i);
        if (core.next_deadline() <= now().promise || core.awaits_place()) member.group->tick(i);
      }
    }
  }
  void send_beats(int node) {
    if (!up(node)) return;
    // Some processes follow another D for a while.
    processes_->begin_beat(node, random_.chance(1, 6) ? ms(1200) : Duration(0));
    for (const int to : groups_.front().group->others(node)) {
      beats_.push_back({to, processes_->beat_to(node, to)});
    }
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
    if (beat && up(beat->to)) processes_->hear(beat->to, beat->beat);
  }
  void some_reply() {
    const auto reply = take(processes_->replies());
    if (reply && up(reply->to)) processes_->acknowledge(reply->to, *reply);
  }
  void some_message(Member& member) {
    auto& wire = member.group->in_flight();
    while (!wire.empty()) {
      member.messages.push_back(wire.front());
      wire.pop_front();
    }
    const auto sent = take(member.messages);
    if (!sent) return;
    const int from = static_cast<int>(sent->from.value());
    Peer peer = member.group->peer_of(from);
    peer.process = sent->process;
    member.group->step(peer, static_cast<int>(sent->to.value()), sent->message);
  }
  void end(int node) {
    if (!up(node)) return;
    const Peer gone = processes_->host(node).self();
    for (Member& member : groups_) {
      std::erase_if(member.copies, [node](const Copy& copy) { return copy.node == node; });
    }
    processes_->crash(node);
    for (const int other : groups_.front().group->others(node)) {
      if (up(other) && !random_.chance(1, 2)) processes_->ended(other, gone);
    }
  }

  bool all_hold() {
    return std::all_of(groups_.begin(), groups_.end(), [this](Member& member) {
      for (int i = 1; i <= size_; ++i) {
        if (member.group->view_end(i) > now().holder) return true;
      }
      return false;
    });
  }
  /// Also at rest, each node knows the leader, and what is committed.
  bool all_follow() {
    return std::all_of(groups_.begin(), groups_.end(), [this](Member& member) {
      const Core& first = member.group->core(1);
      for (int i = 1; i <= size_; ++i) {
        const Core& core = member.group->core(i);
        if (core.leader() == kNobody || core.leader() != first.leader() ||
            core.commit_index() != first.commit_index()) {
          return false;
        }
      }
      return true;
    });
  }
  void judge() {
    for (Member& member : groups_) {
      SCOPED_TRACE(member.group->id().value());
      judge(member);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
  void judge(Member& member) {
    int holders = 0;
    SharedGroup& group = *member.group;
    for (int i = 1; i <= size_; ++i) {
      if (!up(i)) continue;
      const Core& core = group.core(i);
      if (core.role() == Role::leader && core.term() > member.newest) {
        member.newest = core.term();
        ++leaders_;
      }
      if (group.view_end(i) <= now().holder) continue;
      ++holders;
      if (group.replica(i).view.end <= now().holder) ++by_classes_;
      ASSERT_EQ(core.term(), member.newest) << "node " << i << " holds a lease of an earlier term";
      for (const auto& [id, progress] : core.progress()) {
        if (progress.bound &&
            (!progress.acked_round || progress.acked_round->end() <= now().holder)) {
          ++by_beats_;
        }
      }
    }
    ASSERT_LE(holders, 1);
    judge_copies(member);
    count_epochs();
  }
  // The instant of the copy is the read's: a leader that is elected later has committed nothing
  // before.
  void judge_copies(Member& member) {
    SharedGroup& group = *member.group;
    for (const Copy& copy : member.copies) {
      if (!up(copy.node) || group.end_of(copy.node, copy.view) <= now().holder) continue;
      ASSERT_EQ(copy.view.term, copy.newest) << "a copy of node " << copy.node;
    }
    if (!random_.chance(1, 4)) return;
    const int node = any();
    if (member.copies.size() >= 8) member.copies.erase(member.copies.begin());
    if (up(node)) member.copies.push_back({node, group.replica(node).view, member.newest});
  }
  void count_epochs() {
    for (int i = 1; i <= size_; ++i) {
      for (int holder = 1; holder <= size_; ++holder) {
        const auto number = static_cast<std::uint64_t>(holder);
        const lease::Support* const support =
            processes_->host(i).promises().support_of(Uuid{number, number});
        if (support == nullptr) continue;
        std::uint64_t& seen = epochs_[{i, holder}];
        if (support->epoch().counter > seen) ++let_go_;
        seen = support->epoch().counter;
      }
    }
  }

  std::shared_ptr<Processes> processes_;
  int size_;
  Random random_;
  std::vector<Member> groups_;
  std::vector<Beat> beats_;
  Phase phase_ = Phase::all;
  std::uint64_t leaders_ = 0;
  std::uint64_t by_beats_ = 0;
  std::uint64_t by_classes_ = 0;
  std::uint64_t let_go_ = 0;
  std::map<std::pair<int, int>, std::uint64_t> epochs_;
};

void storms(int groups, int size, std::uint64_t seeds, int steps) {
  std::uint64_t by_beats = 0;
  std::uint64_t by_classes = 0;
  std::uint64_t leaders = 0;
  std::uint64_t let_go = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    Storm storm(groups, size, seed);
    storm.run(steps);
    if (testing::Test::HasFatalFailure()) return;
    ASSERT_TRUE(storm.settles());
    by_beats += storm.by_beats();
    by_classes += storm.by_classes();
    leaders += storm.leaders();
    let_go += storm.let_go();
  }
  // Leases that no round of the group would carry any more.
  EXPECT_GT(by_beats, 5000U);
  EXPECT_GT(by_classes, 1000U);
  EXPECT_GT(leaders, 600U);
  EXPECT_GT(let_go, 200U);
}

TEST(SharedStorms, OfThreeNodesFindNoTwoLeases) {
  storms(1, 3, 200, 2000);
}
TEST(SharedStorms, OfFiveNodesFindNoTwoLeases) {
  storms(1, 5, 100, 2000);
}
TEST(SharedStorms, OfThreeGroupsFindNoTwoLeases) {
  storms(3, 3, 100, 3000);
}

}  // namespace
}  // namespace leasehold::raft::test
