#include <leasehold/base/assert.h>
#include <leasehold/check/linearizability.h>
#include <leasehold/check/piece.h>
#include <leasehold/check/search.h>
#include <leasehold/check/zones.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace leasehold::check {
namespace {

/// States per attempt to make a violation smaller; an attempt without a result by then has failed.
constexpr std::size_t kShrinkStatesMax = 100'000;
/// Keys that are decided between two calls of `progress`.
constexpr std::size_t kKeysPerNews = 100'000;

/// (key, operation), so that sorting does not have to look at the operations.
using Keyed = std::pair<std::uint64_t, const Operation*>;

KeyOperations places_of(const std::vector<Operation>& operations) {
  KeyOperations places;
  places.reserve(operations.size());
  for (const Operation& operation : operations) places.push_back(&operation);
  return places;
}

/// The check of one history.
class Check {
 public:
  /// `history` names keys and values, and takes what appends make; may be null.
  Check(History* history, const CheckOptions& options) : history_(history), options_(options) {}

  CheckReport run(const std::vector<Operation>& operations) {
    std::vector<Keyed> keyed;
    keyed.reserve(operations.size());
    for (const Operation& operation : operations) keyed.emplace_back(operation.key, &operation);
    const auto by_key = [](const Keyed& a, const Keyed& b) { return a.first < b.first; };
    if (!std::is_sorted(keyed.begin(), keyed.end(), by_key)) {
      std::stable_sort(keyed.begin(), keyed.end(), by_key);
    }
    progress_.operations_all = operations.size();
    for (std::size_t i = 0; i < keyed.size(); ++i) {
      if (i == 0 || keyed[i].first != keyed[i - 1].first) ++progress_.keys_all;
    }
    std::optional<CheckReport> undecided;
    KeyOperations of_key;
    for (std::size_t begin = 0; begin < keyed.size();) {
      const std::uint64_t key = keyed[begin].first;
      of_key.clear();
      for (; begin < keyed.size() && keyed[begin].first == key; ++begin) {
        of_key.push_back(keyed[begin].second);
      }
      CheckReport report = check_key(key, of_key);
      if (report.verdict == Verdict::violation) return report;
      if (report.verdict == Verdict::undecided && !undecided) undecided = std::move(report);
      progress_.operations += of_key.size();
      progress_.states = 0;
      if (++progress_.keys % kKeysPerNews == 0) tell();
    }
    return undecided ? std::move(*undecided) : CheckReport{};
  }

 private:
  CheckReport check_key(std::uint64_t key, const KeyOperations& operations) {
    CheckReport report;
    report.key = key;
    if (options_.fast_path && values_unique(operations)) {
      const auto fault = find_zone_fault(operations, history_);
      if (!fault) return report;
      std::vector<Operation> at_fault;
      for (const Operation* operation : operations) {
        const auto& values = fault->values;
        if (std::find(values.begin(), values.end(), operation->value) != values.end()) {
          at_fault.push_back(*operation);
        }
      }
      explain(std::move(at_fault), report);
      if (report.explanation.empty()) report.explanation = fault->text;
      return report;
    }
    OrderSearch search(operations, texts());
    switch (search.run(options_.states_max, [this](std::size_t states) {
      progress_.states = states;
      tell();
    })) {
      case OrderSearch::Found::order: return report;
      case OrderSearch::Found::gave_up:
        report.verdict = Verdict::undecided;
        report.explanation =
            fmt::format("the search gave up after {} states; allow it more", options_.states_max);
        return report;
      case OrderSearch::Found::no_order: break;
    }
    std::vector<Operation> all;
    all.reserve(operations.size());
    for (const Operation* operation : operations) all.push_back(*operation);
    explain(std::move(all), report);
    if (report.explanation.empty()) {
      report.explanation = "no order of the operations explains their answers";
    }
    return report;
  }

  /// Fills in a violation by `operations`, which have no order.
  void explain(std::vector<Operation> operations, CheckReport& report) {
    report.verdict = Verdict::violation;
    if (!options_.shrink) return;
    report.piece =
        smallest_piece(std::move(operations), [this](const std::vector<Operation>& some) {
          const KeyOperations places = places_of(some);
          if (values_unique(places)) return find_zone_fault(places, history_).has_value();
          return OrderSearch(places, texts()).run(kShrinkStatesMax, {}) ==
                 OrderSearch::Found::no_order;
        });
    const std::vector<Operation>& piece = report.piece;
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const std::int64_t end = piece[report.unplaced].returned_ns;
      if (!piece[i].returned()) continue;
      if (end == Operation::kNeverReturned || piece[i].returned_ns >= end) report.unplaced = i;
    }
    const KeyOperations places = places_of(piece);
    if (values_unique(places)) {
      if (const auto fault = find_zone_fault(places, history_)) report.explanation = fault->text;
    }
    if (report.explanation.empty()) {
      report.explanation =
          "no order of the operations explains " + describe(piece[report.unplaced], history_);
    }
  }

  Texts* texts() { return history_ != nullptr ? &history_->values : nullptr; }

  void tell() {
    if (options_.progress) options_.progress(progress_);
  }

  History* history_;
  const CheckOptions& options_;
  CheckProgress progress_;
};

}  // namespace

CheckReport check_linearizable(History& history, const CheckOptions& options) {
  return Check(&history, options).run(history.operations);
}

CheckReport check_linearizable(const std::vector<Operation>& operations,
                               const CheckOptions& options) {
  return Check(nullptr, options).run(operations);
}

}  // namespace leasehold::check
