#include <leasehold/cli/access.h>
#include <leasehold/cli/doctor_options.h>
#include <leasehold/cli/ending_signals.h>
#include <leasehold/cli/leader.h>
#include <leasehold/cli/login.h>
#include <leasehold/cli/progress.h>
#include <leasehold/server/commands/report.h>
#include <leasehold/server/front/words.h>

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace leasehold::cli {
namespace {

constexpr std::int64_t kSecondsMax = 86400;

}  // namespace

void add_doctor_options(Flags& flags, DoctorOptions& options) {
  add_serve_settings(flags, options.serve);
  Flag servers{"--servers", "HOST:PORT,...",
               "Client addresses of running nodes, to compare clocks and settings with",
               "those of "
               "--client-addresses"};
  servers.repeated = true;
  flags.add(servers, [&options](const std::string& value) -> Result<void> {
    const std::vector<std::string> named = split_servers(value);
    options.servers.insert(options.servers.end(), named.begin(), named.end());
    return {};
  });
  add_login(flags);
  flags.add({"--seconds", "N", "How long to measure", "10"},
            [&options](const std::string& text) -> Result<void> {
              const auto seconds = server::parse_integer(text);
              if (!seconds || *seconds < 1 || *seconds > kSecondsMax) {
                return Error{
                    ErrorCode::invalid_argument,
                    fmt::format("'{}' is not a number of seconds from 1 to {}", text, kSecondsMax)};
              }
              options.measure = std::chrono::seconds(*seconds);
              return {};
            });
  flags.add({"--no-sync-test", "", "Write no scratch file: measure no syncs"},
            options.without_sync_test);
  flags.add(
      {"--root", "DIR", "Read /proc and /sys below this folder: those of a container's host", "/"},
      options.root);
}

Result<doctor::Wanted> wanted_facts(const DoctorOptions& options,
                                    const server::ServeSettings& settings) {
  if (auto login = log_in(); !login) return login.error();
  client::Access::Files files;
  if (settings.server.client_tls != server::ClientTls::Mode::off) {
    files.authority = settings.node.peer_security.authority_file;
  }
  doctor::Wanted wanted;
  // A certificate that cannot be used is a finding.
  if (set_access(files)) wanted.access = access();
  wanted.servers = options.servers;
  for (const auto& [node, address] : settings.server.client_addresses) {
    if (options.servers.empty() && node != settings.node.id) wanted.servers.push_back(address);
  }
  wanted.measure = options.measure;
  wanted.sync_test = !options.without_sync_test;
  wanted.root = options.root + (options.root.ends_with('/') ? "" : "/");
  wanted.version = server::kVersion;
  const auto signals = std::make_shared<EndingSignals>();
  const auto progress = std::make_shared<Progress>("measuring");
  wanted.go_on = [signals, progress](lease::Duration) {
    progress->going_on();
    return signals->next_ending(lease::Duration(0)) == 0;
  };
  return wanted;
}

}  // namespace leasehold::cli
