#include <leasehold/story/files.h>
#include <leasehold/story/scenario.h>
#include <leasehold/story/scenario_command.h>
#include <leasehold/story/script.h>
#include <leasehold/story/teller.h>

#include <cstdio>

namespace leasehold::story {

const char* const kScenarioUsage =
    "usage: leasehold scenario FILE... [options]\n"
    "Runs the commands of scenario files on real cores and compares what they print with what the\n"
    "files say. docs/scenarios/README.md describes the files.\n"
    "  --rewrite           write the files anew, with the output as it is; look at the "
    "difference!\n"
    "  --story             tell the whole run of each file, event by event\n"
    "  --help              this, and every command that a file may have\n";

namespace {

struct Arguments {
  std::vector<std::string> files;
  bool rewrite = false;
  bool story = false;
};

std::string parse(const std::vector<std::string>& given, Arguments& arguments) {
  for (const std::string& word : given) {
    if (word == "--rewrite") {
      arguments.rewrite = true;
    } else if (word == "--story") {
      arguments.story = true;
    } else if (word.compare(0, 1, "-") == 0) {
      return "unknown option `" + word + "`";
    } else {
      arguments.files.push_back(word);
    }
  }
  return arguments.files.empty() ? "which file?" : "";
}

/// 0, 1 or 2, as run_scenario_command().
int run_file(const std::string& name, const Arguments& arguments) {
  const Result<std::string> text = read_file(name);
  if (!text) {
    std::fprintf(stderr, "leasehold scenario: %s\n", text.error().message.c_str());
    return 2;
  }
  const Result<ScenarioFile> file = parse_scenario(name, text.value());
  if (!file) {
    std::fprintf(stderr, "%s\n", file.error().message.c_str());
    return 2;
  }
  Teller teller([](const std::string& line) { std::printf("%s\n", line.c_str()); });
  teller.set_detail(Detail::full);
  const ScenarioOutcome outcome = run_scenario(file.value(), [&](const Record& record) {
    if (arguments.story) teller.tell(record);
  });
  const bool rewrite = arguments.rewrite && !outcome.failed && !outcome.problems.empty();
  if (rewrite) {
    if (const Result<void> done = write_file(name, outcome.rewritten); !done) {
      std::fprintf(stderr, "leasehold scenario: %s\n", done.error().message.c_str());
      return 2;
    }
    std::printf("%s: written anew, %zu commands print something else\n", name.c_str(),
                outcome.problems.size());
    return 0;
  }
  for (const std::string& problem : outcome.problems) std::printf("%s\n", problem.c_str());
  if (outcome.problems.empty() && !arguments.story) {
    std::printf("%s: as it says (%zu commands)\n", name.c_str(), file.value().commands.size());
  }
  return outcome.problems.empty() ? 0 : 1;
}

}  // namespace

int run_scenario_command(const std::vector<std::string>& given) {
  for (const std::string& word : given) {
    if (word != "--help" && word != "-h") continue;
    std::printf("%s\ncommands of a scenario file:\n%s", kScenarioUsage, Script::help().c_str());
    return 0;
  }
  Arguments arguments;
  const std::string wrong = parse(given, arguments);
  if (!wrong.empty()) {
    std::fprintf(stderr, "leasehold scenario: %s\n%s", wrong.c_str(), kScenarioUsage);
    return 2;
  }
  int status = 0;
  for (const std::string& file : arguments.files) {
    const int result = run_file(file, arguments);
    if (result > status) status = result;
  }
  return status;
}

}  // namespace leasehold::story
