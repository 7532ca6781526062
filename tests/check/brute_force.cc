#include "brute_force.h"

#include <algorithm>
#include <utility>

namespace leasehold::check {
namespace {

constexpr std::uint64_t kOperationsMax = 6;

std::string text_of(const History& history) {
  std::string text;
  for (const Operation& operation : history.operations) {
    text += describe(operation, &history) + "\n";
  }
  return text;
}

/// A register that holds a string.
struct Register {
  bool there = false;
  std::string text;
};

std::string word(const History& history, std::uint64_t value) {
  return value == Operation::kNothing ? "" : history.values.text_of(value);
}

bool same(const History& history, const Register& held, std::uint64_t value) {
  return held.there == (value != Operation::kNothing) &&
         (!held.there || held.text == word(history, value));
}

/// Executes `operation`; false if its answer is not what it got.
bool execute(const History& history, const Operation& operation, Register& held) {
  const bool answered = operation.returned_ns != Operation::kNeverReturned;
  switch (operation.kind) {
    case OperationKind::read: return same(history, held, operation.value);
    case OperationKind::write: held = {true, word(history, operation.value)}; return true;
    case OperationKind::append:
      held = {true, held.text + word(history, operation.value)};
      return true;
    case OperationKind::remove: {
      const bool was_there = held.there;
      held = {};
      return !answered || operation.outcome == Outcome::untold ||
             (operation.outcome == Outcome::yes) == was_there;
    }
    case OperationKind::compare: {
      const bool fits = same(history, held, operation.expected);
      if (fits) held = {operation.value != 0, word(history, operation.value)};
      return !answered || (operation.outcome == Outcome::yes) == fits;
    }
  }
  return false;
}

bool place(const History& history, std::vector<bool>& done, const Register& held) {
  const std::vector<Operation>& all = history.operations;
  bool finished = true;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!done[i] && all[i].returned_ns != Operation::kNeverReturned) finished = false;
  }
  if (finished) return true;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (done[i]) continue;
    bool may_come = true;
    for (std::size_t j = 0; j < all.size(); ++j) {
      if (!done[j] && all[j].returned_ns < all[i].invoked_ns) may_come = false;
    }
    Register next = held;
    if (!may_come || !execute(history, all[i], next)) continue;
    done[i] = true;
    const bool found = place(history, done, next);
    done[i] = false;
    if (found) return true;
  }
  return false;
}

OperationKind draw_kind(Random& random, Flavour flavour) {
  const std::uint64_t draw = random.below(8);
  if (draw < 3) return OperationKind::read;
  if (flavour == Flavour::appends) return draw < 7 ? OperationKind::append : OperationKind::write;
  if (flavour == Flavour::removes && draw == 3) return OperationKind::remove;
  const bool compares = flavour == Flavour::compares || flavour == Flavour::removes;
  return compares && draw < 6 ? OperationKind::compare : OperationKind::write;
}

/// Answers as a register gives them that executes each operation at an instant within it.
void answer(Random& random, History& history) {
  std::vector<std::pair<std::int64_t, std::size_t>> order;
  for (std::size_t i = 0; i < history.operations.size(); ++i) {
    const Operation& operation = history.operations[i];
    const std::int64_t last =
        operation.returned() ? operation.returned_ns : operation.invoked_ns + 9;
    order.emplace_back(random.between(operation.invoked_ns, last + 1), i);
  }
  std::sort(order.begin(), order.end());
  Register held;
  for (const auto& next : order) {
    Operation& operation = history.operations[next.second];
    if (operation.kind == OperationKind::read) {
      operation.value = held.there ? history.values.number_of(held.text) : Operation::kNothing;
      continue;
    }
    const Register before = held;
    const bool fits = execute(history, operation, held);
    if (!operation.returned() || fits) continue;
    operation.outcome = operation.outcome == Outcome::yes ? Outcome::no : Outcome::yes;
    held = before;
    execute(history, operation, held);
  }
}

}  // namespace

History random_history(Random& random, Flavour flavour) {
  History history;
  const std::uint64_t count = 1 + random.below(kOperationsMax);
  const std::int64_t span = random.between(3, 16);
  const bool unique = flavour == Flavour::unique_values;
  for (std::uint64_t i = 0; i < count; ++i) {
    Operation operation;
    operation.client = i;
    operation.key = 1;
    operation.kind = draw_kind(random, flavour);
    const bool writes = operation.kind == OperationKind::write;
    operation.value = unique && writes ? i + 1 : random.below(unique ? count + 1 : 3);
    if (operation.kind == OperationKind::write || operation.kind == OperationKind::append) {
      if (operation.value == Operation::kNothing) operation.value = 1;
    }
    operation.invoked_ns = random.between(0, span);
    operation.returned_ns = operation.invoked_ns + random.between(0, span / 2 + 1);
    if (operation.kind == OperationKind::compare) operation.expected = random.below(3);
    const bool tells = operation.kind == OperationKind::compare ||
                       (operation.kind == OperationKind::remove && random.chance(2, 3));
    if (tells) operation.outcome = random.chance(1, 2) ? Outcome::yes : Outcome::no;
    if (operation.kind != OperationKind::read && random.chance(1, 4)) {
      operation.returned_ns = Operation::kNeverReturned;
      operation.outcome = Outcome::untold;
    }
    history.operations.push_back(operation);
  }
  if (random.chance(1, 2)) answer(random, history);
  // Then one answer may be changed, so that a fault hides among right answers.
  Operation& one = history.operations[static_cast<std::size_t>(random.below(count))];
  if (one.kind == OperationKind::read && random.chance(1, 3)) one.value = random.below(3);
  return history;
}

bool has_an_order(const History& history) {
  std::vector<bool> done(history.operations.size(), false);
  return place(history, done, {});
}

std::string compare_with_brute_force(std::uint64_t seed, std::uint64_t histories,
                                     std::uint64_t& good) {
  Random random(seed);
  good = 0;
  for (std::uint64_t i = 0; i < histories; ++i) {
    History history = random_history(random, static_cast<Flavour>(i % kFlavours));
    const bool expected = has_an_order(history);
    if (expected) ++good;
    const std::string name = "history " + std::to_string(i) + " of seed " + std::to_string(seed);
    for (const bool fast_path : {true, false}) {
      const CheckReport report = check_linearizable(history, {fast_path, 1'000'000, true, {}});
      if (report.verdict != (expected ? Verdict::linearizable : Verdict::violation)) {
        return name + " has " + (expected ? "an" : "no") + " order, says brute force; the " +
               (fast_path ? "checker" : "search") + " differs:\n" + text_of(history);
      }
      if (expected) continue;
      History piece{report.piece, history.keys, history.values};
      if (piece.operations.empty() || has_an_order(piece)) {
        return name + ": the piece that is shown has an order:\n" + text_of(piece) + "of:\n" +
               text_of(history);
      }
    }
  }
  return "";
}

}  // namespace leasehold::check
