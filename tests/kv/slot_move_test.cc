// Moves of slots from group to group, with drivers that die or go on beside their successors,
// commands that come late or not at all, and clients that write at any moment.
#include <leasehold/kv/local/slot_jobs.h>
#include <leasehold/tests/kv/quick_group.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace leasehold::kv::testing {
namespace {

using namespace std::chrono_literals;

/// What a key has to be, wherever it is.
struct Truth {
  std::optional<std::string> value;
  std::uint64_t token = 0;  ///< the largest that has written
  bool timed = false;       ///< it ends by itself
};

class World {
 public:
  static constexpr std::uint32_t kGroups = 3;

  explicit World(std::uint64_t seed) : random_(seed) {
    for (std::size_t i = 0; i < kGroups; ++i) {
      groups_.push_back(std::make_unique<QuickGroup>());
      all_.push_back(groups_.back().get());
    }
    // Four slots, with a few keys each.
    for (int tag = 0; tag < 4; ++tag) {
      for (int i = 0; i < 5; ++i) {
        keys_.push_back("{" + std::to_string(tag) + "}" + std::to_string(i));
      }
      slots_.insert(slot_of(keys_.back()));
    }
  }

  void live(int steps) {
    for (const auto& group : groups_) {
      group->before = [this](const Command&) {
        disturb();
        const std::uint64_t draw = random_.below(40);
        if (draw == 0) return QuickGroup::Fate::refused;
        if (draw == 1) return QuickGroup::Fate::unanswered;
        if (draw == 2) return QuickGroup::Fate::late;
        return QuickGroup::Fate::executed;
      };
    }
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) step();
    for (const auto& group : groups_) {
      group->before = nullptr;
      group->late.clear();
    }
    // Every move comes to its end when nothing disturbs it.
    for (int i = 0; i < 20; ++i) {
      for (std::size_t group = 0; group < kGroups; ++group) drive(group);
    }
    for (std::size_t group = 0; group < kGroups; ++group) {
      const auto records = groups_[group]->store().slots().list();
      EXPECT_TRUE(slot_jobs(*records, group, kGroups).empty()) << "group " << group;
      const auto rows = groups_[group]->store().rows("", std::nullopt, 1000, Load::whole);
      ASSERT_TRUE(rows);
      for (const Row& row : rows.value().rows) {
        EXPECT_TRUE(has(group, slot_of(row.key))) << row.key << " is left in group " << group;
      }
      EXPECT_EQ(rows.value().rows.size(), groups_[group]->store().size());
    }
    for (const std::string& key : keys_) {
      EXPECT_TRUE(owner(slot_of(key))) << key << " is nobody's";
      read(key);
    }
  }

  std::size_t moves() const { return moves_; }
  std::size_t cancelled() const { return cancelled_; }

 private:
  bool has(std::size_t group, std::uint32_t slot) const {
    const auto records = groups_[group]->store().slots().list();
    const auto at = records->find(slot);
    if (at != records->end()) return serves(&at->second);
    return first_group_of(slot, kGroups) == group;
  }
  std::optional<std::size_t> owner(std::uint32_t slot) const {
    std::optional<std::size_t> found;
    for (std::size_t group = 0; group < kGroups; ++group) {
      if (!has(group, slot)) continue;
      EXPECT_FALSE(found) << "slot " << slot << " is in two groups";
      found = group;
    }
    return found;
  }

  void step() {
    if (random_.below(4) == 0) move_some();
    drive(random_.below(kGroups));
    disturb();
    check_cancelled();
  }

  /// As clients and a driver on another node would, at any moment of an attempt.
  void disturb() {
    for (std::uint64_t i = random_.below(3); i > 0; --i) write();
    read(keys_[random_.below(keys_.size())]);
    QuickGroup& any = *groups_[random_.below(kGroups)];
    if (!any.late.empty() && random_.below(8) == 0) {
      any.execute_late(random_.below(any.late.size()));
    }
    if (random_.below(20) == 0) cancel(random_.below(kGroups));
    if (random_.below(10) == 0) expire(random_.below(kGroups));
    if (random_.below(100) == 0) groups_[random_.below(kGroups)]->install_snapshot();
    if (random_.below(30) == 0) move_some();
    if (depth_ < 2 && random_.below(20) == 0) drive(random_.below(kGroups));
  }

  /// As the leader of the group, whose replica may lag.
  void drive(std::size_t group) {
    ++depth_;
    auto records = groups_[group]->store().slots().list();
    auto& old = seen_[group];
    if (old && random_.below(4) == 0) records = old;
    if (random_.below(4) == 0) old = groups_[group]->store().slots().list();
    for (const SlotJob& job : slot_jobs(*records, group, kGroups)) {
      const bool dies = random_.below(5) == 0;
      std::uint64_t left = random_.below(20);
      const auto done =
          do_slot_job(all_, group, job, [dies, left]() mutable { return !dies || left-- > 0; });
      if (done && job.phase != SlotPhase::left && job.phase != SlotPhase::arriving) ++moves_;
    }
    --depth_;
  }

  /// Any slots, also such that are on their way, or in another group.
  void move_some() {
    std::vector<std::uint32_t> some;
    for (const std::uint32_t slot : slots_) {
      if (random_.below(2) == 0) some.push_back(slot);
    }
    if (some.empty()) return;
    const std::size_t from = random_.below(kGroups);
    std::erase_if(some,
                  [&](std::uint32_t slot) { return !has(from, slot) && random_.below(4) > 0; });
    const std::size_t to = (from + 1 + random_.below(kGroups - 1)) % kGroups;
    if (some.empty()) return;
    for (const std::uint32_t slot : some) staying_[from].erase(slot);
    groups_[from]->run(BeginMove{static_cast<std::uint32_t>(from + 1), kGroups,
                                 static_cast<std::uint32_t>(to + 1), some});
  }

  void cancel(std::size_t group) {
    const auto records = groups_[group]->store().slots().list();
    for (const auto& [slot, record] : *records) {
      if (record.phase != SlotPhase::copying) continue;
      groups_[group]->run(CancelMove{record.move});
      staying_[group].insert(slot);
      ++cancelled_;
    }
  }
  void check_cancelled() {
    for (std::size_t group = 0; group < kGroups; ++group) {
      for (const std::uint32_t slot : staying_[group]) {
        ASSERT_TRUE(has(group, slot)) << "slot " << slot << " has left group " << group;
      }
    }
  }

  /// The time of some key is over, as that group's leader says.
  void expire(std::size_t group) {
    QuickGroup& there = *groups_[group];
    const auto changes = there.store().lease_changes(0);
    ASSERT_TRUE(changes);
    if (changes.value().alive.empty()) return;
    const TimedLease& one = changes.value().alive[random_.below(changes.value().alive.size())];
    const auto found = there.store().find_lease(one.id, "");
    ASSERT_TRUE(found && found.value());
    ASSERT_EQ(found.value()->keys.size(), 1U);
    const std::string& key = found.value()->keys[0];
    const bool ends = has(group, slot_of(key));
    const ExpireLeases over{raft::Term(1), {{one.id, one.stamp}}};
    EXPECT_EQ(there.run(over), ends ? "1" : "0") << key;
    if (ends) truths_[key] = {std::nullopt, truths_[key].token, false};
  }

  void write() {
    const std::string& key = keys_[random_.below(keys_.size())];
    const auto group = owner(slot_of(key));
    if (!group) return;
    QuickGroup& there = *groups_[*group];
    Truth& truth = truths_[key];
    const std::string value = "v" + std::to_string(++written_);
    switch (random_.below(6)) {
      case 0:
        there.run(Del{{key}});
        truth.value.reset();
        truth.timed = false;
        return;
      case 1: {
        Set timed{key, value};
        timed.ttl = 1h;
        EXPECT_EQ(there.run(timed), "OK");
        truth.value = value;
        truth.timed = true;
        return;
      }
      case 2: return write_with_token(there, key, value);
      default: EXPECT_EQ(there.run(Set{key, value}), "OK");
    }
    truth.value = value;
    truth.timed = false;
  }

  /// A lease in a slot keeps it where it is: it ends at once.
  void write_with_token(QuickGroup& there, const std::string& key, const std::string& value) {
    const grant::LeaseId id(1000 + ++written_);
    there.run(GrantLease{id, 1h, "", "holder"});
    const std::uint64_t token = there.store().revision();
    there.run(RevokeLease{id});
    Truth& truth = truths_[key];
    EXPECT_GT(token, truth.token) << "a later holder of " << key << " has a smaller token";
    Set set{key, value};
    if (truth.token > 1 && random_.below(2) == 0) {
      set.token = grant::FencingToken(truth.token - 1);
      EXPECT_NE(there.run(set), "OK") << "a smaller token has written " << key;
    }
    set.token = grant::FencingToken(token);
    EXPECT_EQ(there.run(set), "OK") << key;
    truth = {value, token, false};
  }

  void read(const std::string& key) {
    const auto group = owner(slot_of(key));
    if (!group) return;
    const auto found = groups_[*group]->store().get(key);
    ASSERT_TRUE(found);
    const Truth& truth = truths_[key];
    ASSERT_EQ(found.value().has_value(), truth.value.has_value()) << key;
    if (!found.value()) return;
    ASSERT_EQ(found.value()->bytes.view(), *truth.value) << key;
    ASSERT_EQ(found.value()->lease != grant::LeaseId(0), truth.timed) << key;
  }

  Random random_;
  std::vector<std::unique_ptr<QuickGroup>> groups_;
  std::vector<MovingGroup*> all_;
  std::vector<std::string> keys_;
  std::set<std::uint32_t> slots_;
  std::map<std::string, Truth> truths_;
  std::array<std::shared_ptr<const SlotMap>, kGroups> seen_;  ///< by a replica that lags
  /// Their move was cancelled, and no client has begun another one.
  std::array<std::set<std::uint32_t>, kGroups> staying_;
  std::uint64_t written_ = 0;
  std::size_t moves_ = 0;
  std::size_t cancelled_ = 0;
  int depth_ = 0;
};

TEST(SlotMoveTest, SlotsMoveUnderEverythingThatCanHappen) {
  std::size_t moves = 0;
  std::size_t cancelled = 0;
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    World world(seed);
    world.live(40);
    if (::testing::Test::HasFailure()) return;
    moves += world.moves();
    cancelled += world.cancelled();
  }
  EXPECT_GT(moves, 2000U);
  EXPECT_GT(cancelled, 500U);
}

// More than one look at the store finds, and some changes are in front of the copy.
TEST(SlotMoveTest, ManyKeysAreCopiedWhileTheyChange) {
  constexpr int kKeys = 2 * static_cast<int>(kSlotKeysSeenMax) + 1000;
  const std::uint32_t slot = slot_of("{7}");
  const std::size_t at = first_group_of(slot, 2);
  std::vector<std::unique_ptr<QuickGroup>> groups;
  for (int i = 0; i < 2; ++i) groups.push_back(std::make_unique<QuickGroup>());
  QuickGroup& from = *groups[at];
  QuickGroup& to = *groups[1 - at];
  for (int i = 0; i < kKeys; ++i) from.run(Set{"{7}" + std::to_string(i), "old"});
  const auto number = static_cast<std::uint32_t>(at + 1);
  from.run(BeginMove{number, 2, 3 - number, {slot}});
  Random random(1);
  std::map<std::string, std::string> written;
  to.before = [&](const Command&) {
    const auto records = from.store().slots().list();
    for (int i = 0; i < 50 && serves(&records->at(slot)); ++i) {
      const std::string key = "{7}" + std::to_string(random.below(kKeys));
      const std::string value = "v" + std::to_string(written.size());
      from.run(Set{key, value});
      written[key] = value;
    }
    return QuickGroup::Fate::executed;
  };
  const auto job = slot_jobs(*from.store().slots().list(), at, 2).at(0);
  const auto done = do_slot_job({groups[0].get(), groups[1].get()}, at, job, [] { return true; });
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(to.store().size(), std::uint64_t{kKeys});
  for (const auto& [key, value] : written) {
    const auto found = to.store().get(key);
    ASSERT_TRUE(found && found.value());
    ASSERT_EQ(found.value()->bytes.view(), value) << key;
  }
  EXPECT_GT(written.size(), 500U);
}

// Each attempt has a driver of its own, and the one before has died.
TEST(SlotMoveTest, WhatAnEarlierAttemptHasCopiedIsNotCopiedAgain) {
  constexpr std::size_t kKeys = 3000;
  const auto key = [](std::size_t i) { return "{7}" + std::to_string(10000 + i); };
  const std::uint32_t slot = slot_of("{7}");
  const std::size_t at = first_group_of(slot, 2);
  std::vector<std::unique_ptr<QuickGroup>> groups;
  for (int i = 0; i < 2; ++i) groups.push_back(std::make_unique<QuickGroup>());
  QuickGroup& from = *groups[at];
  QuickGroup& to = *groups[1 - at];
  Set timed{key(0), "v"};
  timed.ttl = 1h;
  from.run(timed);
  for (std::size_t i = 1; i < kKeys; ++i) from.run(Set{key(i), "v"});
  const auto number = static_cast<std::uint32_t>(at + 1);
  from.run(BeginMove{number, 2, 3 - number, {slot}});

  std::size_t commands = 0;
  std::size_t copied = 0;
  bool dies_early = true;
  bool dies_late = true;
  to.before = [&](const Command& command) {
    using Fate = QuickGroup::Fate;
    if (std::holds_alternative<TakeSlots>(command) && dies_late) return Fate::refused;
    if (const auto* import = std::get_if<ImportKeys>(&command)) {
      if (++commands == 2 && dies_early) return Fate::refused;
      copied += import->keys.size();
    }
    return Fate::executed;
  };
  const auto attempt = [&] {
    copied = 0;
    const auto job = slot_jobs(*from.store().slots().list(), at, 2).at(0);
    return do_slot_job({groups[0].get(), groups[1].get()}, at, job, [] { return true; });
  };
  ASSERT_FALSE(attempt());
  const std::size_t first = copied;
  ASSERT_GT(first, 9U);
  dies_early = false;
  from.run(Set{key(1), "w"});
  from.run(Del{{key(2)}});
  from.run(Append{key(kKeys - 1), "w"});
  timed.key = key(3);
  from.run(timed);
  ASSERT_FALSE(attempt());
  EXPECT_EQ(copied, kKeys - first + 3) << "the rest, and what has changed";
  dies_late = false;
  ASSERT_EQ(from.store().slots().list()->at(slot).phase, SlotPhase::frozen);
  const auto done = attempt();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(copied, 0U) << "all this time it is nobody's";
  EXPECT_EQ(to.store().size(), kKeys - 1);
  const auto value = [&to](const std::string& of) { return to.store().get(of).value(); };
  EXPECT_EQ(value(key(1))->bytes.view(), "w");
  EXPECT_FALSE(value(key(2)));
  EXPECT_EQ(value(key(kKeys - 1))->bytes.view(), "vw");
  EXPECT_NE(value(key(0))->lease, grant::LeaseId(0));
  EXPECT_NE(value(key(3))->lease, grant::LeaseId(0));
}

// Each group numbers its own moves.
TEST(SlotMoveTest, TwoMovesThatCrossHaveTheSameNumber) {
  constexpr std::uint64_t kNumber = 4;
  std::vector<std::unique_ptr<QuickGroup>> groups;
  for (int i = 0; i < 2; ++i) groups.push_back(std::make_unique<QuickGroup>());
  QuickGroup& first = *groups[0];
  QuickGroup& second = *groups[1];
  const std::uint32_t bar = slot_of("bar");
  const std::uint32_t foo = slot_of("foo");
  for (int i = 0; i < 3; ++i) second.run(Set{"foo", "v"});
  EXPECT_EQ(second.run(BeginMove{2, 2, 1, {foo}}), std::to_string(kNumber));
  EXPECT_EQ(second.run(CancelMove{kNumber}), "1");
  first.run(Set{"bar", "v"});
  first.run(BeginMove{1, 2, 2, {bar}});
  first.run(ExpectSlots{1, 2, 2, kNumber, {{foo, 1}}});
  const auto work = [&](std::size_t group) {
    for (const SlotJob& job : slot_jobs(*groups[group]->store().slots().list(), group, 2)) {
      EXPECT_TRUE(do_slot_job({&first, &second}, group, job, [] { return true; }));
    }
  };
  work(0);
  EXPECT_EQ(first.store().slots().list()->at(bar), (SlotRecord{SlotPhase::left, 1, 2, kNumber, 0}));
  EXPECT_EQ(first.store().slots().list()->at(foo).phase, SlotPhase::gone);
  work(0);
  EXPECT_EQ(first.store().size(), 0U) << "its key has gone with the slot";
  EXPECT_EQ(second.run(Del{{"bar"}}), "1");
  second.run(BeginMove{2, 2, 1, {bar}});
  work(1);
  EXPECT_EQ(first.run(Transaction{{}, {Get{"bar"}}}), "[nil,]") << "it came back";
  EXPECT_EQ(first.run(ExpectSlots{1, 2, 2, kNumber + 90, {{foo, 1}}}), "0");
  EXPECT_EQ(first.run(ForgetSlots{2, kNumber + 90}), "0") << "what arrives is not forgotten";
}

TEST(SlotMoveTest, ASlotWithALeaseStaysAndSaysWhy) {
  std::vector<std::unique_ptr<QuickGroup>> groups;
  for (int i = 0; i < 2; ++i) groups.push_back(std::make_unique<QuickGroup>());
  QuickGroup& from = *groups[0];
  const std::uint32_t slot = slot_of("bar");
  from.run(Set{"bar", "v"});
  from.run(GrantLease{grant::LeaseId(7), 1h, "{bar}lock", "holder"});
  from.run(BeginMove{1, 2, 2, {slot}});
  const auto try_it = [&]() -> std::string {
    const auto jobs = slot_jobs(*from.store().slots().list(), 0, 2);
    const auto done =
        do_slot_job({groups[0].get(), groups[1].get()}, 0, jobs.at(0), [] { return true; });
    return done ? "moved" : done.error().message;
  };
  EXPECT_EQ(try_it(), "slot 5061 has the name of lease 7");
  from.run(RevokeLease{grant::LeaseId(7)});
  from.run(GrantLease{grant::LeaseId(8), 1h, "", "holder"});
  Set set{"bar", "w"};
  set.lease = grant::LeaseId(8);
  from.run(set);
  EXPECT_EQ(try_it(), "slot 5061 has a key of lease 8");
  EXPECT_TRUE(groups[1]->store().slots().list()->empty()) << "nothing was copied for nothing";
  from.run(RevokeLease{grant::LeaseId(8)});
  from.run(Set{"bar", "x"});
  EXPECT_EQ(try_it(), "moved");
  EXPECT_EQ(groups[1]->run(Get{"bar"}), "\"x\"");
}

}  // namespace
}  // namespace leasehold::kv::testing
