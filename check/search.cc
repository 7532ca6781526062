#include <leasehold/base/assert.h>
#include <leasehold/check/search.h>

#include <algorithm>

namespace leasehold::check {
namespace {

constexpr std::size_t kStatesPerNews = 1'000'000;

/// A fixed random number for each (a, b): the finaliser of splitmix64, twice.
std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t z = a * 0x9e3779b97f4a7c15U + b;
  for (int i = 0; i < 2; ++i) {
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    z = (z ^ (z >> 31U)) + 0x632be59bd9b4e019U;
  }
  return z;
}

/// Leaves out what can only be in the way: writes of unknown outcome whose value no read saw. If an
/// order has one, it stays an order without it, because what follows is a write: an observation
/// would have seen it. The argument needs every answer to be a value, so it does not hold if an
/// operation only says that something was (or was not) there, or shows what many have appended.
KeyOperations without_idle_writes(const KeyOperations& operations) {
  std::unordered_set<std::uint64_t> seen;
  for (const Operation* operation : operations) {
    const bool by_value = operation->kind == OperationKind::read ||
                          operation->kind == OperationKind::write ||
                          (operation->kind == OperationKind::compare &&
                           (operation->outcome == Outcome::yes || !operation->returned())) ||
                          (operation->kind == OperationKind::remove &&
                           (operation->outcome == Outcome::untold || !operation->returned()));
    if (!by_value) return operations;
    if (operation->kind == OperationKind::read) seen.insert(operation->value);
    if (operation->kind == OperationKind::compare) seen.insert(operation->expected);
  }
  KeyOperations kept;
  for (const Operation* operation : operations) {
    const std::uint64_t makes =
        operation->kind == OperationKind::remove ? Operation::kNothing : operation->value;
    if (operation->returned() || seen.count(makes) != 0) kept.push_back(operation);
  }
  return kept;
}

}  // namespace

std::optional<std::uint64_t> next_value(const Operation& operation, std::uint64_t value,
                                        Texts* values) {
  // Of an operation without an answer any outcome is possible; one that changes nothing is the same
  // as none at all, so it is not tried.
  const bool told = operation.returned() && operation.outcome != Outcome::untold;
  const bool yes = operation.outcome == Outcome::yes;
  switch (operation.kind) {
    case OperationKind::read:
      if (operation.value != value) return std::nullopt;
      return value;
    case OperationKind::write: return operation.value;
    case OperationKind::remove:
      if (told && yes != (value != Operation::kNothing)) return std::nullopt;
      return Operation::kNothing;
    case OperationKind::compare: {
      const bool fits = value == operation.expected;
      if (told ? yes != fits : !fits && !operation.returned()) return std::nullopt;
      return fits ? operation.value : value;
    }
    case OperationKind::append:
      LEASEHOLD_ASSERT(values != nullptr);
      return values->joined(value, operation.value);
  }
  LEASEHOLD_UNREACHABLE();
}

OrderSearch::OrderSearch(const KeyOperations& operations, Texts* values)
    : operations_(without_idle_writes(operations)), values_(values) {
  build_list();
}

OrderSearch::Found OrderSearch::run(std::size_t states_max,
                                    const std::function<void(std::size_t)>& progress) {
  std::uint64_t value = Operation::kNothing;
  std::size_t at = links_[kHead].next;
  while (returns_left_ > 0) {
    // An observation that fits can go first: nothing that may come later gets harder.
    const std::size_t ready = fitting_observation(value);
    if (ready != kNone) at = ready;
    if (at != kHead && links_[at].call) {
      const std::size_t which = links_[at].operation;
      const auto next = next_value(*operations_[which], value, values_);
      if (next && enter(which, *next)) {
        steps_.push_back({at, value, ready != kNone});
        value = *next;
        lift(at);
        at = links_[kHead].next;
        if (seen_.size() > states_max) return Found::gave_up;
        if (seen_.size() % kStatesPerNews == 0 && progress) progress(seen_.size());
        continue;
      }
      if (ready == kNone) {
        at = links_[at].next;
        continue;
      }
    }
    // A return, the end, or a state that was tried before: what follows has been tried in vain.
    bool forced = true;
    while (forced) {
      if (steps_.empty()) return Found::no_order;
      const Step step = steps_.back();
      steps_.pop_back();
      forced = step.forced;
      value = step.value_before;
      toggle(links_[step.link].operation);
      restore(step.link);
      at = links_[step.link].next;
    }
  }
  return Found::order;
}

void OrderSearch::build_list() {
  struct Moment {
    std::int64_t time;
    bool is_return;
    std::size_t operation;
  };
  std::vector<Moment> moments;
  moments.reserve(operations_.size() * 2);
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    moments.push_back({operations_[i]->invoked_ns, false, i});
    if (!operations_[i]->returned()) continue;
    moments.push_back({operations_[i]->returned_ns, true, i});
    ++returns_left_;
  }
  // At one instant calls come before returns: such operations overlap.
  std::sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.is_return != b.is_return) return b.is_return;
    return a.operation < b.operation;
  });
  links_.resize(moments.size() + 1);
  std::vector<std::size_t> call_of(operations_.size(), kNone);
  for (std::size_t i = 0; i < moments.size(); ++i) {
    Link& link = links_[i + 1];
    link.prev = i;
    link.next = i + 1 == moments.size() ? kHead : i + 2;
    link.operation = moments[i].operation;
    link.call = !moments[i].is_return;
    if (link.call) call_of[link.operation] = i + 1;
    if (!link.call) links_[call_of[link.operation]].mate = i + 1;
  }
  links_[kHead].next = moments.empty() ? kHead : 1;
  links_[kHead].prev = moments.size();
}

/// The call of an operation that may come next, fits `value` and leaves it as it is; kNone if there
/// is none.
std::size_t OrderSearch::fitting_observation(std::uint64_t value) const {
  for (std::size_t i = links_[kHead].next; i != kHead && links_[i].call; i = links_[i].next) {
    const Operation& operation = *operations_[links_[i].operation];
    if (operation.observes() && next_value(operation, value, nullptr)) return i;
  }
  return kNone;
}

/// Marks `which` as done. False, and nothing is marked, if this state was visited before.
bool OrderSearch::enter(std::size_t which, std::uint64_t value) {
  toggle(which);
  if (seen_.insert({done_.high ^ mix(value, 1), done_.low ^ mix(value, 2)}).second) return true;
  toggle(which);
  return false;
}

void OrderSearch::toggle(std::size_t which) {
  done_.high ^= mix(which, 3);
  done_.low ^= mix(which, 4);
}

void OrderSearch::unlink(std::size_t i) {
  links_[links_[i].prev].next = links_[i].next;
  links_[links_[i].next].prev = links_[i].prev;
}

void OrderSearch::relink(std::size_t i) {
  links_[links_[i].prev].next = i;
  links_[links_[i].next].prev = i;
}

void OrderSearch::lift(std::size_t call) {
  unlink(call);
  if (links_[call].mate == kNone) return;
  unlink(links_[call].mate);
  --returns_left_;
}

void OrderSearch::restore(std::size_t call) {
  if (links_[call].mate != kNone) {
    relink(links_[call].mate);
    ++returns_left_;
  }
  relink(call);
}

}  // namespace leasehold::check
