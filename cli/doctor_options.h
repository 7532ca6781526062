// What doctor and advise have in common: the flags that say what is looked at.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/cli/parser.h>
#include <leasehold/cli/setting_flags.h>
#include <leasehold/doctor/gather.h>
#include <leasehold/server/settings.h>

#include <chrono>
#include <string>
#include <vector>

namespace leasehold::cli {

struct DoctorOptions {
  ServeFlags serve;
  std::vector<std::string> servers;
  std::chrono::seconds measure{10};
  bool without_sync_test = false;
  std::string root = "/";
  bool strict = false;
  bool json = false;
};

/// The settings of serve, --servers, a user, and how to look.
void add_doctor_options(Flags& flags, DoctorOptions& options);

/// Logs in and makes the way to the servers: by the authority of the settings, if those have client
/// TLS. Errors: invalid_argument, io.
Result<doctor::Wanted> wanted_facts(const DoctorOptions& options,
                                    const server::ServeSettings& settings);

}  // namespace leasehold::cli
