// Scenario files: prose, commands over a few bare cores, and what they print, in one text.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/story/record.h>

#include <cstddef>
#include <string>
#include <vector>

namespace leasehold::story {

/// A command of a scenario and what the file says that it prints.
struct ScenarioCommand {
  std::size_t line = 0;  ///< in the file, from 1
  std::string text;
  std::vector<std::string> expected;
};

/// A scenario file as its parts. docs/scenarios/README.md describes the format.
struct ScenarioFile {
  std::string name;   ///< of the file, for messages
  std::string title;  ///< the first line, without its #
  std::vector<std::string> lines;
  std::vector<ScenarioCommand> commands;
};

/// Bytes of one scenario file, and commands in it.
inline constexpr std::size_t kScenarioBytesMax = 1U << 20U;
inline constexpr std::size_t kScenarioCommandsMax = 10'000;

/// Errors name the file, the line and what is allowed there.
Result<ScenarioFile> parse_scenario(const std::string& name, const std::string& text);

struct ScenarioOutcome {
  /// What went wrong, each with file and line; empty if the file says exactly what happens.
  std::vector<std::string> problems;
  /// Whether a command failed or an `expect` did not hold: rewriting the file does not help then.
  bool failed = false;
  /// The file with the output as it is.
  std::string rewritten;
};

/// Runs the commands against real cores and compares. `sink` gets every record. Deterministic.
ScenarioOutcome run_scenario(const ScenarioFile& file, const Sink& sink);

}  // namespace leasehold::story
