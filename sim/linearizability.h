// The linearizability checker: does a history of client operations look as if one register per key
// had executed them one at a time, each at some instant between its call and its answer?
//
// Two algorithms. Where every written value of a key is unique (our clients see to it) the check is
// sorting and one scan (Gibbons and Korach, "Testing shared memories", 1997: each value lives in
// one zone of time, and zones must not collide). Otherwise a search with memo (Wing and Gong 1993,
// Lowe 2017) tries the orders. Keys are independent, so each is checked alone (Herlihy and Wing:
// linearizability is local).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace leasehold::sim {

enum class OperationKind : std::uint8_t { read, write };

/// One operation of one client, as the client saw it.
struct Operation {
  /// The value of a key before its first write.
  static constexpr std::uint64_t kInitialValue = 0;
  /// The answer never came: a write with this may take effect at any time after its call, or never.
  static constexpr std::int64_t kNeverReturned = std::numeric_limits<std::int64_t>::max();

  std::uint64_t client = 0;  ///< only for the explanation
  std::uint64_t key = 0;
  OperationKind kind = OperationKind::read;
  std::uint64_t value = kInitialValue;  ///< what was written, or what was read
  /// On one clock that all clients share. An operation precedes another if it returned strictly
  /// before the other was invoked.
  std::int64_t invoked_ns = 0;
  std::int64_t returned_ns = kNeverReturned;
};

enum class Verdict : std::uint8_t {
  linearizable,
  violation,
  undecided,  ///< the search met its limit: the history is too concurrent to be decided
};

struct CheckOptions {
  /// Off: the search is used for every key. For tests of the one against the other.
  bool fast_path = true;
  /// States that the search may visit per key.
  std::size_t states_max = 4'000'000;
};

struct CheckReport {
  Verdict verdict = Verdict::linearizable;
  std::uint64_t key = 0;    ///< the key at fault
  std::string explanation;  ///< empty when linearizable; names the operations at fault
};

/// Checks `history`, in any order. A read that was not answered says nothing: leave it out. A write
/// that certainly never happened has to be left out as well: so a read that returns its value is a
/// violation. The first key at fault, in rising order, is reported.
///
/// Near-linear in time where the written values of a key are unique and not kInitialValue.
CheckReport check_linearizable(const std::vector<Operation>& history,
                               const CheckOptions& options = {});

/// "client 3 writes key 1 := 17 [12 345 678 ns .. never]".
std::string describe(const Operation& operation);

}  // namespace leasehold::sim
