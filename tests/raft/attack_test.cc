// Members that lie: messages that the wire lets in, mutated and made up, in the names of members
// and of others, to real cores in a random schedule. No assertion fails. Three of four schedules
// are calm: a lie seldom names a higher term, so that leaders last, and change members, cut their
// logs and transfer the leadership between the lies.

#include "group.h"

#include <leasehold/base/random.h>
#include <leasehold/wire/check.h>

#include <gtest/gtest.h>

#include <algorithm>

namespace leasehold::raft::test {
namespace {

/// What the schedules have reached: a test that never had a leader would show nothing.
struct Reached {
  std::size_t leaders = 0;
  std::size_t violations = 0;
  std::size_t changes = 0;
  std::size_t cuts = 0;
  std::size_t snapshots = 0;
  std::size_t tokens = 0;
};

/// Three to five members, the third of which may be a witness, and two nodes that may be added.
class Attack {
 public:
  explicit Attack(std::uint64_t seed)
      : group_(3 + static_cast<int>(seed % 3), {}, seed, ms(0),
               seed % 2 == 0 ? std::vector<int>{} : std::vector<int>{3}),
        random_(seed),
        calm_(seed % 4 != 0) {
    group_.add(kSpare);
    group_.add(kSpareWitness, true);
    group_.sends_snapshots = false;
    group_.filter = [this](const Envelope& envelope) {
      if (seen_.size() < 64) {
        seen_.push_back(envelope.message);
      } else {
        seen_[random_.below(64)] = envelope.message;
      }
      return true;
    };
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      if (random_.chance(1, 2)) {
        attack(any());
      } else {
        live(any());
      }
      // What the victim answers is lost sometimes.
      if (random_.chance(calm_ ? 9 : 3, 10)) {
        group_.settle();
      } else {
        group_.in_flight().clear();
      }
    }
  }

  void add_to(Reached& reached) {
    for (const int id : nodes()) {
      const Replica& replica = group_.replica(id);
      for (const RoleChanged& role : events_of<RoleChanged>(replica)) {
        if (role.to == Role::leader) ++reached.leaders;
      }
      reached.violations += events_of<ProtocolViolation>(replica).size();
      reached.changes += events_of<MembershipChanged>(replica).size();
      reached.cuts += events_of<LogCut>(replica).size();
      reached.snapshots += events_of<SnapshotInstalled>(replica).size();
      reached.tokens += events_of<TokenIssued>(replica).size();
    }
  }

 private:
  static constexpr int kSpare = 6;
  static constexpr int kSpareWitness = 7;

  std::vector<int> nodes() const {
    std::vector<int> ids;
    for (const Member& member : group_.membership().members) {
      ids.push_back(static_cast<int>(member.id.value()));
    }
    ids.push_back(kSpare);
    ids.push_back(kSpareWitness);
    return ids;
  }
  int any() {
    const std::vector<int> ids = nodes();
    return ids[random_.below(ids.size())];
  }

  // ---- What an honest node does ----

  void live(int id) {
    Replica& replica = group_.replica(id);
    switch (random_.below(7)) {
      case 0: group_.run(ms(static_cast<std::int64_t>(random_.below(calm_ ? 400 : 40)))); break;
      case 1: group_.propose(id, "x"); break;
      case 2:
        if (random_.chance(1, 20)) group_.restart(id);
        break;
      case 3:
        if (random_.chance(1, 6)) replica.auto_sync = random_.chance(1, 2);
        group_.sync(id);
        group_.drain(id);
        break;
      case 4: cut(id); break;
      case 5: change(id); break;
      default:
        if (random_.chance(1, 3)) {
          group_.core(id).transfer(group_.now(), NodeId(random_.below(6)));
          group_.drain(id);
        } else {
          group_.ask(id, random_.next(), random_.chance(1, 2) ? ReadMode::lease : ReadMode::quorum);
        }
    }
  }

  void cut(int id) {
    const Core& core = group_.core(id);
    const Index to = std::min({core.cut_limit(), core.durable_index(), group_.replica(id).applied});
    if (to > core.log().base().index && random_.chance(1, 6)) group_.cut_log(id, to);
  }

  void change(int id) {
    WantedMembers wanted;
    for (const int member : nodes()) {
      if (member >= kSpare && random_.chance(1, 3)) continue;
      const auto number = static_cast<std::uint64_t>(member);
      wanted.push_back(random_.chance(3, 4) ? voter(number) : learner(number));
      wanted.back().witness = group_.replica(member).options.witness;
    }
    group_.change(id, wanted);
  }

  // ---- Lies ----

  /// Near what is true, or at a limit.
  std::uint64_t number(std::uint64_t near) {
    switch (random_.below(8)) {
      case 0: return random_.below(4);
      case 1: return std::uint64_t{1} << random_.below(63);
      case 2: return near + random_.below(4);
      case 3: return near - std::min(near, random_.below(4));
      default: return near;
    }
  }
  Term term(const Core& core) {
    if (calm_ && !random_.chance(1, 60)) {
      return random_.chance(1, 5) && core.term() > Term(1) ? core.term().prev()
                                                           : std::max(core.term(), Term(1));
    }
    return Term(std::max<std::uint64_t>(1, number(core.term().value())));
  }
  Index index(const Core& core) { return Index(number(core.log().last_index().value())); }
  LogId id(const Core& core) {
    const Index at = index(core);
    if (at == Index(0)) return {};
    const std::optional<Term> true_term = core.log().term_at(at);
    if (true_term && random_.chance(2, 3)) return {*true_term, at};
    return {term(core), at};
  }

  AppendRequest append(const Core& core) {
    AppendRequest m;
    m.term = term(core);
    m.prev = id(core);
    if (m.prev.term > m.term) m.prev.term = m.term;
    m.commit = index(core);
    m.round = Round(1 + number(10));
    m.lease = ms(random_.chance(1, 10) ? 3'600'000 : 1000);
    m.drift_ppm = static_cast<std::int64_t>(random_.below(500'001));
    LogId before = m.prev;
    for (std::uint64_t left = random_.below(4); left > 0; --left) {
      Entry entry;
      entry.id = {random_.chance(1, 3) ? m.term : before.term, before.index.next()};
      if (entry.id.term == Term(0)) entry.id.term = m.term;
      entry.payload = Bytes("evil");
      if (random_.chance(1, 4)) {
        entry.kind = EntryKind::membership;
        entry.payload = encode_membership(membership());
      }
      before = entry.id;
      m.entries.push_back(std::move(entry));
    }
    return m;
  }

  Membership membership() {
    Membership made = group_.membership();
    if (random_.chance(1, 2)) made.outgoing_voters = made.voters;
    if (random_.chance(1, 3)) made.voters = {NodeId(1 + random_.below(3))};
    if (random_.chance(1, 3)) made.members.push_back({NodeId(9), Uuid{9, 9}, "node9"});
    return made;
  }

  Message made(const Core& core) {
    switch (random_.below(10)) {
      case 0: return PreVoteRequest{term(core), id(core)};
      case 1: return PreVoteReply{term(core), term(core), random_.chance(1, 2), kNobody};
      case 2: return VoteRequest{term(core), id(core)};
      case 3: return VoteReply{term(core), term(core), random_.chance(1, 2), kNobody};
      case 4: return append(core);
      case 5: {
        AppendReply m;
        m.request_term = term(core);
        m.term = random_.chance(1, 2) ? m.request_term : term(core);
        m.promised = random_.chance(3, 4);
        m.matched = random_.chance(1, 2);
        m.round = Round(number(10));
        m.index = index(core);
        m.hint_term = term(core);
        m.rejected_prev = index(core);
        return m;
      }
      case 6: {
        SnapshotReply m;
        m.request_term = term(core);
        m.term = m.request_term;
        m.promised = true;
        m.round = Round(number(10));
        return m;
      }
      case 7: return TimeoutNow{{term(core), NodeId(1 + random_.below(3)), index(core)}};
      case 8: return snapshot(core);
      default: return ReadIndexRequest{Incarnation(1), random_.below(9), random_.chance(1, 2)};
    }
  }

  /// Some have an end so far away that no machine could hold them: their bytes never complete.
  SnapshotChunk snapshot(const Core& core) {
    constexpr Index kHeldMax{2000};
    SnapshotChunk m;
    m.term = term(core);
    m.round = Round(1 + number(10));
    m.lease = ms(1000);
    m.drift_ppm = static_cast<std::int64_t>(random_.below(500'001));
    m.id.last = id(core);
    m.membership = membership();
    if (random_.chance(1, 3)) return m;  // the beginning of a witness's log
    m.size = 3;
    m.data = Bytes("x");
    if (m.id.last.index > kHeldMax || m.id.last.index == Index(0)) return m;
    Machine machine;
    for (Index at(1); at <= m.id.last.index; at = at.next()) {
      machine.push_back({{Term(1), at}, EntryKind::empty, Bytes()});
    }
    machine.back().id = m.id.last;
    m.id = group_.add_snapshot(std::move(machine));
    if (random_.chance(1, 3)) m.size = 1;
    return m;
  }

  void attack(int to) {
    const Core& core = group_.core(to);
    Message message = made(core);
    if (!seen_.empty() && random_.chance(1, 3)) {
      message = seen_[random_.below(seen_.size())];
      if (auto* m = std::get_if<AppendRequest>(&message)) m->term = term(core);
      if (auto* m = std::get_if<AppendReply>(&message)) m->request_term = m->term = core.term();
    }
    if (!wire::check_message({GroupId(1), message}).ok()) return;
    const bool in_the_leaders_name = core.leader() != kNobody && random_.chance(1, 3);
    const NodeId from = in_the_leaders_name ? core.leader() : NodeId(1 + random_.below(8));
    group_.step(random_.chance(1, 10) ? Peer{from, Uuid{77, 77}} : peer(from), to,
                std::move(message));
  }

  Group group_;
  Random random_;
  bool calm_;
  std::vector<Message> seen_;
};

TEST(AttackTest, NoMessageOfALiarReachesAnAssertion) {
  Reached reached;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Attack attack(seed);
    attack.run(2000);
    attack.add_to(reached);
  }
  EXPECT_GT(reached.leaders, 500U);
  EXPECT_GT(reached.violations, 1000U);
  EXPECT_GT(reached.changes, 500U);
  EXPECT_GT(reached.cuts, 500U);
  EXPECT_GT(reached.snapshots, 100U);
  EXPECT_GT(reached.tokens, 100U);
}

}  // namespace
}  // namespace leasehold::raft::test
