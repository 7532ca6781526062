#include <leasehold/explore/bounds.h>

namespace leasehold::explore::beginning {
namespace {

/// "1 2 3".
std::string up_to(std::size_t last) {
  std::string all;
  for (std::size_t i = 1; i <= last; ++i) all += (i == 1 ? "" : " ") + std::to_string(i);
  return all;
}

/// A leader begins a round, and everything that follows arrives in the group of the first `nodes`.
/// From a node that does not lead yet, an election.
std::string round(std::size_t leader, std::size_t nodes) {
  return "pass, tick " + std::to_string(leader) + ", meet " + up_to(nodes) + ", ";
}

/// The leader, node 1, begins a round, and the last node's answer arrives, and is on its way still.
std::string round_with_a_late_answer(std::size_t nodes) {
  const std::string last = std::to_string(nodes);
  return "pass, tick 1, meet " + up_to(nodes - 1) + ", hear " + last + "<1 append, again 1<" +
         last + " append_reply";
}

}  // namespace

// The second round tells the others of the commit.
std::string led(std::size_t nodes) {
  return round(1, nodes) + round(1, nodes);
}

std::string one_away(std::size_t nodes) {
  return round(1, nodes - 1) + round(1, nodes - 1) + "lose, ";
}

std::string late_answer(std::size_t nodes) {
  return round(1, nodes) + round_with_a_late_answer(nodes) + ", ";
}

// Before each election all promises have ended.
std::string led_before(std::size_t nodes) {
  return led(nodes) + round_with_a_late_answer(nodes) + ", keep 1<" + std::to_string(nodes) +
         " append_reply, pass, pass, " + round(2, nodes) + round(2, nodes) + "pass, pass, " +
         round(1, nodes) + round(1, nodes);
}

}  // namespace leasehold::explore::beginning
