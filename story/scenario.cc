#include <leasehold/story/scenario.h>
#include <leasehold/story/script.h>

#include <fmt/format.h>

#include <utility>

namespace leasehold::story {
namespace {

constexpr const char* kCommandMark = "> ";
constexpr const char* kOutputMark = "  ";

bool begins(const std::string& text, const std::string& with) {
  return text.compare(0, with.size(), with) == 0;
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) end = text.size();
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

Error at(const std::string& name, std::size_t line, const std::string& what) {
  return Error{ErrorCode::malformed, fmt::format("{}:{}: {}", name, line, what)};
}

std::string too_long() {
  return fmt::format("a scenario has at most {} bytes", kScenarioBytesMax);
}

std::string listed(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "\n    " + line;
  return text;
}

}  // namespace

Result<ScenarioFile> parse_scenario(const std::string& name, const std::string& text) {
  ScenarioFile file;
  file.name = name;
  if (text.size() > kScenarioBytesMax) {
    return at(name, 1, too_long());
  }
  file.lines = split_lines(text);
  bool source = false;
  bool in_command = false;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string& line = file.lines[i];
    if (begins(line, "Source: ") && line.size() > 8) source = true;
    if (begins(line, kCommandMark)) {
      if (file.commands.size() == kScenarioCommandsMax) {
        return at(name, i + 1,
                  fmt::format("a scenario has at most {} commands", kScenarioCommandsMax));
      }
      file.commands.push_back({i + 1, line.substr(2), {}});
      in_command = true;
    } else if (begins(line, kOutputMark)) {
      if (!in_command) {
        return at(name, i + 1,
                  "output without a command: an indented line stands only below a line that "
                  "begins with `> `");
      }
      file.commands.back().expected.push_back(line.substr(2));
    } else if (begins(line, ">")) {
      return at(name, i + 1, "a command begins with `> `: a blank after the `>`");
    } else {
      in_command = false;
    }
  }
  if (file.lines.empty() || !begins(file.lines[0], "# ")) {
    return at(name, 1, "the first line is the title and begins with `# `");
  }
  file.title = file.lines[0].substr(2);
  if (!source) {
    return at(name, file.lines.size(),
              "no line begins with `Source: `: say where the story is from");
  }
  if (file.commands.empty()) {
    return at(name, file.lines.size(), "no line begins with `> `: a scenario has commands");
  }
  return file;
}

ScenarioOutcome run_scenario(const ScenarioFile& file, const Sink& sink) {
  ScenarioOutcome outcome;
  Script script(file.title, sink);
  std::size_t next = 0;
  for (const ScenarioCommand& command : file.commands) {
    for (; next < command.line; ++next) outcome.rewritten += file.lines[next] + "\n";
    next += command.expected.size();
    const std::string where = fmt::format("{}:{}: ", file.name, command.line);
    const Result<void> done = script.run(command.text);
    std::vector<std::string> got = script.take_output();
    if (got.empty()) got.emplace_back("nothing");
    for (const std::string& line : got) {
      outcome.rewritten += fmt::format("{}{}\n", kOutputMark, line);
    }
    if (!done) {
      outcome.failed = true;
      outcome.problems.push_back(where + done.error().message);
      break;
    }
    if (got != command.expected) {
      outcome.problems.push_back(fmt::format(
          "{}`{}` prints\n{}\n  and not{}", where, command.text, listed(got).substr(1),
          command.expected.empty() ? " (the file has no output here)" : listed(command.expected)));
    }
  }
  for (; next < file.lines.size(); ++next) outcome.rewritten += file.lines[next] + "\n";
  if (!outcome.failed && outcome.rewritten.size() > kScenarioBytesMax) {
    outcome.failed = true;
    outcome.problems.push_back(fmt::format("{}: {} with what it prints", file.name, too_long()));
  }
  return outcome;
}

}  // namespace leasehold::story
