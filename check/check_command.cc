#include <leasehold/base/result.h>
#include <leasehold/check/check_command.h>
#include <leasehold/check/history_file.h>
#include <leasehold/check/linearizability.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

namespace leasehold::check {

const char* const kCheckUsage =
    "usage: leasehold check HISTORY [options]\n"
    "Judges a recorded history: is there an order of its operations, each at some instant between\n"
    "its call and its answer, that explains every answer? HISTORY has one JSON object a line\n"
    "(docs/formats/history.md); - reads standard input. Exit status: 0 there is one, 1 there is\n"
    "none, 2 the file or the arguments are wrong, 3 undecided.\n"
    "  --states N          states that the search may visit per key, of 40 bytes each (default\n"
    "                      20000000); past it the verdict is `undecided`\n"
    "  --search            search also where sorting is enough\n"
    "  --json              the operations at fault as lines of a history\n"
    "  --quiet             no progress lines\n";

namespace {

constexpr int kLinearizable = 0, kViolation = 1, kBadInput = 2, kUndecided = 3;
constexpr std::size_t kReadBytes = 1U << 20U;
constexpr std::uint64_t kLinesPerNews = 1'000'000;
/// Operations of the piece at fault that are printed.
constexpr std::size_t kShownMax = 40;

struct Arguments {
  std::string file;
  CheckOptions options{true, 20'000'000, true, {}};
  bool json = false;
  bool quiet = false;
};

int fail(const std::string& message) {
  std::fprintf(stderr, "leasehold check: %s\n", message.c_str());
  return kBadInput;
}

std::string parse(const std::vector<std::string>& given, Arguments& arguments) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string& word = given[i];
    if (word == "--search") {
      arguments.options.fast_path = false;
    } else if (word == "--json") {
      arguments.json = true;
    } else if (word == "--quiet") {
      arguments.quiet = true;
    } else if (word == "--states") {
      if (i + 1 == given.size()) return "--states needs a number";
      const std::string& number = given[++i];
      const bool digits = !number.empty() && number.size() < 13 &&
                          number.find_first_not_of("0123456789") == std::string::npos;
      if (!digits || std::stoull(number) == 0) {
        return fmt::format("--states does not take `{}`", number);
      }
      arguments.options.states_max = static_cast<std::size_t>(std::stoull(number));
    } else if (word.size() > 1 && word[0] == '-') {
      return fmt::format("unknown option `{}`", word);
    } else if (!arguments.file.empty()) {
      return "one history at a time";
    } else {
      arguments.file = word;
    }
  }
  return arguments.file.empty() ? "which history?" : "";
}

/// Reads all of `file`.
Result<void> read(std::FILE* file, bool quiet, History& history) {
  HistoryReader reader(history);
  std::string rest;
  std::vector<char> buffer(kReadBytes);
  for (;;) {
    const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), file);
    if (got == 0) break;
    std::string_view part(buffer.data(), got);
    for (std::size_t end = part.find('\n'); end != std::string_view::npos; end = part.find('\n')) {
      std::string_view line = part.substr(0, end);
      if (!rest.empty()) line = rest.append(line);
      if (auto taken = reader.take(line); !taken) return taken;
      rest.clear();
      part.remove_prefix(end + 1);
      if (!quiet && reader.lines() % kLinesPerNews == 0) {
        std::fprintf(stderr, "%llu lines read\n", static_cast<unsigned long long>(reader.lines()));
      }
    }
    rest.append(part);
    if (rest.size() > HistoryReader::kLineBytesMax) return reader.take(rest);
  }
  if (std::ferror(file) != 0) return Error{ErrorCode::io, std::strerror(errno)};
  return rest.empty() ? Result<void>{} : reader.take(rest);
}

std::string counted(std::size_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::size_t count_keys(const std::vector<Operation>& operations) {
  std::vector<std::uint64_t> keys;
  for (const Operation& operation : operations) {
    if (keys.empty() || keys.back() != operation.key) keys.push_back(operation.key);
  }
  std::sort(keys.begin(), keys.end());
  return static_cast<std::size_t>(std::unique(keys.begin(), keys.end()) - keys.begin());
}

void show_violation(const CheckReport& report, const History& history) {
  const std::string key = history.keys.text_of(report.key);
  std::printf("not linearizable: key %s\n", key.c_str());
  const std::vector<Operation>& piece = report.piece;
  if (piece.empty()) {
    std::printf("%s\n", report.explanation.c_str());
    return;
  }
  std::int64_t begin = piece.front().invoked_ns;
  std::int64_t end = begin;
  for (const Operation& operation : piece) {
    begin = std::min(begin, operation.invoked_ns);
    end = std::max(end, operation.returned() ? operation.returned_ns : operation.invoked_ns);
  }
  std::printf("%s between %lld and %lld %s no order; > is the one that cannot be placed:\n",
              counted(piece.size(), "operation", "operations").c_str(),
              static_cast<long long>(begin), static_cast<long long>(end),
              piece.size() == 1 ? "has" : "have");
  for (std::size_t i = 0; i < piece.size(); ++i) {
    if (i == kShownMax && report.unplaced >= kShownMax) {
      std::printf("> %s\n", describe(piece[report.unplaced], &history).c_str());
    }
    if (i >= kShownMax) break;
    std::printf("%c %s\n", i == report.unplaced ? '>' : ' ', describe(piece[i], &history).c_str());
  }
  if (piece.size() > kShownMax) {
    std::printf("  and %zu more; --json prints them all\n", piece.size() - kShownMax);
  }
  std::printf("why: %s\n", report.explanation.c_str());
}

int judge(History& history, Arguments& arguments) {
  if (!arguments.quiet) {
    arguments.options.progress = [](const CheckProgress& progress) {
      std::fprintf(stderr, "%zu of %zu keys checked, %zu of %zu operations", progress.keys,
                   progress.keys_all, progress.operations, progress.operations_all);
      if (progress.states > 0) std::fprintf(stderr, "; %zu states of the next", progress.states);
      std::fprintf(stderr, "\n");
    };
  }
  const CheckReport report = check_linearizable(history, arguments.options);
  switch (report.verdict) {
    case Verdict::linearizable:
      std::printf("linearizable: %s on %s\n",
                  counted(history.operations.size(), "operation", "operations").c_str(),
                  counted(count_keys(history.operations), "key", "keys").c_str());
      return kLinearizable;
    case Verdict::undecided:
      std::printf("undecided: key %s: %s (--states)\n", history.keys.text_of(report.key).c_str(),
                  report.explanation.c_str());
      return kUndecided;
    case Verdict::violation: break;
  }
  if (arguments.json) {
    for (const Operation& operation : report.piece) {
      std::printf("%s\n", line_of(operation, history).c_str());
    }
    return kViolation;
  }
  show_violation(report, history);
  return kViolation;
}

}  // namespace

int run_check_command(const std::vector<std::string>& given) {
  for (const std::string& word : given) {
    if (word != "--help" && word != "-h") continue;
    std::printf("%s", kCheckUsage);
    return 0;
  }
  Arguments arguments;
  const std::string wrong = parse(given, arguments);
  if (!wrong.empty()) return fail(fmt::format("{}\n{}", wrong, kCheckUsage));
  History history;
  std::FILE* file = arguments.file == "-" ? stdin : std::fopen(arguments.file.c_str(), "rb");
  if (file == nullptr) return fail(fmt::format("{}: {}", arguments.file, std::strerror(errno)));
  const Result<void> done = read(file, arguments.quiet, history);
  if (file != stdin) std::fclose(file);
  if (!done) return fail(fmt::format("{}: {}", arguments.file, done.error().message));
  return judge(history, arguments);
}

}  // namespace leasehold::check
