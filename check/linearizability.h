// The linearizability checker: does a history of client operations look as if one register per key
// had executed them one at a time, each at some instant between its call and its answer?
//
// Two algorithms. Where a key knows only reads and writes, and every written value is unique (our
// clients see to it), the check is sorting and one scan (zones.h). Otherwise a search with memo
// tries the orders (search.h). Keys are independent, so each is checked alone (Herlihy and Wing:
// linearizability is local).
#pragma once

#include <leasehold/check/history.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace leasehold::check {

enum class Verdict : std::uint8_t {
  linearizable,
  violation,
  undecided,  ///< the search met its limit: the history is too concurrent to be decided
};

/// How far a check has come.
struct CheckProgress {
  std::size_t operations = 0;  ///< decided, with their keys
  std::size_t operations_all = 0;
  std::size_t keys = 0;
  std::size_t keys_all = 0;
  std::size_t states = 0;  ///< that the search of the present key has visited
};

struct CheckOptions {
  /// Off: every key goes through the search. For tests of the one against the other.
  bool fast_path = true;
  /// States that the search may visit per key. Each takes some 40 bytes.
  std::size_t states_max = 4'000'000;
  /// Whether a violation is made small (CheckReport::piece). Costs some further checks.
  bool shrink = true;
  /// Called now and then during a long check; may be empty.
  std::function<void(const CheckProgress&)> progress;
};

struct CheckReport {
  Verdict verdict = Verdict::linearizable;
  std::uint64_t key = 0;    ///< the key at fault
  std::string explanation;  ///< empty when linearizable; names the operations at fault
  /// Of a violation: operations of `key` that have no order either, in the order of their calls. No
  /// operation can be left out of them as far as was tried. An answer that came after that of the
  /// last operation does not matter and is shown as one that never came.
  std::vector<Operation> piece;
  /// The operation of `piece` with the last answer: up to there the others have an order.
  std::size_t unplaced = 0;
};

/// Checks `history`. A read that was not answered says nothing: leave it out. What certainly never
/// happened has to be left out as well: so a read that returns its value is a violation. The first
/// key at fault, in rising order of its number, is reported; an undecided key only if no other is
/// at fault. Texts may grow, by the values that appends make.
///
/// Near-linear in time where a key has only reads and writes of unique values.
CheckReport check_linearizable(History& history, const CheckOptions& options = {});
/// The same where values are numbers alone; asserts that nothing is appended.
CheckReport check_linearizable(const std::vector<Operation>& operations,
                               const CheckOptions& options = {});

}  // namespace leasehold::check
