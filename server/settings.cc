#include <leasehold/server/front/words.h>
#include <leasehold/server/report_settings.h>
#include <leasehold/server/security_settings.h>
#include <leasehold/server/setting_words.h>
#include <leasehold/server/settings.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <set>
#include <type_traits>

namespace leasehold::server {
namespace {

constexpr std::uint64_t kWatchHistoryMin = 64U << 10U;
constexpr std::uint64_t kClientMemoryMin = 64U << 20U;  // a few requests of the largest size
constexpr std::uint64_t kReadCacheMin = 1U << 20U;
constexpr lease::Duration kBusyPollMax = std::chrono::milliseconds(10);

template <lease::Duration lease::Timing::*member>
Result<void> set_timing(ServeSettings& settings, const std::string& text) {
  const auto duration = parse_duration(text);
  if (!duration) return duration.error();
  settings.node.timing.*member = duration.value();
  return {};
}

Result<void> set_id(ServeSettings& settings, const std::string& text) {
  const auto id = parse_number(text, 1, kNodeMax);
  if (!id) return id.error();
  settings.node.id = raft::NodeId(id.value());
  return {};
}

Result<void> set_data_dir(ServeSettings& settings, const std::string& text) {
  if (text.empty()) return invalid("a folder's name cannot be empty");
  settings.data_dir = text;
  return {};
}

Result<void> set_peers(ServeSettings& settings, const std::string& text) {
  auto peers = parse_peers(text);
  if (!peers) return peers.error();
  settings.node.peers = std::move(peers).value();
  return {};
}

Result<void> set_join(ServeSettings& settings, const std::string& text) {
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    std::string address(rest.substr(0, comma));
    if (const std::size_t equals = address.find('='); equals != std::string::npos) {
      auto peer = parse_peers(address);
      if (!peer) return peer.error();
      settings.join_hosts.push_back(peer.value().front());
      address.erase(0, equals + 1);
    }
    if (auto checked = check_address(address, 1); !checked) return checked;
    settings.node.join.push_back(address);
    if (comma == std::string_view::npos) return {};
    rest.remove_prefix(comma + 1);
  }
}

Result<void> set_cluster(ServeSettings& settings, const std::string& text) {
  if (text.empty() || text.size() > 256) return invalid("a cluster's name has 1 to 256 bytes");
  settings.node.cluster = text;
  return {};
}

template <std::string ServeSettings::*kMember, std::uint64_t kPortMin>
Result<void> set_address(ServeSettings& settings, const std::string& text) {
  settings.*kMember = text;
  return check_address(text, kPortMin);
}

Result<void> set_peer_listen(ServeSettings& settings, const std::string& text) {
  settings.node.listen = text;
  return check_address(text, 1);
}

Result<void> set_drift(ServeSettings& settings, const std::string& text) {
  const auto ppm = parse_scaled(text, 1'000'000);
  if (!ppm) {
    return invalid(quoted(text) + " is not a fraction with at most 6 decimals, as in 0.1 for 10 %");
  }
  settings.node.timing.max_clock_drift_ppm = *ppm;
  return {};
}

Result<void> set_vm_clock(ServeSettings& settings, const std::string& text) {
  if (text.empty()) return invalid("the file of the VM clock has a name, or: auto, off");
  settings.vm_clock = text == "auto" ? "" : text;
  return {};
}

Result<void> set_deputy(ServeSettings& settings, const std::string& text) {
  settings.deputy = text.empty() ? "off" : text;
  return {};
}

template <auto kMember, std::uint64_t kLow, std::uint64_t kHigh>
Result<void> set_count(ServeSettings& settings, const std::string& text) {
  const auto count = parse_number(text, kLow, kHigh);
  if (!count) return count.error();
  constexpr bool kOfServer = std::is_invocable_v<decltype(kMember), ServerOptions&>;
  if constexpr (kOfServer) settings.server.*kMember = count.value();
  if constexpr (!kOfServer) settings.*kMember = count.value();
  return {};
}

Result<void> set_protected_mode(ServeSettings& settings, const std::string& text) {
  if (text != "yes" && text != "no") return invalid(quoted(text) + " is neither yes nor no");
  settings.server.protected_mode = text == "yes";
  return {};
}

Result<void> set_switch(bool& setting, const std::string& text) {
  if (text != "on" && text != "off") return invalid(quoted(text) + " is neither on nor off");
  setting = text == "on";
  return {};
}

Result<void> set_admin_addresses(ServeSettings& settings, const std::string& text) {
  auto addresses = parse_peers(text);
  if (!addresses) return addresses.error();
  for (node::Peer& peer : addresses.value()) {
    // They become part of a header that says what a page may do.
    if (peer.address.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789.-:[]") != std::string::npos) {
      return invalid(quoted(peer.address) + " is no address: write host:port");
    }
    settings.admin_addresses[peer.id] = std::move(peer.address);
  }
  return {};
}

Result<void> set_admin_open(ServeSettings& settings, const std::string& text) {
  return set_switch(settings.admin_open, text);
}

Result<void> set_lease_reads(ServeSettings& settings, const std::string& text) {
  return set_switch(settings.server.lease_reads, text);
}

Result<void> set_witness(ServeSettings& settings, const std::string& text) {
  if (auto set = set_switch(settings.node.witness, text); !set) return set;
  settings.server.witness = settings.node.witness;
  return {};
}

Result<void> set_command_timeout(ServeSettings& settings, const std::string& text) {
  const auto duration = parse_duration(text);
  if (!duration) return duration.error();
  if (duration.value() <= lease::Duration(0)) return invalid("the time limit has to be above 0");
  settings.server.command_timeout = duration.value();
  return {};
}

/// Zero is allowed: it switches something off.
Result<lease::Duration> parse_limit(const std::string& text) {
  if (text == "off") return lease::Duration(0);
  return parse_duration(text);
}

Result<void> set_limit(lease::Duration& setting, const std::string& text) {
  const auto duration = parse_limit(text);
  if (!duration) return duration.error();
  setting = duration.value();
  return {};
}

Result<void> set_busy_poll(ServeSettings& settings, const std::string& text) {
  if (auto set = set_limit(settings.server.busy_poll, text); !set) return set;
  if (settings.server.busy_poll <= kBusyPollMax) return {};
  return invalid(fmt::format("it is {} or less: a thread that looks for longer takes a core",
                             format_duration(kBusyPollMax)));
}

Result<void> set_client_addresses(ServeSettings& settings, const std::string& text) {
  auto addresses = parse_peers(text);
  if (!addresses) return addresses.error();
  for (node::Peer& peer : addresses.value()) {
    settings.server.client_addresses[peer.id] = std::move(peer.address);
  }
  return {};
}

/// Zero, or a second at least.
Result<void> set_second_or_none(lease::Duration& setting, const char* what,
                                const std::string& text) {
  const auto duration = parse_limit(text);
  if (!duration) return duration.error();
  if (duration.value() != lease::Duration(0) && duration.value() < std::chrono::seconds(1)) {
    return invalid(fmt::format("{} is 1s or longer, or 0s for none", what));
  }
  setting = duration.value();
  return {};
}

Result<void> set_idle_timeout(ServeSettings& settings, const std::string& text) {
  return set_second_or_none(settings.server.idle_timeout, "an idle time", text);
}

Result<void> set_first_request_timeout(ServeSettings& settings, const std::string& text) {
  return set_second_or_none(settings.server.first_request_timeout, "the time for a first request",
                            text);
}

template <lease::Duration ServeSettings::*kMember>
Result<void> set_check_interval(ServeSettings& settings, const std::string& text) {
  return set_second_or_none(settings.*kMember, "an interval of checks", text);
}

Result<void> set_session_idle_max(ServeSettings& settings, const std::string& text) {
  const auto duration = parse_duration(text);
  if (!duration) return duration.error();
  if (duration.value() < std::chrono::seconds(1)) {
    return invalid("a session may be idle for 1s or longer; sessions cannot be kept forever");
  }
  settings.session_idle_max = duration.value();
  return {};
}

Result<void> set_preferred_leaders(ServeSettings& settings, const std::string& text) {
  std::vector<raft::NodeId>& wanted = settings.node.preferred_leaders;
  wanted.clear();
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto id = parse_number(std::string_view(text).substr(begin, end - begin), 1, kNodeMax);
    if (!id) return id.error();
    if (std::find(wanted.begin(), wanted.end(), raft::NodeId(id.value())) != wanted.end()) {
      return invalid(fmt::format("node {} is named twice", id.value()));
    }
    wanted.emplace_back(id.value());
    begin = end + 1;
  }
  return {};
}

Result<void> set_drain_timeout(ServeSettings& settings, const std::string& text) {
  return set_limit(settings.drain_timeout, text);
}

Result<void> set_slowlog_threshold(ServeSettings& settings, const std::string& text) {
  return set_limit(settings.server.slowlog_threshold, text);
}

template <std::uint64_t replica::Limits::*kMember>
Result<void> set_bytes(ServeSettings& settings, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes) return bytes.error();
  settings.node.limits.*kMember = bytes.value();
  return {};
}

Result<void> set_client_memory_max(ServeSettings& settings, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes) return bytes.error();
  if (bytes.value() < kClientMemoryMin) return invalid("the memory for clients needs 64M or more");
  settings.server.client_memory_max = bytes.value();
  return {};
}

Result<void> set_read_cache(ServeSettings& settings, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes) return bytes.error();
  if (bytes.value() != 0 && bytes.value() < kReadCacheMin) {
    return invalid("the cache of reads needs 1M or more; 0: there is none");
  }
  settings.read_cache = bytes.value();
  return {};
}

Result<void> set_watch_history(ServeSettings& settings, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (!bytes) return bytes.error();
  if (bytes.value() < kWatchHistoryMin) {
    return invalid("the history for watchers needs 64K or more");
  }
  settings.events.bytes_max = bytes.value();
  return {};
}

Result<void> set_watch_history_events(ServeSettings& settings, const std::string& text) {
  const auto events = parse_number(text, 100, 100'000'000);
  if (!events) return events.error();
  settings.events.events_max = events.value();
  return {};
}

Result<void> set_log_max_age(ServeSettings& settings, const std::string& text) {
  return set_limit(settings.node.limits.log_age_max, text);
}

const SettingSpec kSettings[] = {
    {"id", "N", "", "Number of this node, unique in the cluster", set_id},
    {"data-dir", "DIR", "", "Folder of this node's data; made if it does not exist", set_data_dir},
    {"peers", "ID=HOST:PORT,...", "",
     "The first members with the addresses of their peer ports, this node included; the same on "
     "every node. Needed until the group has formed",
     set_peers},
    {"join", "HOST:PORT,...", "",
     "Instead of --peers, for a node to be added to a running group: peer addresses of some "
     "members; with --groups of all nodes, as ID=HOST:PORT",
     set_join},
    {"groups", "N", "1",
     "Groups that share the keys, by their slots; the same on every node and at every start. More "
     "than one need --peers, or --join, at each start",
     set_count<&ServeSettings::groups, 1, 1024>},
    {"replicas", "N", "0",
     "With --groups and --peers: so many nodes have a replica of each group but the first at its "
     "beginning, the same number on every node; 0: all nodes. Later leasehold pool decides",
     set_count<&ServeSettings::replicas, 0, 15>},
    {"witness", "on|off", "off",
     "on, with --join: this member votes and keeps the log, but no state: it answers "
     "neither reads nor writes. Add it with leasehold member add --witness",
     set_witness},
    {"listen", "HOST:PORT", "127.0.0.1:7201", "Where clients connect",
     set_address<&ServeSettings::listen, 0>},
    {"admin", "HOST:PORT", "",
     "Where monitors and browsers ask by HTTP: a page, /status.json, /metrics, /healthz, /readyz. "
     "Without it: nowhere. Beyond loopback only users with a certificate are answered",
     set_address<&ServeSettings::admin, 0>},
    {"admin-addresses", "ID=HOST:PORT,...", "",
     "Admin port of each node, as a browser reaches it: the page of one asks the others, too. The "
     "same on every node",
     set_admin_addresses},
    {"admin-open", "on|off", "off",
     "on: all who reach the port of --admin may see how this node is, also beyond loopback",
     set_admin_open},
    {"advertise", "HOST:PORT", "",
     "Client address that the status shows, if it differs from --listen",
     set_address<&ServeSettings::advertise, 1>},
    {"peer-listen", "HOST:PORT", "",
     "Address to bind the peer port to, if it differs from this node's entry in --peers; with "
     "--join: the address at which the group reaches it",
     set_peer_listen},
    {"cluster", "NAME", "default", "Name of the cluster; nodes of another cluster are refused",
     set_cluster},
    {"peer-protection", "plain|key|tls", "",
     "How this node proves itself to its peers, which also have to: nothing (only on loopback, "
     "between processes of one "
     "user), the key of --peer-key, or the certificate of --tls-cert. Without it: what files are "
     "given for",
     set_peer_protection},
    {"peer-accept", "plain,key,tls", "",
     "Protections of peers to accept as well, while a group moves from one to another",
     set_peer_accept},
    {"peer-key", "FILE", "",
     "The group's key, the same on every node: leasehold cert key makes one",
     set_path<&net::PeerSecurity::key_file>},
    {"tls-cert", "FILE", "", "This node's certificate, PEM: leasehold cert node makes one",
     set_path<&net::PeerSecurity::certificate_file>},
    {"tls-key", "FILE", "", "Its private key, PEM",
     set_path<&net::PeerSecurity::certificate_key_file>},
    {"tls-ca", "FILE", "", "Certificate of the authority that is trusted, PEM",
     set_path<&net::PeerSecurity::authority_file>},
    {"tls-crl", "FILE", "", "List of the certificates that the authority has revoked, PEM",
     set_path<&net::PeerSecurity::revoked_file>},
    {"client-tls", "off|optional|on", "",
     "TLS on the client port; optional: with and without it, while clients move. Without this: on "
     "if --tls-cert is given",
     set_client_tls},
    {"client-certs", "none|optional|required", "optional",
     "Certificates of clients. optional: a client that shows one proves its user by it; required: "
     "one without is refused",
     set_client_certs},
    {"allow-plain-peers", "on|off", "off",
     "on: plain peers may come from beyond loopback. A stranger that reaches a peer port then owns "
     "the group",
     set_allow_plain_peers},
    {"heartbeat", "DURATION", "100ms", "How often the leader renews its lease",
     set_timing<&lease::Timing::heartbeat>},
    {"lease", "DURATION", "1s",
     "How long a voter promises to follow the leader, with each heartbeat",
     set_timing<&lease::Timing::lease>},
    {"election-timeout", "DURATION", "300ms",
     "A node tries an election after one to two times this time without a leader",
     set_timing<&lease::Timing::election_timeout>},
    {"max-clock-drift", "FRACTION", "0.1",
     "Largest rate error of each node's clock against true time", set_drift},
    {"max-round-trip", "DURATION", "50ms", "The longest round trip of a healthy renewal",
     set_timing<&lease::Timing::max_round_trip>},
    {"margin", "DURATION", "10ms", "Part of each lease that the leader does not use",
     set_timing<&lease::Timing::margin>},
    {"vm-clock", "auto|off|FILE", "auto",
     "VM clock page, which shows whether this virtual machine was stopped or restored",
     set_vm_clock},
    {"deputy", "on|off|FILE", "on",
     "FILE: the program that tells the other nodes that this process has ended", set_deputy},
    {"lease-reads", "on|off", "on",
     "off: confirm every read by a quorum; for machines whose clocks cannot be trusted",
     set_lease_reads},
    {"command-timeout", "DURATION", "5s", "A command that takes longer ends with an error",
     set_command_timeout},
    {"preferred-leaders", "ID,...", "",
     "Nodes that should lead, the best first; the same on every node. A leader transfers the "
     "leadership to a node earlier in the list that has been healthy for 10 s",
     set_preferred_leaders},
    {"drain-timeout", "DURATION", "5s",
     "Longest time after SIGTERM to answer requests in flight and to transfer the leadership; "
     "0s: end at once",
     set_drain_timeout},
    {"io-threads", "N", "1",
     "Threads that serve clients; one more serves new clients and long reads",
     set_count<&ServerOptions::io_threads, 1, 256>},
    {"busy-poll", "DURATION", "0s",
     "How long an io thread looks for the next request before it sleeps, as in 50us: saves its "
     "wake-up, takes processor time",
     set_busy_poll},
    {"clients-max", "N", "10000", "Most client connections at one time",
     set_count<&ServerOptions::clients_max, 1, 1'000'000>},
    {"protected-mode", "yes|no", "yes",
     "yes: while the default user has no password, take client connections from this machine only",
     set_protected_mode},
    {"client-memory-max", "BYTES", "256M",
     "Most memory for requests and replies of all clients that are under way; a connection that "
     "needs more is closed. Each may always have 32K",
     set_client_memory_max},
    {"read-cache", "BYTES", "64M",
     "Memory for the values of keys that are read or overwritten, of all groups; 0: reads look in "
     "the files' own caches",
     set_read_cache},
    {"connection-rate", "N", "2000",
     "Client connections that are taken in a second; more wait. 0: no limit",
     set_count<&ServerOptions::connection_rate, 0, 1'000'000>},
    {"first-request-timeout", "DURATION", "60s",
     "Close a client connection whose first request is not complete this long after its first "
     "byte; 0s: never",
     set_first_request_timeout},
    {"backups-max", "N", "100", "Most backups in the data directory; more are refused",
     set_count<&ServeSettings::backups_max, 1, 1'000'000>},
    {"client-addresses", "ID=HOST:PORT,...", "",
     "Client address of each node, for cluster-aware clients (CLUSTER SLOTS, ROLE); without it "
     "each node names only itself",
     set_client_addresses},
    {"idle-timeout", "DURATION", "0s",
     "Close a client connection that sends no request for this time; 0s: never", set_idle_timeout},
    {"session-idle-max", "DURATION", "10m",
     "End a client's session (LEASEHOLD SESSION) that no command has named for this time; the "
     "leader's setting counts",
     set_session_idle_max},
    {"slowlog-threshold", "DURATION", "10ms",
     "Keep commands that take this long for SLOWLOG; 0s: none", set_slowlog_threshold},
    {"log-tail", "BYTES", "64M",
     "How much of the log to keep for members that were away for a while; a member that needs "
     "more gets a snapshot",
     set_bytes<&replica::Limits::log_tail_bytes>},
    {"log-cut", "BYTES", "64M", "Cut the log when it is this much larger than --log-tail",
     set_bytes<&replica::Limits::log_cut_bytes>},
    {"log-max-age", "DURATION", "1440m",
     "Cut off older entries even if the log is small; 0s: the age does not matter",
     set_log_max_age},
    {"snapshot-rate", "BYTES", "0",
     "Most bytes per second for all snapshots that this node sends; 0: no limit",
     set_bytes<&replica::Limits::snapshot_bytes_per_second>},
    {"watch-history", "BYTES", "2M",
     "Memory for the latest changes, for watchers; a watcher that is further behind has to read "
     "its keys again",
     set_watch_history},
    {"watch-history-events", "N", "100000", "The same limit as a number of changed keys",
     set_watch_history_events},
    {"compare-interval", "DURATION", "1m",
     "How often the replicas compare their states; the leader's setting counts. 0s: never",
     set_check_interval<&ServeSettings::compare_interval>},
    {"scrub-interval", "DURATION", "1440m",
     "Time in which all that is stored is read back, in the background. 0s: never",
     set_check_interval<&ServeSettings::scrub_interval>},
    {"log-level", "LEVEL", "info", "trace, debug, info, warn, error or off", set_first_log_level},
    {"log-format", "FORMAT", "text",
     "How lines of the log are written: text for people, or json, an object in each line",
     set_log_format},
    {"spans", "FILE", "",
     "Write when commands, proposals and reads passed their stations to this file, in lines of "
     "OpenTelemetry's JSON; without it: nowhere",
     set_spans},
    {"spans-ratio", "FRACTION", "0.01",
     "Part of the commands that have such spans, from 0 to 1; one that names its trace is as its "
     "caller decided",
     set_spans_ratio},
    {"spans-bytes", "BYTES", "64M",
     "When the file of --spans has this size it becomes FILE.1, in place of the one before",
     set_spans_bytes},
};

}  // namespace

const std::vector<SettingSpec>& setting_specs() {
  static const std::vector<SettingSpec> specs(std::begin(kSettings), std::end(kSettings));
  return specs;
}

}  // namespace leasehold::server
