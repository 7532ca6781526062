// `leasehold trace`: records the protocol of a running group for a bug report, and prints what was
// recorded.
#include <leasehold/cli/commands.h>
#include <leasehold/cli/ending_signals.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/cli/leader.h>
#include <leasehold/cli/trace_recording.h>
#include <leasehold/server/front/duration.h>
#include <leasehold/server/front/words.h>
#include <leasehold/story/cluster_view.h>
#include <leasehold/story/files.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace leasehold::cli {
namespace {

constexpr const char* kTraceText = R"(
Asks each node to record what its replica of one group sends, receives and decides, and writes one
file for a bug report: messages, roles, terms, votes, leases, promises, commits, each on the clock
of the node that saw it, and how these clocks stand to each other. Ctrl-C ends it early with what
there is. A node that dies is recorded up to then, and again when it is back; what is missing is
in the file. Keys, values and credentials are not.
A node records only while it is asked; meanwhile each message costs it some microseconds.

  leasehold trace --print FILE       the same as text, one line an event, in the order of time
  leasehold lab --trace FILE         a page for browsers that draws it

Exit status: 0 written, 2 a flag is wrong, 4 no node recorded anything.

Examples:
  leasehold trace --servers 10.0.0.1:7201,10.0.0.2:7201,10.0.0.3:7201 --out slow.trace
  leasehold trace --print slow.trace --kind role,vote,refusal,lease_lost
  leasehold trace --print slow.trace --node 2 --from 1s --until 1500ms)";

using std::chrono::milliseconds;

constexpr std::int64_t kSecondsMax = 600;
constexpr milliseconds kLookForSignals{50};

struct WantedTrace {
  std::vector<std::string> servers;
  milliseconds span{10'000};
  bool span_given = false;
  std::string out;
  std::string print;
  bool filtered = false;
  story::ViewFilter filter;
};

Error unusable(const std::string& text) {
  return Error{ErrorCode::invalid_argument, text};
}

// ---- To record ----

/// Before minutes of recording are lost: whether the file can be written. It is made if it is not
/// there; `made` says so.
Result<void> try_file(const std::string& name, bool& made) {
  std::error_code failed;
  made = !std::filesystem::exists(name, failed);
  if (!std::filesystem::is_directory(name, failed) && std::ofstream(name, std::ios::app)) return {};
  return unusable(name + " cannot be written; is its folder there, and yours?");
}

void watch_recording(TraceRecording& recording, const EndingSignals& signals, milliseconds span) {
  const auto begin = std::chrono::steady_clock::now();
  auto next = std::chrono::seconds(1);
  while (!recording.over()) {
    if (signals.next_ending(kLookForSignals) != 0) {
      std::cerr << "leasehold trace: ending early" << std::endl;
      return recording.stop();
    }
    const auto gone = std::chrono::steady_clock::now() - begin;
    if (gone < next) continue;
    next = std::chrono::floor<std::chrono::seconds>(gone) + std::chrono::seconds(1);
    const auto whole = std::chrono::ceil<std::chrono::seconds>(span);
    const auto shown = std::min(std::chrono::floor<std::chrono::seconds>(gone), whole);
    std::cerr << fmt::format("recording {} node{}: {} s of {} s, {} records", recording.recording(),
                             recording.recording() == 1 ? "" : "s", shown.count(), whole.count(),
                             recording.records())
              << std::endl;
  }
}

void warn_of_gaps(const story::ClusterTrace& trace) {
  for (const story::TraceMissing& missing : trace.missing) {
    std::cerr << "leasehold trace: missing: " << missing.server << ": " << missing.text << "\n";
  }
  for (const story::TracePart& part : trace.parts) {
    if (part.ended == "lost") {
      std::cerr << fmt::format("leasehold trace: the recording of node {} broke off: {}\n",
                               part.node.value(), part.text);
    }
    if (part.dropped > 0) {
      std::cerr << fmt::format(
          "leasehold trace: node {} dropped {} records: it had more than "
          "could be fetched\n",
          part.node.value(), part.dropped);
    }
  }
}

int record(const WantedTrace& wanted) {
  bool made = false;
  if (const auto usable = try_file(wanted.out, made); !usable) {
    return fail("trace", usable.error().message, kUsage);
  }
  // Before the threads, which inherit what it blocks.
  const EndingSignals signals;
  story::ClusterTrace trace;
  {
    TraceRecording recording(wanted.servers, wanted.span);
    watch_recording(recording, signals, wanted.span);
    trace = recording.finish();
  }
  warn_of_gaps(trace);
  std::size_t records = 0;
  for (const story::TracePart& part : trace.parts) records += part.records.size();
  if (trace.parts.empty()) {
    std::error_code ignored;
    if (made) std::filesystem::remove(wanted.out, ignored);
    return fail("trace", "no node recorded anything, and nothing was written", kNotExecuted);
  }
  const Result<void> written = story::write_file(wanted.out, story::encode_cluster_trace(trace));
  if (!written) return fail("trace", written.error().message, kNotExecuted);
  std::printf("%s has %zu records of %zu recording%s; leasehold lab --trace %s draws it\n",
              wanted.out.c_str(), records, trace.parts.size(), trace.parts.size() == 1 ? "" : "s",
              wanted.out.c_str());
  return 0;
}

// ---- To print ----

int print(const WantedTrace& wanted) {
  const Result<std::string> text = story::read_file(wanted.print);
  if (!text) return fail("trace", text.error().message, kUsage);
  const auto trace = story::decode_cluster_trace(wanted.print, text.value());
  if (!trace) return fail("trace", trace.error().message, kUsage);
  const story::ClockAlignment alignment = story::align_clocks(trace.value());
  for (const std::string& line : story::summary_of(trace.value(), alignment)) {
    std::cout << "# " << story::printable(line) << "\n";
  }
  std::cout << "# lost: a message was sent, and no recording shows that it arrived\n";
  std::size_t shown = 0;
  for (const story::Record& record : story::view_of(trace.value(), alignment)) {
    const bool of_summary = record.kind == story::Kind::mark && record.node == raft::kNobody;
    if (of_summary || !wanted.filter.passes(record)) continue;
    std::cout << story::line_of(record) << "\n";
    ++shown;
  }
  std::cout << "# " << shown << " events" << (wanted.filtered ? " pass the filters" : "") << "\n";
  return 0;
}

int trace(const WantedTrace& wanted) {
  if (wanted.print.empty()) {
    if (wanted.filtered) return misused("trace", "--node, --kind, --from and --until need --print");
    if (wanted.servers.empty()) return misused("trace", "--servers is required, or --print FILE");
    if (wanted.out.empty()) return misused("trace", "--out is required: the file to write");
    return record(wanted);
  }
  if (!wanted.servers.empty() || !wanted.out.empty() || wanted.span_given) {
    return misused("trace", "--print reads a file: leave out --servers, --seconds and --out");
  }
  return print(wanted);
}

void add_filters(Flags& flags, const std::shared_ptr<WantedTrace>& wanted) {
  Flag node{"--node", "N,...", "With --print: only what these nodes saw, or what concerns them"};
  node.repeated = true;
  flags.add(node, [wanted](const std::string& text) -> Result<void> {
    for (const std::string& word : split_servers(text)) {
      const auto id = parse_node_number(word);
      if (!id) return id.error();
      wanted->filter.nodes.emplace_back(id.value());
    }
    wanted->filtered = true;
    return {};
  });
  Flag kind{"--kind", "KIND,...",
            "With --print: only events of these kinds (docs/formats/trace.md)"};
  kind.repeated = true;
  flags.add(kind, [wanted](const std::string& text) -> Result<void> {
    for (const std::string& word : split_servers(text)) {
      const auto named = story::kind_named(word);
      if (!named) {
        return unusable(
            fmt::format("there is no kind '{}'; there are {}", word, story::kind_names()));
      }
      wanted->filter.kinds.push_back(*named);
    }
    wanted->filtered = true;
    return {};
  });
  const auto instant = [&flags, wanted](const Flag& flag, auto take) {
    flags.add(flag, [wanted, take](const std::string& text) -> Result<void> {
      const auto at = server::parse_duration(text);
      if (!at) return at.error();
      take(*wanted) = at.value();
      wanted->filtered = true;
      return {};
    });
  };
  instant(
      {"--from", "DURATION", "With --print: only what happened from this time on"},
      [](WantedTrace & of) -> auto& { return of.filter.from; });
  instant(
      {"--until", "DURATION", "With --print: only what happened up to this time"},
      [](WantedTrace & of) -> auto& { return of.filter.until; });
}

}  // namespace

Run add_trace(Flags& flags) {
  const auto wanted = std::make_shared<WantedTrace>();
  flags.add_servers(wanted->servers, false);
  flags.add(
      {"--seconds", "N", "How long to record, up to 600", "10"},
      [wanted](const std::string& text) -> Result<void> {
        const auto seconds = server::parse_integer(text);
        if (!seconds || *seconds < 1 || *seconds > kSecondsMax) {
          return unusable(fmt::format("expected a number of seconds from 1 to {}", kSecondsMax));
        }
        wanted->span = std::chrono::seconds(*seconds);
        wanted->span_given = true;
        return {};
      });
  flags.add({"--out", "FILE", "The file to write"}, wanted->out);
  flags.add({"--print", "FILE", "Print such a file as text; no server is asked"}, wanted->print);
  add_filters(flags, wanted);
  flags.set_footer(kTraceText);
  return [wanted] { return trace(*wanted); };
}

}  // namespace leasehold::cli
