// Scenario files, which are run. Apart from other texts, because a run takes a thousand times
// longer than a refusal. What is printed is what is printed again: a scenario that was rewritten
// passes.
#include <leasehold/story/scenario.h>
#include <leasehold/story/span.h>
#include <leasehold/tests/fuzz/fuzz.h>
#include <leasehold/tests/fuzz/input.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <string>

namespace leasehold::fuzz {
namespace {

/// How long the clusters of one input may live, in intervals of their timers, all nodes added up. A
/// longer life shows nothing new, and costs as much as a hundred other inputs.
constexpr int kLifeMax = 120;
/// Nobody's interval is longer here: then two seconds of three nodes are enough for every timer to
/// fire.
constexpr lease::Duration kIntervalMax = std::chrono::milliseconds(50);

/// An input's times as its words say them.
struct Life {
  lease::Duration sum{0};  ///< what `run 2s` and its like let pass at most
  lease::Duration interval = kIntervalMax;
  int nodes = 3;  ///< the most
  int groups = 1;

  void take(const std::string& command) {
    std::istringstream words(command);
    std::string before;
    for (std::string word; words >> word; before = word) {
      if (before == "nodes" && word.size() == 1) nodes = std::max(nodes, word[0] - '0');
      sum += story::parse_span(word).value_or(lease::Duration(0));
      const std::size_t equals = word.find('=');
      const std::string name = word.substr(0, equals);
      if (name == "groups" && word.size() == equals + 2) {
        groups = std::max(groups, word.back() - '0');
      }
      if (equals == std::string::npos || (name != "heartbeat" && name != "election")) continue;
      const auto span = story::parse_span(word.substr(equals + 1));
      if (span) interval = std::min(interval, *span);
    }
  }
  bool short_enough() const { return sum <= kLifeMax * interval / (nodes * groups); }
};

/// Chance decides a length, so one input in four is run again; its neighbours are its like.
bool judged_twice(std::string_view input) {
  return input.size() % 4 == 0;
}

}  // namespace

void take(std::string_view input) {
  const auto scenario = story::parse_scenario("scenario", std::string(input));
  if (!accepted(scenario)) return;
  Life life;
  for (const auto& command : scenario.value().commands) life.take(command.text);
  if (!life.short_enough()) return;
  const auto silent = [](const story::Record&) {};
  const auto outcome = story::run_scenario(scenario.value(), silent);
  if (outcome.failed || !judged_twice(input)) return;
  const auto rewritten = story::parse_scenario("scenario", outcome.rewritten);
  LEASEHOLD_ASSERT(rewritten.ok());
  LEASEHOLD_ASSERT(story::run_scenario(rewritten.value(), silent).problems.empty());
}

}  // namespace leasehold::fuzz
