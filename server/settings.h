// The settings of `leasehold serve`: one table of names, for flags and for the TOML file alike.
#pragma once

#include <leasehold/base/result.h>
#include <leasehold/kv/events.h>
#include <leasehold/node/node.h>
#include <leasehold/server/front/duration.h>
#include <leasehold/server/front/server_state.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace leasehold::server {

struct ServeSettings {
  node::NodeOptions node;  ///< `data_dir` is the folder of the log
  std::string data_dir;
  std::string listen = "127.0.0.1:7201";
  std::string advertise;                                ///< empty: what `listen` says
  std::string admin;                                    ///< where monitors connect; empty: nowhere
  std::map<raft::NodeId, std::string> admin_addresses;  ///< of the nodes, as far as they are known
  bool admin_open = false;                              ///< all who reach that port are answered
  std::string log_level = "info";
  std::string log_format = "text";  ///< or "json"
  std::string spans;                ///< the file that gets them; empty: none
  double spans_ratio = 0.01;
  std::uint64_t spans_bytes = std::uint64_t{64} << 20U;
  /// How long a signal to end waits for what is in flight and for another leader; zero: not at all.
  lease::Duration drain_timeout = std::chrono::seconds(5);
  /// The page of the VM clock device; empty: where the kernel shows it, if it does; "off": neither
  /// it nor the kernel's events are looked at.
  std::string vm_clock;
  /// "on": leasehold-deputy beside this program; "off": none; or the program to run.
  std::string deputy = "on";
  /// A session ends after this time without a command that names it.
  lease::Duration session_idle_max = std::chrono::minutes(10);
  /// How often the replicas compare their states, while this node leads; zero: never.
  lease::Duration compare_interval = std::chrono::minutes(1);
  /// Everything that is stored is read back once in this time; zero: never.
  lease::Duration scrub_interval = std::chrono::hours(24);
  bool peer_protection_given = false;  ///< else it follows from the files that are given
  std::size_t backups_max = 100;       ///< in the data directory
  std::size_t read_cache = std::size_t{64} << 20U;  ///< bytes; 0: none
  std::size_t groups = 1;                           ///< that the slots are divided among
  std::size_t replicas = 0;            ///< of a group at its beginning; 0: one at each node
  std::vector<node::Peer> join_hosts;  ///< of node.join, those that were named with their number
  bool client_tls_given = false;       ///< as well
  kv::EventHistory::Limits events;
  ServerOptions server;
  /// Makes them again, of the same flags and of the settings file as it is now. Any thread. Errors:
  /// those of the file and of make_settings(). Empty: as they are.
  std::function<Result<ServeSettings>()> read_again;
};

/// "1=host:port,2=host:port". Errors: invalid_argument: no such form, an id twice, an address
/// twice.
Result<std::vector<node::Peer>> parse_peers(std::string_view text);

/// One setting. Its flag is "--" and the name; its key in the file is the name.
struct SettingSpec {
  const char* name;
  const char* type;          ///< shown in the help
  const char* default_text;  ///< empty: none
  const char* help;
  Result<void> (*apply)(ServeSettings& settings, const std::string& text);
};
const std::vector<SettingSpec>& setting_specs();

using SettingTexts = std::map<std::string, std::string>;

/// Reads a TOML file into names and texts. Errors: io, malformed (with the line), invalid_argument:
/// an unknown key, by name.
Result<SettingTexts> read_settings_file(const std::string& path);

/// Makes settings of texts and checks them together. Errors: invalid_argument, naming the setting
/// and what it should be.
Result<ServeSettings> make_settings(const SettingTexts& texts);

}  // namespace leasehold::server
