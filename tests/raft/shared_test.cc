// A group whose lease rests on promises between processes, as it would among many groups
// (raft/core_shared.cc): the beats here are the test's own.
#include "group.h"

#include <leasehold/base/random.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

namespace leasehold::raft::test {
namespace {

/// The promises of one process.
class Host final : public SharedPromises {
 public:
  explicit Host(Incarnation self) : self_(self) {}

  const lease::Support* support_of(const Uuid& holder) const override {
    const auto found = supports.find(holder);
    return found != supports.end() ? &found->second : nullptr;
  }
  void rely(const Uuid& holder, PromiseInstant now) override { supports.at(holder).rely(now); }
  Duration remembered(NodeId holder) const override {
    const auto found = supports.find(Uuid{holder.value(), holder.value()});
    return found != supports.end() ? found->second.remembered() : Duration(0);
  }
  const lease::Beats& beats() const override { return sent; }
  const lease::Supporter* supporter(const Uuid& member) const override {
    const auto found = supporters.find(member);
    return found != supporters.end() ? &found->second : nullptr;
  }
  lease::Support& support_for(const Uuid& holder) {
    return supports.try_emplace(holder, lease::Support(self_)).first->second;
  }
  /// Its process has ended, and the next one has begun.
  void restart(PromiseInstant now) {
    self_ = self_.next();
    sent = lease::Beats();
    supporters.clear();
    releases.clear();
    for (auto& [holder, support] : supports) {
      const Duration remembered = support.remembered();
      support = lease::Support::restarted(self_, remembered, remembered, now);
    }
  }

  /// (term, the beat that a bind has to name from then on), by member.
  struct Released {
    Term term;
    lease::Beat beat;
  };
  lease::Beats sent;
  std::map<Uuid, lease::Supporter> supporters;
  std::map<Uuid, lease::Support> supports;
  std::map<NodeId, std::vector<Released>> releases;

 private:
  Incarnation self_;
};

lease::Timing exact() {
  lease::Timing timing;
  timing.max_clock_drift_ppm = 0;
  timing.margin = Duration(0);
  return timing;
}

/// A group of nodes that share promises.
class SharedGroup : public Group {
 public:
  explicit SharedGroup(int size = 3, lease::Timing timing = exact(), std::uint64_t seed = 1)
      : Group(size, timing, seed), size_(size), timing_(timing) {
    for (int i = 1; i <= size; ++i) {
      hosts_.emplace(i, Host(Incarnation(2)));
      replica(i).options.shared = &hosts_.at(i);
      restart(i);
    }
    jump(timing.lease);
  }
  Host& host(int id) { return hosts_.at(id); }
  lease::Support& support(int member, int holder) {
    return host(member).support_for(peer_of(holder).uuid);
  }
  int size() const { return size_; }

  struct BeatMessage {
    Peer from;
    lease::Beat beat;
    std::vector<Host::Released> releases;
  };
  struct BeatAnswer {
    Process to;
    lease::Beat beat;
    lease::Epoch epoch;
  };

  /// Node `id` begins a beat.
  void begin_beat(int id) {
    take_releases(id);
    host(id).sent.begin(now().holder, timing_);
  }
  /// What it sends to `to` with its newest beat.
  BeatMessage beat_to(int id, int to) {
    take_releases(id);
    return {peer_of(id), host(id).sent.newest(), host(id).releases[peer_of(to).id]};
  }
  /// `to` has heard it. None: it does not answer.
  std::optional<BeatAnswer> hear(int to, const BeatMessage& message) {
    lease::Support& support = host(to).support_for(message.from.uuid);
    if (!support.renew(message.from.process, timing_.lease, now().promise)) return std::nullopt;
    for (const Host::Released& released : message.releases) {
      support.release(message.from.process, released.beat);
      core(to).released(now(), message.from, released.term);
      drain(to);
    }
    return BeatAnswer{message.from.process, message.beat, support.epoch()};
  }
  void acknowledge(int id, int by, const BeatAnswer& answer) {
    if (answer.to != peer_of(id).process) return;
    lease::Supporter& supporter = host(id).supporters[peer_of(by).uuid];
    const std::optional<lease::Epoch> before = supporter.epoch();
    supporter.acknowledge(host(id).sent, answer.beat, answer.epoch);
    auto& releases = host(id).releases[peer_of(by).id];
    if (before && *supporter.epoch() > *before) releases.clear();
    std::erase_if(releases, [&answer](const Host::Released& released) {
      return released.beat <= answer.beat;
    });
    core(id).beats_acknowledged(now());
    drain(id);
  }
  /// A beat of `id` that all others acknowledge at once, except `without`.
  void beat(int id, const std::vector<int>& without = {}) {
    begin_beat(id);
    for (int other = 1; other <= size_; ++other) {
      if (other == id || !replica(other).up) continue;
      if (std::find(without.begin(), without.end(), other) != without.end()) continue;
      if (const auto answer = hear(other, beat_to(id, other))) acknowledge(id, other, *answer);
    }
  }
  /// A leader to whose process all others are bound.
  int bound_leader() {
    const int leader = elect();
    beat(leader);
    run(timing_.heartbeat);
    return leader;
  }
  /// Nothing of the group arrives any more; beats do.
  void silence() {
    filter = [](const Envelope&) { return false; };
  }
  void beats(int id, Duration span, const std::vector<int>& without = {}) {
    for (Duration at{0}; at < span; at += timing_.heartbeat) {
      jump(timing_.heartbeat);
      beat(id, without);
    }
  }
  bool votes(int id, int candidate, std::uint64_t term) {
    in_flight().clear();
    step(candidate, id, VoteRequest{Term(term), core(candidate).log().last()});
    for (const Envelope& sent : in_flight()) {
      const auto* reply = std::get_if<VoteReply>(&sent.message);
      if (reply != nullptr && reply->request_term == Term(term)) return reply->granted;
    }
    ADD_FAILURE() << "no answer";
    return false;
  }
  void restart_process(int id) {
    host(id).restart(now().promise);
    restart(id);
  }
  std::vector<int> others(int id) const {
    std::vector<int> found;
    for (int other = 1; other <= size_; ++other) {
      if (other != id) found.push_back(other);
    }
    return found;
  }

 private:
  void take_releases(int id) {
    for (const Release& release : replica(id).releases) {
      for (const NodeId member : release.members) {
        host(id).releases[member].push_back({release.term, host(id).sent.newest().next()});
      }
    }
    replica(id).releases.clear();
  }

  int size_;
  lease::Timing timing_;
  std::map<int, Host> hosts_;
};

constexpr auto kD = std::chrono::milliseconds(1000);

// ---- The leader ----

TEST(Shared, ALeaseGoesOnByBeatsAlone) {
  SharedGroup group;
  const int leader = group.bound_leader();
  group.silence();
  group.beats(leader, 10 * kD);
  EXPECT_EQ(group.core(leader).role(), Role::leader);
  EXPECT_EQ(group.core(leader).lease_end(), group.now().holder + kD);
  EXPECT_EQ(group.replica(leader).view.end, group.core(leader).lease_end());
}

TEST(Shared, WithoutABindBeatsAreWorthNothing) {
  SharedGroup group;
  const int leader = group.elect();
  group.silence();
  group.beats(leader, 2 * kD);
  EXPECT_LE(group.core(leader).lease_end(), group.now().holder);
}

TEST(Shared, AQuorumHasToBeBound) {
  SharedGroup group(5);
  const int leader = group.bound_leader();
  group.silence();
  const std::vector<int> others = group.others(leader);
  group.beats(leader, 2 * kD, {others[0], others[1], others[2]});
  EXPECT_LE(group.core(leader).lease_end(), group.now().holder);
}

TEST(Shared, ALeaderWithoutAcknowledgedBeatsStepsDown) {
  SharedGroup group;
  const int leader = group.bound_leader();
  group.silence();
  group.beats(leader, 3 * kD);
  ASSERT_EQ(group.core(leader).role(), Role::leader);
  group.jump(kD);
  group.tick(leader);
  EXPECT_EQ(group.core(leader).role(), Role::follower);
}

TEST(Shared, NothingIsBoundAtAnElection) {
  SharedGroup group;
  const int first = group.bound_leader();
  // All processes go on acknowledging, at the same epochs.
  const int next = group.others(first)[0];
  ASSERT_FALSE(group.core(first).transfer(group.now(), NodeId(static_cast<std::uint64_t>(next))));
  group.drain(first);
  group.settle();
  ASSERT_EQ(group.core(next).role(), Role::leader);
  ASSERT_FALSE(group.core(next).transfer(group.now(), NodeId(static_cast<std::uint64_t>(first))));
  group.drain(next);
  group.filter = [](const Envelope& sent) {
    const auto* append = std::get_if<AppendReply>(&sent.message);
    return append == nullptr || !append->bound;
  };
  group.settle();
  ASSERT_EQ(group.core(first).role(), Role::leader);
  group.silence();
  group.beats(first, 2 * kD);
  EXPECT_LE(group.core(first).lease_end(), group.now().holder);
}

TEST(Shared, ALateAnswerDoesNotBindAtAnEarlierEpoch) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int other = group.others(leader)[0];
  const lease::Epoch earlier = group.support(other, leader).epoch();
  AppendReply late;
  late.request_term = late.term = group.core(leader).term();
  late.promised = true;
  late.round = Round(1);
  late.bound = earlier;
  // The member lets go, and is bound again by the next append.
  group.silence();
  group.beats(leader, 2 * kD, {other});
  group.support(other, leader).rely(group.now().promise);
  group.filter = [](const Envelope&) { return true; };
  group.beat(leader);
  group.tick(leader);
  group.settle();
  ASSERT_EQ(
      group.core(leader).progress().at(NodeId(static_cast<std::uint64_t>(other))).bound->epoch,
      group.support(other, leader).epoch());
  group.step(other, leader, late);
  EXPECT_GT(
      group.core(leader).progress().at(NodeId(static_cast<std::uint64_t>(other))).bound->epoch,
      earlier);
}

TEST(Shared, AMoreCarefulNumberShortensWhatBeatsAreWorth) {
  SharedGroup group;
  const int leader = group.bound_leader();
  GroupSettings settings;
  settings.timing = exact();
  settings.timing.max_clock_drift_ppm = 100'000;
  group.beat(leader);
  ASSERT_EQ(group.core(leader).lease_end(), group.now().holder + kD);
  group.silence();
  ASSERT_TRUE(std::holds_alternative<LogId>(group.change_settings(leader, settings)));
  group.beat(leader);
  EXPECT_LE(group.core(leader).lease_end(), group.now().holder + settings.timing.usable(kD));
}

// Which numbers it has lived under is not known.
TEST(Shared, NoLeaseRestsOnABeatFromBeforeTheNumbersChanged) {
  SharedGroup group;
  const int leader = group.bound_leader();
  group.silence();
  group.beats(leader, 2 * kD);
  GroupSettings settings;
  settings.timing = exact();
  settings.timing.margin = ms(5);
  const int member = group.others(leader)[0];
  group.begin_beat(leader);
  const auto answer = group.hear(member, group.beat_to(leader, member));
  ASSERT_TRUE(std::holds_alternative<LogId>(group.change_settings(leader, settings)));
  group.acknowledge(leader, member, *answer);
  EXPECT_LE(group.core(leader).lease_end(), group.now().holder);
  group.jump(ms(1));
  group.beat(leader);
  EXPECT_EQ(group.core(leader).lease_end(), group.now().holder + kD - ms(5));
}

TEST(Shared, NoLeaseRestsOnABeatFromBeforeTheElection) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int next = group.others(leader)[0];
  group.jump(ms(10));
  group.beat(next);
  group.isolate(leader);
  ASSERT_FALSE(group.core(leader).transfer(group.now(), NodeId(static_cast<std::uint64_t>(next))));
  group.drain(leader);
  group.heal();
  group.settle();
  ASSERT_EQ(group.core(next).role(), Role::leader);
  // Bound by now, and everything else was lost.
  const PromiseInstant rounds = group.now().promise;
  group.silence();
  group.beats(next, 2 * kD);
  EXPECT_EQ(group.core(next).lease_end(), group.now().holder + kD);
  EXPECT_GT(group.now().promise, rounds);
}

TEST(Shared, ALeaderThatLeavesReleasesThoseThatItHasAsked) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const Term term = group.core(leader).term();
  group.silence();
  group.jump(2 * kD);
  group.tick(leader);
  ASSERT_EQ(group.core(leader).role(), Role::follower);
  ASSERT_EQ(group.replica(leader).releases.size(), 1U);
  const Release& release = group.replica(leader).releases[0];
  EXPECT_EQ(release.term, term);
  EXPECT_EQ(release.members.size(), 2U);
  EXPECT_EQ(group.replica(leader).view.end, HolderInstant::earliest());
}

TEST(Shared, ALeaderThatHasAskedNobodyReleasesNobody) {
  SharedGroup group;
  const int leader = group.elect();
  group.jump(2 * kD);
  group.tick(leader);
  ASSERT_EQ(group.core(leader).role(), Role::follower);
  EXPECT_TRUE(group.replica(leader).releases.empty());
}

// ---- The member ----

TEST(Shared, ABoundPromiseLivesAsLongAsTheSupport) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  const int candidate = group.others(leader)[1];
  group.silence();
  group.beats(leader, 5 * kD);
  EXPECT_FALSE(group.votes(member, candidate, 9));
  EXPECT_GT(group.core(member).next_deadline(), group.now().promise);
  group.jump(kD);
  EXPECT_TRUE(group.votes(member, candidate, 9));
}

TEST(Shared, AMemberThatVotesLetsGoFirst) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  const lease::Epoch before = group.support(member, leader).epoch();
  group.silence();
  group.jump(kD);
  ASSERT_TRUE(group.votes(member, group.others(leader)[1], 9));
  EXPECT_GT(group.support(member, leader).epoch(), before);
}

TEST(Shared, AMemberThatCampaignsLetsGoFirst) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  const lease::Epoch before = group.support(member, leader).epoch();
  group.isolate(leader);
  group.jump(3 * kD);
  group.tick(member);
  group.settle();
  ASSERT_EQ(group.core(member).role(), Role::leader);
  EXPECT_GT(group.support(member, leader).epoch(), before);
}

TEST(Shared, APreVoteLetsNothingGo) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  const lease::Epoch before = group.support(member, leader).epoch();
  group.silence();
  group.jump(kD);
  group.step(group.others(leader)[1], member,
             PreVoteRequest{Term(9), group.core(leader).log().last()});
  EXPECT_EQ(group.support(member, leader).epoch(), before);
}

TEST(Shared, ALaterLeadersPromiseIsNotBoundByTheEarlierOnes) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int next = group.others(leader)[0];
  const int member = group.others(leader)[1];
  group.silence();
  group.beat(next);
  AppendRequest append;
  append.term = Term(8);
  append.prev = group.core(leader).log().last();
  append.round = Round(1);
  append.lease = kD;
  group.step(next, member, append);
  ASSERT_EQ(group.core(member).leader(), NodeId(static_cast<std::uint64_t>(next)));
  for (int i = 0; i < 20; ++i) {
    group.jump(kD / 10);
    group.beat(leader);
    group.beat(next);
  }
  EXPECT_TRUE(group.votes(member, leader, 9));
}

// The transfer may fail, and then the earlier leader counts on this promise again.
TEST(Shared, AVoteByTokenLeavesThePromiseBound) {
  SharedGroup group(5);
  const int leader = group.bound_leader();
  const int target = group.others(leader)[0];
  const int member = group.others(leader)[1];
  const LogId last = group.core(leader).log().last();
  const Term term = group.core(leader).term();
  const lease::Epoch before = group.support(member, leader).epoch();
  group.silence();
  const NodeId to(static_cast<std::uint64_t>(target));
  group.step(target, member, VoteRequest{term.next(), last, TransferToken{term, to, last.index}});
  ASSERT_EQ(group.core(member).hard_state().voted_for, to);
  EXPECT_EQ(group.support(member, leader).epoch(), before);
  group.beats(leader, 2 * kD);
  EXPECT_FALSE(group.votes(member, group.others(leader)[2], term.value() + 2));
}

TEST(Shared, AReleaseEndsThePromiseOfItsTermAndNoLaterOne) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  const Term term = group.core(leader).term();
  group.silence();
  group.core(member).released(group.now(), group.peer_of(leader), Term(term.value() - 1));
  EXPECT_FALSE(group.votes(member, group.others(leader)[1], 9));
  Peer earlier = group.peer_of(leader);
  earlier.process.incarnation = Incarnation(1);
  group.core(member).released(group.now(), earlier, term);
  EXPECT_FALSE(group.votes(member, group.others(leader)[1], 9));
  group.core(member).released(group.now(), group.peer_of(leader), term);
  group.drain(member);
  EXPECT_EQ(group.core(member).leader(), kNobody);
  EXPECT_TRUE(group.votes(member, group.others(leader)[1], 9));
}

TEST(Shared, ABindFromBeforeTheReleaseIsRefused) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  AppendRequest late;
  late.term = group.core(leader).term();
  late.prev = group.core(leader).log().last();
  late.round = Round(1);
  late.lease = kD;
  late.bind = BindRequest{group.host(leader).sent.newest(), group.support(member, leader).epoch()};
  group.silence();
  group.support(member, leader).release(group.peer_of(leader).process, lease::Beat(99));
  group.core(member).released(group.now(), group.peer_of(leader), late.term);
  group.drain(member);
  group.in_flight().clear();
  group.step(leader, member, late);
  const auto& reply = std::get<AppendReply>(group.in_flight().back().message);
  EXPECT_TRUE(reply.promised);
  EXPECT_FALSE(reply.bound.has_value());
  // It promises by itself, and no longer.
  group.beats(leader, 2 * kD);
  EXPECT_TRUE(group.votes(member, group.others(leader)[1], 9));
}

TEST(Shared, ARestartedMemberPromisesWhatItsProcessMayHavePromised) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  ASSERT_TRUE(group.support(member, leader)
                  .renew(group.peer_of(leader).process, 10 * kD, group.now().promise));
  group.silence();
  group.restart_process(member);
  group.jump(9 * kD);
  EXPECT_FALSE(group.votes(member, group.others(leader)[1], 9));
  group.jump(kD);
  EXPECT_TRUE(group.votes(member, group.others(leader)[1], 9));
}

TEST(Shared, TheEndOfTheHoldersProcessEndsWhatIsBound) {
  SharedGroup group;
  const int leader = group.bound_leader();
  const int member = group.others(leader)[0];
  group.silence();
  group.support(member, leader).end(group.peer_of(leader).process);
  group.notice(leader, member);
  EXPECT_TRUE(group.votes(member, group.others(leader)[1], 9));
}

// ---- All of it, under random schedules ----

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
    group_.begin_beat(node);
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
      group_.host(other).support_for(gone.uuid).end(gone.process);
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
