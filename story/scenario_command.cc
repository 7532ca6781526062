#include <leasehold/story/files.h>
#include <leasehold/story/scenario.h>
#include <leasehold/story/scenario_command.h>
#include <leasehold/story/script.h>
#include <leasehold/story/telling.h>

#include <fmt/format.h>

#include <cstdio>

namespace leasehold::story {

const char* const kScenarioUsage =
    "usage: leasehold scenario FILE... [options]\n"
    "Runs the commands of scenario files on real cores and compares what they print with what the\n"
    "files say. docs/scenarios/README.md describes the files.\n"
    "  --rewrite           rewrite the files with the present output; look at the difference!\n"
    "  --help              this, and every command that a file may have\n";

namespace {

struct Arguments {
  std::vector<std::string> files;
  bool rewrite = false;
  TellingOptions telling;
};

std::string parse(const std::vector<std::string>& given, Arguments& arguments) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string& word = given[i];
    if (const auto wrong = take_telling_option(given, i, arguments.telling)) {
      if (!wrong->empty()) return *wrong;
    } else if (word == "--rewrite") {
      arguments.rewrite = true;
    } else if (word.compare(0, 1, "-") == 0) {
      return fmt::format("unknown option `{}`", word);
    } else {
      arguments.files.push_back(word);
    }
  }
  if (arguments.files.size() > 1 && !arguments.telling.trace.empty()) {
    return "--trace writes the run of one file";
  }
  return arguments.files.empty() ? "which file?" : "";
}

int fail(const std::string& message) {
  std::fprintf(stderr, "leasehold scenario: %s\n", message.c_str());
  return 2;
}

/// 0, 1 or 2, as run_scenario_command().
int run_file(const std::string& name, const Arguments& arguments) {
  const Result<std::string> text = read_file(name);
  if (!text) return fail(text.error().message);
  const Result<ScenarioFile> file = parse_scenario(name, text.value());
  if (!file) {
    std::fprintf(stderr, "%s\n", file.error().message.c_str());
    return 2;
  }
  Telling telling(arguments.telling);
  Result<void> told = telling.open();
  if (!told) return fail(told.error().message);
  const ScenarioOutcome outcome =
      run_scenario(file.value(), [&telling](const Record& record) { telling.take(record); });
  told = telling.finish();
  if (!told) return fail(told.error().message);
  const bool rewrite = arguments.rewrite && !outcome.failed && !outcome.problems.empty();
  if (rewrite) {
    const Result<void> done = write_file(name, outcome.rewritten);
    if (!done) return fail(done.error().message);
    std::printf("%s: rewritten, %zu commands print something else\n", name.c_str(),
                outcome.problems.size());
    return 0;
  }
  for (const std::string& problem : outcome.problems) std::printf("%s\n", problem.c_str());
  if (outcome.problems.empty() && !arguments.telling.story) {
    std::printf("%s: as it says (%zu commands)\n", name.c_str(), file.value().commands.size());
  }
  return outcome.problems.empty() ? 0 : 1;
}

}  // namespace

int run_scenario_command(const std::vector<std::string>& given) {
  for (const std::string& word : given) {
    if (word != "--help" && word != "-h") continue;
    std::printf("%s%s\ncommands of a scenario file:\n%s", kScenarioUsage, kTellingUsage,
                Script::help().c_str());
    return 0;
  }
  Arguments arguments;
  const std::string wrong = parse(given, arguments);
  if (!wrong.empty()) {
    return fail(fmt::format("{}\n{}{}", wrong, kScenarioUsage, kTellingUsage));
  }
  int status = 0;
  for (const std::string& file : arguments.files) {
    const int result = run_file(file, arguments);
    if (result > status) status = result;
  }
  return status;
}

}  // namespace leasehold::story
