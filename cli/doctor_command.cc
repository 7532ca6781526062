#include <leasehold/cli/access.h>
#include <leasehold/cli/commands.h>
#include <leasehold/cli/doctor_options.h>
#include <leasehold/cli/ending_signals.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/doctor/gather.h>
#include <leasehold/doctor/judge.h>
#include <leasehold/server/terminal.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>

#include <unistd.h>

namespace leasehold::cli {
namespace {

constexpr const char* kDoctorText = R"(
Takes what leasehold serve takes: put doctor in the place of serve, before the node starts or while
it serves. It changes nothing but a scratch file in the data directory, for the times of syncs,
which it removes.

Each line is a check: ok, skipped (it could not be looked at, and why), warning or error, then what
was found, then what to do.
Exit status: 0 without an error, 1 with one (with --strict: or a warning), 2 if serve would refuse
the flags or the settings.

Example:
  leasehold doctor --config /etc/leasehold/leasehold.toml --id 2 \
      --servers 10.0.0.1:7201,10.0.0.3:7201)";

using FindingsJson = nlohmann::ordered_json;

struct FindingCounts {
  std::size_t errors = 0;
  std::size_t warnings = 0;
  std::size_t skipped = 0;
  std::size_t fine = 0;
};

FindingCounts counts_of(const doctor::Findings& findings) {
  FindingCounts counts;
  for (const doctor::Finding& one : findings) {
    switch (one.level) {
      case doctor::Level::ok: ++counts.fine; break;
      case doctor::Level::skipped: ++counts.skipped; break;
      case doctor::Level::warning: ++counts.warnings; break;
      case doctor::Level::error: ++counts.errors; break;
    }
  }
  return counts;
}

server::Paint paint_of(doctor::Level level) {
  switch (level) {
    case doctor::Level::ok: return server::Paint::green;
    case doctor::Level::skipped: return server::Paint::dim;
    case doctor::Level::warning: return server::Paint::yellow;
    case doctor::Level::error: return server::Paint::red;
  }
  return server::Paint::plain;
}

void print_findings(const doctor::Findings& findings, const FindingCounts& counts) {
  const bool color = server::use_color(server::Color::automatic, STDOUT_FILENO);
  for (const doctor::Finding& one : findings) {
    const std::string level = fmt::format("{:<8}", doctor::level_name(one.level));
    std::cout << server::painted(level, paint_of(one.level), color)
              << fmt::format("{:<17} {}", one.check, one.found);
    if (!one.cure.empty()) std::cout << ". To do: " << one.cure;
    std::cout << "\n";
  }
  const auto counted = [](std::size_t number, const char* what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
  };
  std::cout << fmt::format("{}, {}; {} found nothing, {} could not be looked at\n",
                           counted(counts.errors, "error"), counted(counts.warnings, "warning"),
                           counted(counts.fine, "check"), counts.skipped);
}

void print_findings_json(const doctor::Findings& findings, const FindingCounts& counts) {
  FindingsJson list = FindingsJson::array();
  for (const doctor::Finding& one : findings) {
    list.push_back({{"check", one.check},
                    {"level", doctor::level_name(one.level)},
                    {"found", one.found},
                    {"to_do", one.cure}});
  }
  const FindingsJson all = {
      {"errors", counts.errors}, {"warnings", counts.warnings}, {"findings", std::move(list)}};
  std::cout << all.dump(2, ' ', false, FindingsJson::error_handler_t::replace) << "\n";
}

int run_doctor(const DoctorOptions& options) {
  const auto settings = read_settings(options.serve);
  if (!settings) return misused("doctor", settings.error().message);
  const auto wanted = wanted_facts(options, settings.value());
  if (!wanted) return misused("doctor", wanted.error().message);
  const doctor::Facts facts = doctor::gather(settings.value(), wanted.value());
  const doctor::Findings findings = doctor::judge(settings.value(), facts);
  const FindingCounts counts = counts_of(findings);
  options.json ? print_findings_json(findings, counts) : print_findings(findings, counts);
  const bool sick = counts.errors > 0 || (options.strict && counts.warnings > 0);
  return sick ? kNo : 0;
}

}  // namespace

Run add_doctor(Flags& flags) {
  const auto options = std::make_shared<DoctorOptions>();
  add_doctor_options(flags, *options);
  flags.add({"--strict", "", "A warning is an error for the exit status"}, options->strict);
  flags.add({"--json", "", "Print a JSON object instead of lines"}, options->json);
  flags.set_footer(kDoctorText);
  return [options] { return run_doctor(*options); };
}

}  // namespace leasehold::cli
