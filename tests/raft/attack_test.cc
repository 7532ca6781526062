// Members that lie: messages that the wire lets in, mutated and made up, in the names of members
// and of others, to real cores in a random schedule. No assertion fails.

#include "group.h"

#include <leasehold/base/random.h>

#include <gtest/gtest.h>

namespace leasehold::raft::test {
namespace {

class Attack {
 public:
  explicit Attack(std::uint64_t seed) : group_(3, {}, seed), random_(seed) {
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
      const int id = 1 + static_cast<int>(random_.below(3));
      switch (random_.below(8)) {
        case 0: group_.run(ms(static_cast<std::int64_t>(random_.below(40)))); break;
        case 1: group_.propose(id, "x"); break;
        case 2:
          if (random_.chance(1, 20)) group_.restart(id);
          break;
        default: attack(id); break;
      }
      // What the victim answers leaves only sometimes.
      if (random_.chance(1, 3)) {
        group_.settle();
      } else {
        group_.in_flight().clear();
      }
    }
  }

 private:
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
    switch (random_.below(9)) {
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
      default: return ReadIndexRequest{Incarnation(1), random_.below(9), random_.chance(1, 2)};
    }
  }

  void attack(int to) {
    const Core& core = group_.core(to);
    Message message = made(core);
    if (!seen_.empty() && random_.chance(1, 3)) {
      message = seen_[random_.below(seen_.size())];
      if (auto* m = std::get_if<AppendRequest>(&message)) m->term = term(core);
      if (auto* m = std::get_if<AppendReply>(&message)) m->request_term = m->term = core.term();
    }
    if (auto* m = std::get_if<AppendRequest>(&message)) {
      // What the wire refuses.
      const Term last = m->entries.empty() ? m->prev.term : m->entries.back().id.term;
      if (last > m->term) return;
    }
    const NodeId from(1 + random_.below(4));
    group_.step(random_.chance(1, 10) ? Peer{from, Uuid{77, 77}} : peer(from), to,
                std::move(message));
  }

  Group group_;
  Random random_;
  std::vector<Message> seen_;
};

TEST(AttackTest, NoMessageOfALiarReachesAnAssertion) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Attack(seed).run(2000);
  }
}

}  // namespace
}  // namespace leasehold::raft::test
