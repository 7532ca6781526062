#include <leasehold/explore/bounds.h>

#include <fmt/format.h>

namespace leasehold::explore::beginning {
namespace {

/// "1 2 3".
std::string up_to(std::size_t last) {
  std::string all;
  for (std::size_t i = 1; i <= last; ++i) all += fmt::format("{}{}", i == 1 ? "" : " ", i);
  return all;
}

/// A leader begins a round, and everything that follows arrives in the group of the first `nodes`.
/// From a node that does not lead yet, an election.
std::string round(std::size_t leader, std::size_t nodes) {
  return fmt::format("pass, tick {}, meet {}, ", leader, up_to(nodes));
}

/// Node 1, the leader, begins a round. The last node's answer arrives, and a copy is on its way.
std::string round_with_a_late_answer(std::size_t nodes) {
  return fmt::format("pass, tick 1, meet {0}, hear {1}<1 append, again 1<{1} append_reply",
                     up_to(nodes - 1), nodes);
}

}  // namespace

// The second round tells the others of the commit.
std::string led(std::size_t nodes) {
  return round(1, nodes) + round(1, nodes);
}

std::string one_away(std::size_t nodes) {
  return fmt::format("{}{}lose, ", round(1, nodes - 1), round(1, nodes - 1));
}

std::string late_answer(std::size_t nodes) {
  return fmt::format("{}{}, ", round(1, nodes), round_with_a_late_answer(nodes));
}

// Before each election all promises have ended.
std::string led_before(std::size_t nodes) {
  return fmt::format("{}{}, keep 1<{} append_reply, pass, pass, {}{}pass, pass, {}{}", led(nodes),
                     round_with_a_late_answer(nodes), nodes, round(2, nodes), round(2, nodes),
                     round(1, nodes), round(1, nodes));
}

// A member binds when its process has acknowledged a beat, so the leaders' second rounds ask for
// it; the beats behind them are the first that a lease may rest on.
std::string bound(std::size_t nodes, std::size_t groups) {
  std::string beats;
  for (std::size_t i = 1; i <= nodes; ++i) beats += fmt::format("beat {}, ", i);
  beats += fmt::format("meet {}, ", up_to(nodes));
  const auto round_of_second = [nodes] { return fmt::format("tick 2b, meet {}, ", up_to(nodes)); };
  std::string all = beats;
  for (int i = 0; i < 2; ++i) {
    all += round(1, nodes);
    if (groups > 1) all += round_of_second();
  }
  return all + "pass, " + beats + "tick 1, " + (groups > 1 ? "tick 2b, " : "");
}

}  // namespace leasehold::explore::beginning
