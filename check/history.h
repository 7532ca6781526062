// What clients did and saw: the operations that the linearizability checker judges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace leasehold::check {

enum class OperationKind : std::uint8_t {
  read,
  write,
  remove,   ///< of a key; it then holds Operation::kNothing
  compare,  ///< and set: writes `value` if the key holds `expected`
  append,   ///< `value` behind what the key holds
};

/// What an answer said in addition to its value.
enum class Outcome : std::uint8_t {
  untold,  ///< nothing: a remove that does not say whether there was something
  yes,     ///< a compare that wrote, a remove that found something
  no,      ///< a compare that found another value, a remove that found nothing
};

/// One operation of one client on one key, as the client saw it. Values and keys are numbers; what
/// they stand for may be kept in Texts.
struct Operation {
  /// The value of a key before its first write, and after a remove.
  static constexpr std::uint64_t kNothing = 0;
  /// The answer never came: the operation may take effect at any time after its call, or never.
  static constexpr std::int64_t kNeverReturned = std::numeric_limits<std::int64_t>::max();

  std::uint64_t client = 0;  ///< only for people
  std::uint64_t key = 0;
  OperationKind kind = OperationKind::read;
  std::uint64_t value = kNothing;  ///< what was written, or what was read
  /// On one clock that all clients share. An operation precedes another if it returned strictly
  /// before the other was invoked.
  std::int64_t invoked_ns = 0;
  std::int64_t returned_ns = kNeverReturned;
  std::uint64_t expected = kNothing;  ///< of a compare
  /// Of a compare and a remove. Means nothing when the answer never came.
  Outcome outcome = Outcome::untold;
  std::uint64_t line = 0;  ///< of the file that it was read from; 0: of none

  bool returned() const { return returned_ns != kNeverReturned; }
  /// Whether it changes nothing, wherever an order puts it.
  bool observes() const {
    return kind == OperationKind::read || (outcome == Outcome::no && returned());
  }
};

/// The strings that the numbers of a history stand for. A string that is the plain decimal form of
/// a number from 1 to 2^63 - 1 is that number; so histories of numbers need no table.
class Texts {
 public:
  /// Gives the same number for the same string; never Operation::kNothing.
  std::uint64_t number_of(std::string_view text);
  /// The string of a number that number_of() gave, or of one below 2^63.
  std::string text_of(std::uint64_t number) const;
  /// The number of the two strings joined; kNothing is an empty one.
  std::uint64_t joined(std::uint64_t front, std::uint64_t back);

 private:
  std::deque<std::string> strings_;  ///< never moves a string: `numbers_` points into it
  std::unordered_map<std::string_view, std::uint64_t> numbers_;
};

struct History {
  std::vector<Operation> operations;  ///< in any order
  Texts keys;
  Texts values;
};

/// "client 3 writes key 1 := 17 [12345678 .. never]". With `history` keys and values are named by
/// their texts, and a line that is known stands before it.
std::string describe(const Operation& operation, const History* history = nullptr);

}  // namespace leasehold::check
