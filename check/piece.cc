#include <leasehold/check/piece.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace leasehold::check {
namespace {

/// Attempts at one history; what is left after them is small enough, or will not become so.
constexpr std::size_t kAttemptsMax = 3'000;

using Operations = std::vector<Operation>;

/// What was known at `time`: without later calls and later answers.
Operations until(const Operations& all, std::int64_t time) {
  Operations known;
  for (Operation operation : all) {
    if (operation.invoked_ns > time) continue;
    if (operation.returned_ns > time) {
      if (operation.kind == OperationKind::read || operation.observes()) continue;
      operation.returned_ns = Operation::kNeverReturned;
      operation.outcome = Outcome::untold;
    }
    known.push_back(operation);
  }
  return known;
}

class Shrinker {
 public:
  Shrinker(Operations all, const HasNoOrder& has_no_order)
      : piece_(std::move(all)), has_no_order_(has_no_order) {}

  Operations run() {
    cut_the_end();
    leave_out(observations());
    if (removable_by_value()) leave_out(by_value());
    leave_out(observations());
    std::stable_sort(piece_.begin(), piece_.end(), [](const Operation& a, const Operation& b) {
      return std::pair(a.invoked_ns, a.returned_ns) < std::pair(b.invoked_ns, b.returned_ns);
    });
    return std::move(piece_);
  }

 private:
  /// Which operations go together, as places in `piece_`.
  using Groups = std::vector<std::vector<std::size_t>>;

  bool take(Operations smaller) {
    if (++attempts_ > kAttemptsMax || !has_no_order_(smaller)) return false;
    piece_ = std::move(smaller);
    return true;
  }

  // What the beginning of a history shows does not depend on what follows.
  void cut_the_end() {
    std::vector<std::int64_t> ends;
    for (const Operation& operation : piece_) {
      if (operation.returned()) ends.push_back(operation.returned_ns);
    }
    std::sort(ends.begin(), ends.end());
    const Operations all = piece_;
    std::size_t low = 0;
    std::size_t high = ends.empty() ? 0 : ends.size() - 1;
    while (low < high) {
      const std::size_t middle = low + (high - low) / 2;
      if (take(until(all, ends[middle]))) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
  }

  Groups observations() const {
    Groups groups;
    for (std::size_t i = 0; i < piece_.size(); ++i) {
      if (piece_[i].observes()) groups.push_back({i});
    }
    return groups;
  }

  /// Whether every answer is a written value. Then everything about one value can be left out at
  /// once: a read of another value still finds its write.
  bool removable_by_value() const {
    return std::all_of(piece_.begin(), piece_.end(), [](const Operation& operation) {
      const bool told = operation.returned() && operation.outcome != Outcome::untold;
      switch (operation.kind) {
        case OperationKind::read:
        case OperationKind::write: return true;
        case OperationKind::remove: return !told;
        case OperationKind::compare: return operation.outcome == Outcome::yes || !told;
        case OperationKind::append: return false;
      }
      return false;
    });
  }

  /// Values that a compare ties together belong to one group.
  Groups by_value() const {
    std::map<std::uint64_t, std::uint64_t> parent;
    const auto root = [&parent](std::uint64_t value) {
      while (parent.emplace(value, value).first->second != value) value = parent.at(value);
      return value;
    };
    const auto value_of = [](const Operation& operation) {
      return operation.kind == OperationKind::remove ? Operation::kNothing : operation.value;
    };
    for (const Operation& operation : piece_) {
      if (operation.kind != OperationKind::compare) continue;
      const std::uint64_t from = root(operation.expected);
      parent[from] = root(operation.value);
    }
    std::map<std::uint64_t, std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < piece_.size(); ++i) {
      groups[root(value_of(piece_[i]))].push_back(i);
    }
    Groups result;
    for (auto& group : groups) result.push_back(std::move(group.second));
    return result;
  }

  /// Leaves out as many of `groups` as can be, large bundles first.
  void leave_out(Groups groups) {
    for (std::size_t bundle = groups.size() / 2 + 1; bundle > 0; bundle /= 2) {
      for (std::size_t begin = 0; begin < groups.size();) {
        const std::size_t end = std::min(begin + bundle, groups.size());
        std::vector<bool> out(piece_.size(), false);
        for (std::size_t i = begin; i < end; ++i) {
          for (const std::size_t place : groups[i]) out[place] = true;
        }
        Operations smaller;
        std::vector<std::size_t> moved(piece_.size(), 0);
        for (std::size_t i = 0; i < piece_.size(); ++i) {
          moved[i] = smaller.size();
          if (!out[i]) smaller.push_back(piece_[i]);
        }
        if (!take(std::move(smaller))) {
          begin = end;
          continue;
        }
        groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(begin),
                     groups.begin() + static_cast<std::ptrdiff_t>(end));
        for (std::vector<std::size_t>& group : groups) {
          for (std::size_t& place : group) place = moved[place];
        }
      }
    }
  }

  Operations piece_;
  const HasNoOrder& has_no_order_;
  std::size_t attempts_ = 0;
};

}  // namespace

std::vector<Operation> smallest_piece(std::vector<Operation> all, const HasNoOrder& has_no_order) {
  return Shrinker(std::move(all), has_no_order).run();
}

}  // namespace leasehold::check
