#include <leasehold/replica/process_driver.h>
#include <leasehold/tests/replica/driver_rig.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::replica::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr lease::Duration kD = std::chrono::seconds(1);

raft::Membership group_of(const std::vector<std::uint64_t>& ids) {
  raft::Membership membership;
  for (const std::uint64_t id : ids) {
    const raft::NodeId number(id);
    membership.members.push_back({number, peer_of(number).uuid, "node:" + std::to_string(id)});
    membership.voters.push_back(number);
  }
  return membership;
}

raft::Peer process_of(std::uint64_t id) {
  raft::Peer peer = peer_of(raft::NodeId(id));
  peer.process.incarnation = raft::Incarnation(1);
  return peer;
}

/// The process of node 1 and its groups.
class ProcessDrivers : public ::testing::Test, private net::Transport, private SupportStore {
 protected:
  struct Remembered {
    std::vector<raft::RememberedSupport> supports;
    std::uint64_t write;
  };

  Rig& add(std::uint64_t group, const std::vector<std::uint64_t>& members) {
    DriverOptions options;
    options.core.id = raft::NodeId(1);
    options.core.uuid = process_of(1).uuid;
    options.core.incarnation = raft::Incarnation(1);
    options.core.group = raft::GroupId(group);
    options.core.shared = &process_.promises();
    options.core.seed = group;
    rigs_.push_back(std::make_unique<Rig>(options, group_of(members), now_));
    process_.add(rigs_.back()->driver());
    return *rigs_.back();
  }
  void pass(lease::Duration span) {
    now_.holder = now_.holder + span;
    now_.promise = now_.promise + span;
  }
  /// What is left for the group, and what follows for it.
  std::vector<Event> handle(Rig& group, Event event) {
    std::vector<Event> events = follows(group);
    if (!process_.take(now_, event)) events.push_back(std::move(event));
    for (Event& following : follows(group)) events.push_back(std::move(following));
    return events;
  }
  std::vector<Event> follows(Rig& group) {
    for (ProcessDriver::Follows& one : process_.take_follows()) {
      following_[one.driver].push_back(std::move(one.event));
    }
    return std::exchange(following_[&group.driver()], {});
  }
  static Event message(std::uint64_t from, wire::Payload payload) {
    return PeerMessageReceived{process_of(from), {raft::GroupId(0), std::move(payload)}};
  }
  static raft::ProcessBeat beat(std::vector<raft::ReleasedGroup> released = {}) {
    return {lease::Beat(1), kD, lease::Timing{}.max_clock_drift_ppm, std::move(released)};
  }
  /// The driver's own turn.
  void turn(Rig& group, std::uint64_t from, raft::Message message) {
    group.handle(now_, PeerMessageReceived{process_of(from), {group.driver().group(), message}});
    if (group.writes_waiting() > 0) group.finish_writes(now_, group.writes_waiting());
    while (group.applies_waiting() > 0) group.finish_apply(now_);
    process_.handled(group.driver());
  }
  /// By the votes of node 2.
  void elect(Rig& group) {
    const auto asks = [&group] { return group.driver().core().role() != raft::Role::follower; };
    for (int i = 0; i < 100 && !asks(); ++i) {
      pass(milliseconds(100));
      group.handle(now_, Tick{});
    }
    turn(group, 2, raft::PreVoteReply{raft::Term(1), {}, true, {}});
    turn(group, 2, raft::VoteReply{raft::Term(1), raft::Term(1), true, {}});
    ASSERT_TRUE(group.leads());
  }
  /// As leader it asks node 2, which has acknowledged a beat, to bind its promise.
  void lead_bound(Rig& group) {
    process_.finish(now_);
    handle(group, message(2, raft::ProcessBeatReply{
                                 raft::Incarnation(1), lease::Beat(1), {raft::Incarnation(1), 0}}));
    elect(group);
  }
  /// Node 2 answers the newest beat, and what the group has sent to it. What follows is handled.
  void answer(Rig& group, const lease::Epoch& epoch) {
    const raft::ProcessBeatReply beat{raft::Incarnation(1), process_.promises().beats().newest(),
                                      epoch};
    for (Event& event : handle(group, message(2, beat))) {
      group.handle(now_, std::move(event));
      process_.handled(group.driver());
    }
    for (const Rig::Sent& sent : group.take_sent()) {
      const auto* of_group = std::get_if<raft::Message>(&sent.message.payload);
      if (of_group == nullptr || sent.to != raft::NodeId(2)) continue;
      const auto* append = std::get_if<raft::AppendRequest>(of_group);
      if (append == nullptr) continue;
      raft::AppendReply reply;
      reply.request_term = append->term;
      reply.term = append->term;
      reply.promised = true;
      reply.round = append->round;
      reply.matched = true;
      reply.index = append->prev.index + append->entries.size();
      if (append->bind) reply.bound = append->bind->epoch;
      turn(group, 2, reply);
    }
  }
  void come_to_rest(Rig& group, const lease::Epoch& epoch = {raft::Incarnation(1), 0}) {
    for (int i = 0; i < 20; ++i) {
      if (i > 3 && group.driver().core().lease_class() != raft::kNoClass) break;
      pass(lease::Timing{}.heartbeat);
      process_.finish(now_);
      answer(group, epoch);
      group.handle(now_, Tick{});
      process_.handled(group.driver());
      answer(group, epoch);
    }
    ASSERT_NE(group.driver().core().lease_class(), raft::kNoClass);
  }
  /// Its promise to node 2 rests on a beat.
  void follow_bound(Rig& group) {
    handle(group, message(2, beat()));
    raft::AppendRequest append;
    append.term = raft::Term(1);
    append.lease = kD;
    append.drift_ppm = lease::Timing{}.max_clock_drift_ppm;
    append.bind = raft::BindRequest{lease::Beat(1), {raft::Incarnation(1), 0}};
    turn(group, 2, append);
    ASSERT_NE(group.driver().core().bound_to(), nullptr);
    pass(milliseconds(1));
    ASSERT_THAT(handle(group, message(2, beat())), IsEmpty());
  }
  template <class Message>
  std::vector<raft::NodeId> receivers() const {
    std::vector<raft::NodeId> found;
    for (const Rig::Sent& sent : sent_) {
      if (!std::holds_alternative<Message>(sent.message.payload)) continue;
      EXPECT_EQ(sent.message.group, raft::GroupId(0));
      found.push_back(sent.to);
    }
    return found;
  }

  lease::Now now_;
  std::vector<Rig::Sent> sent_;
  std::vector<Remembered> remembered_;
  /// One group elects at a time.
  ProcessDriver process_{{process_of(1), lease::Timing{}, 10 * kD, 1}, {}, *this, *this, now_};
  std::vector<std::unique_ptr<Rig>> rigs_;
  std::map<Driver*, std::vector<Event>> following_;

 private:
  void send(raft::NodeId to, wire::PeerMessage message) override {
    Rig::Sent& sent = sent_.emplace_back();
    sent.to = to;
    sent.message = std::move(message);
  }
  void remember(std::vector<raft::RememberedSupport> supports, std::uint64_t write) override {
    remembered_.push_back({std::move(supports), write});
  }
};

TEST_F(ProcessDrivers, ABeatGoesOnceToEachMemberOfAnyGroup) {
  add(1, {1, 2, 3});
  add(2, {1, 3, 4});
  process_.finish(now_);
  EXPECT_THAT(receivers<raft::ProcessBeat>(),
              ElementsAre(raft::NodeId(2), raft::NodeId(3), raft::NodeId(4)));
  EXPECT_EQ(process_.next_deadline(), now_.promise + lease::Timing{}.heartbeat);
}

TEST_F(ProcessDrivers, AReplyFollowsWhatItRestsOn) {
  Rig& group = add(1, {1, 2, 3});
  EXPECT_THAT(handle(group, message(2, beat())), IsEmpty());
  ASSERT_THAT(remembered_, SizeIs(1));
  EXPECT_THAT(remembered_[0].supports,
              ElementsAre(raft::RememberedSupport{raft::NodeId(2), process_of(2).uuid, kD}));
  EXPECT_THAT(receivers<raft::ProcessBeatReply>(), IsEmpty());
  EXPECT_THAT(handle(group, SupportsRemembered{remembered_[0].write}), IsEmpty());
  EXPECT_THAT(receivers<raft::ProcessBeatReply>(), ElementsAre(raft::NodeId(2)));
}

TEST_F(ProcessDrivers, AReleaseIsForTheDriverOfItsGroup) {
  Rig& first = add(1, {1, 2, 3});
  Rig& second = add(2, {1, 2, 3});
  const raft::ReleasedGroup released{raft::GroupId(2), raft::Term(7), lease::Beat(1)};
  const raft::ReleasedGroup unknown{raft::GroupId(9), raft::Term(7), lease::Beat(1)};
  EXPECT_TRUE(process_.take(now_, message(2, beat({released, unknown}))));
  // Though nothing has come for it, its turn is due.
  EXPECT_EQ(process_.next_deadline(), raft::PromiseInstant::earliest());
  EXPECT_THAT(follows(first), IsEmpty());
  const std::vector<Event> events = follows(second);
  ASSERT_THAT(events, SizeIs(1));
  const auto* what = std::get_if<GroupReleased>(events.data());
  ASSERT_NE(what, nullptr);
  EXPECT_EQ(what->holder, process_of(2));
  EXPECT_EQ(what->term, raft::Term(7));
  EXPECT_THAT(follows(second), IsEmpty()) << "once";
}

TEST_F(ProcessDrivers, AnAnswerIsForTheGroupsThatAreLedHere) {
  Rig& quiet = add(1, {1, 2, 3});
  Rig& leads = add(2, {1});
  for (int i = 0; i < 100 && !leads.leads(); ++i) {
    pass(milliseconds(100));
    leads.handle(now_, Tick{});
    if (leads.writes_waiting() > 0) leads.finish_writes(now_, leads.writes_waiting());
  }
  ASSERT_TRUE(leads.leads());
  process_.handled(leads.driver());
  process_.finish(now_);
  const raft::ProcessBeatReply reply{
      raft::Incarnation(1), lease::Beat(1), {raft::Incarnation(1), 0}};
  EXPECT_TRUE(process_.take(now_, message(2, reply)));
  EXPECT_TRUE(process_.take(now_, message(3, reply)));
  EXPECT_THAT(follows(quiet), IsEmpty());
  const std::vector<Event> events = follows(leads);
  ASSERT_THAT(events, SizeIs(1)) << "for both";
  EXPECT_TRUE(std::holds_alternative<PromisesMoved>(events[0]));
}

TEST_F(ProcessDrivers, TheMembersOfALaterGroupGetBeats) {
  add(1, {1, 2});
  process_.finish(now_);
  sent_.clear();
  add(2, {1, 4});
  pass(lease::Timing{}.heartbeat);
  process_.finish(now_);
  EXPECT_THAT(receivers<raft::ProcessBeat>(), ElementsAre(raft::NodeId(2), raft::NodeId(4)));
}

TEST_F(ProcessDrivers, AStoppedLeaderIsSaidByTheNextBeatAndMayGo) {
  add(1, {1, 2, 3});
  Rig& group = add(2, {1, 2, 3});
  lead_bound(group);
  if (HasFatalFailure()) return;
  group.handle(now_, Stop{});
  process_.remove(group.driver());
  rigs_.pop_back();
  sent_.clear();
  pass(lease::Timing{}.heartbeat);
  process_.finish(now_);
  ASSERT_THAT(receivers<raft::ProcessBeat>(), SizeIs(2));
  const auto& beat = std::get<raft::ProcessBeat>(sent_[0].message.payload);
  ASSERT_THAT(beat.released, SizeIs(1));
  EXPECT_EQ(beat.released[0].group, raft::GroupId(2));
}

TEST_F(ProcessDrivers, ALeaderThatLeavesIsSaidByTheNextBeat) {
  Rig& group = add(1, {1, 2, 3});
  lead_bound(group);
  if (HasFatalFailure()) return;
  raft::AppendRequest later;
  later.term = raft::Term(9);
  later.round = raft::Round(1);
  later.lease = kD;
  turn(group, 3, later);
  ASSERT_FALSE(group.leads());
  sent_.clear();
  pass(lease::Timing{}.heartbeat);
  process_.finish(now_);
  ASSERT_THAT(receivers<raft::ProcessBeat>(), SizeIs(2));
  const auto& beat = std::get<raft::ProcessBeat>(sent_[0].message.payload);
  ASSERT_THAT(beat.released, SizeIs(1));
  EXPECT_EQ(beat.released[0].group, raft::GroupId(1));
  EXPECT_EQ(beat.released[0].term, raft::Term(1));
  // Nobody has asked node 3 to bind its promise.
  EXPECT_THAT(std::get<raft::ProcessBeat>(sent_[1].message.payload).released, IsEmpty());
}

TEST_F(ProcessDrivers, TheEndOfAProcessIsForItAndForTheGroup) {
  Rig& group = add(1, {1, 2, 3});
  handle(group, message(2, beat()));
  const lease::Epoch before = process_.promises().support_of(process_of(2).uuid)->epoch();
  EXPECT_THAT(handle(group, PeerEnded{process_of(2)}), SizeIs(1));
  EXPECT_GT(process_.promises().support_of(process_of(2).uuid)->epoch(), before);
}

TEST_F(ProcessDrivers, OneGroupElectsAfterTheOther) {
  Rig& first = add(1, {1, 2, 3});
  Rig& second = add(2, {1, 2, 3});
  const auto role = [](Rig& group) { return group.driver().core().role(); };
  const auto tick = [this](Rig& group, Event event = Tick{}) {
    group.handle(now_, std::move(event));
    process_.handled(group.driver());
  };
  pass(2 * kD);
  tick(first);
  tick(second);
  EXPECT_EQ(role(first), raft::Role::pre_candidate);
  EXPECT_EQ(role(second), raft::Role::follower);
  process_.finish(now_);
  EXPECT_THAT(follows(second), IsEmpty());
  EXPECT_GT(process_.next_deadline(), now_.promise);
  // Another node is elected.
  raft::AppendRequest append;
  append.term = raft::Term(1);
  append.lease = kD;
  turn(first, 2, append);
  EXPECT_EQ(role(first), raft::Role::follower);
  process_.finish(now_);
  EXPECT_EQ(process_.next_deadline(), raft::PromiseInstant::earliest());
  std::vector<Event> events = follows(second);
  ASSERT_THAT(events, SizeIs(1));
  tick(second, std::move(events[0]));
  EXPECT_EQ(role(second), raft::Role::pre_candidate);
}

// Without answers it would hold up the others for good.
TEST_F(ProcessDrivers, AnElectionThatGetsNoAnswersIsInTheWayForAWhile) {
  Rig& first = add(1, {1, 2, 3});
  Rig& second = add(2, {1, 2, 3});
  const auto tick = [this](Rig& group, Event event = Tick{}) {
    group.handle(now_, std::move(event));
    process_.handled(group.driver());
  };
  pass(2 * kD);
  tick(first);
  tick(second);
  process_.finish(now_);
  pass(raft::ProcessOptions{}.election_patience);
  process_.finish(now_);
  std::vector<Event> events = follows(second);
  ASSERT_THAT(events, SizeIs(1));
  tick(second, std::move(events[0]));
  EXPECT_EQ(second.driver().core().role(), raft::Role::pre_candidate);
  tick(first);
  EXPECT_TRUE(first.driver().core().awaits_place()) << "it comes behind the second";
}

// It is not there to free its place.
TEST_F(ProcessDrivers, AGroupThatIsRemovedLeavesItsPlace) {
  Rig& first = add(1, {1, 2, 3});
  Rig& second = add(2, {1, 2, 3});
  pass(2 * kD);
  for (Rig* const group : {&first, &second}) {
    group->handle(now_, Tick{});
    process_.handled(group->driver());
  }
  ASSERT_TRUE(second.driver().core().awaits_place());
  first.handle(now_, Stop{});
  process_.remove(first.driver());
  process_.finish(now_);
  EXPECT_THAT(follows(second), SizeIs(1));
}

TEST_F(ProcessDrivers, TheViewOfALeaderAtRestGoesOnWithoutATurn) {
  Rig& group = add(1, {1, 2});
  lead_bound(group);
  come_to_rest(group);
  const raft::HolderInstant before = group.view().load().end;
  EXPECT_GT(before, now_.holder);
  EXPECT_EQ(group.driver().next_deadline(), raft::PromiseInstant::never());
  pass(lease::Timing{}.heartbeat);
  process_.finish(now_);
  const raft::ProcessBeatReply heard{
      raft::Incarnation(1), process_.promises().beats().newest(), {raft::Incarnation(1), 0}};
  EXPECT_THAT(handle(group, message(2, heard)), IsEmpty());
  EXPECT_EQ(group.view().load().end, before + lease::Timing{}.heartbeat);
}

TEST_F(ProcessDrivers, ALeaderAtRestHasATurnWhenItsClassIsAboutToEnd) {
  Rig& group = add(1, {1, 2});
  lead_bound(group);
  come_to_rest(group);
  lease::Duration passed{0};
  for (; passed < kD && follows(group).empty(); passed += milliseconds(10)) {
    pass(milliseconds(10));
    process_.finish(now_);
  }
  EXPECT_LT(passed, kD - lease::Timing{}.heartbeat);
  EXPECT_GT(group.view().load().end, now_.holder + lease::Timing{}.heartbeat);
}

TEST_F(ProcessDrivers, AFollowerHasATurnWhenAnotherProcessOfItsLeadersNodeBeats) {
  Rig& group = add(1, {1, 2});
  follow_bound(group);
  Event next = message(2, beat());
  std::get<PeerMessageReceived>(next).from.process.incarnation = raft::Incarnation(2);
  EXPECT_THAT(handle(group, std::move(next)), SizeIs(1));
}

TEST_F(ProcessDrivers, AFollowerHasATurnWhenTheSupportOfItsLeaderEnds) {
  Rig& group = add(1, {1, 2});
  follow_bound(group);
  EXPECT_EQ(group.driver().core().next_deadline(), raft::PromiseInstant::never());
  pass(2 * kD);
  process_.finish(now_);
  std::vector<Event> events = follows(group);
  ASSERT_THAT(events, SizeIs(1));
  group.handle(now_, std::move(events[0]));
  EXPECT_LT(group.driver().core().next_deadline(), raft::PromiseInstant::never());
}

TEST_F(ProcessDrivers, ClassesThatNobodyRestsOnAreForgotten) {
  Rig& group = add(1, {1, 2});
  lead_bound(group);
  for (std::uint64_t counter = 0; counter < 200; ++counter) {
    come_to_rest(group, {raft::Incarnation(1), counter});
  }
  const auto& promises = dynamic_cast<raft::ProcessPromises&>(process_.promises());
  EXPECT_LT(promises.classes(), 100U);
  EXPECT_GT(group.driver().core().lease_class(), raft::LeaseClassId(150));
  EXPECT_GT(group.view().load().end, now_.holder);
}

TEST_F(ProcessDrivers, EachGroupHasATurnWhenTheProcessStandsStillAndWhenItGoesOn) {
  Rig& led = add(1, {1, 2});
  Rig& followed = add(2, {1, 2, 3});
  lead_bound(led);
  follows(led);
  for (const bool healthy : {false, true}) {
    process_.set_healthy(healthy);
    EXPECT_EQ(process_.next_deadline(), raft::PromiseInstant::earliest());
    const std::vector<Event> of_led = follows(led);
    ASSERT_THAT(of_led, SizeIs(1));
    ASSERT_TRUE(std::holds_alternative<PromisesMoved>(of_led.front()));
    EXPECT_THAT(follows(followed), SizeIs(1));
    led.handle(now_, of_led.front());
    process_.handled(led.driver());
    EXPECT_FALSE(led.leads());
    process_.set_healthy(healthy);
    EXPECT_THAT(follows(led), IsEmpty());
  }
}

TEST_F(ProcessDrivers, MessagesOfAGroupPassThrough) {
  Rig& group = add(1, {1, 2, 3});
  const raft::Message vote = raft::PreVoteRequest{raft::Term(3), {}};
  EXPECT_THAT(handle(group, message(2, vote)), SizeIs(1));
  EXPECT_THAT(handle(group, Stop{}), SizeIs(1));
}

}  // namespace
}  // namespace leasehold::replica::testing
