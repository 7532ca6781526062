#include <leasehold/lab/lab_command.h>
#include <leasehold/lab/recording.h>
#include <leasehold/story/cluster_view.h>
#include <leasehold/story/files.h>
#include <leasehold/story/scenario.h>

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>

namespace leasehold::lab {

const char* const kLabUsage =
    "usage: leasehold lab [--trace FILE] [options]\n"
    "The lease lab is a page for browsers in which the core of this program runs, with\n"
    "simulated clocks, disks and links (docs/lab.md). Without options: says where it is.\n"
    "  --trace FILE        write a copy of the page that shows this trace (of leasehold sim, or\n"
    "                      of a running group by leasehold trace), or this scenario\n"
    "  -o, --out PAGE      where to (default: FILE.html)\n"
    "  --page PAGE         the page to copy, if it is not installed\n";

namespace {

namespace fs = std::filesystem;

struct Arguments {
  std::string trace;
  std::string out;
  std::string page;
};

std::string parse(const std::vector<std::string>& given, Arguments& arguments) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string& name = given[i];
    std::string* value = nullptr;
    if (name == "--trace") value = &arguments.trace;
    if (name == "-o" || name == "--out") value = &arguments.out;
    if (name == "--page") value = &arguments.page;
    if (value == nullptr) return fmt::format("`{}` is no option", name);
    if (i + 1 == given.size() || given[i + 1].empty()) return name + " needs a file";
    if (!value->empty()) return name + " stands twice";
    *value = given[++i];
  }
  if (arguments.out.empty() && !arguments.trace.empty()) arguments.out = arguments.trace + ".html";
  return "";
}

/// Beside the program where it is installed, or where `make lab` builds it.
std::optional<std::string> find_page() {
  std::error_code failed;
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
  if (failed) return std::nullopt;
  for (const char* place : {"../share/leasehold/lease-lab.html", "../../lab/lease-lab.html"}) {
    const fs::path page = (program.parent_path() / place).lexically_normal();
    if (fs::is_regular_file(page, failed)) return page.string();
  }
  return std::nullopt;
}

Result<std::vector<story::Record>> records_of(const std::string& name) {
  const Result<std::string> text = story::read_file(name);
  if (!text) return text.error();
  if (text.value().compare(0, 1, "#") != 0) return story::decode_any_trace(name, text.value());
  const Result<story::ScenarioFile> file = story::parse_scenario(name, text.value());
  if (!file) return file.error();
  std::vector<story::Record> records;
  const story::ScenarioOutcome outcome = story::run_scenario(
      file.value(), [&records](const story::Record& record) { records.push_back(record); });
  if (outcome.failed) return Error{ErrorCode::malformed, outcome.problems.back()};
  return records;
}

int fail(const std::string& message) {
  std::fprintf(stderr, "leasehold lab: %s\n", message.c_str());
  return 2;
}

bool same_file(const std::string& one, const std::string& other) {
  std::error_code failed;
  return fs::equivalent(one, other, failed) && !failed;
}

int write_page(const Arguments& arguments, const std::string& name) {
  if (same_file(arguments.out, name) || same_file(arguments.out, arguments.trace)) {
    return fail(arguments.out + " would be written over what is read: choose another --out");
  }
  const Result<std::string> page = story::read_file(name);
  if (!page) return fail(page.error().message);
  std::string written = page.value();
  std::size_t count = 0;
  if (!arguments.trace.empty()) {
    const auto records = records_of(arguments.trace);
    if (!records) return fail(records.error().message);
    const auto recorded = page_with_recording(written, records.value());
    if (!recorded) {
      const bool of_page = recorded.error().code == ErrorCode::malformed;
      return fail(fmt::format("{}{}{}", of_page ? name : arguments.trace, of_page ? " " : ": ",
                              recorded.error().message));
    }
    written = recorded.value();
    count = records.value().size();
  }
  const Result<void> done = story::write_file(arguments.out, written);
  if (!done) return fail(done.error().message);
  std::printf("%s shows %s: open it in a browser\n", arguments.out.c_str(),
              arguments.trace.empty() ? "the lab" : fmt::format("{} records", count).c_str());
  return 0;
}

}  // namespace

int run_lab_command(const std::vector<std::string>& given) {
  for (const std::string& word : given) {
    if (word != "--help" && word != "-h") continue;
    std::printf("%s", kLabUsage);
    return 0;
  }
  Arguments arguments;
  const std::string wrong = parse(given, arguments);
  if (!wrong.empty()) return fail(fmt::format("{}\n{}", wrong, kLabUsage));
  std::string page = arguments.page;
  if (page.empty()) {
    const std::optional<std::string> found = find_page();
    if (!found) {
      return fail(
          "the page is not installed. `make lab` in the source of this program builds "
          "build/lab/lease-lab.html; name it by --page, or install the program again");
    }
    page = *found;
  }
  if (!arguments.out.empty()) return write_page(arguments, page);
  std::printf("The lab is %s: open it in a browser\n", page.c_str());
  return 0;
}

}  // namespace leasehold::lab
