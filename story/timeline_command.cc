#include <leasehold/story/cluster_view.h>
#include <leasehold/story/files.h>
#include <leasehold/story/scenario.h>
#include <leasehold/story/span.h>
#include <leasehold/story/timeline.h>
#include <leasehold/story/timeline_command.h>

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <utility>

namespace leasehold::story {

const char* const kTimelineUsage =
    "usage: leasehold timeline FILE [options]\n"
    "Draws a trace (leasehold sim --trace) or a scenario as an SVG: one lane a node over\n"
    "true time, with roles, promises, leases and the acknowledgements that move them, votes,\n"
    "reads and faults.\n"
    "  -o, --output FILE   where to (default: standard output)\n"
    "  --from T, --until T only this part, as 600ms or 12.5s of true time\n"
    "  --width N           of the picture in pixels (default 1160)\n";

namespace {

struct Arguments {
  std::string file;
  std::string output;
  TimelineOptions options;
};

std::string parse(const std::vector<std::string>& given, Arguments& arguments) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string& name = given[i];
    if (name.compare(0, 1, "-") != 0) {
      if (!arguments.file.empty()) return "one file, please";
      arguments.file = name;
      continue;
    }
    const bool known = name == "-o" || name == "--output" || name == "--from" ||
                       name == "--until" || name == "--width";
    if (!known) return fmt::format("unknown option `{}`", name);
    if (i + 1 == given.size()) return name + " needs a value";
    const std::string& value = given[++i];
    if (name == "-o" || name == "--output") {
      arguments.output = value;
    } else if (name == "--width") {
      const auto width = parse_span(value + "ms");
      if (!width || width->count() < 400'000'000 || width->count() > 20'000'000'000) {
        return "--width takes 400 to 20000";
      }
      arguments.options.width = width->count() / 1'000'000;
    } else {
      const auto span = parse_span(value);
      if (!span) return fmt::format("{} does not take `{}`; allowed: 600ms, 12.5s", name, value);
      (name == "--from" ? arguments.options.from : arguments.options.until) = *span;
    }
  }
  return arguments.file.empty() ? "which file?" : "";
}

bool is_scenario(const std::string& text) {
  return text.compare(0, 1, "#") == 0;
}

Result<std::vector<Record>> records_of(const std::string& name) {
  const Result<std::string> text = read_file(name);
  if (!text) return text.error();
  if (!is_scenario(text.value())) return decode_any_trace(name, text.value());
  const Result<ScenarioFile> file = parse_scenario(name, text.value());
  if (!file) return file.error();
  std::vector<Record> records;
  const ScenarioOutcome outcome =
      run_scenario(file.value(), [&records](const Record& r) { records.push_back(r); });
  if (outcome.failed) return Error{ErrorCode::malformed, outcome.problems.back()};
  return records;
}

int fail(const std::string& message) {
  std::fprintf(stderr, "leasehold timeline: %s\n", message.c_str());
  return 2;
}

}  // namespace

int run_timeline_command(const std::vector<std::string>& given) {
  for (const std::string& word : given) {
    if (word != "--help" && word != "-h") continue;
    std::printf("%s", kTimelineUsage);
    return 0;
  }
  Arguments arguments;
  const std::string wrong = parse(given, arguments);
  if (!wrong.empty()) return fail(fmt::format("{}\n{}", wrong, kTimelineUsage));
  const auto records = records_of(arguments.file);
  if (!records) return fail(records.error().message);
  const auto timeline = make_timeline(records.value(), arguments.options);
  if (!timeline) return fail(timeline.error().message);
  const std::string picture = draw_timeline(timeline.value(), arguments.options);
  if (arguments.output.empty()) {
    std::fwrite(picture.data(), 1, picture.size(), stdout);
    return 0;
  }
  const Result<void> done = write_file(arguments.output, picture);
  return done ? 0 : fail(done.error().message);
}

}  // namespace leasehold::story
