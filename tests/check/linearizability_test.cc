// The checker, checked: against brute force on small histories, on known-bad ones, and for speed.
#include <gtest/gtest.h>
#include <leasehold/base/random.h>
#include <leasehold/check/linearizability.h>

#include <vector>

namespace leasehold::check {
namespace {

Operation read(std::uint64_t value, std::int64_t invoked, std::int64_t returned) {
  return {1, 7, OperationKind::read, value, invoked, returned, 0, Outcome::untold, 0};
}
Operation write(std::uint64_t value, std::int64_t invoked, std::int64_t returned) {
  return {2, 7, OperationKind::write, value, invoked, returned, 0, Outcome::untold, 0};
}
Operation compare(std::uint64_t expected, std::uint64_t value, Outcome outcome,
                  std::int64_t invoked, std::int64_t returned) {
  return {3, 7, OperationKind::compare, value, invoked, returned, expected, outcome, 0};
}
Operation remove(Outcome outcome, std::int64_t invoked, std::int64_t returned) {
  return {4, 7, OperationKind::remove, 0, invoked, returned, 0, outcome, 0};
}
Operation append(std::uint64_t value, std::int64_t invoked, std::int64_t returned) {
  return {5, 7, OperationKind::append, value, invoked, returned, 0, Outcome::untold, 0};
}
constexpr std::int64_t kNever = Operation::kNeverReturned;

/// Both algorithms must agree, so every history goes to both.
Verdict verdict(const std::vector<Operation>& history) {
  History fast_history{history, {}, {}};
  History slow_history{history, {}, {}};
  const CheckReport fast = check_linearizable(fast_history, {});
  const CheckReport slow = check_linearizable(slow_history, {false, 1'000'000, true, {}});
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

TEST(Linearizability, ReadOfAValueThatWasNeverWritten) {
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
  EXPECT_NE(report.explanation.find("client 1 reads key 7 = 1 [4 .. 5]"), std::string::npos)
      << report.explanation;
}

TEST(Linearizability, ACompareSaysWhatWasThere) {
  const Outcome yes = Outcome::yes, no = Outcome::no;
  EXPECT_EQ(verdict({compare(0, 5, yes, 0, 1), read(5, 2, 3)}), Verdict::linearizable);
  EXPECT_EQ(verdict({compare(4, 5, yes, 0, 1)}), Verdict::violation);
  EXPECT_EQ(verdict({write(4, 0, 1), compare(4, 5, no, 2, 3)}), Verdict::violation);
  EXPECT_EQ(verdict({write(4, 0, 1), compare(3, 5, no, 2, 3), read(4, 4, 5)}),
            Verdict::linearizable);
  EXPECT_EQ(verdict({write(4, 0, 1), compare(4, 5, yes, 2, 3), compare(4, 6, yes, 2, 3)}),
            Verdict::violation);
}

TEST(Linearizability, AnUnansweredCompareMayHaveWritten) {
  const Operation lost = compare(4, 5, Outcome::untold, 2, kNever);
  EXPECT_EQ(verdict({write(4, 0, 1), lost, read(5, 6, 7)}), Verdict::linearizable);
  EXPECT_EQ(verdict({write(4, 0, 1), lost, read(4, 6, 7)}), Verdict::linearizable);
  EXPECT_EQ(verdict({write(3, 0, 1), lost, read(5, 6, 7)}), Verdict::violation);
}

TEST(Linearizability, ARemoveLeavesNothing) {
  EXPECT_EQ(verdict({write(1, 0, 1), remove(Outcome::yes, 2, 3), read(0, 4, 5)}),
            Verdict::linearizable);
  EXPECT_EQ(verdict({write(1, 0, 1), remove(Outcome::untold, 2, 3), read(1, 4, 5)}),
            Verdict::violation);
  EXPECT_EQ(verdict({write(1, 0, 1), remove(Outcome::no, 2, 3)}), Verdict::violation);
  EXPECT_EQ(verdict({remove(Outcome::yes, 2, 3)}), Verdict::violation);
  EXPECT_EQ(verdict({write(1, 0, 1), remove(Outcome::untold, 2, kNever), read(1, 4, 5),
                     read(0, 6, 7), read(0, 8, 9)}),
            Verdict::linearizable);
}

TEST(Linearizability, AppendsAreReadInOneOrder) {
  // 12 is 1 and then 2.
  EXPECT_EQ(verdict({append(1, 0, 5), append(2, 0, 5), read(12, 6, 7)}), Verdict::linearizable);
  EXPECT_EQ(verdict({append(1, 0, 5), append(2, 0, 5), read(12, 6, 7), read(21, 6, 7)}),
            Verdict::violation);
  EXPECT_EQ(verdict({append(1, 0, 1), append(2, 2, 3), read(21, 6, 7)}), Verdict::violation);
  EXPECT_EQ(verdict({append(1, 0, 1), append(2, 2, kNever), read(1, 6, 7), read(12, 8, 9)}),
            Verdict::linearizable);
}

TEST(Linearizability, ThePieceIsWhatIsNeeded) {
  std::vector<Operation> history;
  for (std::uint64_t i = 1; i < 400; ++i) {
    const auto at = static_cast<std::int64_t>(i * 10);
    history.push_back(write(i, at, at + 3));
    history.push_back(read(i, at + 4, at + 6));
  }
  history.push_back(read(150, 2'000, 2'003));
  for (const bool fast_path : {true, false}) {
    const CheckReport report = check_linearizable(history, {fast_path, 1'000'000, true, {}});
    ASSERT_EQ(report.verdict, Verdict::violation);
    ASSERT_EQ(report.piece.size(), 3U) << report.explanation;
    EXPECT_EQ(report.piece[0].value, 150U);
    EXPECT_EQ(report.piece[2].value, 150U);
    EXPECT_EQ(report.unplaced, 2U);
    EXPECT_EQ(report.piece[2].invoked_ns, 2'000);
  }
}

TEST(Linearizability, AnUndecidedKeyHidesNoViolation) {
  std::vector<Operation> history;
  for (std::uint64_t i = 0; i < 24; ++i) history.push_back(write(1 + i % 12, 0, 100));
  history.push_back(read(99, 101, 102));
  Operation wrong = read(3, 5, 6);
  wrong.key = 9;
  history.push_back(wrong);
  const CheckReport report = check_linearizable(history, {true, 1000, true, {}});
  EXPECT_EQ(report.verdict, Verdict::violation);
  EXPECT_EQ(report.key, 9U);
}

TEST(Linearizability, SearchGivesUpAtItsLimit) {
  std::vector<Operation> history;
  for (std::uint64_t i = 0; i < 24; ++i) history.push_back(write(1 + i % 12, 0, 100));
  history.push_back(read(99, 101, 102));
  EXPECT_EQ(check_linearizable(history, {true, 1000, true, {}}).verdict, Verdict::undecided);
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
  EXPECT_EQ(check_linearizable(history, {false, 4'000'000, true, {}}).verdict,
            Verdict::linearizable);
}

}  // namespace
}  // namespace leasehold::check
