// The checker, checked: against brute force on small histories, on known-bad ones, and for speed.
#include <gtest/gtest.h>
#include <leasehold/base/random.h>
#include <leasehold/sim/linearizability.h>

#include <algorithm>
#include <vector>

namespace leasehold::sim {
namespace {

Operation read(std::uint64_t value, std::int64_t invoked, std::int64_t returned) {
  return {1, 7, OperationKind::read, value, invoked, returned};
}
Operation write(std::uint64_t value, std::int64_t invoked, std::int64_t returned) {
  return {2, 7, OperationKind::write, value, invoked, returned};
}
constexpr std::int64_t kNever = Operation::kNeverReturned;

/// Both algorithms have to agree, so every story is told to both.
Verdict verdict(const std::vector<Operation>& history) {
  const CheckReport fast = check_linearizable(history, {});
  const CheckReport slow = check_linearizable(history, {false, 1'000'000});
  EXPECT_EQ(fast.verdict, slow.verdict) << fast.explanation << slow.explanation;
  EXPECT_EQ(fast.verdict == Verdict::linearizable, fast.explanation.empty());
  return fast.verdict;
}

TEST(Linearizability, EmptyHistoryIsLinearizable) {
  EXPECT_EQ(verdict({}), Verdict::linearizable);
}

TEST(Linearizability, ReadSeesTheLastWrite) {
  EXPECT_EQ(verdict({write(1, 0, 1), read(1, 2, 3)}), Verdict::linearizable);
  EXPECT_EQ(verdict({write(1, 0, 1), read(0, 2, 3)}), Verdict::violation);
}

TEST(Linearizability, StaleReadAfterAnOverwrite) {
  EXPECT_EQ(verdict({write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)}), Verdict::violation);
}

TEST(Linearizability, ReadsMustNotGoBack) {
  // The write is under way throughout; one reader has seen it, a later one has not.
  EXPECT_EQ(verdict({write(1, 0, 9), read(1, 1, 2), read(0, 3, 4)}), Verdict::violation);
  EXPECT_EQ(verdict({write(1, 0, 9), read(0, 1, 2), read(1, 3, 4)}), Verdict::linearizable);
}

TEST(Linearizability, ReadFromTheFuture) {
  EXPECT_EQ(verdict({read(1, 0, 1), write(1, 2, 3)}), Verdict::violation);
}

TEST(Linearizability, ReadOfAValueThatNobodyWrote) {
  EXPECT_EQ(verdict({write(1, 0, 1), read(2, 2, 3)}), Verdict::violation);
}

TEST(Linearizability, UnknownWriteMayTakeEffectMuchLaterOrNever) {
  EXPECT_EQ(verdict({write(1, 0, kNever), read(0, 5, 6), read(1, 7, 8)}), Verdict::linearizable);
  EXPECT_EQ(verdict({write(1, 0, kNever), read(0, 5, 6)}), Verdict::linearizable);
  EXPECT_EQ(verdict({write(1, 0, kNever), read(1, 5, 6), read(0, 7, 8)}), Verdict::violation);
}

TEST(Linearizability, OperationsThatTouchAtOneInstantOverlap) {
  EXPECT_EQ(verdict({write(1, 0, 5), read(0, 5, 6)}), Verdict::linearizable);
  EXPECT_EQ(verdict({write(1, 0, 5), write(2, 5, 5), read(1, 5, 7)}), Verdict::linearizable);
}

TEST(Linearizability, KeysAreIndependent) {
  Operation other = read(0, 2, 3);
  other.key = 8;
  EXPECT_EQ(verdict({write(1, 0, 1), other}), Verdict::linearizable);
}

TEST(Linearizability, ExplanationNamesTheOperations) {
  const CheckReport report = check_linearizable({write(1, 0, 1), write(2, 2, 3), read(1, 4, 5)});
  EXPECT_EQ(report.verdict, Verdict::violation);
  EXPECT_EQ(report.key, 7U);
  EXPECT_NE(report.explanation.find("client 1 reads key 7 = 1 [4 ns .. 5 ns]"), std::string::npos)
      << report.explanation;
}

TEST(Linearizability, SearchGivesUpAtItsLimit) {
  std::vector<Operation> history;
  for (std::uint64_t i = 0; i < 24; ++i) history.push_back(write(1 + i % 12, 0, 100));
  history.push_back(read(99, 101, 102));
  EXPECT_EQ(check_linearizable(history, {true, 1000}).verdict, Verdict::undecided);
}

/// Tries every subset of the unknown writes and every order. The definition, word for word.
class BruteForce {
 public:
  explicit BruteForce(const std::vector<Operation>& history) : history_(history) {}
  bool linearizable() { return place(std::vector<bool>(history_.size(), false), 0); }

 private:
  bool place(std::vector<bool> done, std::uint64_t value) {
    bool all = true;
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if (!done[i] && history_[i].returned_ns != kNever) all = false;
    }
    if (all) return true;
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if (done[i]) continue;
      const Operation& operation = history_[i];
      if (operation.kind == OperationKind::read && operation.value != value) continue;
      bool first = true;
      for (std::size_t j = 0; j < history_.size(); ++j) {
        if (!done[j] && history_[j].returned_ns < operation.invoked_ns) first = false;
      }
      if (!first) continue;
      std::vector<bool> next = done;
      next[i] = true;
      if (place(next, operation.value)) return true;
    }
    return false;
  }
  const std::vector<Operation>& history_;
};

std::vector<Operation> random_history(Random& random, bool unique) {
  const std::uint64_t count = 1 + random.below(6);
  const std::int64_t span = random.between(3, 16);
  std::vector<Operation> history;
  for (std::uint64_t i = 0; i < count; ++i) {
    Operation operation;
    operation.client = i;
    operation.kind = random.chance(1, 2) ? OperationKind::read : OperationKind::write;
    const bool is_write = operation.kind == OperationKind::write;
    operation.value = unique && is_write ? i + 1 : random.below(unique ? count + 1 : 3);
    operation.invoked_ns = random.between(0, span);
    operation.returned_ns = operation.invoked_ns + random.between(0, span / 2 + 1);
    if (is_write && random.chance(1, 4)) operation.returned_ns = kNever;
    history.push_back(operation);
  }
  return history;
}

TEST(Linearizability, AgreesWithBruteForce) {
  Random random(20261120);
  int good = 0;
  int bad = 0;
  for (int i = 0; i < 120'000; ++i) {
    const std::vector<Operation> history = random_history(random, i % 2 == 0);
    const bool expected = BruteForce(history).linearizable();
    const Verdict fast = check_linearizable(history).verdict;
    const Verdict slow = check_linearizable(history, {false, 1'000'000}).verdict;
    (expected ? good : bad) += 1;
    std::string story;
    for (const Operation& operation : history) story += describe(operation) + "\n";
    const Verdict wanted = expected ? Verdict::linearizable : Verdict::violation;
    ASSERT_EQ(fast, wanted) << story;
    ASSERT_EQ(slow, wanted) << story;
  }
  // Both kinds have to be common, or the comparison says little.
  EXPECT_GT(good, 20'000);
  EXPECT_GT(bad, 20'000);
}

/// A history made from a real register: each operation takes effect at an instant within it.
std::vector<Operation> valid_history(Random& random, std::size_t count, std::int64_t spread_ns) {
  std::vector<Operation> history;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto instant = static_cast<std::int64_t>(i) * 10;
    Operation operation;
    operation.client = i % 64;
    operation.kind = random.chance(1, 2) ? OperationKind::read : OperationKind::write;
    if (operation.kind == OperationKind::write) value = i + 1;
    operation.value = value;
    operation.invoked_ns = instant - random.between(0, spread_ns);
    operation.returned_ns = instant + random.between(0, spread_ns);
    const bool unknown = operation.kind == OperationKind::write && random.chance(1, 50);
    if (unknown) operation.returned_ns = kNever;
    history.push_back(operation);
  }
  return history;
}

TEST(Linearizability, MillionOperationsOnOneKey) {
  Random random(1);
  std::vector<Operation> history = valid_history(random, 1'000'000, 300);
  EXPECT_EQ(check_linearizable(history).verdict, Verdict::linearizable);
  // One stale read among them is found.
  history[700'000].kind = OperationKind::read;
  history[700'000].value = history[600'000].value;
  EXPECT_EQ(check_linearizable(history).verdict, Verdict::violation);
}

TEST(Linearizability, SearchHandlesLongHistoriesOfRealRegisters) {
  Random random(2);
  std::vector<Operation> history = valid_history(random, 2'000, 40);
  EXPECT_EQ(check_linearizable(history, {false, 4'000'000}).verdict, Verdict::linearizable);
}

}  // namespace
}  // namespace leasehold::sim
