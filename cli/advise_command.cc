#include <leasehold/cli/commands.h>
#include <leasehold/cli/doctor_options.h>
#include <leasehold/cli/exit_status.h>
#include <leasehold/doctor/advice.h>
#include <leasehold/doctor/gather.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>
#include <string>

namespace leasehold::cli {
namespace {

constexpr const char* kAdviseText = R"(
Takes what leasehold doctor takes, measures round trips to the nodes of --servers, syncs of the data
directory's disk, pauses of this process and clocks, and prints numbers that fit, each with its
reason. It changes nothing. Run it on every machine of the group while it carries its usual load,
and take the largest numbers.

Example:
  leasehold advise --config /etc/leasehold/leasehold.toml --id 2 \
      --servers 10.0.0.1:7201,10.0.0.3:7201)";

using AdviceJson = nlohmann::ordered_json;

int run_advise(const DoctorOptions& options) {
  const auto settings = read_settings(options.serve);
  if (!settings) return misused("advise", settings.error().message);
  const auto wanted = wanted_facts(options, settings.value());
  if (!wanted) return misused("advise", wanted.error().message);
  const doctor::Facts facts = doctor::gather(settings.value(), wanted.value());
  const auto advice = doctor::advise(facts);
  if (!advice) return fail("advise", advice.error().message, kNo);
  for (const doctor::ServerFacts& server : facts.servers) {
    const std::string& problem = server.problem.empty() ? server.clock_problem : server.problem;
    if (problem.empty()) continue;
    std::cerr << "not measured: " << server.server << ": " << problem << "\n";
  }
  if (options.json) {
    AdviceJson list = AdviceJson::array();
    for (const doctor::AdvisedNumber& one : advice.value().numbers) {
      list.push_back({{"name", one.name}, {"value", one.value}, {"why", one.why}});
    }
    std::cout << list.dump(2, ' ', false, AdviceJson::error_handler_t::replace) << "\n";
    return 0;
  }
  std::string command = "leasehold settings set";
  for (const doctor::AdvisedNumber& one : advice.value().numbers) {
    std::cout << fmt::format("--{:<17} {:<8} {}\n", one.name, one.value, one.why);
    command += fmt::format(" {}={}", one.name, one.value);
  }
  std::cout << "\nFor a group that runs:\n  " << command << " --servers ...\n";
  return 0;
}

}  // namespace

Run add_advise(Flags& flags) {
  const auto options = std::make_shared<DoctorOptions>();
  add_doctor_options(flags, *options);
  flags.add({"--json", "", "Print a JSON list instead of lines"}, options->json);
  flags.set_footer(kAdviseText);
  return [options] { return run_advise(*options); };
}

}  // namespace leasehold::cli
