// Gathers the facts: reads files, asks servers, and measures for some seconds. Changes nothing but
// a scratch file.
#pragma once

#include <leasehold/client/access.h>
#include <leasehold/doctor/facts.h>
#include <leasehold/lease/instant.h>
#include <leasehold/server/settings.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace leasehold::doctor {

struct Wanted {
  std::vector<std::string> servers;  ///< client addresses of running nodes
  client::Access access;             ///< to them
  lease::Duration measure = std::chrono::seconds(10);
  bool sync_test = true;
  std::string version;     ///< of this program
  std::string root = "/";  ///< where /proc and /sys are; a folder of a test ends with a slash
  /// Called some times a second while it measures. False: measure no longer.
  std::function<bool(lease::Duration passed)> go_on = [](lease::Duration) { return true; };
};

/// Takes `measure` and some seconds for what does not answer. Never fails: what could not be seen
/// is in the facts.
Facts gather(const server::ServeSettings& settings, const Wanted& wanted);

// Its parts.

/// Of the files below `root`.
MachineFacts look_at_machine(const std::string& root);
/// The same for what the data directory lies on; measures no syncs.
DiskFacts look_at_disk(const std::string& root, const std::string& data_dir);
FolderFacts look_at_folder(const std::string& root, const server::ServeSettings& settings);
std::vector<AddressFacts> look_at_addresses(const server::ServeSettings& settings);
SecurityFacts look_at_security(const server::ServeSettings& settings);
/// Who it is, and the numbers that it follows; no samples.
ServerFacts ask_server(const std::string& server, const client::Access& access);

/// Appends blocks to a scratch file in `folder`, syncs each, and removes the file, until `stop`.
SyncFacts measure_syncs(const std::string& folder, const std::function<bool()>& stop);
PauseFacts measure_pauses(const std::function<bool()>& stop);
/// Adds samples of its clocks until `stop`.
void measure_clock(ServerFacts& server, const client::Access& access,
                   const std::function<bool()>& stop);

}  // namespace leasehold::doctor
