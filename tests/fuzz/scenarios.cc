// Scenario files, which are run. Apart from other texts, because a run takes a thousand times
// longer than a refusal. What is printed is what is printed again: a scenario that was rewritten
// passes.
#include <leasehold/story/scenario.h>
#include <leasehold/story/span.h>
#include <leasehold/tests/fuzz/fuzz.h>
#include <leasehold/tests/fuzz/input.h>

#include <chrono>
#include <sstream>
#include <string>

namespace leasehold::fuzz {
namespace {

/// Time that the clusters of one input may live. A minute of a cluster's life is ten thousand times
/// the same, and costs what a hundred other inputs do.
constexpr lease::Duration kLifeMax = std::chrono::seconds(10);

/// What the times in the command, as in `run 2s`, let pass at most.
lease::Duration life(const std::string& command) {
  lease::Duration sum(0);
  std::istringstream words(command);
  for (std::string word; words >> word;)
    sum += story::parse_span(word).value_or(lease::Duration(0));
  return sum;
}

}  // namespace

void take(std::string_view input) {
  const auto scenario = story::parse_scenario("scenario", std::string(input));
  if (!accepted(scenario)) return;
  lease::Duration sum(0);
  for (const auto& command : scenario.value().commands) sum += life(command.text);
  if (sum > kLifeMax) return;
  const auto silent = [](const story::Record&) {};
  const auto outcome = story::run_scenario(scenario.value(), silent);
  if (outcome.failed) return;
  const auto rewritten = story::parse_scenario("scenario", outcome.rewritten);
  LEASEHOLD_ASSERT(rewritten.ok());
  LEASEHOLD_ASSERT(story::run_scenario(rewritten.value(), silent).problems.empty());
}

}  // namespace leasehold::fuzz
