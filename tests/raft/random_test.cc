// Random schedules over the bare core: no driver, no drift, but every order of messages, crashes
// and lost writes. The simulator does more; this finds a broken rule in a second.

#include "group.h"

#include <leasehold/base/random.h>

#include <gtest/gtest.h>

namespace leasehold::raft::test {
namespace {

class Schedule {
 public:
  /// `spare` nodes more are no members at first; with any, the members change.
  Schedule(int size, int spare, std::uint64_t seed)
      : group_(size, {}, seed), size_(size + spare), random_(seed), changes_members_(spare > 0) {
    group_.filter = [](const Envelope&) { return true; };
    for (int id = size + 1; id <= size_; ++id) group_.add(id);
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      check();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }

  /// Everything comes back: a leader must commit within a bound.
  void heal() {
    for (int id = 1; id <= size_; ++id) {
      group_.replica(id).auto_sync = true;
      if (!group_.replica(id).up) {
        group_.restart(id);
      } else {
        group_.sync(id);
        group_.drain(id);
      }
    }
    group_.run(ms(8000));
    const int leader = group_.elect();
    const std::optional<LogId> last = group_.propose(leader, "last");
    ASSERT_TRUE(last.has_value());
    group_.run(ms(1000));
    const Membership& members = group_.core(leader).membership();
    ASSERT_FALSE(members.joint());
    check_memberships();
    for (int id = 1; id <= size_; ++id) {
      tokens_ += static_cast<int>(events_of<TokenIssued>(group_.replica(id)).size());
      for (const RoleChanged& role : events_of<RoleChanged>(group_.replica(id))) {
        if (role.reason == RoleChangeReason::transfer) ++transfers_;
      }
    }
    for (int id = 1; id <= size_; ++id) {
      if (members.find(NodeId(static_cast<std::uint64_t>(id))) == nullptr) continue;
      ASSERT_GE(group_.core(id).commit_index(), last->index);
      ASSERT_EQ(group_.replica(id).machine, group_.replica(leader).machine);
      installed_ += static_cast<int>(group_.replica(id).installed.size());
    }
  }

  int lease_seconds() const { return leases_; }
  int cuts() const { return cuts_; }
  int installed() const { return installed_; }
  int changes() const { return changes_; }
  int tokens() const { return tokens_; }
  int transfers() const { return transfers_; }

 private:
  int any() { return 1 + static_cast<int>(random_.below(static_cast<std::uint64_t>(size_))); }

  void step() {
    const std::uint64_t what = random_.below(1000);
    if (what < 600) {
      deliver();
    } else if (what < 800) {
      group_.jump(Duration(random_.between(1, 40'000'000)));
      for (int id = 1; id <= size_; ++id) {
        const bool late = random_.chance(1, 10);
        if (!late && group_.replica(id).up &&
            group_.core(id).next_deadline() <= group_.now().promise) {
          group_.tick(id);
        }
      }
    } else if (what < 870) {
      const int id = any();
      if (group_.replica(id).up) group_.propose(id, std::to_string(random_.next()));
    } else if (what < 940) {
      const int id = any();
      if (!group_.replica(id).up) return;
      group_.sync(id);
      group_.drain(id);
    } else if (what < 960) {
      const int id = any();
      group_.replica(id).auto_sync = random_.chance(1, 2);
    } else if (what < 965) {
      const int id = any();
      const Replica& replica = group_.replica(id);
      if (!replica.up || replica.applied <= replica.base) return;
      group_.cut_log(id, Index(static_cast<std::uint64_t>(random_.between(
                             static_cast<std::int64_t>(replica.base.value()),
                             static_cast<std::int64_t>(replica.applied.value() + 1)))));
      ++cuts_;
    } else if (what < 975 && changes_members_) {
      change();
    } else if (what < 980 && changes_members_) {
      transfer_leadership();
    } else if (what < 990) {
      const int id = any();
      if (group_.replica(id).up) group_.ask(id, random_.next(), ReadMode::quorum);
    } else if (what < 995) {
      group_.crash(any());
    } else {
      const int id = any();
      if (!group_.replica(id).up) group_.restart(id);
    }
  }

  void change() {
    for (int id = 1; id <= size_; ++id) {
      if (!group_.replica(id).up || group_.core(id).role() != Role::leader) continue;
      WantedMembers wanted;
      for (int member = 1; member <= size_; ++member) {
        const auto number = static_cast<std::uint64_t>(member);
        if (!random_.chance(4, 5)) continue;
        const bool known = group_.core(id).membership().find(NodeId(number)) != nullptr;
        wanted.push_back(known && random_.chance(4, 5) ? voter(number) : learner(number));
      }
      if (std::holds_alternative<LogId>(group_.change(id, wanted))) ++changes_;
    }
  }

  void transfer_leadership() {
    const bool named = random_.chance(4, 5);
    const NodeId to(named ? static_cast<std::uint64_t>(any()) : 0);
    for (int id = 1; id <= size_; ++id) {
      if (!group_.replica(id).up) continue;
      group_.core(id).transfer(group_.now(), to);
      group_.drain(id);
    }
  }

  // No two neighbours whose quorums could miss each other were ever committed.
  void check_memberships() {
    Membership before = group_.membership();
    for (const auto& [index, entry] : committed_) {
      if (entry.kind != EntryKind::membership) continue;
      const Membership next = decode_membership(entry.payload.view()).value();
      ASSERT_TRUE(may_follow(before, next)) << "index " << index.value();
      before = next;
    }
  }

  // Any message on its way may be next; it may be lost, or come again later.
  void deliver() {
    auto& flight = group_.in_flight();
    if (flight.empty()) return;
    const std::size_t at = random_.below(std::min<std::uint64_t>(flight.size(), 8));
    const Envelope envelope = flight[at];
    const std::uint64_t fate = random_.below(20);
    if (fate != 0) flight.erase(flight.begin() + static_cast<std::ptrdiff_t>(at));
    if (fate == 1) return;
    if (flight.size() > 2000) flight.resize(1000);
    group_.step(static_cast<int>(envelope.from.value()), static_cast<int>(envelope.to.value()),
                envelope.message);
  }

  void check() {
    int holder = 0;
    for (int id = 1; id <= size_; ++id) {
      Replica& replica = group_.replica(id);
      if (!replica.up) continue;
      const Core& core = *replica.core;
      if (core.role() == Role::leader) {
        const auto [leader, added] = leaders_.emplace(core.term(), core.id());
        ASSERT_EQ(leader->second, core.id()) << "two leaders in term " << core.term().value();
      }
      for (const Entry& applied : replica.machine) {
        const auto [entry, added] = committed_.emplace(applied.id.index, applied);
        ASSERT_EQ(entry->second, applied) << "index " << applied.id.index.value();
      }
      if (replica.view.end > group_.now().holder) {
        ASSERT_EQ(holder, 0) << "two leases";
        holder = id;
      }
    }
    if (holder == 0) return;
    ++leases_;
    // Nothing is committed that the holder of a valid lease does not know to be committed.
    if (!committed_.empty()) {
      ASSERT_GE(group_.replica(holder).view.commit, committed_.rbegin()->first);
    }
  }

  Group group_;
  int size_;
  Random random_;
  bool changes_members_;
  std::map<Term, NodeId> leaders_;
  std::map<Index, Entry> committed_;
  int leases_ = 0;
  int cuts_ = 0;
  int installed_ = 0;
  int changes_ = 0;
  int tokens_ = 0;
  int transfers_ = 0;
};

TEST(RandomSchedules, KeepEveryPromise) {
  int leases = 0;
  int cuts = 0;
  int installed = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Schedule schedule(seed % 3 == 0 ? 5 : 3, 0, seed);
    schedule.run(3000);
    if (HasFatalFailure()) return;
    schedule.heal();
    if (HasFatalFailure()) return;
    leases += schedule.lease_seconds();
    cuts += schedule.cuts();
    installed += schedule.installed();
  }
  EXPECT_GT(leases, 10000);
  EXPECT_GT(cuts, 1000);
  EXPECT_GT(installed, 100);
}

TEST(RandomSchedules, KeepEveryPromiseWhileMembersAndLeadersChange) {
  int leases = 0;
  int changes = 0;
  int tokens = 0;
  int transfers = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Schedule schedule(seed % 2 == 0 ? 3 : 1, 3, seed);
    schedule.run(3000);
    if (HasFatalFailure()) return;
    schedule.heal();
    if (HasFatalFailure()) return;
    leases += schedule.lease_seconds();
    changes += schedule.changes();
    tokens += schedule.tokens();
    transfers += schedule.transfers();
  }
  EXPECT_GT(leases, 10000);
  EXPECT_GT(changes, 600);
  EXPECT_GT(tokens, 200);
  EXPECT_GT(transfers, 80);
}

}  // namespace
}  // namespace leasehold::raft::test
