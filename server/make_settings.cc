// What the settings have to be together, and what CONFIG GET shows of them.
#include <leasehold/server/front/log_level.h>
#include <leasehold/server/front/replica_number.h>
#include <leasehold/server/front/resp.h>
#include <leasehold/server/front/slow_log.h>
#include <leasehold/server/front/words.h>
#include <leasehold/server/settings.h>

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>

namespace leasehold::server {
namespace {

/// Such a folder knows its group.
bool has_log(const std::string& data_dir) {
  return ::access((data_dir + "/log/LEASEHOLD").c_str(), F_OK) == 0;
}

/// What follows from the files, and whether all are there.
Result<void> check_security(ServeSettings& settings) {
  net::PeerSecurity& security = settings.node.peer_security;
  const bool certificate = !security.certificate_file.empty();
  if (!settings.peer_protection_given) {
    if (certificate) {
      security.dial = net::Protection::certificate;
    } else if (!security.key_file.empty()) {
      security.dial = net::Protection::key;
    }
  }
  if (certificate != !security.certificate_key_file.empty() ||
      (certificate && security.authority_file.empty())) {
    return invalid("--tls-cert, --tls-key and --tls-ca go together: leasehold cert makes them");
  }
  if (!settings.client_tls_given && certificate) settings.server.client_tls = ClientTls::Mode::on;
  if (settings.server.client_tls != ClientTls::Mode::off && !certificate) {
    return invalid("clients are to use TLS: --tls-cert, --tls-key and --tls-ca are missing");
  }
  if (security.accepts(net::Protection::certificate) && !certificate) {
    return invalid(
        "peers are to be protected by tls: --tls-cert, --tls-key and --tls-ca are missing");
  }
  if (security.accepts(net::Protection::key) && security.key_file.empty()) {
    return invalid("peers are to be protected by a key: --peer-key is missing");
  }
  return {};
}

const char* client_tls_name(ClientTls::Mode mode) {
  switch (mode) {
    case ClientTls::Mode::off: return "off";
    case ClientTls::Mode::optional: return "optional";
    case ClientTls::Mode::on: return "on";
  }
  return "";
}

const char* client_certificates_name(tls::ClientCertificates wish) {
  switch (wish) {
    case tls::ClientCertificates::none: return "none";
    case tls::ClientCertificates::optional: return "optional";
    case tls::ClientCertificates::required: return "required";
  }
  return "";
}

/// Behind them are the numbers of their later replicas.
Result<void> check_node_numbers(const ServeSettings& settings) {
  std::vector<node::Peer> nodes = settings.node.peers;
  nodes.insert(nodes.end(), settings.join_hosts.begin(), settings.join_hosts.end());
  nodes.push_back({settings.node.id, ""});
  for (const node::Peer& node : nodes) {
    if (node.id.value() < kNodeNumbersEnd) continue;
    return invalid(fmt::format("with --groups a node has a number below {}, and {} is not",
                               kNodeNumbersEnd, node.id.value()));
  }
  return {};
}

Result<void> check_together(ServeSettings& settings) {
  const node::NodeOptions& node = settings.node;
  if (node.id == raft::kNobody) return invalid("--id is missing: the number of this node");
  if (settings.data_dir.empty()) return invalid("--data-dir is missing: the folder of this node");
  if (!node.peers.empty() && !node.join.empty()) {
    return invalid(
        "--peers and --join are both given: --peers forms a new group, --join is for a "
        "node that is added to one");
  }
  if (node.witness && !node.peers.empty()) {
    return invalid(
        "--witness on goes with --join: the first members of a group have a state; form the group "
        "with --peers on the others, then add the witness");
  }
  if (!node.join.empty() && node.listen.empty()) {
    return invalid("--join needs --peer-listen: where the members of the group reach this node");
  }
  if (settings.groups > 1 && node.peers.empty() &&
      (node.join.empty() || settings.join_hosts.size() != node.join.size())) {
    return invalid(
        "--groups goes with --peers, or with --join and all nodes as ID=HOST:PORT, at every start");
  }
  if (settings.groups > 1) {
    if (auto numbers = check_node_numbers(settings); !numbers) return numbers;
  }
  if (settings.replicas > 0 && settings.groups == 1) {
    return invalid(
        "--replicas goes with --groups: a group that is alone has a replica at each node");
  }
  if (settings.replicas > node.peers.size() && !node.peers.empty()) {
    return invalid(
        fmt::format("--replicas {}: --peers names {} nodes", settings.replicas, node.peers.size()));
  }
  if (settings.groups > 1 && node.witness) {
    return invalid("--groups goes without --witness: a witness has one group");
  }
  if (settings.admin.empty() && (!settings.admin_addresses.empty() || settings.admin_open)) {
    return invalid("--admin-addresses and --admin-open go with --admin: where this node listens");
  }
  const bool used = has_log(settings.data_dir);
  if (node.peers.empty() && node.join.empty() && !used) {
    return invalid(
        "--peers is missing: every first member, as in 1=host:port,2=host:port; or "
        "--join, for a node that is added to a group that runs");
  }
  const bool member =
      node.peers.empty() || std::any_of(node.peers.begin(), node.peers.end(),
                                        [&](const node::Peer& peer) { return peer.id == node.id; });
  if (!member) {
    return invalid(
        fmt::format("--peers does not name this node, which has --id {}", node.id.value()));
  }
  if (auto security = check_security(settings); !security) return security;
  if (auto timing = node.timing.validate(); !timing) return timing;
  return {};
}

/// Of CONFIG GET, by the names of the flags.
std::vector<std::pair<std::string, std::string>> own_settings(const ServeSettings& settings) {
  const lease::Timing& timing = settings.node.timing;
  const std::string drift =
      fmt::format("{:.6f}", static_cast<double>(timing.max_clock_drift_ppm) / 1e6);
  return {
      {"log-level", settings.log_level},
      {"log-format", settings.log_format},
      {"spans", settings.spans},
      {"spans-ratio", fmt::format("{}", settings.spans_ratio)},
      {"spans-bytes", std::to_string(settings.spans_bytes)},
      {"id", std::to_string(settings.node.id.value())},
      {"data-dir", settings.data_dir},
      {"groups", std::to_string(settings.groups)},
      {"replicas", std::to_string(settings.replicas)},
      {"cluster", settings.node.cluster},
      {"peer-protection", net::name_of(settings.node.peer_security.dial)},
      {"client-tls", client_tls_name(settings.server.client_tls)},
      {"client-certs", client_certificates_name(settings.server.client_certificates)},
      {"listen", settings.listen},
      {"advertise", settings.advertise},
      {"admin", settings.admin},
      {"admin-open", settings.admin_open ? "on" : "off"},
      {"io-threads", std::to_string(settings.server.io_threads)},
      {"busy-poll", format_duration(settings.server.busy_poll)},
      {"lease-reads", settings.server.lease_reads ? "on" : "off"},
      {"protected-mode", settings.server.protected_mode ? "yes" : "no"},
      {"client-memory-max", std::to_string(settings.server.client_memory_max)},
      {"read-cache", std::to_string(settings.read_cache)},
      {"connection-rate", std::to_string(settings.server.connection_rate)},
      {"first-request-timeout", format_duration(settings.server.first_request_timeout)},
      {"backups-max", std::to_string(settings.backups_max)},
      {"idle-timeout", format_duration(settings.server.idle_timeout)},
      {"session-idle-max", format_duration(settings.session_idle_max)},
      {"compare-interval", format_duration(settings.compare_interval)},
      {"scrub-interval", format_duration(settings.scrub_interval)},
      {"slowlog-threshold", format_duration(settings.server.slowlog_threshold)},
      {"command-timeout", format_duration(settings.server.command_timeout)},
      {"drain-timeout", format_duration(settings.drain_timeout)},
      {"log-tail", std::to_string(settings.node.limits.log_tail_bytes)},
      {"log-cut", std::to_string(settings.node.limits.log_cut_bytes)},
      {"log-max-age", format_duration(settings.node.limits.log_age_max)},
      {"snapshot-rate", std::to_string(settings.node.limits.snapshot_bytes_per_second)},
      {"lease", format_duration(timing.lease)},
      {"heartbeat", format_duration(timing.heartbeat)},
      {"election-timeout", format_duration(timing.election_timeout)},
      {"max-clock-drift", drift},
      {"max-round-trip", format_duration(timing.max_round_trip)},
      {"margin", format_duration(timing.margin)},
      {"watch-history", std::to_string(settings.events.bytes_max)},
      {"watch-history-events", std::to_string(settings.events.events_max)},
      {"deputy", settings.deputy},
      {"vm-clock", settings.vm_clock.empty() ? "auto" : settings.vm_clock},
  };
}

void describe(ServeSettings& settings) {
  const lease::Duration slow = settings.server.slowlog_threshold;
  const std::int64_t slower_than =
      slow == lease::Duration(0) ? -1 : slow / std::chrono::microseconds(1);
  // By the names that tools of Redis know.
  settings.server.config = {
      {"appendonly", "yes"},  // every write is in a synced log
      {"appendfsync", "always"},
      {"cluster-enabled", "yes"},
      {"databases", "1"},
      {"dir", settings.data_dir},
      {"maxmemory", "0"},
      {"maxmemory-policy", "noeviction"},
      {"proto-max-bulk-len", std::to_string(kBulkBytesMax)},
      {"slowlog-log-slower-than", std::to_string(slower_than)},
      {"slowlog-max-len", std::to_string(kSlowLogEntriesMax)},
      {"timeout", std::to_string(settings.server.idle_timeout / std::chrono::seconds(1))},
      {"notify-keyspace-events", "g$xKE"},  // always on, for clients that subscribe
      {"maxclients", std::to_string(settings.server.clients_max)},
      {"save", ""},
      {"loglevel", std::string(redis_log_level(settings.log_level))},
  };
  for (auto& one : own_settings(settings)) settings.server.config.push_back(std::move(one));
}

}  // namespace

Result<ServeSettings> make_settings(const SettingTexts& texts) {
  ServeSettings settings;
  for (const SettingSpec& spec : setting_specs()) {
    const auto found = texts.find(spec.name);
    const std::string text = found != texts.end() ? found->second : spec.default_text;
    if (found == texts.end() && text.empty()) continue;
    if (auto applied = spec.apply(settings, text); !applied) {
      return invalid(fmt::format("--{}: {}", spec.name, applied.error().message));
    }
  }
  if (auto checked = check_together(settings); !checked) return checked.error();
  if (settings.advertise.empty()) settings.advertise = settings.listen;
  settings.server.advertise = settings.advertise;
  settings.server.cluster = settings.node.cluster;
  settings.server.many_groups = settings.groups > 1;
  settings.server.replicas = settings.replicas;
  settings.server.client_addresses.try_emplace(settings.node.id, settings.advertise);
  settings.node.data_dir = settings.data_dir;
  describe(settings);
  return settings;
}

}  // namespace leasehold::server
