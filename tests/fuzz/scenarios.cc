// Scenario files, which are run. Apart from other texts, because a run takes a thousand times
// longer than a refusal. What is printed is what is printed again: a scenario that was rewritten
// passes.
#include <leasehold/story/scenario.h>
#include <leasehold/tests/fuzz/fuzz.h>
#include <leasehold/tests/fuzz/input.h>

#include <string>

namespace leasehold::fuzz {

void take(std::string_view input) {
  const auto scenario = story::parse_scenario("scenario", std::string(input));
  if (!accepted(scenario)) return;
  const auto silent = [](const story::Record&) {};
  const auto outcome = story::run_scenario(scenario.value(), silent);
  if (outcome.failed) return;
  const auto rewritten = story::parse_scenario("scenario", outcome.rewritten);
  LEASEHOLD_ASSERT(rewritten.ok());
  LEASEHOLD_ASSERT(story::run_scenario(rewritten.value(), silent).problems.empty());
}

}  // namespace leasehold::fuzz
